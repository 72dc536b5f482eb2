"""pool: a caching allocator, so that large results are written into memory that an earlier one has left.

Fresh memory is dear: the operating system hands it out page by page, cleared. A pool keeps the memory of results
that nobody sees any more and gives it, through `out=`, to the next result of about the size, the most recent first,
since that is the likeliest to be in a cache. In backward a dying operand is written over, where it can be
(`dynamic/straight.py`).
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Hashable, Sequence
from threading import get_ident
from typing import Any, NamedTuple, Self

from numpy import ndarray

from dynamic.blocks import Array, Blocks, Layout
from graphs import dispatch, promotion
from graphs.errors import GraphError, located
from graphs.op import Attrs, Op
from graphs.spec import spec_of

THRESHOLD = (1 << 16) + 1  # bytes; below it NumPy and the C library reuse memory as well as a pool does
# Whose kernels write straight to `out`, but for those that make the result elsewhere.
FAMILIES = {"elementwise", "reduction", "linalg", "movement", "window", "composed"}
COPIED = {"take", "roll"}


class PoolStats(NamedTuple):
    """What a pool holds, in bytes.

    in_use        arrays it handed out that somebody sees
    kept          memory that nobody sees, kept for the next arrays
    peak          the most memory of both kinds at one time, with what rounding to size classes adds
    peak_in_use   the most bytes of arrays in use at one time
    fresh         how often there was no memory to reuse
    """

    in_use: int
    kept: int
    peak: int
    peak_in_use: int
    fresh: int

    @property
    def slack(self) -> float:
        """The share of the peak that was not in use even when most was."""
        return 1 - self.peak_in_use / self.peak if self.peak else 0.0


class pool:  # noqa: N801  (`with dynamic.pool():` reads like `with dynamic.no_grad():`)
    """Reuse the memory of large results of the ops that this thread runs inside the `with` block.

    threshold   smaller results, and ops that read nothing as large, are left alone; in bytes
    limit       the most bytes it keeps for reuse

    Values are the same to the bit, and memory that anybody can still see is never written to. At most a fifth of the
    peak is memory that was not in use then. On exit what is kept is freed; results stay what they are. Raises
    GraphError for a pool that is on already, and outside CPython, where an array is not freed with its last reference.
    """

    def __init__(self, limit: int | None = None, threshold: int = THRESHOLD) -> None:
        self.threshold = threshold
        self._blocks = Blocks(limit)
        self._layouts: dict[Hashable, Layout | None] = {}  # of results, by what is called
        self._outer: pool | None = None

    def __enter__(self) -> Self:
        if self._blocks.thread:
            raise GraphError(located("this pool is on already; make one for each block and thread"))
        if sys.implementation.name != "cpython":
            raise GraphError(located("a pool needs CPython, which frees an array with its last reference; run without"))
        self._blocks.thread = get_ident()
        self._outer, _here.pool = _here.pool, self
        _switch(self.threshold, on=True)
        return self

    def __exit__(self, *_: object) -> None:
        _switch(self.threshold, on=False)
        _here.pool = self._outer
        self._layouts.clear()
        self._blocks.close()

    def stats(self) -> PoolStats:
        """What the pool holds now, and held at most since it was made; outside the block it holds nothing."""
        blocks = self._blocks
        blocks.settle()
        return PoolStats(blocks.in_use, blocks.kept(), blocks.peak, blocks.peak_in_use, blocks.fresh)

    def run(self, op: Op, arrays: Sequence[Any], attrs: Attrs) -> Any:
        """Run a kernel that reads something large, and into memory of the pool if its result is known to be so too."""
        key = _key(op, arrays, attrs)
        try:
            layout = self._layouts[key]
        except KeyError:
            return self._learn(key, op, arrays, attrs)
        except TypeError:  # an attribute without a hash, such as a slice
            layout = None
        if layout is None:
            return op.kernel(*arrays, **attrs)
        return op.kernel(*arrays, out=self._blocks.take(layout), **attrs)

    def _learn(self, key: Hashable, op: Op, arrays: Sequence[Any], attrs: Attrs) -> Any:
        """Run a kernel, and remember what kind of result such a call has."""
        result = op.kernel(*arrays, **attrs)
        large = type(result) is ndarray and result.nbytes >= max(self.threshold, 1)
        known = large and _is_known(op, arrays, attrs, result)
        self._layouts[key] = self._blocks.layout(result) if known else None
        return result


def _key(op: Op, arrays: Sequence[Any], attrs: Attrs) -> tuple[Any, ...]:
    """What the shape, dtype and layout of a result hang on: of a Python number, that it is one."""
    x, y = arrays[0], arrays[-1]
    if len(arrays) < 3 and type(x) is ndarray is type(y):  # most calls, in half the time of what follows
        if x is y:
            return op, len(arrays), x.shape, x.strides, x.dtype, *attrs.values()
        return op, x.shape, x.strides, x.dtype, y.shape, y.strides, y.dtype, *attrs.values()
    return op, *attrs.items(), *[(a.shape, a.strides, a.dtype) if type(a) is ndarray else type(a) for a in arrays]


def _is_known(op: Op, arrays: Sequence[Any], attrs: Attrs, result: Array) -> bool:
    """Whether every such call gives an array of its own like this one, and may be told where to put it."""
    if op.view or op.family not in FAMILIES or op.name in COPIED:
        return False
    if not result.flags.owndata or not result.flags.c_contiguous or any(result is a for a in arrays):
        return False
    try:
        return op.infer(*[spec_of(promotion.typed(a, arrays)) for a in arrays], **attrs) == spec_of(result)
    except GraphError:  # its size depends on values
        return False


class _Here(threading.local):
    pool: pool | None = None


_here = _Here()
_lock = threading.Lock()
_thresholds: list[int] = []  # of the pools that are on, in any thread


def _switch(threshold: int, *, on: bool) -> None:
    """Let kernels that read something large go through the pool of their thread while any thread has one."""
    with _lock:
        (_thresholds.append if on else _thresholds.remove)(threshold)
        dispatch.least[0] = min(_thresholds, default=0)
        dispatch.runners[:] = [_run] if _thresholds else []


def _run(op: Op, arrays: Sequence[Any], attrs: Attrs) -> Any:
    """Run a kernel, by the pool of this thread if it reads something large and makes more than a view of it."""
    active = _here.pool
    if active is not None and not op.view:
        threshold = active.threshold
        for array in arrays:
            if type(array) is ndarray and array.nbytes >= threshold:
                return active.run(op, arrays, attrs)
    return op.kernel(*arrays, **attrs)

"""Pullbacks of ops that save no array: what their rule calls hangs on plain values alone, and is found out once.

Sums, means, reshapes and their like spend more on shapes and axes than on their kernels. Their rules make one kernel
call after the other, each on the result of the one before: a chain, which is written down on the first run with some
shape and options, and run again from then on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dynamic.sample import Call, Sample, Typed
from dynamic.straight import total, unbroadcast
from graphs import dispatch
from graphs.op import Op
from graphs.ops.movement import cast

if TYPE_CHECKING:
    from dynamic.entry import Entry
    from dynamic.pullback import Pullback

_MOST = 4096  # chains to remember for one op


class Link(NamedTuple):
    """A kernel call on the value before, which stands between other arguments."""

    op: Op
    before: Sequence[Any]
    after: Sequence[Any]
    attrs: dict[str, Any]


class Chains:
    """The chains of a pullback, by all that they can hang on: the cotangent's shape and dtype, and what is saved."""

    def __init__(self, pullback: Pullback) -> None:
        self._pullback = pullback
        self._known: dict[Any, list[Link] | None] = {}

    def pull(self, entry: Entry, keep: bool, cotangents: dict[Any, Any]) -> None:
        """Carry the cotangent of an entry to its input, letting go of each value after the kernel that reads it."""
        key = entry.shape, entry.dtype.num, entry.saved
        try:
            chain = self._known.get(key, _UNKNOWN)
        except TypeError:  # an option without a hash, such as a slice
            chain = None
        if chain is None:
            return self._pullback.by_rules(entry, keep, cotangents)
        cotangent = cotangents.pop(entry)
        edge: Any = entry.edges[0]
        if not keep:
            entry.release()
        if chain is _UNKNOWN:
            cotangent = self._learn(key, cotangent)
        else:
            run = dispatch.runners[-1] if dispatch.runners and _is_large(edge, cotangent) else _run
            for op, before, after, attrs in chain:
                cotangent = run(op, (*before, cotangent, *after), attrs)
            if type(cotangent) is not np.ndarray:
                cotangent = np.asarray(cotangent)
        if self._pullback.op.broadcasts:
            cotangent = cast(cotangent, edge.dtype)
            if cotangent.shape != edge.shape:
                cotangent = unbroadcast(cotangent, edge.shape)
        cotangents[edge] = total(cotangents.pop(edge), cotangent) if edge in cotangents else cotangent
        return None

    def _learn(self, key: tuple[Any, ...], cotangent: Any) -> Any:
        """What the rule makes of a cotangent, with its calls written down; with None where they are no chain."""
        calls: list[Call] = []
        (step,) = self._pullback.steps
        result = step.rule.apply(Sample("g", cotangent, calls, whole=True), *[key[-1][place] for place in step.places])
        names = ["g", *[call.name for call in calls]]
        follows = [call.values == [name] for call, name in zip(calls, names, strict=False)]
        if len(self._known) >= _MOST:
            self._known.clear()
        chained = all(follows) and result.name == names[-1]
        self._known[key] = [_link(call, cotangent.dtype) for call in calls] if chained else None
        return result.array


def _run(op: Op, arrays: Sequence[Any], attrs: dict[str, Any]) -> Any:
    return op.kernel(*arrays, **attrs)


def _is_large(edge: Any, cotangent: Any) -> bool:
    """Whether a cotangent, or that of the input, is so large that a pool may have memory for it."""
    return max(cotangent.nbytes, math.prod(edge.shape) * edge.dtype.itemsize) >= dispatch.least[0]


_UNKNOWN: list[Link] = []


def _link(call: Call, dtype: np.dtype[Any]) -> Link:
    at = [isinstance(arg, str) for arg in call.args].index(True)
    args = [arg if isinstance(arg, str) or dtype.kind != "f" else Typed(arg)[dtype.num] for arg in call.args]
    return Link(call.op, args[:at], args[at + 1 :], call.attrs)

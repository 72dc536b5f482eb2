"""Shortcuts made of the compiled loops, and what is lent to these: arrays, tensors and entries, and who is to be asked.

The loops know nothing of the op library. What they need of it, and of NumPy, is handed to them here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

import numpy as np

from dynamic import inplace, native, straight
from dynamic.entry import Entry, Leaf
from dynamic.prepared import UnlikeError
from dynamic.pullback import Pullback, pullback
from dynamic.tensor import Tensor
from graphs import dispatch, promotion
from graphs.op import Op
from graphs.ops.linalg import matmul
from graphs.ops.movement import cast


def record(
    loops: ModuleType, op: Op, wanted: Iterable[int], pullbacks: Mapping[str, Any], *, swapped: bool
) -> Callable[..., Any] | None:
    """The shortcut of an op, with its two operands the other way round if `swapped`.

    `wanted` are the sets of inputs that may want a gradient. None where something is saved that the loop cannot fetch.
    """
    wants = {}
    for of in wanted:
        fields = [_FIELD.fullmatch(field) for field in pullback(op, of, op.arity or 0, None).fields]
        if not all(fields):
            return None
        saved = tuple([(_SOURCES[f["source"]], f["key"] or f["attribute"]) for f in fields if f])
        wants[of] = saved, pullbacks.get(f"pull{of}"), pullbacks.get(f"number{of}")
    made: Callable[..., Any] = loops.Record(
        op=op,
        kernel=op.kernel,
        general=op.general,
        arity=op.arity,
        wants=wants,
        prepared=pullbacks.get("prepared"),
        swapped=swapped,
        by_axes=op is matmul,
        takes_numbers=op is not matmul,
    )
    return made


_FIELD = re.compile(r"(?P<source>inputs\[\d\]|out|attrs)(\['(?P<key>\w+)'\]|\.(?P<attribute>\w+))?")
_SOURCES = {"inputs[0]": 0, "inputs[1]": 1, "out": 2, "attrs": 3}


def _connect(loops: ModuleType) -> None:
    """Lend the loops what they work with. Raises ImportError where arrays are laid out otherwise than they know."""
    loops.connect(
        tensor=Tensor,
        entry=Entry,
        leaf=Leaf,
        pullback=Pullback,
        clock=inplace.clock,
        ndarray=np.ndarray,
        asarray=np.asarray,
        add=np.add,
        cast=cast,
        unbroadcast=straight.unbroadcast,
        detours=dispatch.detours,
        numbers=promotion.numbers,
        broken=(*dispatch.BROKEN_RULES, OverflowError, UnlikeError),
        count=inplace.clock.count,
        nothing={},
        watchers=native.watchers,
        reduce=np.add.reduce,
        samples=tuple(map(_told, _samples())),
    )


def _samples() -> list[np.ndarray[Any, Any]]:
    """Arrays that differ in all that the loops look at."""
    whole = np.zeros((2, 3), np.float32)
    fixed = np.zeros((), np.float64)
    fixed.flags.writeable = False
    return [whole, whole[:, ::2], np.zeros((5, 1, 4), np.float16), fixed]


def _told(array: np.ndarray[Any, Any]) -> tuple[Any, ...]:
    dtype = array.dtype
    return array, array.shape, dtype, array.base, dtype.num, dtype.itemsize, array.flags.writeable


if native.loops is not None:
    try:
        _connect(native.loops)
    except ImportError:
        native.loops = None

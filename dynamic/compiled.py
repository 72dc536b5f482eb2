"""Shortcuts made of the compiled loops, and what is lent to these: arrays, tensors and entries, and who is to be asked.

The loops know nothing of the op library. What they need of it, and of NumPy, is handed to them here.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from dynamic import inplace, native, straight
from dynamic.entry import Entry, Leaf
from dynamic.prepared import UnlikeError, attributes, has_options
from dynamic.pullback import Pullback, pullback
from dynamic.tensor import Tensor
from graphs import dispatch, promotion
from graphs.op import SHAPES, Op
from graphs.ops.linalg import SMALL, matmul
from graphs.ops.movement import cast
from graphs.ops.sums import MANY, summed


def recorder(loops: ModuleType, op: Op) -> Any:
    """What the loops know of an op: how it is run, and what is kept of it."""
    return loops.Recorder(
        kernel=op.kernel,
        arity=_arity(op),
        find=functools.partial(_found, op),
        ruled=sum(1 << i for i in range(_MOST_INPUTS if op.arity is None else op.arity) if op.rule(i)),
        is_elementwise=op.family == "elementwise",
    )


def _found(op: Op, wanted: int, count: int, ndims: tuple[int | None, ...] | None) -> tuple[Pullback, Any]:
    """The pullback for the inputs in a bit set, and what it saves: pairs of a source and a name."""
    found = pullback(op, wanted, count, ndims)
    return found, tuple(map(_field, found.fields))


def _field(expression: str) -> tuple[int, Any]:
    if expression.isdecimal():
        return _CONSTANT, int(expression)
    if expression == SHAPES:
        return _SHAPES, None
    field = _FIELD.fullmatch(expression)
    if field is None:
        raise ValueError(f"no loop knows how to fetch {expression}")
    source = _SOURCES[field["source"]] if field["number"] is None else int(field["number"])
    return source, field["key"] or field["attribute"]


def record(
    loops: ModuleType, op: Op, *, swapped: bool = False, item: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """The shortcut of an op, with its two operands the other way round if `swapped`.

    Of getitem also what stands in place of `item(tensor, key)`, and asks that where the key is out of the ordinary.
    """
    made: Callable[..., Any] = loops.Record(
        recorder=op.recorder or recorder(loops, op),
        op=op,
        general=item or op.general,
        arity=_arity(op),
        prepared=attributes(op) if has_options(op) else None,
        swapped=swapped,
        takes_numbers=op.prepare is None,
        is_item=item is not None,
    )
    return made


def _arity(op: Op) -> int:
    return -1 if op.arity is None else op.arity


_MOST_INPUTS = 64  # as loops.h says
_FIELD = re.compile(r"(?P<source>inputs\[(?P<number>\d+)\]|out|attrs)(\['(?P<key>\w+)'\]|\.(?P<attribute>\w+))?")
_SOURCES = {"out": -1, "attrs": -2}
_SHAPES, _CONSTANT = -3, -4


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
        observers=dispatch.observers,
        numbers=promotion.numbers,
        broken=(*dispatch.BROKEN_RULES, OverflowError, UnlikeError),
        count=inplace.clock.count,
        nothing={},
        watchers=native.watchers,
        reduce=np.add.reduce,
        summed=summed,
        many=MANY,
        dtype=np.dtype,
        product=matmul.kernel,
        matmul=np.matmul,
        dot=np.ndarray.dot,
        divide=np.divide,
        multiply=np.multiply,
        small=SMALL,
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

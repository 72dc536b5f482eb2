"""Ops recorded by the compiled tape: a `Recorder` runs and records an op, a `Record` is an op that users call."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

from dynamic.fast import loops
from dynamic.fast.pullbacks import CompiledPullback, pullback
from dynamic.options import attributes, has_options, may_remember
from dynamic.tensor import Tensor
from graphs.frontends.torch import names, pointwise
from graphs.op import SHAPES, Op
from graphs.ops import elementwise
from graphs.ops.linalg import matmul
from graphs.ops.slicing import getitem

OPERATORS: tuple[tuple[Op, tuple[str, ...]], ...] = (
    (elementwise.abs, ("__abs__",)),
    (elementwise.add, ("__add__", "__radd__")),
    (elementwise.divide, ("__truediv__", "__rtruediv__")),
    (elementwise.equal, ("__eq__",)),
    (elementwise.greater, ("__gt__",)),
    (elementwise.greater_equal, ("__ge__",)),
    (elementwise.less, ("__lt__",)),
    (elementwise.less_equal, ("__le__",)),
    (matmul, ("__matmul__", "__rmatmul__")),
    (elementwise.multiply, ("__mul__", "__rmul__")),
    (elementwise.negative, ("__neg__",)),
    (elementwise.not_equal, ("__ne__",)),
    (elementwise.subtract, ("__sub__", "__rsub__")),
)
"""The operators of a tensor that are an op where all are floats of one dtype, and PyTorch's function where they are
not; the second name is that of the same with the operands the other way round."""


def operators() -> dict[str, Any]:
    """The methods of a tensor that the compiled tape replaces."""
    methods: dict[str, Any] = {"__getitem__": record(getitem, general=Tensor.__getitem__)}
    for op, (plain, *reflected) in OPERATORS:
        general = getattr(Tensor, plain)
        methods[plain] = record(op, general=general, alike=True)
        methods |= {name: record(op, general=general, alike=True, swapped=True) for name in reflected}
    return methods


def functions() -> dict[str, Any]:
    """PyTorch's functions that are one op: the compiled tape takes floats of one dtype, the function other calls."""
    return {name: record(op, general=names.functions[name], alike=True) for name, op in pointwise.OPS.items()}


def install(op: Op) -> None:
    """Let the compiled tape record an op, from its first use on."""
    if op in _installed:
        return
    _installed.add(op)
    if op.arity != 0 and may_remember(op):
        op.recorder = recorder(op)
        op.shortcuts.update(dict.fromkeys([Tensor] if op.arity is not None else [list, tuple], record(op)))


_installed: WeakSet[Op] = WeakSet()


def recorder(op: Op) -> Any:
    """The description of an op for the loops: its kernel, and its pullbacks with the values they save."""
    return loops.Recorder(
        kernel=op.kernel,
        arity=_arity(op),
        find=functools.partial(_lookup_pullback, op),
        ruled=sum(1 << i for i in range(_MOST_INPUTS if op.arity is None else op.arity) if op.rule(i)),
        is_elementwise=op.family == "elementwise",
    )


def _lookup_pullback(
    op: Op, wanted: int, count: int, ndims: tuple[int | None, ...] | None
) -> tuple[CompiledPullback, Any]:
    """The pullback for the inputs in a bit set, and its saved values as pairs of a source and a field name."""
    compiled = pullback(op, wanted, count, ndims)
    return compiled, tuple(map(_field, compiled.fields))


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
    op: Op, *, swapped: bool = False, alike: bool = False, general: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """The shortcut of an op; with `swapped` its two operands are exchanged.

    Unusual calls go to `general`, by default the op itself; with `alike` so do operands that are not floats of one
    dtype.
    """
    made: Callable[..., Any] = loops.Record(
        recorder=op.recorder or recorder(op),
        op=op,
        general=general or op.general,
        arity=_arity(op),
        prepared=attributes(op) if has_options(op) else None,
        swapped=swapped,
        takes_numbers=op.prepare is None,
        alike=alike,
    )
    return made


def _arity(op: Op) -> int:
    return -1 if op.arity is None else op.arity


_MOST_INPUTS = 64  # as loops.h says
_FIELD = re.compile(r"(?P<source>inputs\[(?P<number>\d+)\]|out|attrs)(\['(?P<key>\w+)'\]|\.(?P<attribute>\w+))?")
_SOURCES = {"out": -1, "attrs": -2}
_SHAPES, _CONSTANT = -3, -4

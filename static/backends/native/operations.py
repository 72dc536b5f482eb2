"""What functions and reductions are made of: comparisons, casts, extremes, and how two parts become one."""

from __future__ import annotations

from collections.abc import Callable

from static.backends.native.ir import LoopBuilder, Type, Value

Write = Callable[..., Value]


def cast(b: LoopBuilder, x: Value, dtype: str) -> Value:
    """The value in another dtype."""
    return x if x.type.dtype == dtype else b.op("cast", x, type=Type(dtype, x.type.lanes))


def test(b: LoopBuilder, name: str, *args: Value) -> Value:
    """A comparison: a truth a lane."""
    return b.op(name, *args, type=Type("b1", args[0].type.lanes))


def maximum(b: LoopBuilder, x: Value, y: Value) -> Value:
    """The larger; NaN where either is."""
    return _extreme(b, "gt", x, y)


def minimum(b: LoopBuilder, x: Value, y: Value) -> Value:
    """The smaller; NaN where either is."""
    return _extreme(b, "lt", x, y)


def _extreme(b: LoopBuilder, name: str, x: Value, y: Value) -> Value:
    extreme = b.op("select", test(b, name, x, y), x, y, type=x.type)  # y where either is NaN, as the instruction does
    if x.type.dtype[0] != "f":
        return extreme
    return b.op("select", test(b, "ne", x, x), x, extreme, type=x.type)


def operation(name: str) -> Write:
    """One operation of the loop IR as a function."""
    return lambda b, *args: b.op(name, *args)


JOINS: dict[str, Write] = {
    "add": operation("add"),
    "mul": operation("mul"),
    "max": maximum,
    "min": minimum,
    "and": operation("and"),
    "or": operation("or"),
}
"""How two parts of a reduction become one."""

"""Weak symbols: the Python numbers of a loop's state, which in a graph must be arrays.

Beside a tensor they take its dtype, as the number would (NEP 50), so that `x * i` has the dtype it has in Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphs import promotion
from graphs.op import Op
from graphs.ops.movement import astype
from static.trace.symbol import Symbol

# What Python's operators are: between two numbers they give a number.
_OPERATORS = frozenset(
    ["add", "subtract", "multiply", "divide", "floor_divide", "remainder", "pow", "square", "negative", "abs"]
)


def is_weak(value: Any) -> bool:
    """Whether a value is a Python number, or stands for one."""
    return value.weak if isinstance(value, Symbol) else promotion.is_scalar(value)


def gives_weak(op: Op, args: Sequence[Any]) -> bool:
    """Whether the result stands for a Python number too."""
    return op.name in _OPERATORS and all(map(is_weak, args))


def beside(op: Op, args: Sequence[Any]) -> Sequence[Any]:
    """The arguments, with weak symbols in the dtype that they take beside the others."""
    if op.family != "elementwise" or not any(isinstance(arg, Symbol) and arg.weak for arg in args):
        return args
    strong = [arg for arg in args if not is_weak(arg)]
    return [_typed(arg, strong) if isinstance(arg, Symbol) and arg.weak else arg for arg in args] if strong else args


def _typed(symbol: Symbol, strong: Sequence[Any]) -> Any:
    dtype = promotion.scalar_dtype(symbol.dtype.type(0).item(), strong)
    return symbol if symbol.dtype == dtype else astype(symbol, dtype)

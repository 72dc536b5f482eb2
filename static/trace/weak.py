"""Weak symbols: the Python numbers of a loop's state, which in a graph must be arrays.

Beside a tensor they take its dtype, as the number would (NEP 50), so that `x * i` has the dtype it has in Python.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphs import promotion
from graphs.op import Op
from graphs.ops.movement import astype
from graphs.surface import Surface
from static.trace.symbol import ArraySymbol, Symbol


def is_weak(value: Any) -> bool:
    """Whether a value is a Python number, or stands for one."""
    return value.weak if isinstance(value, Symbol) else promotion.is_scalar(value)


def beside(op: Op, args: Sequence[Any]) -> Sequence[Any]:
    """The arguments, with weak symbols in the dtype that they take beside the others."""
    if op.family != "elementwise" or not any(isinstance(arg, Symbol) and arg.weak for arg in args):
        return args
    strong = [arg for arg in args if not is_weak(arg)]
    return [_typed(arg, strong) if isinstance(arg, Symbol) and arg.weak else arg for arg in args] if strong else args


def _typed(symbol: Symbol, strong: Sequence[Any]) -> Any:
    dtype = promotion.scalar_dtype(symbol.dtype.type(0).item(), strong)
    return symbol if symbol.dtype == dtype else astype(symbol, dtype)


# Python's operators between two numbers give a number. Of two bools these make ints, and the others bools.
_ARITHMETIC = (
    "add sub mul truediv floordiv mod pow lshift rshift radd rsub rmul rtruediv rfloordiv rmod rpow rlshift rrshift"
)
_OF_INTS = [f"__{name}__" for name in f"{_ARITHMETIC} neg pos abs invert round".split()]
_OF_BOOLS = [f"__{name}__" for name in ("and", "or", "xor", "rand", "ror", "rxor", "eq", "ne", "lt", "le", "gt", "ge")]


def _operator(name: str) -> Callable[..., Any]:
    operator, of_tensors = getattr(Surface, name), getattr(Symbol, name)
    of_ints = name in _OF_INTS

    @functools.wraps(operator)
    def called(self: Symbol, *others: Any) -> Any:
        if self.weak and any(type(other) is Symbol for other in others):
            return of_tensors(self, *others)
        if not (self.weak and all(map(is_weak, others))):
            return operator(self, *others)
        result = operator(*(map(_int, (self, *others)) if of_ints else (self, *others)))
        return Symbol(result.builder, result.node, weak=True) if isinstance(result, Symbol) else result

    return called


def _int(value: Any) -> Any:
    return astype(value, np.int64) if isinstance(value, Symbol) and value.dtype == np.bool_ else value


for _name in (*_OF_INTS, *_OF_BOOLS):
    setattr(ArraySymbol, _name, _operator(_name))

"""PyTorch's functions of one tensor, element by element. Ints become floats where the result is no int."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphs import ops
from graphs.frontends.torch.names import name
from graphs.frontends.torch.promotion import (
    bits,
    promote,
    promote_for_comparison,
    promote_to_float,
    truth,
    truths,
    whole,
)
from graphs.frontends.torch.words import cast, floats, refuse
from graphs.op import Op, TorchName, registered_ops
from graphs.ops.elementwise import sgn
from graphs.ops.shapes import dtype_of

Function = Callable[..., Any]


OPS: dict[str, Op] = {}
"""The functions that are an op of floats of one dtype, by their names."""


def of_op(op: Op, takes: str = "") -> Function:
    """Make PyTorch's function of an op of one or two operands; `takes` is for an op without `op.torch`.

    Raises ValueError for other ops, and for a `takes` that does not fit the number of operands.
    """
    takes = takes or (op.torch.takes if op.torch else "any")
    makers = {1: _OF_ONE, 2: _OF_TWO}.get(op.arity or 0, {})
    if takes not in makers:
        raise ValueError(f"{op.name}: an op of {op.arity} operands takes one of {[*makers]}, not {takes!r}")
    function = makers[takes](op)
    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = op.__doc__
    return function


def _of_two(promote: Callable[..., Sequence[Any]]) -> Callable[[Op], Function]:
    return lambda op: lambda input, other: op(*promote(input, other))


_OF_ONE: dict[str, Callable[[Op], Function]] = {
    "any": lambda op: lambda input: op(input),
    "floats": lambda op: lambda input: op(floats(input)),
    "numbers": lambda op: lambda input: op(refused_bools(input, op.name)),
    "truths": lambda op: lambda input: op(truth(input)),
}
_PROMOTED = {
    "promoted": promote, "floats": promote_to_float, "compared": promote_for_comparison, "bits": bits,
    "truths": truths, "ints": whole,
}  # fmt: skip
_OF_TWO = {takes: _of_two(promote) for takes, promote in _PROMOTED.items()}
"""What becomes of operands first, by the word in `TorchName.takes`."""


def _enter(op: Op, torch: TorchName) -> None:
    function = of_op(op)
    function.__name__ = torch.name or op.name
    name(*torch.alias.split(), in_place=torch.in_place)(function)
    OPS.update(dict.fromkeys((function.__name__, *torch.alias.split()), op))


def refused_bools(x: Any, name: str) -> Any:
    """Return the tensor. Raises DTypeError for bools, which PyTorch refuses here."""
    if dtype_of(x).kind == "b":
        raise refuse(f"{name} of bools", "convert with .int() first")
    return x


@name(in_place=True)
def digamma(input: Any) -> Any:
    """The derivative of log(gamma(input))."""
    return ops.digamma(floats(input))


@name()
def polygamma(n: Any, input: Any) -> Any:
    """Derivative n + 1 of log(gamma(input)). Raises DTypeError for an n below 0, or that is no int."""
    if not isinstance(n, int) or n < 0:
        raise refuse(f"polygamma of order {n!r}", "use 0, 1, 2 and so on")
    return ops.polygamma(n, floats(input))


@name()
def positive(input: Any) -> Any:
    """Return the tensor. Raises DTypeError for bools."""
    return refused_bools(input, "positive")


@name(in_place=True)
def sinc(input: Any) -> Any:
    """sin(pi x) / (pi x), and 1 at 0."""
    return ops.sinc(floats(input))


@name("sgn", in_place=True)
def sign(input: Any) -> Any:
    """-1, 0 or 1, and 0 for NaN."""
    return sgn(input)


@name(in_place=True)
def square(input: Any) -> Any:
    """Each element times itself; bools become ints."""
    return ops.square(cast(input, np.int64) if dtype_of(input).kind == "b" else input)


@name(in_place=True)
def rsqrt(input: Any) -> Any:
    """1 over the square root."""
    return ops.reciprocal(ops.sqrt(floats(input)))


@name(in_place=True)
def exp2(input: Any) -> Any:
    """2 to the power of each element."""
    return ops.pow(2.0, floats(input))


@name(in_place=True)
def frac(input: Any) -> Any:
    """The fractional part of each element."""
    return ops.subtract(input, ops.trunc(input))


@name(in_place=True)
def deg2rad(input: Any) -> Any:
    """Convert degrees to radians."""
    return ops.multiply(floats(input), np.pi / 180)


@name(in_place=True)
def rad2deg(input: Any) -> Any:
    """Convert radians to degrees."""
    return ops.multiply(floats(input), 180 / np.pi)


@name(in_place=True)
def logit(input: Any, eps: float | None = None) -> Any:
    """The inverse of the sigmoid."""
    x = floats(input)
    if eps is not None and eps > 0.5:
        raise ValueError(f"logit: eps is at most 0.5, not {eps}")
    x = x if eps is None else ops.clip(x, eps, 1 - eps)
    # A ratio keeps the digits near 1/2, and a difference the slopes at 0 and 1, which are infinite.
    distance = ops.abs(ops.subtract(x, 0.5))
    middle = ops.less(distance, 0.25)
    near, far = ops.where(middle, x, 0.5), ops.where(middle, 0.25, x)
    sloped = ops.where(ops.greater(distance, 0.5), math.nan, 1.0)
    far = ops.multiply(far, cast(sloped, dtype_of(x)))  # NaN has no slope either
    ratio = ops.log(ops.divide(near, ops.subtract(1, near)))
    return ops.where(middle, ratio, ops.subtract(ops.log(far), ops.log1p(ops.negative(far))))


@name(in_place=True)
def threshold(input: Any, threshold: float, value: float) -> Any:
    """The elements above a threshold, and `value` for the others; NaN stays."""
    if dtype_of(input).kind != "f" and not (isinstance(value, int) and isinstance(threshold, int)):
        raise refuse("threshold of ints by floats", "convert with .float() first")
    return ops.where(ops.less_equal(input, threshold), value, input)


@name(in_place=True)
def round(input: Any, *, decimals: int = 0) -> Any:
    """Round to the nearest integer, or to `decimals`; halves go to the even neighbour."""
    x = refused_bools(input, "round")
    if not decimals or dtype_of(x).kind in "iu":
        if decimals:
            raise refuse("round of ints to decimals", "convert with .float() first")
        return ops.round(x)
    scale = 10.0 ** builtins.abs(decimals)
    if decimals < 0:
        return ops.multiply(ops.round(ops.divide(x, scale)), scale)
    return ops.divide(ops.round(ops.multiply(x, scale)), scale)


@name(in_place=True)
def nan_to_num(input: Any, nan: float | None = None, posinf: float | None = None, neginf: float | None = None) -> Any:
    """NaN and infinities replaced: by 0 and the largest numbers by default."""
    if dtype_of(input).kind != "f":
        return ops.identity(input)
    return ops.nan_to_num(input, 0.0 if nan is None else nan, posinf, neginf)


for _op in registered_ops().values():
    if _op.torch is not None:
        _enter(_op, _op.torch)

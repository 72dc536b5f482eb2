"""PyTorch's functions of one tensor, element by element. Ints become floats where the result is no int."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphs import ops
from graphs.frontends.torch.promotion import is_weak, promoted
from graphs.frontends.torch.words import cast, floats, refuse, words
from graphs.ops.shapes import dtype_of

Function = Callable[..., Any]


__all__ = [
    "abs",
    "absolute",
    "acos",
    "acosh",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctanh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "ceil",
    "cos",
    "cosh",
    "deg2rad",
    "digamma",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "fix",
    "floor",
    "frac",
    "lgamma",
    "log",
    "log1p",
    "log2",
    "log10",
    "logit",
    "nan_to_num",
    "neg",
    "negative",
    "polygamma",
    "positive",
    "rad2deg",
    "reciprocal",
    "relu",
    "round",
    "rsqrt",
    "sgn",
    "sigmoid",
    "sign",
    "signbit",
    "sin",
    "sinc",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "threshold",
    "trunc",
]  # fmt: skip


def unary(op: Function) -> Function:
    """An op of one tensor that keeps its dtype."""

    def called(input: Any) -> Any:
        return op(input)

    return _named(called, op)


def of_floats(op: Function) -> Function:
    """An op of one tensor that gives floats."""

    def called(input: Any) -> Any:
        return op(floats(input))

    return _named(called, op)


def _rounding(op: Function) -> Function:
    """An op of one tensor that leaves ints as they are, and refuses bools."""

    def called(input: Any) -> Any:
        return op(refused_bools(input, op.__name__))

    return _named(called, op)


def binary(
    op: Function,
    convert: Function = lambda x: x,
    promote: Callable[..., Any] = promoted,
) -> Function:
    """An op of two tensors or numbers, in the dtype that PyTorch computes in, or that `promote` gives."""

    def called(input: Any, other: Any) -> Any:
        left, right = promote(input, other)
        return op(convert(left), convert(right))

    return _named(called, op)


def floated(*operands: Any) -> Sequence[Any]:
    """What `promoted` gives, bools and ints in the dtype of the floats beside them, or in the default one."""
    converted = promoted(*operands)
    kinds = [dtype_of(x) for x in converted if not is_weak(x)]
    wanted = np.result_type(*([d for d in kinds if d.kind == "f"] or [np.dtype(np.float32)]))
    return [x if is_weak(x) or dtype_of(x).kind == "f" else cast(x, wanted) for x in converted]


same: list[tuple[Function, Any]] = []
"""Functions, each with the op that does the same to tensors of floats of one dtype."""


def _named(called: Function, op: Function) -> Function:
    same.append((called, op))
    called.__name__ = called.__qualname__ = op.__name__
    called.__doc__ = op.__doc__
    return called


def refused_bools(x: Any, name: str) -> Any:
    """The tensor itself. Raises DTypeError for bools, which PyTorch refuses here."""
    if dtype_of(x).kind == "b":
        raise refuse(f"{name} of bools", "convert with .int() first")
    return x


abs = absolute = _rounding(ops.abs)
acos = arccos = of_floats(ops.acos)
acosh = arccosh = of_floats(ops.acosh)
asin = arcsin = of_floats(ops.asin)
asinh = arcsinh = of_floats(ops.asinh)
atan = arctan = of_floats(ops.atan)
atanh = arctanh = of_floats(ops.atanh)
ceil = _rounding(ops.ceil)
cos = of_floats(ops.cos)
cosh = of_floats(ops.cosh)
erf = of_floats(ops.erf)
erfc = of_floats(ops.erfc)
exp = of_floats(ops.exp)
lgamma = of_floats(ops.gammaln)
digamma = of_floats(ops.digamma)


def polygamma(n: Any, input: Any) -> Any:
    """Derivative n + 1 of log(gamma(input)). Raises DTypeError for an n below 0, or that is no int."""
    if not isinstance(n, int) or n < 0:
        raise refuse(f"polygamma of order {n!r}", "use 0, 1, 2 and so on")
    return ops.polygamma(n, floats(input))


expm1 = of_floats(ops.expm1)
floor = _rounding(ops.floor)
log = of_floats(ops.log)


log10 = of_floats(ops.log10)


log1p = of_floats(ops.log1p)


log2 = of_floats(ops.log2)
neg = negative = _rounding(ops.negative)


def positive(input: Any) -> Any:
    """The tensor itself, of any numbers but bools."""
    return refused_bools(input, "positive")


reciprocal = of_floats(ops.reciprocal)
sigmoid = of_floats(ops.sigmoid)
signbit = unary(ops.signbit)
sin = of_floats(ops.sin)
sinc = of_floats(ops.sinc)
sinh = of_floats(ops.sinh)
sqrt = of_floats(ops.sqrt)
tan = of_floats(ops.tan)
tanh = of_floats(ops.tanh)
trunc = fix = _rounding(ops.trunc)


def sign(input: Any) -> Any:
    """-1, 0 or 1; 0 of NaN."""
    signs = ops.sign(input)
    return ops.where(ops.isnan(input), 0, signs) if dtype_of(input).kind == "f" else signs


sgn = sign


def square(input: Any) -> Any:
    """Each element times itself; bools become ints."""
    return ops.square(cast(input, np.int64) if dtype_of(input).kind == "b" else input)


def rsqrt(input: Any) -> Any:
    """1 over the square root."""
    return ops.reciprocal(sqrt(input))


def exp2(input: Any) -> Any:
    """2 to each element."""
    return ops.pow(2.0, floats(input))


def frac(input: Any) -> Any:
    """What is behind the point."""
    return ops.subtract(input, ops.trunc(input))


def deg2rad(input: Any) -> Any:
    """Degrees as radians."""
    return ops.multiply(floats(input), np.pi / 180)


def rad2deg(input: Any) -> Any:
    """Radians as degrees."""
    return ops.multiply(floats(input), 180 / np.pi)


def logit(input: Any, eps: float | None = None) -> Any:
    """The inverse of the sigmoid."""
    x = floats(input)
    if eps is not None and eps > 0.5:
        raise ValueError(f"logit: eps is at most 0.5, not {eps}")
    x = x if eps is None else ops.clip(x, eps, 1 - eps)
    return ops.log(ops.divide(x, ops.subtract(1, x)))


def relu(input: Any) -> Any:
    """The elements above 0, and 0 for the others."""
    return ops.relu(refused_bools(input, "relu"))


def threshold(input: Any, threshold: float, value: float) -> Any:
    """The elements above a threshold, and `value` for the others; NaN stays."""
    if dtype_of(input).kind != "f" and not (isinstance(value, int) and isinstance(threshold, int)):
        raise refuse("threshold of ints by floats", "convert with .float() first")
    return ops.where(ops.less_equal(input, threshold), value, input)


@words
def round(input: Any, *, decimals: int = 0) -> Any:
    """To the nearest integer, or to so many decimals; halves go to the even one."""
    x = refused_bools(input, "round")
    if not decimals or dtype_of(x).kind in "iu":
        if decimals:
            raise refuse("round of ints to decimals", "convert with .float() first")
        return ops.round(x)
    scale = 10.0 ** builtins.abs(decimals)
    if decimals < 0:
        return ops.multiply(ops.round(ops.divide(x, scale)), scale)
    return ops.divide(ops.round(ops.multiply(x, scale)), scale)


@words
def nan_to_num(input: Any, nan: float | None = None, posinf: float | None = None, neginf: float | None = None) -> Any:
    """NaN and infinities replaced: by 0 and the largest numbers by default."""
    if dtype_of(input).kind != "f":
        return unary(ops.identity)(input)
    return ops.nan_to_num(input, 0.0 if nan is None else nan, posinf, neginf)

"""PyTorch's elementwise functions of one or two tensors that few programs use; and its tests for complex numbers."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from graphs import ops
from graphs.errors import DTypeError, OptionError
from graphs.frontends.torch import reductions
from graphs.frontends.torch.names import name
from graphs.frontends.torch.words import (
    as_dtype,
    cast,
    check_tensor,
    floats,
    number,
    refuse,
    result_dtype,
    shape_of,
    sizes,
)
from graphs.ops.shapes import dtype_of
from graphs.promotion import is_scalar


@name(in_place=True)
def float_power(input: Any, exponent: Any) -> Any:
    """Each element to a power, in float64."""
    check_tensor(input, exponent)
    return ops.pow(*[x if is_scalar(x) else cast(x, np.float64) for x in (input, exponent)])


@name(in_place=True)
def ldexp(input: Any, other: Any) -> Any:
    """`input * 2 ** other`, in floats."""
    check_tensor(input, other)
    dtype = result_dtype((input, other))
    x, exponent = [cast(ops.asarray(number(value)), np.float64) for value in (input, other)]
    first = ops.clip(exponent, -_POWER, _POWER)  # two powers, since one may be more than float64 has
    rest = ops.clip(ops.subtract(exponent, first), -_POWER, _POWER)
    second = ops.where(ops.isinf(exponent), exponent, rest)  # whose power is 0 or infinite
    return cast(
        ops.multiply(ops.multiply(x, ops.pow(2.0, first)), ops.pow(2.0, second)),
        dtype if dtype.kind == "f" else as_dtype(None),
    )


_POWER = 1000.0


class FrexpResult(NamedTuple):
    """Numbers as `mantissa * 2 ** exponent`."""

    mantissa: Any
    exponent: Any


@name()
def frexp(input: Any) -> FrexpResult:
    """Mantissas of size 0.5 up to 1 with their signs, and int32 exponents; 0, infinities and NaN are kept."""
    if dtype_of(input).kind != "f":
        raise refuse(f"mantissas of {dtype_of(input)}", "convert with .float() first")
    fixed = ops.stop_gradient(ops.abs(input))
    plain = ops.logical_and(ops.isfinite(fixed), ops.greater(fixed, 0))
    guess = ops.where(plain, ops.floor(ops.log2(ops.where(plain, fixed, 1))), 0)
    size = _divide_by_power(fixed, guess)  # between 0.5 and 4: log2 may be off by a rounding
    exponent = ops.where(plain, guess + ops.where(size >= 2, 2, ops.where(size >= 1, 1, 0)), 0)
    return FrexpResult(_divide_by_power(input, exponent), cast(exponent, np.int32))


def _divide_by_power(x: Any, exponent: Any) -> Any:
    """`x / 2 ** exponent` in two steps, since a power may not fit the dtype."""
    half = ops.floor(exponent / 2)
    return x * ops.pow(2.0, -half) * ops.pow(2.0, half - exponent)


@name(in_place=True)
def mvlgamma(input: Any, p: int) -> Any:
    """The logarithm of the gamma function of `p` dimensions, for elements above (p - 1) / 2."""
    if p < 1:
        raise OptionError(f"there is no gamma function of {p} dimensions; use 1 or more")
    x = floats(input)
    parts = ops.gammaln(ops.subtract(ops.expand_dims(x, -1), cast(np.arange(p) / 2, dtype_of(x))))
    return ops.add(ops.sum(parts, axis=-1), p * (p - 1) / 4 * math.log(math.pi))


@name()
def sum_to_size(input: Any, *size: Any) -> Any:
    """Sum over the axes that broadcasting would stretch, so that the result has the given shape."""
    wanted, have = sizes(size), shape_of(input)
    fits = len(wanted) <= len(have) and all(
        size in (1, other) for size, other in zip(wanted, have[len(have) - len(wanted) :], strict=True)
    )
    if not fits:
        raise OptionError(f"the shape {tuple(wanted)} does not broadcast to {have}; give one that does")
    more = len(have) - len(wanted)
    stretched = [more + i for i, size in enumerate(wanted) if size == 1 and have[more + i] != 1]
    axes = (*range(more), *stretched)
    return ops.reshape(reductions.sum(input, axes), wanted) if axes or not have else input


# ---- functions of complex numbers: tensors are real ----------------------------------------------


@name(pairs=True)
def real(input: Any) -> Any:
    """The real part: a tensor itself, unless it is a pair."""
    return input.real if dtype_of(input).kind == "c" else input


@name(pairs=True)
def imag(tensor: Any) -> Any:
    """The imaginary part of a pair. Raises DTypeError for a tensor, which has none."""
    if dtype_of(tensor).kind != "c":
        raise DTypeError("a real tensor has no imaginary part; use zeros_like")
    return tensor.imag


@name(pairs=True)
def conj(input: Any) -> Any:
    """The conjugate: a tensor itself, unless it is a pair."""
    return input.conj() if dtype_of(input).kind == "c" else input


@name(in_place=True, pairs=True)
def conj_physical(input: Any) -> Any:
    """The tensor itself: all numbers are real."""
    return input


@name(pairs=True)
def resolve_conj(input: Any) -> Any:
    """The tensor itself: all numbers are real."""
    return input


@name()
def resolve_neg(input: Any) -> Any:
    """The tensor itself."""
    return input


@name()
def isreal(input: Any) -> Any:
    """Whether each element is real: true."""
    return ops.logical_or(ops.equal(input, input), ops.not_equal(input, input))


@name(pairs=True)
def angle(input: Any) -> Any:
    """0 for numbers from 0 on, pi below, NaN for NaN; the angle of a pair."""
    if dtype_of(input).kind == "c":
        return input.angle()
    x = floats(input)
    turned = ops.where(ops.less(x, 0), cast(np.asarray(math.pi), dtype_of(x)), ops.multiply(ops.sign(x), 0))
    return ops.where(ops.isnan(x), ops.stop_gradient(x), turned)


@name(pairs=True)
def is_complex(input: Any) -> bool:
    """Whether it is a pair of real and imaginary parts."""
    return dtype_of(input).kind == "c"


@name()
def is_conj(input: Any) -> bool:
    """False: tensors hold no complex numbers."""
    dtype_of(input)
    return False


@name()
def is_neg(input: Any) -> bool:
    """False: negation is never deferred here."""
    dtype_of(input)
    return False


@name()
def is_nonzero(input: Any) -> bool:
    """Whether a tensor of one element is not 0. Raises OptionError for more elements."""
    if math.prod(shape_of(input)) != 1:
        raise OptionError(f"the truth of a tensor of shape {shape_of(input)} is ambiguous; use any() or all()")
    return bool(ops.not_equal(ops.reshape(input, ()), 0))


@name()
def is_signed(input: Any) -> bool:
    """Whether the dtype has numbers below 0."""
    return dtype_of(input).kind in "if"


@name()
def is_same_size(input: Any, other: Any) -> bool:
    """Whether two tensors have the same shape."""
    return shape_of(input) == shape_of(other)

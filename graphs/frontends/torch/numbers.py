"""PyTorch's parts of complex numbers, and its tests of numbers: whether they are real, infinite, close or equal."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphs import ops
from graphs.errors import DTypeError, OptionError
from graphs.frontends.torch.names import name
from graphs.frontends.torch.words import cast, check_tensor, floats, refuse
from graphs.ops.shapes import dtype_of, shape_of


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


@name(pairs=True)
def resolve_conj(input: Any) -> Any:
    """The tensor itself: all numbers are real."""
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


# ---- infinity and closeness ----------------------------------------------------------------------


@name()
def isposinf(input: Any) -> Any:
    """Whether each element is infinity."""
    return ops.equal(input, np.inf) if dtype_of(input).kind == "f" else ops.not_equal(input, input)


@name()
def isneginf(input: Any) -> Any:
    """Whether each element is -infinity."""
    return ops.equal(input, -np.inf) if dtype_of(input).kind == "f" else ops.not_equal(input, input)


@name()
def isclose(input: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    """Whether each two elements differ by no more than `atol + rtol * |other|`."""
    check_tensor(input, other)
    if dtype_of(input) != dtype_of(other):
        raise refuse(f"isclose of {dtype_of(input)} and {dtype_of(other)}", "convert one of them")
    if not (rtol >= 0 and atol >= 0):
        raise OptionError(f"tolerances are 0 or more, not rtol={rtol} and atol={atol}; change the sign")
    wide = [cast(x, np.float64) if dtype_of(x).kind != "f" else x for x in (input, other)]
    gap, room = ops.abs(ops.subtract(*wide)), ops.add(atol, ops.multiply(rtol, ops.abs(wide[1])))
    near = ops.logical_or(ops.equal(input, other), ops.logical_and(ops.less_equal(gap, room), ops.isfinite(gap)))
    return ops.logical_or(near, ops.logical_and(ops.isnan(input), ops.isnan(other))) if equal_nan else near


@name()
def allclose(input: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether all elements are close, as a bool."""
    return bool(ops.all(isclose(input, other, rtol, atol, equal_nan)))


@name()
def equal(input: Any, other: Any) -> bool:
    """Whether two tensors have the same shape and elements, as a bool; `eq` compares element by element."""
    if dtype_of(input) != dtype_of(other):
        raise refuse(f"equal of {dtype_of(input)} and {dtype_of(other)}", "convert one of them")
    return shape_of(input) == shape_of(other) and bool(ops.all(ops.equal(input, other)))

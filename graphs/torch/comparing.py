"""PyTorch's comparisons, and the logic of bits and bools."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphs import ops
from graphs.errors import OptionError
from graphs.ops.shapes import dtype_of, shape_of
from graphs.promotion import is_scalar
from graphs.torch.pointwise import binary, unary
from graphs.torch.promotion import check_tensor, compared, promoted
from graphs.torch.words import cast, refuse

__all__ = [
    "allclose", "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift",
    "bitwise_xor", "eq", "equal", "ge", "greater", "greater_equal", "gt", "isclose", "isfinite", "isinf", "isnan",
    "isneginf", "isposinf", "le", "less", "less_equal", "logical_and", "logical_not", "logical_or", "logical_xor",
    "lt", "ne", "not_equal",
]  # fmt: skip


def _bits(*operands: Any) -> Any:
    """What `promoted` gives, with a bool of NumPy's as Python's, which is no float here."""
    return promoted(*[bool(x) if type(x) is np.bool_ else x for x in operands])


bitwise_and = binary(ops.bitwise_and, promote=_bits)
bitwise_or = binary(ops.bitwise_or, promote=_bits)
bitwise_xor = binary(ops.bitwise_xor, promote=_bits)
bitwise_left_shift = binary(ops.bitwise_left_shift)
bitwise_right_shift = binary(ops.bitwise_right_shift)
bitwise_not = unary(ops.bitwise_invert)
eq = binary(ops.equal, promote=compared)
ge = greater_equal = binary(ops.greater_equal, promote=compared)
gt = greater = binary(ops.greater, promote=compared)
isfinite = unary(ops.isfinite)
isinf = unary(ops.isinf)
isnan = unary(ops.isnan)
le = less_equal = binary(ops.less_equal, promote=compared)
lt = less = binary(ops.less, promote=compared)
ne = not_equal = binary(ops.not_equal, promote=compared)


def _truth(x: Any) -> Any:
    return x if is_scalar(x) or dtype_of(x).kind == "b" else ops.not_equal(x, 0)


logical_and = binary(ops.logical_and, _truth)
logical_or = binary(ops.logical_or, _truth)
logical_xor = binary(ops.logical_xor, _truth)


def logical_not(input: Any) -> Any:
    """Whether each element is 0."""
    return ops.logical_not(_truth(input))


def isposinf(input: Any) -> Any:
    """Whether each element is infinity."""
    return ops.equal(input, np.inf) if dtype_of(input).kind == "f" else ops.not_equal(input, input)


def isneginf(input: Any) -> Any:
    """Whether each element is -infinity."""
    return ops.equal(input, -np.inf) if dtype_of(input).kind == "f" else ops.not_equal(input, input)


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


def allclose(input: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether all elements are close, as a bool."""
    return bool(ops.all(isclose(input, other, rtol, atol, equal_nan)))


def equal(input: Any, other: Any) -> bool:
    """Whether two tensors have the same shape and elements, as a bool; `eq` compares element by element."""
    if dtype_of(input) != dtype_of(other):
        raise refuse(f"equal of {dtype_of(input)} and {dtype_of(other)}", "convert one of them")
    return shape_of(input) == shape_of(other) and bool(ops.all(ops.equal(input, other)))

"""Sums over rows and along rows, by BLAS where possible; then scans along one axis.

`np.add.reduce` starts anew for each row, which takes as long as adding dozens of numbers: the gradient of a bias, or a
mean along short rows, takes three to eight times as long as reading the array. BLAS multiplies by a vector of ones.

Scans are running sums and products, and the linear recurrence that differentiates them.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from graphs import dims
from graphs.errors import ShapeError
from graphs.op import Array, Op, Prepared
from graphs.ops.elementwise import equal, exp, multiply, subtract, where
from graphs.ops.families import check_specs, composite, ufunc_dtype
from graphs.ops.indexing import take_along_axis
from graphs.ops.movement import astype, cast, flip, pad
from graphs.ops.shapes import HALF, accumulator, along, as_operand, dtype_of, is_half, positive_axis, shape_of
from graphs.ops.slicing import cut
from graphs.spec import TensorSpec

MANY = 4096  # numbers: fewer are added up before it is found out how they lie
_SHORTEST, _LONGEST = 16, 4096  # rows that BLAS adds up sooner, and rounds no more often than NumPy its blocks of 128
_ONES = {dtype.num: np.ones(_LONGEST, dtype) for dtype in (np.dtype(np.float32), np.dtype(np.float64))}


def sum_sorted_axes(x: Array, axis: Any, dtype: Any = None, out: Array = None, keepdims: bool = False) -> Array:
    """`np.add.reduce` over sorted axes, except that a sum of -0.0 alone may be 0.0."""
    if x.dtype.num == HALF and (dtype is None or dtype == x.dtype):  # not `in`: to NumPy None is float64
        wide = np.add.reduce(x, axis, np.float32, keepdims=keepdims)  # type: ignore[call-overload]
        return round_to_dtype(wide, x.dtype, out)
    if x.size < MANY or x.ndim < 2 or not axis or type(axis) is not tuple or not _is_plain(x, dtype):
        return np.add.reduce(x, axis, dtype, out, keepdims)  # type: ignore[call-overload]
    count, length = len(axis), x.shape[-1]  # the two usual cases first, since to look for more takes as long as they do
    if axis[-1] == count - 1 and count < x.ndim:
        return in_shape(_over_rows(x, count), (1,) * count * keepdims + x.shape[count:], out)
    if count == 1 and axis[0] == x.ndim - 1 and _SHORTEST <= length <= _LONGEST:
        return np.vecdot(x, _ONES[x.dtype.num][:length], out, keepdims=keepdims)  # type: ignore[call-overload]
    # The sum over some (or none) of the first axes and some of the last axes.
    before = next((i for i, place in enumerate(axis) if place != i), len(axis))
    after = len(axis) - before
    length = math.prod(x.shape[x.ndim - after :])
    is_outer = len(axis) < x.ndim and axis[before:] == tuple(range(x.ndim - after, x.ndim))
    if not is_outer or not _SHORTEST <= length <= _LONGEST:
        return np.add.reduce(x, axis, dtype, out, keepdims)  # type: ignore[call-overload]
    shape = (1,) * before * keepdims + x.shape[before : x.ndim - after] + (1,) * after * keepdims
    rows = _along_rows(x, after, length)
    return in_shape(_over_rows(rows, before) if before else rows, shape, out)


def round_to_dtype(x: Array, dtype: np.dtype[Any], out: Array = None) -> Array:
    """Round a result of a wider dtype to `dtype`, into `out` where there is one."""
    if out is None:
        return x.astype(dtype)
    np.copyto(out, x, casting="same_kind")
    return out


def _along_rows(x: Array, count: int, length: int) -> Array:
    """The sum over the last `count` axes, which hold rows of `length` elements."""
    # Each row by itself, so that its bits do not depend on the number of rows.
    rows: Array = np.vecdot(x.reshape(*x.shape[: x.ndim - count], length), _ONES[x.dtype.num][:length])
    return rows


def _is_plain(x: Array, dtype: Any) -> bool:
    """Whether BLAS can read the array without a copy, and the sum is in the array's dtype."""
    kind = x.dtype
    return kind.num in _ONES and (dtype is None or dtype == kind) and x.flags.c_contiguous


def _over_rows(x: Array, count: int) -> Array:
    """The sum over the first `count` axes, as a flat array."""
    number = math.prod(x.shape[:count])
    ones = _ONES[x.dtype.num][:number] if number <= _LONGEST else np.ones(number, x.dtype)
    flat: Array = ones.dot(x if x.ndim == 2 else x.reshape(number, math.prod(x.shape[count:])))
    return flat


def in_shape(result: Array, shape: tuple[int, ...], out: Array) -> Array:
    """Reshape a result to `shape`, and copy it into `out` where there is one."""
    if result.shape != shape:
        result = result.reshape(shape)
    if out is None:
        return result
    np.copyto(out, result)
    return out


__all__ = [
    "cummax", "cummin", "cumulative_argmax", "cumulative_argmin", "cumulative_prod", "cumulative_sum",
    "linear_recurrence", "logcumsumexp",
]  # fmt: skip


# Scans ----------------------------------------------------------------------------------------------------------------


def _running(name: str, ufunc: np.ufunc, initial: int, rule: Any, doc: str) -> Op:
    def prepare(
        x: Array,
        /,
        axis: int | None = None,
        dtype: npt.DTypeLike | None = None,
        include_initial: bool = False,
    ) -> Prepared:
        x = as_operand(x)
        ndim = len(shape_of(x))
        if axis is None and ndim > 1:
            raise ShapeError(f"needs an axis for {ndim} axes; pass axis=, or flatten first")
        at = positive_axis(-1 if axis is None else axis, ndim)
        # A scan that starts from its identity is the scan of x with the identity put before it.
        values = pad(x, in_front(ndim, at), initial) if include_initial else x
        return (values,), {"axis": at} | ({} if dtype is None else {"dtype": TensorSpec((), dtype).dtype})

    def kernel(x: Array, *, axis: int, dtype: Any = None, out: Array = None) -> Array:
        kind = accumulator(x.dtype, dtype)
        if is_half(kind):
            return round_to_dtype(ufunc.accumulate(x, axis=axis, dtype=np.float32), kind, out)
        return ufunc.accumulate(x, axis=axis, out=out, dtype=kind)

    def infer(x: TensorSpec, *, axis: int, dtype: Any = None) -> TensorSpec:
        return TensorSpec(x.shape, accumulator(x.dtype, dtype))

    return Op(name, kernel, infer, rules=(rule,), prepare=prepare, cost=1, family="reduction", doc=doc)


cumulative_sum: Op = _running(
    "cumulative_sum",
    np.add,
    0,
    lambda g, x_dtype, axis: cast(flip(cumulative_sum(flip(g, axis=axis), axis=axis), axis=axis), x_dtype),
    "The running sum along one axis, in `dtype`; `include_initial` puts a 0 first and adds to that.",
)
cumulative_prod: Op = _running(
    "cumulative_prod",
    np.multiply,
    1,
    lambda g, x, axis: _running_product_rule(cast(g, x.dtype), x, axis),
    "The running product along one axis, in `dtype`; `include_initial` puts a 1 first and multiplies that.",
)


def _running_product_rule(g: Array, x: Array, axis: int) -> Array:
    """The sum over k >= i of g[k] * x[0] * ... * x[k] / x[i], without dividing: right for any number of zeros."""
    return multiply(but_last(cumulative_prod(x, axis=axis, include_initial=True), axis), from_behind(x, g, axis))


def _prepare_recurrence(x: Array, y: Array, /, axis: int = -1) -> Prepared:
    x = as_operand(x)
    return (x, as_operand(y)), {"axis": positive_axis(axis, len(shape_of(x)))}


def _infer_recurrence(x: TensorSpec, y: TensorSpec, *, axis: int) -> TensorSpec:
    if not dims.same_shape(x.shape, y.shape):
        raise ShapeError("factors and terms have one shape; broadcast them first")
    return TensorSpec(x.shape, np.result_type(x.dtype, y.dtype))


def _recurrence(x: Array, y: Array, *, axis: int, out: Array = None) -> Array:
    """r[i] = x[i] * r[i - 1] + y[i] along one axis, with r[0] = y[0]."""
    if out is None:
        out = np.empty(x.shape, np.result_type(x, y))
    factors, terms, results = (np.moveaxis(a, axis, 0) for a in (x, y, out))
    if len(results):
        results[0] = terms[0]
    # Step by step, since a product of many factors may overflow where no result does.
    for i in range(1, len(results)):
        np.multiply(factors[i : i + 1], results[i - 1 : i], out=results[i : i + 1])
        results[i] += terms[i]
    return out


linear_recurrence: Op = Op(
    "linear_recurrence",
    _recurrence,
    _infer_recurrence,
    rules=(
        lambda g, x, out, axis: multiply(from_behind(x, g, axis), _shift_by_one(out, axis)),
        lambda g, x, axis: from_behind(x, g, axis),
    ),
    prepare=check_specs(_prepare_recurrence, _infer_recurrence),
    cost=2,
    family="reduction",
    broadcasts=True,
)


def from_behind(x: Array, g: Array, axis: int) -> Array:
    """r[i] = g[i] + x[i + 1] * r[i + 1]: the linear recurrence from the last element, which carries cotangents."""
    factors = _shift_by_one(flip(x, axis=axis), axis)
    return flip(linear_recurrence(factors, flip(g, axis=axis), axis=axis), axis=axis)


def _shift_by_one(x: Array, axis: int) -> Array:
    """x moved one place along an axis, with a 0 in front."""
    return but_last(pad(x, in_front(len(x.shape), axis)), axis)


def in_front(ndim: int, axis: int) -> list[tuple[int, int]]:
    """The pad widths that put one element in front along an axis."""
    return [(int(i == axis), 0) for i in range(ndim)]


def but_last(x: Array, axis: int) -> Array:
    """x without its last element along an axis."""
    return cut(x, axis % len(x.shape), None, -1)


class Extremes(NamedTuple):
    """The running extremes, and their indices along the axis."""

    values: Array
    indices: Array


def _places(name: str, ufunc: np.ufunc, doc: str) -> Op:
    def kernel(x: Array, *, axis: int, out: Array = None) -> Array:
        best = ufunc.accumulate(x, axis=axis)
        places = np.arange(x.shape[axis]).reshape(-1, *(1,) * (x.ndim - axis - 1))
        extremes = np.where((x == best) | (x != x), places, 0)  # NaN differs from itself
        return np.maximum.accumulate(extremes, axis=axis, out=out)

    def infer(x: TensorSpec, *, axis: int) -> TensorSpec:
        return TensorSpec(x.shape, np.intp)

    return Op(name, kernel, infer, prepare=along, cost=1, family="sorting", doc=doc)


cumulative_argmax: Op = _places(
    "cumulative_argmax", np.maximum, "Where the largest element so far is along one axis: the last of equals, or NaN."
)
cumulative_argmin: Op = _places(
    "cumulative_argmin", np.minimum, "Where the smallest element so far is along one axis: the last of equals, or NaN."
)


@composite
def cummax(x: Array, /, axis: int = -1) -> Extremes:
    """The largest element so far along one axis, and its index; the last of equal elements has the gradient.

    From the first NaN on all results are NaN, as in PyTorch.
    """
    places = cumulative_argmax(x, axis=axis)
    return Extremes(take_along_axis(x, places, axis=axis), places)


@composite
def cummin(x: Array, /, axis: int = -1) -> Extremes:
    """The smallest element so far along one axis, and its index; the last of equal elements has the gradient.

    From the first NaN on all results are NaN, as in PyTorch.
    """
    places = cumulative_argmin(x, axis=axis)
    return Extremes(take_along_axis(x, places, axis=axis), places)


# logcumsumexp -----------------------------------------------------------------------------------------------------

_float = ufunc_dtype(np.logaddexp)
_WIDE = np.dtype(np.float32)  # in which half floats are summed


def _prepare_log(x: Array, /, axis: int = -1) -> Prepared:
    (x,), attrs = along(x, axis)
    return (x if dtype_of(x).kind == "f" else astype(x, _float(dtype_of(x), dtype_of(x))),), attrs


def _logcumsumexp(x: Array, *, axis: int, out: Array = None) -> Array:
    """The logarithm of the running sum of exp(x) along one axis, without overflow."""
    if is_half(x.dtype):
        return round_to_dtype(np.logaddexp.accumulate(x.astype(np.float32), axis=axis), x.dtype, out)
    return np.logaddexp.accumulate(x, axis=axis, out=out)


def _logcumsumexp_rule(g: Array, x: Array, out: Array, axis: int) -> Array:
    """The VJP of logcumsumexp: the sum over k >= i of g[k] * exp(x[i] - out[k]), by factors of at most 1.

    So none overflows: it is exp(x[i] - out[i]) * r[i], where r[i] = g[i] + exp(out[i] - out[i + 1]) * r[i + 1].
    """
    if is_half(dtype_of(x)):
        wide = astype(x, _WIDE)
        sums = logcumsumexp(wide, axis=axis)
        return astype(_logcumsumexp_rule(astype(g, _WIDE), wide, sums, axis), dtype_of(x))
    nothing = equal(out, -math.inf)  # less itself it would be NaN, and its exponential is 0
    after = where(nothing, 0, out)
    before = but_last(pad(out, in_front(len(x.shape), axis), -math.inf), axis)
    factors = exp(subtract(before, after))
    return multiply(exp(subtract(x, after)), from_behind(factors, g, axis))


logcumsumexp: Op = Op(
    "logcumsumexp",
    _logcumsumexp,
    lambda x, *, axis: TensorSpec(x.shape, _float(x.dtype, x.dtype)),
    rules=(_logcumsumexp_rule,),
    prepare=_prepare_log,
    cost=20,  # an exponential and a logarithm count as ten each
    family="composed",
)

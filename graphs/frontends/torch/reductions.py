"""PyTorch's reductions. Extremes and medians along one axis come with their indices, as a named pair."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from graphs import dispatch, ops
from graphs.errors import OptionError, ShapeError, locate
from graphs.frontends.torch import arithmetic
from graphs.frontends.torch.names import name, name_each
from graphs.frontends.torch.shapes import like_images
from graphs.frontends.torch.words import (
    as_dtype,
    as_row,
    axes_of,
    cast,
    floats,
    ndim_of,
    place,
    promote,
    refuse,
    shape_of,
    unless_empty,
    values_of,
    with_axis,
)
from graphs.ops.shapes import dtype_of
from graphs.promotion import is_scalar

Dim = Any  # one axis, several, or None for all


class AxisExtremes(NamedTuple):
    """Elements along an axis, and their indices."""

    values: Any
    indices: Any


def _accumulate(function: Callable[[Any], Any], x: Any, dtype: Any) -> Any:
    """Sum or multiply x in `dtype`: x is converted to it first, and the result if NumPy widens it.

    Without a dtype, ints and bools are summed in int64.
    """
    if dtype is not None:
        return cast(function(cast(x, as_dtype(dtype))), as_dtype(dtype))
    return function(cast(x, np.int64) if dtype_of(x).kind in "biu" else x)


@name(pairs=True)
def sum(input: Any, dim: Dim = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The sum over axes, of all by default; of ints and bools in int64."""
    axes = axes_of(input, dim)
    return _accumulate(lambda x: ops.sum(x, axis=axes, keepdims=keepdim), input, dtype)


@name()
def nansum(input: Any, dim: Dim = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The sum of the elements that are not NaN."""
    return sum(ops.where(ops.isnan(input), 0, input), dim, keepdim, dtype=dtype)


@name(pairs=True)
def mean(input: Any, dim: Dim = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The mean over axes. Raises DTypeError for ints, as PyTorch does."""
    x = input if dtype is None else cast(input, as_dtype(dtype))
    if dtype_of(x).kind not in "fc":
        raise refuse(f"the mean of {dtype_of(x)}", "convert with .float(), or give dtype=")
    return ops.mean(x, axis=axes_of(x, dim), keepdims=keepdim)


@name()
def nanmean(input: Any, dim: Dim = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The mean of the elements that are not NaN, in `dtype` where that is given."""
    count = sum(ops.logical_not(ops.isnan(input)), dim, keepdim)
    total = nansum(input, dim, keepdim, dtype=dtype)
    return ops.divide(total, cast(count, dtype_of(total)))


@name()
def prod(input: Any, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The product of all elements, or along one axis; ints and bools in int64."""
    axes = axes_of(input, dim)
    return _accumulate(lambda x: ops.prod(x, axis=axes, keepdims=keepdim), input, dtype)


def _truths(op: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(input: Any, dim: Dim = None, keepdim: bool = False) -> Any:
        axes = () if dim == () else axes_of(input, dim)
        result = op(input, axis=axes, keepdims=keepdim)
        return cast(result, np.uint8) if dtype_of(input) == np.uint8 else result

    return wrapper


all, any = name_each(_truths, all=ops.all, any=ops.any)


@name()
def count_nonzero(input: Any, dim: Dim = None) -> Any:
    """How many elements are not 0."""
    return sum(input if dtype_of(input).kind == "b" else ops.not_equal(input, 0), dim)


# ---- extremes ------------------------------------------------------------------------------------


def _position(op: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
        arithmetic.refused_bools(input, op.__name__)
        if dim is None or not ndim_of(input):
            position = op(ops.reshape(input, (-1,)) if ndim_of(input) != 1 else input)
            return ops.reshape(position, (1,) * ndim_of(input)) if keepdim else position
        return op(input, axis=dim, keepdims=keepdim)

    return wrapper


argmax, argmin = name_each(_position, argmax=ops.argmax, argmin=ops.argmin)


@name()
def max(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None, **numpy: Any) -> Any:
    """The largest element; along one axis `(values, indices)`; of two tensors the larger elements.

    With NumPy's words, `axis` and `keepdims`, it is NumPy's max: over any axes, and without indices.
    """
    if numpy:
        return ops.max(input, **numpy)
    return _extreme(input, dim, keepdim, other, ops.max, ops.argmax, ops.maximum)


@name()
def min(input: Any, dim: Any = None, keepdim: bool = False, *, other: Any = None, **numpy: Any) -> Any:
    """The smallest element; along one axis `(values, indices)`; of two tensors the smaller elements.

    With NumPy's words, `axis` and `keepdims`, it is NumPy's min: over any axes, and without indices.
    """
    if numpy:
        return ops.min(input, **numpy)
    return _extreme(input, dim, keepdim, other, ops.min, ops.argmin, ops.minimum)


def _extreme(
    x: Any,
    dim: Any,
    keepdim: bool,
    other: Any,
    reduce: Callable[..., Any],
    find: Callable[..., Any],
    both: Callable[..., Any],
) -> Any:
    if other is not None or (dim is not None and not isinstance(dim, (int, tuple, list))):
        return both(*promote(x, dim if other is None else other))
    if dim is None:
        return reduce(x)
    if not isinstance(dim, int):
        raise ShapeError(locate(f"{reduce.__name__}: one axis has places, not {dim}; use amax or amin for several"))
    return along(x, dim, keepdim, find)


def along(x: Any, dim: int, keepdim: bool, find: Callable[..., Any]) -> AxisExtremes:
    """The elements along an axis at the indices that `find` returns, and these indices."""
    if not ndim_of(x):
        place(dim, 0)
        return AxisExtremes(ops.identity(x), cast(ops.multiply(ops.not_equal(x, x), 0), np.int64))
    axis = place(dim, ndim_of(x))
    counted = cast(x, np.uint8) if dtype_of(x).kind == "b" else x
    indices = find(counted, axis=axis, keepdims=True)
    values = ops.take_along_axis(x, indices, axis=axis)
    return (
        AxisExtremes(values, indices)
        if keepdim
        else AxisExtremes(ops.squeeze(values, axis), ops.squeeze(indices, axis))
    )


def _over_axes(op: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(input: Any, dim: Dim = (), keepdim: bool = False) -> Any:
        return op(input, axis=axes_of(input, dim), keepdims=keepdim)

    return wrapper


amax, amin = name_each(_over_axes, amax=ops.max, amin=ops.min)


@name()
def median(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """The lower median; along one axis with its indices. NaN where an element is NaN.

    Over all elements, those equal to the median share the gradient.
    """
    if dim is not None:
        return along(input, dim, keepdim, _middle)
    flat = ops.reshape(input, (-1,))
    middle = along(flat, 0, False, _middle).values
    if dtype_of(input).kind != "f":
        return middle
    shared = ops.max(ops.where(ops.equal(flat, middle), flat, -np.inf))
    return ops.where(ops.isnan(middle), middle, shared)


def _middle(x: Any, axis: int, keepdims: bool) -> Any:
    """The index of the lower median, or of the first NaN."""
    order = ops.argsort(x, axis=axis)
    middle = ops.take(order, ops.asarray([(shape_of(x)[axis] - 1) // 2]), axis=axis)
    if dtype_of(x).kind != "f":
        return middle
    none = ops.isnan(x)
    return ops.where(
        ops.any(none, axis=axis, keepdims=True), ops.argmax(cast(none, np.uint8), axis=axis, keepdims=True), middle
    )


def _running(op: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(input: Any, dim: int = -1) -> Any:
        if not ndim_of(input):
            return along(input, dim, False, op)
        return AxisExtremes(*op(input, axis=place(dim, ndim_of(input))))

    return wrapper


cummax, cummin = name_each(_running, cummax=ops.cummax, cummin=ops.cummin)


# ---- running sums, and logarithms of sums --------------------------------------------------------


def _so_far(op: Callable[..., Any], x: Any, dim: int | None) -> Any:
    return op(x) if dim is None else with_axis(op, x, dim)


@name(in_place=True, pairs=True)
def cumsum(input: Any, dim: int | None = None, *, dtype: Any = None) -> Any:
    """The running sums along an axis; ints and bools in int64."""
    return _accumulate(lambda x: _so_far(ops.cumulative_sum, x, dim), input, dtype)


@name(in_place=True)
def cumprod(input: Any, dim: int | None = None, *, dtype: Any = None) -> Any:
    """The running products along an axis; ints and bools in int64."""
    return _accumulate(lambda x: _so_far(ops.cumulative_prod, x, dim), input, dtype)


@name()
def logcumsumexp(input: Any, dim: int = -1) -> Any:
    """The logarithms of the running sums of exponentials."""
    return with_axis(ops.logcumsumexp, floats(input), dim)


@name()
def logsumexp(input: Any, dim: Dim = None, keepdim: bool = False) -> Any:
    """The logarithm of the sum of exponentials."""
    return ops.logsumexp(floats(input), axis=axes_of(input, dim), keepdims=keepdim)


@name()
def softmax(input: Any, dim: int = -1, dtype: Any = None) -> Any:
    """Exponentials over their sum along an axis."""
    return with_axis(unless_empty(ops.softmax), _float_only(input, dtype, "softmax"), dim)


@name()
def log_softmax(input: Any, dim: int = -1, dtype: Any = None) -> Any:
    """The logarithm of the softmax."""
    return with_axis(unless_empty(ops.log_softmax), _float_only(input, dtype, "log_softmax"), dim)


def _float_only(x: Any, dtype: Any, name: str) -> Any:
    x = x if dtype is None else cast(x, as_dtype(dtype))
    if dtype_of(x).kind != "f":
        raise refuse(f"{name} of {dtype_of(x)}", "convert with .float() first")
    return x


# ---- spread and size -----------------------------------------------------------------------------


@name()
def var(
    input: Any, dim: Dim = None, unbiased: Any = None, keepdim: bool = False, *, correction: float | None = None
) -> Any:
    """The variance, divided by the number of elements less 1 (`correction`). Raises DTypeError for ints."""
    return _spread(ops.var, input, dim, unbiased, keepdim, correction)


@name()
def std(
    input: Any, dim: Dim = None, unbiased: Any = None, keepdim: bool = False, *, correction: float | None = None
) -> Any:
    """The standard deviation, with the divisor of elements less 1 (`correction`). Raises DTypeError for ints."""
    # In float64, as there: squares leave the range of float32 where the deviation does not.
    is_single = dtype_of(input) == np.float32 and dispatch.interpreter_of(input)
    x = ops.astype(input, np.float64) if is_single else input
    deviation = _spread(ops.std, x, dim, unbiased, keepdim, correction)
    return ops.astype(deviation, np.float32) if is_single else deviation


def _spread(op: Callable[..., Any], x: Any, dim: Any, unbiased: Any, keepdim: bool, correction: float | None) -> Any:
    _float_only(x, None, op.__name__)
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    less = correction if correction is not None else float(unbiased is None or unbiased)
    axes, shape = axes_of(x, dim), shape_of(x)
    count = math.prod(shape if axes is None else [shape[a] for a in ((axes,) if isinstance(axes, int) else axes)])
    if count <= less:  # nothing is left to divide by: infinite or NaN, without NumPy's warnings
        nowhere = ops.multiply(sum(x, dim, keepdim), np.nan)
        return ops.where(ops.greater(op(x, axis=axes, keepdims=keepdim), 0), np.inf, nowhere) if count else nowhere
    return op(x, axis=axes, correction=less, keepdims=keepdim)


def _with_mean(spread: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(
        input: Any, dim: Dim = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
    ) -> Any:
        centre = mean(input, None if isinstance(dim, bool) else dim, keepdim)
        return spread(input, dim, unbiased, keepdim, correction=correction), centre

    return wrapper


var_mean, std_mean = name_each(_with_mean, var_mean=var, std_mean=std)


@name()
def norm(input: Any, p: Any = "fro", dim: Dim = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """The p-norm of all elements or over axes: "fro" is 2, and "nuc" is that of matrices."""
    from graphs.frontends.torch import linalg

    x = _float_only(input, dtype, "norm")
    if p == "nuc":
        return linalg.matrix_norm(x, "nuc", (-2, -1) if dim is None else dim, keepdim)
    return linalg.vector_norm(x, 2 if p == "fro" or p is None else p, axes_of(x, dim), keepdim)


@name()
def dist(input: Any, other: Any, p: float = 2) -> Any:
    """The p-norm of a difference."""
    return norm(arithmetic.sub(input, other), p)


# Read off sorted elements ---------------------------------------------------------------------------------------------


INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


@name()
def quantile(
    input: Any, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Any:
    """The quantile `q`, from 0 to 1; for a vector of shares, along a new first axis.

    Between two elements `interpolation` decides: "linear", "lower", "higher", "midpoint" or "nearest". NaN where an
    element is NaN.
    """
    if dtype_of(input).kind != "f":
        raise refuse(f"quantiles of {dtype_of(input)}", "convert with .float() first")
    shares, ndim = _shares(input, q), ndim_of(input)
    if interpolation not in INTERPOLATIONS:
        raise OptionError(f"there is no interpolation {interpolation!r}; use one of {', '.join(INTERPOLATIONS)}")
    axis = 0 if dim is None else place(dim, ndim)
    rows = ops.reshape(input, (-1,)) if dim is None else ops.moveaxis(as_row(input), axis, -1)
    if shape_of(rows)[-1] == 0:
        raise ShapeError("there is no quantile of no elements; check the size first")
    ordered = ops.sort(rows, axis=-1)
    last = ordered[..., -1:]  # NaN, where there is one
    quantiles = ops.where(ops.isnan(last), last, _interpolate(ordered, shares, interpolation))
    quantiles = ops.moveaxis(quantiles, -1, 0)
    if keepdim and dim is not None and ndim:
        quantiles = ops.expand_dims(quantiles, axis + 1)
    elif keepdim or (dim is not None and not ndim):
        quantiles = ops.reshape(quantiles, (-1,) + (1,) * ndim)
    return like_images(quantiles if not is_scalar(q) and ndim_of(q) else ops.squeeze(quantiles, 0))


def _shares(x: Any, q: Any) -> Any:
    """The shares as a vector. Raises OptionError for one outside 0 to 1, unless it is a symbol."""
    if is_scalar(q):
        q = np.asarray(q, dtype_of(x))
    if ndim_of(q) > 1 or dtype_of(q) != dtype_of(x):
        raise refuse(f"shares of {dtype_of(q)} in {ndim_of(q)} axes for {dtype_of(x)}", "give a vector of that dtype")
    values = values_of(q)
    if values is not None and not np.all((values >= 0) & (values <= 1)):
        raise OptionError(f"a share is from 0 to 1, not {q}; divide percents by 100")
    return as_row(q)


def _interpolate(ordered: Any, shares: Any, interpolation: str) -> Any:
    ranks = ops.multiply(shares, shape_of(ordered)[-1] - 1)  # fractional
    ranks = ops.broadcast_to(ranks, (*shape_of(ordered)[:-1], shape_of(shares)[0]))
    rounded = {"lower": ops.floor, "higher": ops.ceil, "nearest": ops.round}.get(interpolation)
    if rounded is not None:
        return _at(ordered, rounded(ranks))
    low, high = _at(ordered, ops.floor(ranks)), _at(ordered, ops.ceil(ranks))
    weight = ops.subtract(ranks, ops.floor(ranks))
    if interpolation == "midpoint":
        weight = ops.where(ops.equal(weight, 0), weight, 0.5)
    return ops.add(low, ops.multiply(weight, ops.subtract(high, low)))


def _at(ordered: Any, ranks: Any) -> Any:
    return ops.take_along_axis(ordered, cast(ops.stop_gradient(ranks), np.int64), axis=-1)


@name()
def mode(input: Any, dim: int = -1, keepdim: bool = False) -> AxisExtremes:
    """The most frequent element along an axis, the smallest of several, and its last index."""
    return along(input, dim, keepdim, _most_frequent)


def _most_frequent(x: Any, axis: int, keepdims: bool) -> Any:
    order = ops.argsort(x, axis=axis)
    ordered = ops.moveaxis(ops.take_along_axis(x, order, axis=axis), axis, -1)
    places = np.arange(shape_of(ordered)[-1])
    is_new = ops.concat(
        [ops.equal(ordered[..., :1], ordered[..., :1]), ops.not_equal(ordered[..., 1:], ordered[..., :-1])], axis=-1
    )
    starts = ops.cummax(ops.where(is_new, places, 0), axis=-1)[0]
    longest = ops.argmax(ops.subtract(places, starts), axis=-1, keepdims=True)
    return ops.take_along_axis(order, ops.moveaxis(longest, -1, axis), axis=axis)

"""PyTorch's quantiles, and what else is read off sorted elements: medians without NaN, and the most frequent."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphs import ops
from graphs.errors import OptionError, ShapeError
from graphs.frontends.torch.names import name
from graphs.frontends.torch.reductions import Found, along
from graphs.frontends.torch.words import as_row, cast, ndim_of, place, refuse, shape_of, values_of
from graphs.ops.shapes import dtype_of
from graphs.promotion import is_scalar

INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


@name()
def quantile(
    input: Any, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Any:
    """The element below which a share `q` of the others lies; of a vector of shares, along a new first axis.

    Between two elements as `interpolation` says: "linear", "lower", "higher", "midpoint" or "nearest". NaN where there
    is a NaN.
    """
    return _quantile(input, q, dim, keepdim, interpolation, without_nan=False)


@name()
def nanquantile(
    input: Any, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Any:
    """As `quantile`, of the elements that are not NaN."""
    return _quantile(input, q, dim, keepdim, interpolation, without_nan=True)


def _quantile(x: Any, q: Any, dim: int | None, keepdim: bool, interpolation: str, *, without_nan: bool) -> Any:
    if dtype_of(x).kind != "f":
        raise refuse(f"quantiles of {dtype_of(x)}", "convert with .float() first")
    shares = _shares(x, q)
    if interpolation not in INTERPOLATIONS:
        raise OptionError(f"there is no interpolation {interpolation!r}; use one of {', '.join(INTERPOLATIONS)}")
    axis, ndim = place(0 if dim is None else dim, 1 if dim is None else ndim_of(x)), ndim_of(x)
    rows = ops.reshape(x, (-1,)) if dim is None else ops.moveaxis(as_row(x), axis, -1)
    if shape_of(rows)[-1] == 0:
        raise ShapeError("there is no quantile of no elements; check the size first")
    ordered = ops.sort(rows, axis=-1)
    quantiles = _between(ordered, _ranks(ordered, shares, without_nan=without_nan), interpolation)
    if not without_nan:
        last = ordered[..., -1:]
        quantiles = ops.where(ops.isnan(last), last, quantiles)  # NaN is sorted to the end
    quantiles = ops.moveaxis(quantiles, -1, 0)
    if keepdim:
        quantiles = (
            ops.reshape(quantiles, (-1,) + (1,) * ndim)
            if dim is None or not ndim
            else ops.expand_dims(quantiles, axis + 1)
        )
    elif dim is not None and not ndim:
        quantiles = ops.reshape(quantiles, (-1,))
    return quantiles if not is_scalar(q) and ndim_of(q) else ops.squeeze(quantiles, 0)


def _shares(x: Any, q: Any) -> Any:
    """The shares as a vector. Raises OptionError for one that is not from 0 to 1, where values are known."""
    if is_scalar(q):
        q = np.asarray(q, dtype_of(x))
    if ndim_of(q) > 1 or dtype_of(q) != dtype_of(x):
        raise refuse(f"shares of {dtype_of(q)} in {ndim_of(q)} axes for {dtype_of(x)}", "give a vector of that dtype")
    values = values_of(q)
    if values is not None and not np.all((values >= 0) & (values <= 1)):
        raise OptionError(f"a share is from 0 to 1, not {q}; divide percents by 100")
    return as_row(q)


def _ranks(ordered: Any, shares: Any, *, without_nan: bool) -> Any:
    """The place among sorted elements of each share, with a fraction: f[..., shares]."""
    if not without_nan:
        ranks = ops.multiply(shares, shape_of(ordered)[-1] - 1)
        return ops.broadcast_to(ranks, (*shape_of(ordered)[:-1], shape_of(shares)[0]))
    count = ops.sum(ops.logical_not(ops.isnan(ordered)), axis=-1, keepdims=True)
    return ops.multiply(shares, cast(ops.maximum(ops.subtract(count, 1), 0), dtype_of(ordered)))


def _between(ordered: Any, ranks: Any, interpolation: str) -> Any:
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
def nanmedian(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """The lower of the middle elements of those that are not NaN; along one axis with its places."""
    if dim is None:
        return along(ops.reshape(input, (-1,)), 0, False, _middle).values
    return along(input, dim, keepdim, _middle)


def _middle(x: Any, axis: int, keepdims: bool) -> Any:
    count = ops.sum(ops.equal(x, x), axis=axis, keepdims=True)
    middle = ops.maximum(ops.floor_divide(ops.subtract(count, 1), 2), 0)
    return ops.take_along_axis(ops.argsort(x, axis=axis), middle, axis=axis)


@name()
def mode(input: Any, dim: int = -1, keepdim: bool = False) -> Found:
    """The most frequent element along an axis, the smallest of these, and where it stands last."""
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

"""PyTorch's functions that sort elements, search among sorted ones, and count them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphs import ops
from graphs.errors import OptionError, OutOfRangeError, ShapeError
from graphs.frontends.torch.names import name
from graphs.frontends.torch.picking import scatter_add
from graphs.frontends.torch.reductions import AxisExtremes, along
from graphs.frontends.torch.shapes import laid_like, like_images, memory_of
from graphs.frontends.torch.words import (
    as_row,
    axis_and_size,
    cast,
    ndim_of,
    place,
    promote,
    refuse,
    shape_of,
)
from graphs.ops.shapes import dtype_of
from graphs.ops.sorting import unique_rows
from graphs.promotion import is_scalar


@name()
def argsort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """The indices that sort along an axis."""
    return _sort_along(input, dim, descending).indices


@name()
def sort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> AxisExtremes:
    """The elements sorted along an axis, and their indices; equal elements keep their order."""
    return _sort_along(input, dim, descending)


def _sort_along(x: Any, dim: int, descending: bool) -> AxisExtremes:
    def order(x: Any, axis: int, keepdims: bool) -> Any:
        return ops.argsort(x, axis=axis, descending=descending, stable=True)

    ordered = along(x, dim, True, order)
    return AxisExtremes(laid_like(ordered.values, x), ordered.indices)


@name()
def topk(input: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> AxisExtremes:
    """The k largest elements along an axis, or the smallest, in order, and their indices."""
    axis = place(dim, ndim_of(input))
    if not 0 <= k <= shape_of(as_row(input))[axis]:
        raise ShapeError(f"an axis of {shape_of(as_row(input))[axis]} has no {k} largest; take fewer")
    first = (slice(None),) * axis + (slice(k),) if ndim_of(input) else ()
    ordered = _sort_along(input, dim, largest)
    return AxisExtremes(*[like_images(part[first]) for part in ordered])


@name()
def kthvalue(input: Any, k: int, dim: int = -1, keepdim: bool = False) -> AxisExtremes:
    """The k-th smallest element along an axis, counted from 1, and its index."""
    axis = place(dim, ndim_of(input))
    if not 1 <= k <= shape_of(as_row(input))[axis]:
        raise ShapeError(f"an axis of {shape_of(as_row(input))[axis]} has no {k}th value; take 1 to its size")
    return along(
        input, dim, keepdim, lambda x, axis, keepdims: ops.take(ops.argsort(x, axis=axis), np.array([k - 1]), axis=axis)
    )


@name()
def searchsorted(
    sorted_sequence: Any, input: Any, *, out_int32: bool = False, right: bool = False, side: str | None = None,
    sorter: Any = None,
) -> Any:  # fmt: skip
    """The places where elements belong in a sorted vector, or in sorted rows: before equal elements, or after them.

    They are after with `right`. `sorter` has the indices that sort an unsorted sequence.
    """
    if side not in (None, "left", "right") or (side == "left" and right):
        raise OptionError(f"side is 'left' or 'right', and agrees with right={right}, not {side!r}; leave one out")
    values = ops.asarray(input) if is_scalar(input) else input
    # Raise OutOfRangeError for a tensor of indices with one out of range; a symbol is not checked.
    size = shape_of(sorted_sequence)[-1:]
    places = memory_of(sorter)
    if places is not None and places.size and not (places.min() >= 0 and places.max() < size[0]):
        raise OutOfRangeError(f"sorter has indices from {places.min()} to {places.max()}; use 0 to {size[0] - 1}")
    sequence = sorted_sequence if sorter is None else ops.take_along_axis(sorted_sequence, sorter, axis=-1)
    behind = right or side == "right"
    if ndim_of(sequence) == 1:
        positions = ops.searchsorted(sequence, values, side="right" if behind else "left")
    elif shape_of(sequence)[:-1] == shape_of(values)[:-1]:
        positions = _bisect_rows(sequence, values, ops.greater if behind else ops.greater_equal)
    else:
        raise ShapeError(
            f"rows of shape {shape_of(sequence)} and values of shape {shape_of(values)}; give a row of values for each"
        )
    return cast(positions, np.int32 if out_int32 else np.int64)


def _bisect_rows(rows: Any, values: Any, reaches: Any) -> Any:
    """The first place in each sorted row that reaches a value; all values halve their range at once."""
    size = shape_of(rows)[-1].__index__()
    low = ops.zeros_like(values, dtype=np.int64)
    high = ops.add(low, size)
    for _ in range(size.bit_length()):
        middle = ops.floor_divide(ops.add(low, high), 2)
        met = reaches(ops.take_along_axis(rows, ops.minimum(middle, size - 1), axis=-1), values)
        is_open = ops.less(low, high)
        low = ops.where(ops.logical_and(is_open, ops.logical_not(met)), ops.add(middle, 1), low)
        high = ops.where(ops.logical_and(is_open, met), middle, high)
    return low


@name()
def bucketize(input: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False) -> Any:
    """The index of the bucket between sorted boundaries that each element falls into."""
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


@name()
def unique(
    input: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The distinct elements, sorted, or the distinct slices of an axis; without a gradient.

    The inverse indices and the counts are added on request.
    """
    if dim is None:
        parts = ops.unique_all(input)
        return _with_parts(parts.values, parts.inverse_indices, parts.counts, return_inverse, return_counts)
    axis, _ = axis_and_size(input, dim)
    constant = ops.stop_gradient(input)
    moved = ops.moveaxis(constant, axis, 0)
    rows = unique_rows(ops.reshape(moved, (shape_of(moved)[0], math.prod(shape_of(moved)[1:]))))
    values = ops.take(constant, rows.indices, axis=axis)
    return _with_parts(values, rows.inverse_indices, rows.counts, return_inverse, return_counts)


@name()
def unique_consecutive(
    input: Any, *, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The elements, or the slices of an axis, that differ from the one before; without a gradient."""
    axis = 0 if dim is None else axis_and_size(input, dim)[0]
    x = ops.stop_gradient(ops.reshape(input, (-1,)) if dim is None else ops.moveaxis(input, axis, 0))
    count = shape_of(x)[0]
    differs = ops.any(ops.not_equal(x[1:], x[:-1]), axis=tuple(range(1, ndim_of(x))))
    first = ops.concat([ops.ones((min(1, count),), bool), differs])
    inverse = ops.cumulative_sum(cast(first, np.int64)) - 1
    counts = ops.diff(ops.nonzero(first)[0], append=ops.asarray([count]))
    values = x[first]
    if dim is None:
        return _with_parts(values, ops.reshape(inverse, shape_of(input)), counts, return_inverse, return_counts)
    return _with_parts(ops.moveaxis(values, 0, axis), inverse, counts, return_inverse, return_counts)


def _with_parts(values: Any, inverse: Any, counts: Any, return_inverse: bool, return_counts: bool) -> Any:
    asked = [cast(x, np.int64) for x, wanted in ((inverse, return_inverse), (counts, return_counts)) if wanted]
    return (values, *asked) if asked else values


@name()
def bincount(input: Any, weights: Any = None, minlength: int = 0) -> Any:
    """The count of each integer from 0 on, or the sum of the weights of each."""
    if dtype_of(input).kind not in "iu" or ndim_of(input) != 1:
        raise refuse("bincount takes a vector of ints", "use .flatten() and .long()")
    size = max(int(ops.max(input)) + 1 if shape_of(input)[0] else 0, minlength)
    ones = ops.ones(shape_of(input), np.int64) if weights is None else weights
    if weights is not None and dtype_of(weights) != np.float32:
        ones = cast(weights, np.float64)
    start = cast(ops.multiply(ops.arange(size), 0), dtype_of(ones))
    nothing = cast(ops.multiply(ops.sum(input), 0), dtype_of(ones))
    return scatter_add(ops.add(start, nothing), 0, cast(input, np.int64), ones)


@name()
def histc(input: Any, bins: int = 100, min: float = 0, max: float = 0) -> Any:
    """The counts of elements in `bins` bins of equal width, as floats."""
    if dtype_of(input).kind != "f":
        raise refuse("histc of ints", "convert with .float() first")
    x = ops.stop_gradient(ops.reshape(input, (-1,)))
    low, high = (float(ops.min(x)), float(ops.max(x))) if min == max else (min, max)
    if bins < 1:
        raise OptionError(f"histc: bins are 1 or more, not {bins}; choose how many there are")
    if not -math.inf < low <= high < math.inf:
        remedy = "give finite ends, the lower one first, or leave out what is not finite"
        raise OptionError(f"histc: bins from {low} to {high} have no width; {remedy}")
    low, high = (low - 1, high + 1) if low == high else (low, high)
    inside = x[ops.logical_and(ops.greater_equal(x, low), ops.less_equal(x, high))]
    at = cast(ops.multiply(ops.subtract(inside, low), bins / (high - low)), np.int64)
    zeros = ops.multiply(ops.linspace(0, 0, num=bins, dtype=dtype_of(x)), ops.sum(inside) * 0)
    return scatter_add(zeros, 0, ops.clip(at, 0, bins - 1), ops.add(ops.multiply(inside, 0), 1))


@name()
def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Any:
    """Whether each element is among `test_elements`."""
    left, right = promote(elements, test_elements)
    hits = ops.equal(ops.expand_dims(left, -1), right if is_scalar(right) else ops.reshape(right, (-1,)))
    is_in = ops.any(hits, axis=-1)
    return ops.logical_not(is_in) if invert else is_in

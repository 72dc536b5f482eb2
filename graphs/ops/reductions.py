"""Reductions over axes: sums, products, means, extremes and their indices, any and all."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from graphs import dims
from graphs.dims import Shape, Size
from graphs.errors import ShapeError
from graphs.op import Array, Kernel, Op, Prepare, Prepared
from graphs.ops.creation import full
from graphs.ops.elementwise import divide, equal, greater, isnan, logical_and, multiply
from graphs.ops.elementwise import where as _where
from graphs.ops.families import over_axes, reduction, refuse_empty
from graphs.ops.movement import astype, broadcast_to, cast, flip, moveaxis, reshape
from graphs.ops.scans import MANY, but_last, cumulative_prod, in_shape, sum_sorted_axes
from graphs.ops.shapes import (
    SINGLE,
    Axis,
    accumulator,
    as_operand,
    dtype_of,
    is_half,
    positive_axis,
    reduced_shape,
    shape_of,
)
from graphs.spec import TensorSpec

__all__ = ["all", "any", "argmax", "argmin", "max", "mean", "min", "prod", "sum"]


def _restore_axes(value: Array, shape: Shape, axis: tuple[int, ...]) -> Array:
    """Restore the reduced axes of a value, with size 1."""
    kept = reduced_shape(shape, axis, keepdims=True)
    return value if dims.same_shape(value.shape, kept) else reshape.apply((value,), {"shape": kept})


def _spread(g: Array, shape: Shape, axis: tuple[int, ...]) -> Array:
    """Copy the cotangent of a reduction along the reduced axes."""
    kept = g if g.shape == () else _restore_axes(g, shape, axis)  # what has no axes needs none
    return broadcast_to.apply((kept,), {"shape": tuple(shape)})


def share_cotangent(g: Array, count: Size) -> Array:
    """Divide a cotangent by `count` before it is copied to all elements, since it is the smaller array then."""
    if dims.same(count, 0):
        return g
    if not is_half(g.dtype):
        return divide(g, count)
    # Divide by an array: the compiled tape would cast a number to the dtype of the cotangent. A symbolic size is a
    # trace's.
    by = full((), count, SINGLE) if isinstance(count, int) else count
    return cast(divide(cast(g, SINGLE), by), g.dtype)


def _count(shape: Shape, axis: tuple[int, ...]) -> Size:
    return dims.product(shape[a] for a in axis)


def _ufunc(ufunc: np.ufunc) -> Kernel:
    def kernel(x: Array, *, axis: tuple[int, ...], keepdims: bool, dtype: Any = None, out: Array = None) -> Array:
        return ufunc.reduce(x, axis=axis, keepdims=keepdims, dtype=dtype, out=out)

    return kernel


def reducer(ufunc: np.ufunc, dtype: np.dtype[Any], size: Any = None) -> Kernel:
    """The function that reduces arrays of a dtype, called as `ufunc.reduce(x, axis, dtype, out, keepdims)`.

    The maximum of floats starts from -inf. NumPy would start with the first element, which leaves of a row of 16, 32,
    ... elements a remainder that fills no vector register, and takes up to two thirds of the time. Rows shorter than a
    register are transposed first, so that the maxima of neighbours are found side by side. For many other rows the
    argmax is found instead, in a third of the time. `size` is the size of the array, where it is known: a sum of few
    numbers is NumPy's.
    """
    if ufunc is np.add and isinstance(size, int) and size < MANY and not is_half(dtype):
        return ufunc.reduce
    return _QUICKER.get(ufunc, ufunc.reduce) if dtype.kind == "f" else ufunc.reduce


_REGISTER = 64  # bytes: the widest there is
_LONGEST = 4096  # bytes of a row, of which NumPy finds the largest as soon as its place


def _starting(reduce: Kernel, start: float, places: Kernel) -> Kernel:
    def reduce_from_start(x: Array, axis: Any, dtype: Any = None, out: Array = None, keepdims: bool = False) -> Array:
        if not x.size:  # nothing has no largest element: the error is NumPy's
            return reduce(x, axis, dtype, out, keepdims)
        if x.ndim > 1 and axis in (x.ndim - 1, (x.ndim - 1,)):
            shape = (*x.shape[:-1], 1) if keepdims else x.shape[:-1]
            if _has_rows(x, 64, _REGISTER):
                return in_shape(reduce(_columns(x), 0), shape, out)
            if _has_rows(x, 256, _LONGEST) and x.dtype.char in "fd" and x.flags.c_contiguous:
                return in_shape(_at_places(x, places(x, -1)), shape, out)
        return reduce(x, axis, dtype, out, keepdims, start)

    return reduce_from_start


def _has_rows(x: Array, least: int, longest: int) -> bool:
    """Whether an array has at least `least` rows of at most `longest` bytes each."""
    length = x.shape[-1]
    return bool(length * x.itemsize <= longest and x.size >= least * length)


def _columns(x: Array) -> Array:
    """The rows of x as columns, contiguous."""
    return np.ascontiguousarray(x.reshape(-1, x.shape[-1]).T)


def _at_places(x: Array, places: Array) -> Array:
    """The element of each row at the place given for the row."""
    starts = np.arange(0, x.size, x.shape[-1]).reshape(places.shape)
    return x.reshape(-1).take(np.add(starts, places, out=starts))


_QUICKER: dict[np.ufunc, Kernel] = {
    np.add: sum_sorted_axes,
    np.maximum: _starting(np.maximum.reduce, -math.inf, np.argmax),
    np.minimum: _starting(np.minimum.reduce, math.inf, np.argmin),
}


def _extremum(ufunc: np.ufunc) -> Kernel:
    def kernel(x: Array, *, axis: tuple[int, ...], keepdims: bool, out: Array = None) -> Array:
        return reducer(ufunc, x.dtype)(x, axis, None, out, keepdims)

    return kernel


def _accumulation(identity: int) -> Prepare:
    """The `prepare` of a sum or product; elements that `where` masks out become the identity, which changes nothing."""

    def prepare(
        x: Array,
        /,
        axis: Axis = None,
        keepdims: bool = False,
        dtype: npt.DTypeLike | None = None,
        where: Array | None = None,
    ) -> Prepared:
        inputs, attrs = over_axes(x if where is None else _mask_with_identity(x, where, identity), axis, keepdims)
        return inputs, attrs if dtype is None else {**attrs, "dtype": TensorSpec((), dtype).dtype}

    return prepare


def _mask_with_identity(x: Array, where: Array, identity: int) -> Array:
    """x with masked-out elements replaced by the identity. Raises ShapeError unless the mask broadcasts to x."""
    chosen = _where(where, x, np.asarray(identity, dtype_of(x)))
    if not dims.same_shape(shape_of(chosen), shape_of(x)):
        raise ShapeError(f"a mask of shape {shape_of(where)} does not fit {shape_of(x)}; broadcast x first")
    return chosen


def _sum(x: Array, *, axis: tuple[int, ...], keepdims: bool, dtype: Any = None, out: Array = None) -> Array:
    return sum_sorted_axes(x, axis, dtype, out, keepdims)


def _mean_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype if dtype.kind == "f" else np.dtype(np.float64)


def _mean(x: Array, *, axis: tuple[int, ...], keepdims: bool, out: Any = None) -> Array:
    """The arithmetic mean over `axis`; NaN over no elements, as in NumPy."""
    # np.mean is slower, and warns about the mean of an empty array, which is NaN like any other 0 / 0.
    if out is None and x.dtype.kind == "f" and x.dtype.itemsize > 2:  # the usual case, without looking for dtypes
        total: Any = sum_sorted_axes(x, axis, None, None, keepdims)
        if type(total) is not np.ndarray:
            return total / x.size
        return np.true_divide(total, math.prod([x.shape[a] for a in axis]), out=total)
    kind = np.result_type(x.dtype, 0.5)
    wide: np.dtype[Any] = np.dtype(np.float32) if kind.itemsize == 2 else kind  # float16 overflows at 65504
    result: Any = out if wide == kind else None
    total = np.add.reduce(x, axis=axis, keepdims=keepdims, dtype=wide, out=result)
    count = math.prod([x.shape[a] for a in axis])
    mean = np.true_divide(total, count, out=total if isinstance(total, np.ndarray) else None)
    if wide == kind or out is None:
        return mean.astype(kind, copy=False)
    np.copyto(out, mean, casting="same_kind")
    return out


sum: Op = reduction(
    "sum",
    _sum,
    lambda g, x_shape, x_dtype, axis: _spread(cast(g, x_dtype), x_shape, axis),
    dtype=accumulator,
    prepare=_accumulation(0),
    doc="The sum over `axis` (all axes by default) of what `where` selects, in `dtype`; small integers widen.",
)
mean: Op = reduction(
    "mean",
    _mean,
    lambda g, x_shape, axis: _spread(share_cotangent(g, _count(x_shape, axis)), x_shape, axis),
    dtype=_mean_dtype,
    divides=True,
)
prod: Op = reduction(
    "prod",
    _ufunc(np.multiply),
    lambda g, x, axis: multiply(_restore_axes(cast(g, x.dtype), x.shape, axis), _others(x, axis)),
    dtype=accumulator,
    prepare=_accumulation(1),
    doc="The product over `axis` of what `where` selects, in `dtype`; its gradient is right for any number of zeros.",
)
max: Op = reduction(
    "max",
    _extremum(np.maximum),
    lambda g, x, out, axis: _share_among_ties(g, x, out, axis),
    dtype=lambda d: d,
    identity=False,
    doc="The largest element over `axis`; ties share the gradient equally.",
)
min: Op = reduction(
    "min",
    _extremum(np.minimum),
    lambda g, x, out, axis: _share_among_ties(g, x, out, axis),
    dtype=lambda d: d,
    identity=False,
    doc="The smallest element over `axis`; ties share the gradient equally.",
)
any: Op = reduction("any", _ufunc(np.logical_or), None, dtype=lambda _: np.dtype(bool), doc="Whether any is true.")
all: Op = reduction("all", _ufunc(np.logical_and), None, dtype=lambda _: np.dtype(bool), doc="Whether all are true.")


def _share_among_ties(g: Array, x: Array, out: Array, axis: tuple[int, ...]) -> Array:
    hits = astype(equal(x, _restore_axes(out, x.shape, axis)), g.dtype)
    share = divide(_restore_axes(g, x.shape, axis), sum(hits, axis=axis, keepdims=True))
    return multiply(hits, share)


def _others(x: Array, axis: tuple[int, ...]) -> Array:
    """For each element the product of all others: of the elements before and after it, without a division.

    A zero among the others makes the product 0, also where the product before the zero overflows. Only there it is set
    to 0, so that the next derivative passes through all other products.
    """
    last = tuple(range(-len(axis), 0))
    moved = moveaxis(x, axis, last)
    kept = len(moved.shape) - len(axis)
    flat = reshape(moved, (*moved.shape[:kept], _count(x.shape, axis)))
    products = multiply(_products_before(flat), flip(_products_before(flip(flat, axis=-1)), axis=-1))
    zeros = equal(flat, 0)
    overflown = logical_and(isnan(products), greater(sum(zeros, axis=-1, keepdims=True), zeros))
    products = _where(overflown, 0, products)
    return moveaxis(reshape(products, moved.shape), last, axis)


def _products_before(x: Array) -> Array:
    return but_last(cumulative_prod(x, axis=-1, include_initial=True), -1)


def _one_axis(x: Array, /, axis: int | None = None, keepdims: bool = False) -> Prepared:
    x = as_operand(x)
    if axis is None:
        ones = (1,) * len(shape_of(x)) if keepdims else ()
        return (reshape(x, (-1, *ones[1:])),), {"axis": 0, "keepdims": bool(ones)}
    return (x,), {"axis": positive_axis(axis, len(shape_of(x))), "keepdims": bool(keepdims)}


def _arg_reduction(name: str, function: Kernel, doc: str) -> Op:
    def kernel(x: Array, *, axis: int, keepdims: bool, out: Array = None) -> Array:
        return function(x, axis=axis, keepdims=keepdims, out=out)

    def infer(x: TensorSpec, *, axis: int, keepdims: bool) -> TensorSpec:
        refuse_empty(x, (axis,))
        return TensorSpec(reduced_shape(x.shape, (axis,), keepdims), np.intp)

    def cost(x: TensorSpec, *, out: TensorSpec, **_: Any) -> Size:
        return x.size

    return Op(name, kernel, infer, prepare=_one_axis, cost=cost, family="reduction", doc=doc)


argmax: Op = _arg_reduction(
    "argmax", np.argmax, "The index of the first largest element; of the flat array by default."
)
argmin: Op = _arg_reduction(
    "argmin", np.argmin, "The index of the first smallest element; of the flat array by default."
)

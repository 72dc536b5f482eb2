"""scatter_reduce: values are sent to places along an axis, and summed, multiplied, averaged or compared there."""

from __future__ import annotations

import numpy as np

from graphs import dims
from graphs.dims import Shape
from graphs.errors import DTypeError, ShapeError
from graphs.op import Array, Op, Prepared
from graphs.ops.creation import arange, ones
from graphs.ops.elementwise import add, divide, equal, greater, less, maximum, multiply, subtract, where
from graphs.ops.families import check_specs, composite
from graphs.ops.indexing import add_along_axis, infer_along, places_along, take_along_axis
from graphs.ops.movement import astype, broadcast_to, cast, concat, pad, reshape
from graphs.ops.scans import cumulative_sum
from graphs.ops.shapes import as_operand, dtype_of, highest, integral, lowest, positive_axis, shape_of, store
from graphs.ops.slicing import getitem, setitem
from graphs.ops.sorting import argsort
from graphs.spec import TensorSpec, spec_of

__all__ = ["extreme_along_axis", "scatter_reduce"]


# The extreme of the values that are sent to each place
# ---------------------------------------------------------------


def _prepare(x: Array, indices: Array, values: Array, /, axis: int, largest: bool) -> Prepared:
    attrs = {"axis": positive_axis(axis, len(shape_of(x))), "largest": bool(largest)}
    return (as_operand(x), as_operand(indices), as_operand(values)), attrs


def _infer(x: TensorSpec, indices: TensorSpec, values: TensorSpec, *, axis: int, largest: bool) -> TensorSpec:
    infer_along(x, indices, axis=axis)
    if not dims.same_shape(values.shape, indices.shape) or values.dtype != x.dtype:
        raise ShapeError("values have the shape of their indices, and the dtype of x; broadcast or convert them")
    return x


def _extreme(x: Array, indices: Array, values: Array, *, axis: int, largest: bool, out: Array = None) -> Array:
    """The largest (or smallest) of each element of x and the values sent to it; ties share the gradient equally."""
    out = np.array(x) if out is None else store(x, out)
    (np.maximum if largest else np.minimum).at(out, places_along(indices.shape, indices, axis), values)
    return out


def _hits(x: Array, y: Array, z: Array, out: Array, axis: int) -> tuple[Array, Array, Array]:
    """1 where x is the extreme, 1 where a sent value is, and the number of extremes at each place."""
    own = astype(equal(x, out), out.dtype)
    sent = astype(equal(z, take_along_axis(out, y, axis=axis)), out.dtype)
    return own, sent, add(own, add_along_axis(sent, y, out.shape, axis))


def _own_rule(g: Array, x: Array, y: Array, z: Array, out: Array, axis: int) -> Array:
    own, _, count = _hits(x, y, z, out, axis)
    return multiply(own, divide(g, count))


def _sent_rule(g: Array, x: Array, y: Array, z: Array, out: Array, axis: int) -> Array:
    _, sent, count = _hits(x, y, z, out, axis)
    return multiply(sent, take_along_axis(divide(g, count), y, axis=axis))


extreme_along_axis: Op = Op(
    "extreme_along_axis",
    _extreme,
    _infer,
    rules=(_own_rule, None, _sent_rule),
    prepare=check_specs(_prepare, _infer),
    cost=lambda x, indices, values, *, out, **_: indices.size,
    family="indexing",
)

# PyTorch's function --------------------------------------------------------------------------------------------------


@composite
def scatter_reduce(x: Array, axis: int, index: Array, src: Array, reduce: str, include_self: bool = True) -> Array:
    """x with each element of `src` sent to the place `index` along `axis`, where `reduce` combines the values.

    `reduce` is "sum", "prod", "mean", "amax" or "amin", of the values sent and, with `include_self`, the element of x.
    A place that nothing is sent to keeps x. For axis 0 element (i, j) of `src` goes to (index[i, j], j), as in PyTorch:
    `src` and, but for the axis, x are at least as long as `index`. Ties share the gradients of extremes; gradients of
    products are right for any number of zeros. Raises ShapeError, and DTypeError for a mean of integers.
    """
    x, index, src = as_operand(x), as_operand(index), as_operand(src)
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise ShapeError(f"reduce is 'sum', 'prod', 'mean', 'amax' or 'amin', not {reduce!r}; choose one")
    if reduce == "mean" and dtype_of(x).kind != "f":
        raise DTypeError("a mean takes floating point values; convert with astype(x, 'float32')")
    integral(spec_of(index), "indices")
    shape, at = shape_of(index), positive_axis(axis, len(shape_of(x)))
    sent = cast(_crop(src, shape, "src"), dtype_of(x))
    within = tuple(shape_of(x)[i] if i == at else size for i, size in enumerate(shape))
    part = _crop(x, within, "x")
    reduced = _scatter_reduce(part, index, sent, at, reduce, include_self)
    return reduced if part is x else setitem(x, reduced, tuple(slice(0, size) for size in within))


def _crop(x: Array, shape: Shape, what: str) -> Array:
    """Crop x to `shape`, from the start of each axis. Raises ShapeError where x is shorter."""
    have = shape_of(x)
    if dims.same_shape(have, shape):
        return x
    numbers = [size for size in (*have, *shape) if isinstance(size, int)]
    if len(have) != len(shape) or len(numbers) < 2 * len(shape) or any(map(int.__lt__, have, shape)):  # type: ignore[arg-type]
        raise ShapeError(
            f"{what} of shape {have} is not as long as the index, {shape}; use as many axes, and fewer indices"
        )
    return getitem(x, tuple(slice(0, size) for size in shape))


def _scatter_reduce(x: Array, index: Array, sent: Array, axis: int, reduce: str, include_self: bool) -> Array:
    counts = add_along_axis(ones(shape_of(index), np.int64), index, shape_of(x), axis)
    start = x if include_self else where(greater(counts, 0), np.asarray(_IDENTITY[reduce](dtype_of(x)), dtype_of(x)), x)
    if reduce in ("amax", "amin"):
        return extreme_along_axis(start, index, sent, axis, reduce == "amax")
    if reduce == "prod":
        return _product(start, index, sent, counts, axis)
    total = add(start, add_along_axis(sent, index, shape_of(x), axis))
    if reduce == "sum":
        return total
    number = add(counts, 1) if include_self else maximum(counts, 1)
    return divide(total, astype(number, dtype_of(x)))


def _product(x: Array, index: Array, sent: Array, counts: Array, axis: int) -> Array:
    """The product of all values at each place, without a division: running products of the values sorted by place."""
    shape = shape_of(x)
    own = broadcast_to(reshape(arange(shape[axis]), [-1 if i == axis else 1 for i in range(len(shape))]), shape)
    places = concat([own, where(less(index, 0), add(index, shape[axis]), index)], axis=axis)
    order = argsort(places, axis=axis)
    factors = take_along_axis(concat([x, sent], axis=axis), order, axis=axis)
    running = _running_products(factors, take_along_axis(places, order, axis=axis), axis)
    products = take_along_axis(running, subtract(cumulative_sum(add(counts, 1), axis=axis), 1), axis=axis)
    return cast(products, dtype_of(x))


def _running_products(x: Array, groups: Array, axis: int) -> Array:
    """The product of each element and those before it in its group, in steps of 1, 2, 4, ... (Hillis, Steele, 1986)."""
    shape = shape_of(x)
    length = shape[axis]
    if not isinstance(length, int):
        raise ShapeError(f"products of {length} factors take an unknown number of steps; give sizes as numbers")
    step = 1
    while step < length:
        later, earlier = ((slice(None),) * axis + (part,) for part in (slice(step, None), slice(None, -step)))
        same = equal(getitem(groups, later), getitem(groups, earlier))
        # Multiplied by 1, not by 0 and then added: a NaN or an infinity stays in its group, in gradients too.
        widths = [(step * (i == axis), 0) for i in range(len(shape))]
        x = multiply(x, pad(where(same, getitem(x, earlier), 1), widths, 1))
        step *= 2
    return x


_IDENTITY = {"sum": lambda _: 0, "mean": lambda _: 0, "prod": lambda _: 1, "amax": lowest, "amin": highest}

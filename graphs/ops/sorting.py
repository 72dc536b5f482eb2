"""Sorting and searching: sort, argsort, searchsorted, count_nonzero; then functions whose sizes depend on values.

Last, scatter_reduce: values are sent to places along an axis, and summed, multiplied, averaged or compared there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from graphs import capture, dims, dispatch
from graphs.dims import Shape, Size
from graphs.errors import ControlFlowError, DTypeError, ShapeError
from graphs.op import Array, Op, Prepared
from graphs.ops.creation import arange, ones
from graphs.ops.elementwise import add, divide, equal, greater, less, maximum, multiply, not_equal, subtract, where
from graphs.ops.families import check_specs, composite
from graphs.ops.indexing import add_along_axis, infer_along, places_along, take, take_along_axis
from graphs.ops.movement import astype, broadcast_to, cast, concat, pad, reshape, stop_gradient
from graphs.ops.reductions import sum
from graphs.ops.scans import cumulative_sum
from graphs.ops.shapes import (
    Axis,
    as_operand,
    dtype_of,
    highest,
    integral,
    lowest,
    positive_axes,
    positive_axis,
    shape_of,
    store,
)
from graphs.ops.slicing import getitem, setitem
from graphs.spec import TensorSpec, spec_of

__all__ = [
    "argsort", "argwhere", "count_nonzero", "extreme_along_axis", "nonzero", "scatter_reduce", "searchsorted",
    "sort", "unique_all", "unique_counts", "unique_inverse", "unique_values",
]  # fmt: skip


# sort and argsort -----------------------------------------------------------------------------------------------


def _prepare_sort(x: Array, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Prepared:
    x = as_operand(x)
    at = positive_axis(axis, len(shape_of(x)))
    return (x,), {"axis": at, "descending": bool(descending), "stable": bool(stable)}


def _sort(x: Array, *, axis: int, descending: bool, stable: bool, out: Array = None) -> Array:
    """The elements in order along one axis, NaN as the largest; gradients of equal elements keep their order."""
    out = np.array(x) if out is None else store(x, out)
    # The reverse of a stable sort of the reverse is stable too, with the largest first.
    ends = np.flip(out, axis) if descending else out
    ends.sort(axis=axis, kind="stable" if stable and _has_signed_zero(out) else None)
    return out


def _has_signed_zero(x: Array) -> bool:
    """Whether some equal elements may differ: all others are the same in any order."""
    return x.dtype.kind == "f" and bool(np.any(np.signbit(x) & (x == 0)))


_LONG = 32
"""The elements of an axis from which on a stable sort takes longer than one of numbers with places behind them."""
_KEYED = frozenset(map(np.dtype, ("float16", "float32", "int32", "uint32")))
"""Numbers of 32 bits or fewer; NumPy sorts integers of 16 bits by their digits, which is stable and quick."""


def _argsort(x: Array, *, axis: int, descending: bool, stable: bool, out: Array = None) -> Array:
    """The indices that sort along one axis; equal elements keep their order when `stable`."""
    if stable and x.dtype in _KEYED and _LONG <= x.shape[axis] < 1 << 32:
        order = _order_of_keys(x, axis, descending)
    elif descending:
        kind: Any = "stable" if stable else None
        order = x.shape[axis] - 1 - np.flip(np.argsort(np.flip(x, axis), axis=axis, kind=kind), axis)
    else:
        order = np.argsort(x, axis=axis, kind="stable" if stable else None)
    return order if out is None else store(order, out)


def _order_of_keys(x: Array, axis: int, descending: bool) -> Array:
    """The stable order of numbers of `_KEYED`: each is sorted with its place behind it, as one integer of 64 bits.

    NumPy's quicksort of integers takes less than a fifth of the time of its stable sort of floats.
    """
    if x.dtype.kind == "f":
        bits = (x.astype(np.float32) + np.float32(0)).view(np.int32)  # -0.0 + 0.0 is 0.0
        keys = bits ^ (bits >> 31 & 0x7FFFFFFF)  # of negative numbers the smaller is the one with the larger bits
        np.putmask(keys, np.isnan(x), 0x7FFFFFFF)
    else:
        keys = x.astype(np.int64) - (1 << 31 if x.dtype == np.uint32 else 0)
    places = np.arange(x.shape[axis]).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    pairs = (~keys if descending else keys).astype(np.int64) << 32 | places
    pairs.sort(axis=axis)
    return pairs & 0xFFFFFFFF


def _sort_cost(x: TensorSpec, *, axis: int, out: TensorSpec, **_: Any) -> Size:
    size = x.shape[axis]
    return x.size * (size.bit_length() if isinstance(size, int) else 16)  # log2 of the length, 2**16 where unknown


sort: Op = Op(
    "sort",
    _sort,
    lambda x, **_: x,
    rules=(
        lambda g, x, axis, descending: add_along_axis(
            g, argsort(x, axis=axis, descending=descending), shape=x.shape, axis=axis
        ),
    ),
    prepare=_prepare_sort,
    cost=_sort_cost,
    family="sorting",
    zero_safe=True,
    layout="inputs",
)
argsort: Op = Op(
    "argsort",
    _argsort,
    lambda x, **_: TensorSpec(x.shape, np.intp),
    prepare=_prepare_sort,
    cost=_sort_cost,
    family="sorting",
    layout="inputs",
)


# searchsorted and count_nonzero ---------------------------------------------------------------------------------


def _prepare_search(x1: Array, x2: Array, /, side: str = "left", sorter: Array | None = None) -> Prepared:
    if side not in ("left", "right"):
        raise ShapeError(f"side is 'left' or 'right', not {side!r}; choose one")
    values = as_operand(x1)
    return (values if sorter is None else take(values, sorter, axis=0), as_operand(x2)), {"side": side}


def _search(x: Array, y: Array, *, side: Any, out: Array = None) -> Array:
    """Where each element of y belongs in the sorted x: before its equals, or after them with side='right'."""
    positions = np.searchsorted(x, y, side=side)
    return positions if out is None else store(positions, out)


def _infer_search(x: TensorSpec, y: TensorSpec, *, side: str) -> TensorSpec:
    if x.ndim != 1:
        raise ShapeError(f"the sorted values have one axis, not {x.ndim}; flatten them")
    return TensorSpec(y.shape, np.intp)


searchsorted: Op = Op(
    "searchsorted",
    _search,
    _infer_search,
    prepare=_prepare_search,
    cost=lambda x, y, *, out, side: out.size * (x.size.bit_length() if isinstance(x.size, int) else 16),
    family="sorting",
)


@composite
def count_nonzero(x: Array, /, axis: Axis = None, keepdims: bool = False) -> Array:
    """How many elements are not zero (or not False)."""
    axes = positive_axes(axis, len(shape_of(x)))
    return sum(not_equal(x, np.zeros((), dtype_of(x))), axis=axes, keepdims=keepdims)


# Functions whose result sizes depend on values. They run on arrays and tensors; a trace refuses them. ---------------


def _values(x: Array, instead: str) -> np.ndarray[Any, Any]:
    """The elements of an array or tensor. Raises ControlFlowError for a symbol, which has none yet."""
    try:
        return np.asarray(stop_gradient(x))
    except ControlFlowError:
        raise ControlFlowError(
            f"the size of the result depends on values, which are unknown while a graph is traced; {instead}"
        ) from None


def _like(x: Array, array: Any) -> Array:
    """Wrap an array like x: as a tensor when x is one, as a constant where x is a known value of a graph."""
    if dispatch.interpreter_of(x) is None:
        return array
    make = type(x) if type(x) in capture.tensors else getattr(x, "new_tensor", np.asarray)
    return make(array, dtype=np.asarray(array).dtype)


@composite
def nonzero(x: Array, /) -> tuple[Array, ...]:
    """The positions of the elements that are not zero: one array of indices per axis.

    Raises ControlFlowError for a symbol.
    """
    if not shape_of(x):
        raise ShapeError("takes at least one axis; reshape to (1,)")
    indices = np.nonzero(_values(x, "use graphs.where(x != 0, a, b), which keeps the shape, or graphs.count_nonzero"))
    return tuple(_like(x, positions) for positions in indices)


@composite
def argwhere(x: Array, /) -> Array:
    """The positions of the elements that are not zero, one a row. Raises ControlFlowError for a symbol."""
    return _like(x, np.argwhere(_values(x, "use graphs.where(x != 0, a, b), which keeps the shape")))


_SORTED = "use graphs.sort, which keeps the size"


@composite
def unique_all(x: Array, /) -> Any:
    """The distinct values in order, the index of each first occurrence, the inverse indices, and the counts.

    A named tuple; each NaN is distinct. Raises ControlFlowError for a symbol.
    """
    return _fields(x, np.unique_all(_values(x, _SORTED)))


@composite
def unique_counts(x: Array, /) -> Any:
    """The distinct values in order, and how often each occurs. Raises ControlFlowError for a symbol."""
    return _fields(x, np.unique_counts(_values(x, _SORTED)))


@composite
def unique_inverse(x: Array, /) -> Any:
    """The distinct values in order, and the index of each element among them. Raises ControlFlowError for a symbol."""
    return _fields(x, np.unique_inverse(_values(x, _SORTED)))


@composite
def unique_values(x: Array, /) -> Array:
    """The distinct values in order, without a gradient. Raises ControlFlowError for a symbol."""
    return _like(x, np.unique(_values(x, _SORTED), equal_nan=False))


class UniqueRows(NamedTuple):
    """The result of `unique_rows`."""

    indices: Array
    inverse_indices: Array
    counts: Array


@composite
def unique_rows(x: Array, /) -> UniqueRows:
    """The distinct slices along the first axis, in order: index of the first occurrence, inverse indices, and counts.

    Raises ControlFlowError for a symbol.
    """
    fields = np.unique(_values(x, _SORTED), True, True, True, axis=0)[1:]
    return UniqueRows(*[_like(x, field.reshape(-1)) for field in fields])


def _fields(x: Array, result: Any) -> Any:
    return type(result)(*(_like(x, field) for field in result))


# The extreme of the values that are sent to each place
# ---------------------------------------------------------------


# Values sent to places ------------------------------------------------------------------------------------------------


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
    if reduce == "sum" and include_self:
        return add(x, add_along_axis(sent, index, shape_of(x), axis))
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

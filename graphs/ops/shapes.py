"""Helpers of op definitions: shapes and dtypes of any value, positive axes, operands, and results in buffers."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from graphs import dims
from graphs.dims import Dim, Shape, Size
from graphs.dispatch import interpreter_of
from graphs.errors import ArgumentError, ControlFlowError, DTypeError, OptionError, OutOfRangeError, ShapeError
from graphs.op import Array, Prepared
from graphs.promotion import check_dtype
from graphs.spec import TensorSpec

Axis = int | Sequence[int] | None


def shape_of(value: Any) -> Shape:
    """The shape of an array, tensor, symbol, scalar or nested list."""
    return tuple(value.shape) if hasattr(value, "shape") else np.shape(value)


def dtype_of(value: Any) -> np.dtype[Any]:
    """The dtype of an array, tensor or symbol; of a scalar or list, the one NumPy gives it."""
    dtype = getattr(value, "dtype", None)  # once: a tensor looks it up
    if dtype is None:
        return np.asarray(value).dtype
    return dtype if isinstance(dtype, np.dtype) else dtype.dtype  # of PyTorch's, which NumPy would ask for it


def positive_axis(axis: int, ndim: int) -> int:
    """An axis counted from the front. Raises OutOfRangeError when there is no such axis."""
    try:
        index = operator.index(axis)
    except (TypeError, ControlFlowError):
        raise ShapeError(f"an axis is an int, got {axis!r}; count axes from 0, or from -1 backwards") from None
    if not -ndim <= index < ndim:
        remedy = f"use {-ndim} to {ndim - 1}" if ndim else "add one with expand_dims"
        raise OutOfRangeError(f"axis {axis} is out of range for {ndim} axes; {remedy}")
    return index % ndim


def positive_axes(axis: Axis, ndim: int) -> tuple[int, ...]:
    """Sorted axes counted from the front; None means all. Raises ShapeError for a repeated axis."""
    if axis is None:
        return tuple(range(ndim))
    listed = axis if isinstance(axis, Iterable) else (axis,)
    axes = sorted(positive_axis(a, ndim) for a in listed)
    if len(set(axes)) < len(axes):
        raise ShapeError(f"axis {tuple(listed)} names an axis twice; name each once")
    return tuple(axes)


def last_two(shape: Shape) -> tuple[Size, Size]:
    """The numbers of rows and columns of matrices. Raises ShapeError for less than two axes."""
    if len(shape) < 2:
        raise ShapeError(f"needs at least 2 axes, got {len(shape)}; add one with expand_dims")
    return shape[-2], shape[-1]


@functools.cache
def swapped_axes(ndim: int) -> tuple[int, ...]:
    """The order of axes that swaps the last two."""
    return (*range(ndim - 2), ndim - 1, ndim - 2)


def reduced_shape(shape: Shape, axis: tuple[int, ...], keepdims: bool) -> Shape:
    """The shape after reducing over `axis`."""
    if keepdims:
        return tuple(1 if i in axis else s for i, s in enumerate(shape))
    return tuple(s for i, s in enumerate(shape) if i not in axis)


def accumulator(kind: np.dtype[Any], dtype: np.dtype[Any] | None = None) -> np.dtype[Any]:
    """The dtype in which sums and products are computed: `dtype`, else NumPy's, which widens small ints and bools."""
    return np.add.reduce(np.zeros(1, kind)).dtype if dtype is None else dtype


SINGLE = np.dtype(np.float32)


def is_half(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is float16, whose sums run in float32: it ends at 65504, and skips odd numbers from 2048."""
    return dtype.num == HALF


def holds_half(value: Any) -> bool:
    """Whether a value is an array, tensor or symbol of float16: asked of every call, so without `dtype_of`."""
    dtype = getattr(value, "dtype", None)
    return dtype is not None and dtype.num == HALF


HALF = np.dtype(np.float16).num  # where an op of few elements asks, the number itself: a call takes a share of it


def as_shape(shape: Any) -> Shape:
    """A shape from an int or a sequence of sizes. Raises ArgumentError for other values."""
    try:
        sizes = (shape,) if isinstance(shape, (int, Dim, np.integer)) else tuple(shape)
        return tuple(s if isinstance(s, Dim) else operator.index(s) for s in sizes)
    except TypeError:
        raise ArgumentError(f"a shape is an int or a sequence of ints, not {shape!r}; convert with int()") from None


def new_shape(shape: Any) -> Shape:
    """The shape of a new array. Raises ArgumentError, and ShapeError for a size below 0."""
    sizes = as_shape(shape)
    for size in sizes:
        if not isinstance(size, Dim) and size < 0:
            raise ShapeError(f"sizes are 0 or more, not {size}; -1 stands for a size in reshape alone")
    return sizes


def as_count(number: Any, what: str) -> int:
    """A count as an int. Raises ArgumentError for a value that is no int, OptionError for one below 0."""
    try:
        count = operator.index(number)
    except TypeError:
        raise ArgumentError(f"{what} is an int, not {number!r}; convert with int()") from None
    if count < 0:
        raise OptionError(f"{what} is 0 or more, not {count}; check how it was counted")
    return count


def check_groups(channels: Size, groups: Any, what: str = "groups") -> None:
    """Raise ShapeError unless `groups` is a positive number that divides the channels."""
    is_number = isinstance(groups, Dim) or (isinstance(groups, int) and groups > 0)
    if not is_number or not dims.same(channels % groups, 0):
        raise ShapeError(f"{channels} channels do not divide into {groups} {what}; choose a divisor")


def completed_shape(shape: Shape, total: Size) -> Shape:
    """The shape with its one `-1` computed from the number of elements.

    Raises ShapeError when two sizes are -1 or no size fits.
    """
    unknown = [i for i, s in enumerate(shape) if not isinstance(s, Dim) and s == -1]
    if len(unknown) > 1:
        raise ShapeError("only one size of a new shape can be -1; give the others")
    if not unknown:
        return shape
    others = dims.product(s for i, s in enumerate(shape) if i != unknown[0])
    if dims.same(others, 0) or not dims.same(total // others * others, total):
        raise ShapeError(f"{total} elements do not fill a shape of {shape}; change a size that is given")
    return tuple(total // others if i == unknown[0] else s for i, s in enumerate(shape))


def floating(spec: TensorSpec) -> None:
    """Raise DTypeError unless the dtype is a float."""
    if spec.dtype.kind != "f":
        raise DTypeError("takes floating point values; convert with astype(x, 'float32')")


def integral(spec: TensorSpec, what: str) -> None:
    """Raise DTypeError unless the dtype is an integer."""
    if spec.dtype.kind not in "iu":
        raise DTypeError(f"{what} must be integers; convert with astype(x, 'int64')")


def as_operand(value: Any) -> Any:
    """A value with shape and dtype: lists and scalars become arrays, other values are returned unchanged.

    Raises DTypeError for a dtype that no tensor has.
    """
    operand = value if hasattr(value, "dtype") else np.asarray(value)
    if interpreter_of(operand) is None:
        check_dtype(operand.dtype)
    return operand


def one_operand(x: Any, /) -> Prepared:
    """The `prepare` of an op of one input without options."""
    return (as_operand(x),), {}


def two_operands(x: Any, y: Any, /) -> Prepared:
    """The `prepare` of an op of two inputs without options."""
    return (as_operand(x), as_operand(y)), {}


def along(x: Any, /, axis: int = -1) -> Prepared:
    """The `prepare` of an op along one axis, which is then counted from the front."""
    x = as_operand(x)
    return (x,), {"axis": positive_axis(axis, len(shape_of(x)))}


# For kernels: `out` is the buffer that was planned for the result, or None.


def store(result: Array, out: Array) -> Array:
    """Copy the result into `out` where there is one. Small kernels do this inline, as a call costs as much."""
    if out is None:
        return result
    np.copyto(out, result)
    return out


def lay(result: Any, operands: Sequence[Any] = ()) -> Any:
    """The result in memory as PyTorch lays that of an elementwise op on these arrays; row by row without any.

    Of two axes that one is the inner one along which the first operand that tells them apart takes shorter steps.
    """
    if all(operand.flags.c_contiguous for operand in operands):
        return result if result.flags.c_contiguous else np.array(result, order="C")
    order = _order(result.shape, [_steps(operand, result.shape) for operand in operands])
    strides, step = [0] * result.ndim, result.itemsize
    for axis in order:
        strides[axis] = step
        step *= result.shape[axis]
    pairs = zip(result.shape, result.strides, strides, strict=True)
    if result.size == 0 or all(size == 1 or have == wanted for size, have, wanted in pairs):
        return result
    made: Any = np.ndarray(result.shape, result.dtype, strides=strides)
    np.copyto(made, result)
    return made


def run_turned(kernel: Any, first: Any, second: Any) -> Any:
    """A ufunc of two arrays, each of two axes or more, whose result lies as `lay` would lay it, without a copy."""
    ndim = max(first.ndim, second.ndim)
    both = [array[(None,) * (ndim - array.ndim)] for array in (first, second)]
    order = axes_order(*both)
    result = kernel(*[array.transpose(order) for array in both], order="C")
    return result.transpose(sorted(order, key=order.__getitem__))


def axes_order(*operands: Any) -> tuple[int, ...]:
    """The axes of what PyTorch's elementwise ops make of these arrays, as they lie in memory, the outer one first."""
    sizes = np.broadcast_shapes(*[operand.shape for operand in operands])
    return tuple(_order(sizes, [_steps(operand, sizes) for operand in operands])[::-1])


def disagree(arrays: Sequence[Any]) -> bool:
    """Whether two arrays may lie in different orders of their axes, so that NumPy would lay their result by neither."""
    if len(arrays) != 2 or min(arrays[0].ndim, arrays[1].ndim) < 2:
        return False
    first, second = (array.flags for array in arrays)
    return not (first.c_contiguous and second.c_contiguous) and not (first.f_contiguous and second.f_contiguous)


def _steps(operand: Any, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of an array along the axes of the result, 0 where it is broadcast."""
    added = len(sizes) - operand.ndim
    pairs = zip(operand.shape, operand.strides, sizes[added:], strict=True)
    return (*(0,) * added, *[0 if size == 1 != wide else abs(step) for size, step, wide in pairs])


def _order(sizes: tuple[int, ...], steps: Sequence[tuple[int, ...]]) -> list[int]:
    """The axes, the inner one first."""
    order = list(range(len(sizes)))[::-1]
    for last in range(1, len(order)):
        place = last
        for before in reversed(range(last)):
            sign = _compare(order[before], order[place], sizes, steps)
            if sign < 0:
                break
            if sign > 0:
                order[before], order[place], place = order[place], order[before], before
    return order


def _compare(axis: int, other: int, sizes: tuple[int, ...], steps: Sequence[tuple[int, ...]]) -> int:
    """1 where an axis is further out than another, -1 where it is further in, 0 where no operand tells."""
    for of_operand in steps:
        here, there = of_operand[axis], of_operand[other]
        if here and there and (here != there or sizes[axis] > sizes[other]):
            return 1 if here >= there else -1
    return 0


def owner_of(array: Any) -> Any:
    """The array that owns the memory of a view."""
    base = array.base
    while base is not None:
        if isinstance(base, np.ndarray):
            array = base
        base = getattr(base, "base", None)  # NumPy puts what is no array below a view of strides of one's own
    return array


def overlaps(array: Any) -> bool:
    """Whether elements of an array may share memory with each other."""
    if array.flags.c_contiguous:
        return False
    reach = 0
    for step, size in sorted((abs(step), size) for step, size in zip(array.strides, array.shape, strict=True)):
        if size > 1 and step <= reach:
            return True
        reach += step * (size - 1)
    return False


def fill(shape: Shape, dtype: np.dtype[Any], value: Any, out: Array) -> Array:
    """An array of one value, in `out` where there is one, for a kernel that changes it afterwards."""
    out = np.empty(shape, dtype) if out is None else out
    out[...] = value
    return out


def lowest(dtype: np.dtype[Any]) -> Any:
    """The least number of a dtype: -inf for floats, False for bools."""
    return -math.inf if dtype.kind == "f" else dtype.kind != "b" and np.iinfo(dtype).min


def highest(dtype: np.dtype[Any]) -> Any:
    """The largest number of a dtype: inf for floats, True for bools."""
    return math.inf if dtype.kind == "f" else dtype.kind == "b" or np.iinfo(dtype).max

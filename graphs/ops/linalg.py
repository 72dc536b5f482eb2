"""Matrix and tensor products, diagonals and norms; NumPy's other products: dot, inner, kron and cross.

Last comes Fourier's transform, of real and imaginary parts, which stand along a last axis of size 2: tensors are real.
"""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from graphs import dims
from graphs.dims import Shape, Size
from graphs.errors import DTypeError, ShapeError
from graphs.op import Array, Op, Prepared
from graphs.ops.creation import arange
from graphs.ops.elementwise import abs as _abs
from graphs.ops.elementwise import equal, isnan, multiply, pow, sign, sqrt, square, subtract, where
from graphs.ops.families import composite
from graphs.ops.indexing import take_along_axis
from graphs.ops.movement import (
    expand_dims,
    in_single,
    matrix_transpose,
    moveaxis,
    permute_dims,
    reshape,
    roll,
    squeeze,
)
from graphs.ops.reductions import max as _max
from graphs.ops.reductions import min as _min
from graphs.ops.reductions import sum
from graphs.ops.scans import in_shape
from graphs.ops.shapes import (
    Axis,
    as_operand,
    dtype_of,
    last_two,
    positive_axes,
    positive_axis,
    shape_of,
    store,
    swapped_axes,
    two_operands,
)
from graphs.ops.slicing import getitem
from graphs.spec import TensorSpec, broadcast_shapes

__all__ = [
    "cross", "diagonal", "dot", "fourier", "inner", "kron", "matmul", "outer", "tensordot", "trace", "vecdot",
    "vector_norm",
]  # fmt: skip


def _infer(x: TensorSpec, y: TensorSpec) -> TensorSpec:
    if not x.ndim or not y.ndim:
        raise ShapeError("needs at least one axis on each side; use multiply for scalars")
    inner = y.shape[-2] if y.ndim > 1 else y.shape[0]
    if not dims.same(x.shape[-1], inner):
        raise ShapeError(f"inner dimensions differ{_remedy(x, y)}")
    batch = broadcast_shapes(x.shape[:-2], y.shape[:-2])
    rows = x.shape[-2:-1] if x.ndim > 1 else ()
    columns = y.shape[-1:] if y.ndim > 1 else ()
    return TensorSpec((*batch, *rows, *columns), np.result_type(x.dtype, y.dtype))


def _remedy(x: TensorSpec, y: TensorSpec) -> str:
    if y.ndim > 1 and dims.same(x.shape[-1], y.shape[-1]):
        return "; transpose the second?"
    if x.ndim > 1 and dims.same(x.shape[-2], y.shape[-2 if y.ndim > 1 else 0]):
        return "; transpose the first?"
    return "; make the last size of the first equal the last but one of the second"


def _left_rule(g: Array, x_shape: Shape, y: Array) -> Array:
    if len(y.shape) == 1:
        return multiply(g if len(x_shape) == 1 else expand_dims(g, -1), y)
    if len(x_shape) == 1:
        return squeeze(matmul(y, expand_dims(g, -1)), -1)
    if len(y.shape) == 2 < len(x_shape):
        return reshape.apply((matmul(rows(g), transpose_matrix(y)),), {"shape": x_shape})
    return matmul(g, transpose_matrix(y))


def _right_rule(g: Array, x: Array, y_shape: Shape) -> Array:
    if len(x.shape) == 1:
        return multiply(expand_dims(g, -2), expand_dims(x, -1)) if len(y_shape) > 1 else multiply(g, x)
    if len(y_shape) == 1:
        return squeeze(matmul(matrix_transpose(x), expand_dims(g, -1)), -1)
    if len(y_shape) == 2 < len(x.shape):
        x, g = rows(x), rows(g)
    return matmul(transpose_matrix(x), g)


def rows(x: Array) -> Array:
    """The rows of all matrices of a batch as one matrix, for a single product whose gradient sums over no batch."""
    return reshape.apply((x,), {"shape": (dims.product(x.shape[:-1]), x.shape[-1])})


def transpose_matrix(x: Array) -> Array:
    """`matrix_transpose` without checks, for a value with two or more axes: backward runs it for every product."""
    return permute_dims.apply((x,), {"axes": swapped_axes(len(x.shape))})


def _cost(x: TensorSpec, y: TensorSpec, *, out: TensorSpec) -> Size:
    return out.size * x.shape[-1] * 2


def matrix_product(x: Array, y: Array, out: Array = None, workspace: Array = None) -> Array:
    """The matrix product x @ y over the last two axes, broadcasting the others; vectors are rows or columns."""
    # Where the product is one call of BLAS, `dot` has half the overhead of `matmul`: a third of a product of small
    # matrices. But `dot` clears its result before it is written, which costs time if that is large.
    if x.ndim != 2 or y.ndim != 2 or x.dtype is not y.dtype or x.dtype.num not in BLAS:
        return np.matmul(x, y, out=out)
    if may_turn(x.shape, y.shape, x.dtype) and not y.flags.c_contiguous and x.flags.c_contiguous:
        turned = y.T.dot(x.T, workspace).T
        return np.ascontiguousarray(turned) if out is None else in_shape(turned, out.shape, out)
    if x.shape[0] * y.shape[1] <= SMALL and (out is None or out.flags.c_contiguous):
        return x.dot(y, out)
    return np.matmul(x, y, out=out)


def may_turn(x: Shape, y: Shape, dtype: np.dtype[Any]) -> bool:
    """Whether x @ y is faster as (y.T @ x.T).T, by shapes of known sizes, where y is a transposed view.

    With AVX-512, BLAS reads few long rows of float32 times a transposed matrix up to twice as fast the other way round,
    as gradients of layers are; without it, only very few rows are read a tenth faster. Float64 gains nothing. The
    result, a small array, is transposed back.
    """
    return dtype.num == BLAS[0] and 1 < x[0] <= min(x[1] // TURNED_RATIO, TURNED_ROWS) and _work(x, y) >= TURNED_WORK


def _work(x: Shape, y: Shape) -> Size:
    return x[0] * x[1] * y[1]


def _has_avx512() -> bool:
    """Whether NumPy has found AVX-512 and uses it; both names are of the same processors, in its older releases too."""
    features = getattr(importlib.import_module("numpy._core._multiarray_umath"), "__cpu_features__", {})
    return any(features.get(name) for name in ("X86_V4", "AVX512_SKX"))


TURNED_RATIO, TURNED_WORK = 8, 1 << 17  # elements of a row for each row, and multiplications
TURNED_ROWS = sys.maxsize if _has_avx512() else 16
UNPACKED, UNPACKED_RESULT = 10**6 if _has_avx512() else 0, 1200
"""OpenBLAS does not pack the operands of so few multiplications where it has AVX-512, which is up to twice as fast. If
the second operand is a transposed view, the result must not have more elements than the second number."""
SMALL = 1 << 13  # elements of a product
BLAS = (np.dtype(np.float32).num, np.dtype(np.float64).num)


def _product_workspace(x: TensorSpec, y: TensorSpec, *, in_rows: Sequence[bool], out: TensorSpec) -> TensorSpec | None:
    """The spec of the product that is turned round, before it is turned back."""
    if not (x.ndim == y.ndim == 2 and x.dtype == y.dtype and x.dtype.num == BLAS[0] and in_rows[0] and not in_rows[1]):
        return None
    is_sized = all(isinstance(size, int) for size in (*x.shape, *y.shape))
    return None if is_sized and not may_turn(x.shape, y.shape, x.dtype) else TensorSpec(out.shape[::-1], out.dtype)


matmul: Op = Op(
    "matmul",
    matrix_product,
    _infer,
    rules=(_left_rule, _right_rule),
    prepare=two_operands,
    cost=_cost,
    family="linalg",
    broadcasts=True,
    infix=" @ ",
    workspace=_product_workspace,
)


# Functions made of the ops above ------------------------------------------------------------------------------------


@composite
def tensordot(x1: Array, x2: Array, /, axes: int | Sequence[int | Sequence[int]] = 2) -> Array:
    """Products summed over axes of x1 paired with axes of x2: the last and first `axes`, or two sequences of axes."""
    x1, x2 = as_operand(x1), as_operand(x2)
    first, second = _paired_axes(len(shape_of(x1)), len(shape_of(x2)), axes)
    rows = [a for a in range(len(shape_of(x1))) if a not in first]
    columns = [a for a in range(len(shape_of(x2))) if a not in second]
    sizes = [[shape_of(x)[a] for a in order] for x, order in ((x1, rows), (x1, first), (x2, second), (x2, columns))]
    if not dims.same_shape(sizes[1], sizes[2]):
        raise ShapeError(f"summed axes have sizes {tuple(sizes[1])} and {tuple(sizes[2])}; pair equal ones")
    height, inner, width = (dims.product(s) for s in (sizes[0], sizes[1], sizes[3]))
    left = reshape(permute_dims(x1, [*rows, *first]), (height, inner))
    right = reshape(permute_dims(x2, [*second, *columns]), (inner, width))
    return reshape(matmul(left, right), (*sizes[0], *sizes[3]))


def _paired_axes(left: int, right: int, axes: int | Sequence[int | Sequence[int]]) -> tuple[list[int], list[int]]:
    if isinstance(axes, (int, np.integer)):
        if not 0 <= axes <= min(left, right):
            raise ShapeError(f"{axes} axes to sum of {left} and {right}; use 0 to {min(left, right)}")
        return list(range(left - axes, left)), list(range(axes))
    groups: list[list[int]] = [list(a) if isinstance(a, Iterable) else [a] for a in axes]
    first, second = ([positive_axis(a, n) for a in group] for group, n in zip(groups, (left, right), strict=True))
    if len(first) != len(second) or len(set(first)) < len(first) or len(set(second)) < len(second):
        raise ShapeError(f"axes {axes} do not pair each axis with one other; name as many on each side, each once")
    return first, second


@composite
def vecdot(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """The dot product of vectors along one axis, counted from the last; the other axes broadcast."""
    x1, x2 = as_operand(x1), as_operand(x2)
    sizes = [shape_of(x)[positive_axis(axis, len(shape_of(x)))] for x in (x1, x2)]
    if not dims.same(*sizes):
        raise ShapeError(f"vectors of sizes {sizes[0]} and {sizes[1]}; make them equal")
    product = multiply(moveaxis(x1, axis, -1), moveaxis(x2, axis, -1))
    return sum(product, axis=-1, dtype=None if dtype_of(product).kind == "f" else dtype_of(product))


@composite
def outer(x1: Array, x2: Array, /) -> Array:
    """Every element of one vector times every element of another; arrays are flattened."""
    return multiply(reshape(x1, (-1, 1)), reshape(x2, (1, -1)))


@composite
def diagonal(x: Array, /, offset: int = 0) -> Array:
    """The diagonal of the last two axes as one, a view; offset > 0 lies above the main diagonal."""
    rows, columns = last_two(shape_of(x))
    if isinstance(rows, int) and isinstance(columns, int):
        count = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
        start = offset if offset >= 0 else -offset * columns
        flat = reshape(x, (*shape_of(x)[:-2], rows * columns))
        return getitem(flat, (..., slice(start, start + count * (columns + 1), columns + 1)))
    if offset or not dims.same(rows, columns):
        raise ShapeError(f"the length of diagonal {offset} of {rows} by {columns} is unknown; use fixed sizes")
    places = reshape(arange(rows), (*[1] * (len(shape_of(x)) - 2), rows, 1))
    return squeeze(take_along_axis(x, places, axis=-1), -1)


@composite
def trace(x: Array, /, offset: int = 0, *, dtype: npt.DTypeLike | None = None) -> Array:
    """The sum of a diagonal of the last two axes, in `dtype`."""
    return sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


@composite
@in_single
def vector_norm(x: Array, /, *, axis: Axis = None, keepdims: bool = False, ord: float | str = 2) -> Array:
    """The p-norm of vectors along `axis` (of all elements by default); `ord` may be 0 and +-inf too.

    The gradient of a norm of 0 is 0, and so is the gradient of an element that is 0.
    """
    if isinstance(ord, str):
        raise ShapeError(f"there is no norm {ord!r} of vectors; use a number, or linalg.matrix_norm")
    shape = shape_of(x)
    over: dict[str, Any] = {"axis": positive_axes(axis, len(shape)), "keepdims": keepdims}
    if ord == 0:
        return sum(_abs(sign(where(isnan(x), 1, x))), **over)  # a count with a history, of gradient 0
    if ord in (math.inf, -math.inf):
        return (_max if ord > 0 else _min)(_abs(x), **over)
    if ord == 1 or all(dims.same(shape[number], 1) for number in over["axis"]):
        return sum(_abs(x), **over)  # of one number any norm, though its square may leave the range of the dtype
    if ord == 2:
        return _root(sum(square(x), **over), sqrt)
    zero = equal(x, 0)
    powers = where(zero, 0.0 if ord > 0 else math.inf, pow(where(zero, 1, _abs(x)), ord))
    return _root(sum(powers, **over), lambda total: pow(total, 1 / ord))


def _root(total: Array, root: Callable[[Array], Array]) -> Array:
    """A root with gradient 0 at 0, where the true slope is infinite."""
    zero = equal(total, 0)
    return where(zero, 0, root(where(zero, 1, total)))


@composite
def dot(x1: Array, x2: Array, /) -> Array:
    """The sum over the last axis of x1 and the second to last of x2 (the only one of a vector). Scalars multiply."""
    x1, x2 = as_operand(x1), as_operand(x2)
    ndims = len(shape_of(x1)), len(shape_of(x2))
    if 0 in ndims:
        return multiply(x1, x2)
    return matmul(x1, x2) if ndims[1] <= 2 else tensordot(x1, x2, axes=((-1,), (-2,)))


@composite
def inner(x1: Array, x2: Array, /) -> Array:
    """The sum over the last axes of both arrays. Scalars multiply."""
    x1, x2 = as_operand(x1), as_operand(x2)
    if not shape_of(x1) or not shape_of(x2):
        return multiply(x1, x2)
    return tensordot(x1, x2, axes=((-1,), (-1,)))


@composite
def kron(x1: Array, x2: Array, /) -> Array:
    """The Kronecker product: each element of x1 times all of x2, in blocks."""
    x1, x2 = as_operand(x1), as_operand(x2)
    ndim = max(len(shape_of(x1)), len(shape_of(x2)))
    left, other = ((1,) * (ndim - len(shape_of(x))) + shape_of(x) for x in (x1, x2))
    blocks = multiply(
        reshape(x1, [s for size in left for s in (size, 1)]), reshape(x2, [s for size in other for s in (1, size)])
    )
    return reshape(blocks, [a * b for a, b in zip(left, other, strict=True)])


@composite
def cross(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """The cross product of vectors of 3 elements along one axis; the other axes broadcast."""
    x1, x2 = as_operand(x1), as_operand(x2)
    vectors = [moveaxis(x, axis, -1) for x in (x1, x2)]
    sizes = [shape_of(x)[-1] for x in vectors]
    if not all(dims.same(size, 3) for size in sizes):
        raise ShapeError(f"vectors of sizes {sizes[0]} and {sizes[1]}; the cross product takes 3 elements")
    (a, b), (c, d) = ([roll(x, -by, axis=-1) for by in (1, 2)] for x in vectors)
    product = subtract(multiply(a, d), multiply(b, c))
    return moveaxis(product, -1, positive_axis(axis, len(shape_of(product))) if axis >= 0 else axis)


# Fourier's transform --------------------------------------------------------------------------------------------------


def _prepare_transform(x: Array, /, axis: int = -1, inverse: bool = False) -> Prepared:
    x = as_operand(x)
    return (x,), {"axis": positive_axis(axis, len(shape_of(x)) - 1), "inverse": bool(inverse)}


def _complex_dtype(x: Any) -> np.dtype[Any]:
    if x.dtype not in (np.float32, np.float64):
        raise DTypeError("takes float32 and float64; convert with astype(x, 'float32')")
    return np.result_type(x.dtype, np.complex64)


def _infer_transform(x: TensorSpec, *, axis: int, inverse: bool) -> TensorSpec:
    _complex_dtype(x)
    if not dims.same(x.shape[-1], 2) or dims.same(x.shape[axis], 0):
        raise ShapeError(f"takes numbers with their two parts along the last axis, not {x.shape}; stack the parts")
    return x


def _transform(x: Array, *, axis: int, inverse: bool, out: Array = None) -> Array:
    """The sums of x[k] exp(-2 pi i jk / n) over k, for each j; with `inverse` the other sign, and no factor 1 / n."""
    kind = _complex_dtype(x)
    numbers = np.ascontiguousarray(x).view(kind)[..., 0]
    result = np.fft.ifft(numbers, axis=axis, norm="forward") if inverse else np.fft.fft(numbers, axis=axis)
    return store(np.ascontiguousarray(result[..., None], kind).view(x.dtype), out)


def _transform_flops(x: TensorSpec, *, out: TensorSpec, axis: int, inverse: bool) -> Size:
    length: Any = x.shape[axis]
    return x.size * 5 // 2 * max(1, math.ceil(math.log2(length))) if isinstance(length, int) else x.size * 50


fourier: Op = Op(
    "fourier",
    _transform,
    _infer_transform,
    rules=(lambda g, axis, inverse: fourier(g, axis=axis, inverse=not inverse),),  # the conjugate transposed
    prepare=_prepare_transform,
    cost=_transform_flops,
    family="composed",
    doc="The discrete Fourier transform along `axis`, of pairs of parts along the last axis; `inverse` without 1 / n.",
)

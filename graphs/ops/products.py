"""NumPy's products of arrays beside `matmul`: dot, inner, kron and cross."""

from __future__ import annotations

from graphs import dims
from graphs.errors import ShapeError
from graphs.op import Array
from graphs.ops.elementwise import multiply, subtract
from graphs.ops.families import composite
from graphs.ops.linalg import matmul, tensordot
from graphs.ops.movement import moveaxis, reshape, roll
from graphs.ops.shapes import as_operand, positive_axis, shape_of

__all__ = ["cross", "dot", "inner", "kron"]


@composite
def dot(x1: Array, x2: Array, /) -> Array:
    """The sum over the last axis of x1 and the last but one of x2 (its only one, if it is a vector); times a scalar."""
    x1, x2 = as_operand(x1), as_operand(x2)
    ndims = len(shape_of(x1)), len(shape_of(x2))
    if 0 in ndims:
        return multiply(x1, x2)
    return matmul(x1, x2) if ndims[1] <= 2 else tensordot(x1, x2, axes=((-1,), (-2,)))


@composite
def inner(x1: Array, x2: Array, /) -> Array:
    """The sum over the last axes of both; times a scalar."""
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
    """The cross product of vectors of 3 elements along one axis; the others broadcast."""
    x1, x2 = as_operand(x1), as_operand(x2)
    vectors = [moveaxis(x, axis, -1) for x in (x1, x2)]
    sizes = [shape_of(x)[-1] for x in vectors]
    if not all(dims.same(size, 3) for size in sizes):
        raise ShapeError(f"vectors of sizes {sizes[0]} and {sizes[1]}; the cross product takes 3 elements")
    (a, b), (c, d) = ([roll(x, -by, axis=-1) for by in (1, 2)] for x in vectors)
    product = subtract(multiply(a, d), multiply(b, c))
    return moveaxis(product, -1, positive_axis(axis, len(shape_of(product))) if axis >= 0 else axis)

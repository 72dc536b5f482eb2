"""`torch.linalg`: the functions of `graphs.linalg` with PyTorch's parameters and meanings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphs import linalg, ops
from graphs.errors import ShapeError
from graphs.linalg import (
    cholesky,
    det,
    eigh,
    eigvalsh,
    inv,
    matmul,
    matrix_power,
    pinv,
    qr,
    slogdet,
    svd,
    svdvals,
)
from graphs.numpy import linalg as numpy_linalg
from graphs.ops.shapes import shape_of
from graphs.torch.guard import guard
from graphs.torch.words import axes_of, axis_words

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "vecdot",
    "vector_norm",
]

matrix_rank = linalg.matrix_rank
norm = axis_words(numpy_linalg.norm)
vecdot = axis_words(linalg.vecdot)


def cross(input: Any, other: Any, *, dim: int = -1) -> Any:
    """The cross product along an axis of size 3; the others broadcast."""
    if len(shape_of(input)) != len(shape_of(other)):
        raise ShapeError("both have as many axes; add one with unsqueeze")
    return linalg.cross(input, other, axis=dim)


def solve(A: Any, B: Any, *, left: bool = True) -> Any:  # noqa: N803  (PyTorch's names)
    """The X with A @ X = B, or with X @ A = B; B may be a batch of vectors, of the shape of A without its last axis."""
    if not left:
        return ops.matrix_transpose(linalg.solve(ops.matrix_transpose(A), ops.matrix_transpose(B)))
    if shape_of(B) == shape_of(A)[:-1]:
        return ops.squeeze(linalg.solve(A, ops.expand_dims(B, -1)), -1)
    return linalg.solve(A, B)


def diagonal(A: Any, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:  # noqa: N803
    """The diagonal of two axes, as the last one."""
    return linalg.diagonal(ops.moveaxis(A, (dim1, dim2), (-2, -1)), offset=offset)


def vector_norm(x: Any, ord: float = 2, dim: Any = None, keepdim: bool = False) -> Any:
    """The norm of vectors along axes, of all elements by default."""
    return linalg.vector_norm(x, axis=axes_of(x, dim), keepdims=keepdim, ord=ord)


def matrix_norm(A: Any, ord: Any = "fro", dim: Sequence[int] = (-2, -1), keepdim: bool = False) -> Any:  # noqa: N803
    """The norm of the matrices along two axes: "fro", "nuc", 1, -1, 2, -2, inf or -inf."""
    return numpy_linalg.norm(A, ord, axis=dim, keepdims=keepdim)


guard(globals(), __all__)

"""PyTorch's products of vectors and matrices, distances between rows, and differences along an axis.

At the end, `origin` finds the assignment in the user's code that gave a value its dtype, for error messages.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from graphs import linalg as matrices
from graphs import ops
from graphs.errors import OptionError, ShapeError, locate, user_frame
from graphs.frontends.torch import reductions, systems
from graphs.frontends.torch.arithmetic import OF_ONE, add, mul
from graphs.frontends.torch.names import name, name_each
from graphs.frontends.torch.shapes import cut, laid_in_rows, like_images
from graphs.frontends.torch.words import (
    cast,
    floats,
    ndim_of,
    of_floats,
    place,
    promote,
    refuse,
    result_dtype,
    shape_of,
    within,
)
from graphs.ops.movement import in_single
from graphs.ops.shapes import dtype_of, positive_axes
from graphs.promotion import is_scalar, mixing


class SVD(NamedTuple):
    """The factors of `svd`."""

    U: Any
    S: Any
    V: Any


def _check(name: str, *operands: tuple[Any, int]) -> None:
    """Raise unless each tensor has the given number of axes, and all have one dtype."""
    for x, axes in operands:
        if ndim_of(x) != axes:
            wanted = ", ".join(str(n) for _, n in operands)
            raise ShapeError(locate(f"{name}: takes tensors of {wanted} axes, not {shape_of(x)}; use matmul"))
    _one_dtype(name, [x for x, _ in operands])


def _one_dtype(name: str, tensors: Sequence[Any]) -> None:
    dtypes = [str(dtype_of(x)) for x in tensors]
    if len(set(dtypes)) > 1 and not mixing:
        wide = next((x for x, dtype in zip(tensors, dtypes, strict=True) if dtype == "float64"), None)
        since = "" if wide is None else origin(wide, "float64")
        raise refuse(f"{name} of {' and '.join(dtypes)}", f"{since and since + '; '}convert with .to(dtype)")


@name(pairs=True)
def matmul(input: Any, other: Any) -> Any:
    """The product of vectors, matrices, or matrices along the last two axes."""
    if ndim_of(input) and ndim_of(other):  # or it is a number, and no other dtype makes that right
        _one_dtype("matmul", (input, other))
    return ops.matmul(input, other)


@name(pairs=True)
def mm(input: Any, mat2: Any) -> Any:
    """The product of two matrices."""
    _check("mm", (input, 2), (mat2, 2))
    return ops.matmul(input, mat2)


@name(pairs=True)
def bmm(input: Any, mat2: Any) -> Any:
    """The products of two batches of matrices, pair by pair. Raises ShapeError unless both have as many."""
    _check("bmm", (input, 3), (mat2, 3))
    if shape_of(input)[0] != shape_of(mat2)[0]:
        raise ShapeError(locate("bmm: both have as many matrices; use matmul to broadcast"))
    return ops.matmul(input, mat2)


@name()
def mv(input: Any, vec: Any) -> Any:
    """The product of a matrix and a vector."""
    _check("mv", (input, 2), (vec, 1))
    return ops.matmul(input, vec)


@name("vdot")
def dot(input: Any, tensor: Any = None, *, other: Any = None) -> Any:
    """The sum of the products of two vectors."""
    second = tensor if other is None else other
    _check("dot", (input, 1), (second, 1))
    return ops.matmul(input, second)


@name("ger")
def outer(input: Any, vec2: Any) -> Any:
    """The products of all pairs of elements of two vectors."""
    if ndim_of(input) != 1 or ndim_of(vec2) != 1:
        raise ShapeError(locate("outer: takes two vectors; use flatten"))
    return mul(input[:, None], vec2[None, :])


@name()
def inner(input: Any, other: Any) -> Any:
    """The sums of products along the last axes."""
    if not ndim_of(input) or not ndim_of(other):
        return mul(input, other)
    _one_dtype("inner", (input, other))
    return ops.inner(input, other)


@name()
def kron(input: Any, other: Any) -> Any:
    """The Kronecker product."""
    _one_dtype("kron", (input, other))
    return ops.kron(input, other)


def _plus(x: Any, product: Any, beta: Any, alpha: Any) -> Any:
    """`beta * x + alpha * product` in their dtype, to which the factors are converted; x is not read if beta is 0."""
    _one_dtype("a sum with a product", (x, product))
    kind = dtype_of(product).kind
    if kind == "b":
        beta, alpha = bool(beta), bool(alpha)
    elif kind in "iu":
        beta, alpha = [within(int(factor), dtype_of(product)) for factor in (beta, alpha)]
    scaled = product if is_scalar(alpha) and alpha == 1 else mul(product, alpha)
    if not is_scalar(beta) or beta:
        return add(x if is_scalar(beta) and beta == 1 else mul(x, beta), scaled)
    return ops.where(np.asarray(False), x, scaled)


@name(in_place=True)
@laid_in_rows
@in_single
def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """`beta * input + alpha * (mat1 @ mat2)`."""
    return _plus(input, mm(mat1, mat2), beta, alpha)


@name(in_place=True)
@laid_in_rows
@in_single
def baddbmm(input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """`beta * input + alpha * bmm(batch1, batch2)`."""
    return _plus(input, bmm(batch1, batch2), beta, alpha)


@name(pairs=True)
def einsum(equation: str, *operands: Any) -> Any:
    """Einstein sums over labelled axes; sums of a single int or bool tensor are in int64, like `sum`.

    Of two operands, nothing of which is summed, the dtypes are promoted, as in a product.
    """
    tensors = operands[0] if len(operands) == 1 and isinstance(operands[0], (tuple, list)) else operands
    if len(tensors) == 2 and not _sums(equation):
        return ops.einsum(equation, *promote(*tensors))
    _one_dtype("einsum", tensors)
    if len(tensors) == 1 and dtype_of(tensors[0]).kind in "biu" and _sums(equation):
        tensors = [cast(tensors[0], np.int64)]
    return ops.einsum(equation, *tensors)


def _sums(equation: str) -> bool:
    """Whether an equation sums over a letter."""
    letters, arrow, kept = equation.replace(" ", "").replace(",", "").partition("->")
    return not set(letters) <= set(kept if arrow else [letter for letter in letters if letters.count(letter) == 1])


@name()
def tensordot(a: Any, b: Any, dims: Any = 2) -> Any:
    """The sum of products over some axes."""
    _one_dtype("tensordot", (a, b))
    return ops.tensordot(a, b, axes=dims if isinstance(dims, int) else tuple(map(tuple, dims)))


@name()
@laid_in_rows
def cross(input: Any, other: Any, dim: int | None = None) -> Any:
    """The cross product along an axis of size 3, the first by default."""
    left, right = promote(input, other)
    if dim is None:
        dim = next((i for i, size in enumerate(shape_of(input)) if size == 3), -1)
    return ops.cross(left, right, axis=dim)


@name()
def trace(input: Any) -> Any:
    """The sum of the diagonal of a matrix."""
    if ndim_of(input) != 2:
        raise ShapeError(locate("trace: takes a matrix; use diagonal(dim1=-2, dim2=-1).sum(-1)"))
    return reductions.sum(ops.diag(input))


@name()
def cdist(x1: Any, x2: Any, p: float = 2.0, compute_mode: str = "") -> Any:
    """The distances between all rows of two matrices, or of rows of matrices."""
    _one_dtype("cdist", (x1, x2))
    if 0 < p < 1:
        raise ShapeError(locate("cdist: there is no norm of an order between 0 and 1; use p=1 or more"))
    apart = ops.subtract(ops.expand_dims(x1, -2), ops.expand_dims(x2, -3))
    return matrices.vector_norm(apart, axis=-1, ord=p)


@name()
@of_floats
@in_single
def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    """The cosine of the angle between vectors along an axis, after they were broadcast; no norm is less than `eps`."""
    both = ops.broadcast_arrays(x1, x2)
    if not ndim_of(both[0]):
        both = tuple([ops.reshape(x, (1,)) for x in both])
    return ops.sum(ops.multiply(*[ops.divide(x, _norm_above(x, dim, eps)) for x in both]), axis=dim)


def _norm_above(x: Any, dim: int, eps: float) -> Any:
    """The norms along an axis, but at least `eps`; the gradient is that of the norm."""
    norm = matrices.vector_norm(x, axis=dim, keepdims=True)
    is_below = ops.less(norm, eps)  # an infinite norm less itself would be NaN
    return ops.add(norm, ops.stop_gradient(ops.where(is_below, ops.subtract(eps, norm), 0)))


@name()
def cov(input: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    """The covariances of rows. Raises OptionError for weights of columns."""
    if fweights is not None or aweights is not None:
        raise OptionError("weights of columns are not supported; centre the rows, and multiply one factor by them")
    if ndim_of(input) > 2:
        raise ShapeError(f"takes a matrix with a variable in each row, not {ndim_of(input)} axes; call it for each")
    rows = floats(input if ndim_of(input) > 1 else ops.reshape(input, (1, -1)))
    centred = ops.subtract(rows, reductions.mean(rows, 1, True))
    count = max(shape_of(rows)[1] - correction, 0)
    return ops.squeeze(ops.divide(ops.matmul(centred, ops.matrix_transpose(centred)), count))


@name()
def corrcoef(input: Any) -> Any:
    """The correlations of rows."""
    covariance = cov(input)
    if not ndim_of(covariance):
        return ops.divide(covariance, covariance)
    spread = ops.sqrt(ops.diag(covariance))
    return ops.divide(ops.divide(covariance, spread[:, None]), spread[None, :])


@name()
def diff(input: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Differences of neighbours, taken `n` times; for bools, whether neighbours differ."""
    axis = place(dim, ndim_of(input))
    if not n:
        return ops.identity(input)
    joined = [part for part in (prepend, input, append) if part is not None]
    wanted = result_dtype(joined)
    x = ops.concat([cast(part, wanted) for part in joined], axis=axis) if len(joined) > 1 else input
    if wanted.kind != "b":
        return ops.diff(x, axis=axis, n=n)
    for _ in range(min(n, shape_of(x)[axis])):
        x = ops.not_equal(cut(x, axis, 1, None), cut(x, axis, 0, shape_of(x)[axis] - 1))
    return x


@name("trapz")
def trapezoid(y: Any, x: Any = None, *, dx: float = 1, dim: int = -1) -> Any:
    """The integral under straight lines through points."""
    moved = ops.moveaxis(floats(y) if x is None else y, dim, -1)
    pairs = ops.add(moved[..., 1:], moved[..., :-1])
    step = dx if x is None else ops.diff(x if ndim_of(x) == 1 else ops.moveaxis(x, dim, -1))
    return mul(reductions.sum(mul(pairs, step), -1), 0.5)


@name()
def gradient(input: Any, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> tuple[Any, ...]:
    """The slope of points along each axis, by differences; one result for each axis."""
    if dtype_of(input).kind != "f" or not isinstance(spacing, (int, float)) or edge_order != 1:
        raise refuse("gradient of floats, with one number as spacing and edge_order=1", "convert with .float()")
    axes = positive_axes(dim, ndim_of(input)) if dim is None or isinstance(dim, int) else dim
    positive_axes(axes, ndim_of(input))  # raises for an axis that is named twice
    return tuple([_slope(input, axis, spacing) for axis in axes])


def _slope(x: Any, dim: int, step: float) -> Any:
    moved = ops.moveaxis(x, dim, -1)
    if shape_of(moved)[-1] < 2:
        raise ShapeError(locate("gradient: an axis of one point has no slope; take two or more"))
    inner = ops.divide(ops.subtract(moved[..., 2:], moved[..., :-2]), 2 * step)
    first, last = [ops.divide(ops.subtract(moved[..., b], moved[..., a]), step) for a, b in ((0, 1), (-2, -1))]
    return like_images(ops.moveaxis(ops.concat([first[..., None], inner, last[..., None]], axis=-1), -1, dim))


@name(in_place=True)
@laid_in_rows
@in_single
def renorm(input: Any, p: float, dim: int, maxnorm: float) -> Any:
    """Scale down the slices along an axis to a norm of at most `maxnorm`."""
    if ndim_of(input) < 2:
        raise ShapeError(f"takes 2 axes or more, not {ndim_of(input)}; use unsqueeze")
    if not p > 0 or not maxnorm >= 0:
        raise OptionError(f"the order of a norm is above 0 and its limit 0 or more, not {p} and {maxnorm}; change them")
    others = [axis for axis in range(ndim_of(input)) if axis != place(dim, ndim_of(input))]
    size = reductions.norm(input, p, others, True)
    return ops.where(ops.greater(size, maxnorm), ops.multiply(input, ops.divide(maxnorm, ops.add(size, 1e-7))), input)


det, inverse, slogdet, matrix_exp = name_each(
    OF_ONE["any"],
    det=matrices.det, inverse=matrices.inv, slogdet=matrices.slogdet, matrix_exp=matrices.matrix_exp,
)  # fmt: skip


@name()
def matrix_power(input: Any, n: int) -> Any:
    """Square matrices times themselves, n factors; for n < 0 of their inverses."""
    return matrices.matrix_power(input, n)


@name()
def lu(input: Any, pivot: bool = True) -> Any:
    """The compact LU factors, and the pivots."""
    return systems.lu_factor(input, pivot=pivot)


@name()
def logdet(input: Any) -> Any:
    """The logarithm of the determinant; NaN where that is below 0."""
    sign, size = matrices.slogdet(input)
    return ops.where(ops.less(sign, 0), np.nan, size)


@name()
def cholesky(input: Any, upper: bool = False) -> Any:
    """The triangular factor of a symmetric positive definite matrix: lower, or with `upper` its transpose."""
    factor = matrices.cholesky(input)
    return ops.matrix_transpose(factor) if upper else factor


@name()
def qr(input: Any, some: bool = True) -> Any:
    """A matrix with orthonormal columns and a triangular matrix whose product is the input."""
    return matrices.qr(input, mode="reduced" if some else "complete")


@name()
def svd(input: Any, some: bool = True) -> Any:
    """U, the singular values, and V: `U @ diag(S) @ V.mT` is the input."""
    u, s, vh = matrices.svd(input, full_matrices=not some)
    return SVD(u, s, ops.matrix_transpose(vh))


def origin(value: Any, dtype: str) -> str:
    """`float64 since model.py:13, q = x / scale`: the assignment that gave `value` the dtype; "" where unknown.

    The value is a variable of the function that runs now. An assignment whose right side reads another variable of the
    dtype only passes it on, and that one is looked at. Of `q = q / scale` the earlier `q` is gone, which may have
    had the dtype already: `at the latest` says so.
    """
    frame = user_frame()
    name = None if frame is None else next((key for key, held in frame.f_locals.items() if held is value), None)
    if frame is None or name is None:
        return ""
    assigned = dict(_assignments(frame))
    made, latest = None, ""
    while name in assigned:
        made = assigned.pop(name)
        read = [part.id for part in ast.walk(made.value) if isinstance(part, ast.Name)] if made.value else []
        if name in read or isinstance(made, ast.AugAssign):
            latest, name = " at the latest", None
            break
        name = next((key for key in read if _name_of(frame.f_locals.get(key)) == dtype), None)
    if made is None or name is not None:  # or it is an argument: then the caller made it so
        return ""
    file = frame.f_code.co_filename
    return f"{dtype} since {Path(file).name}:{made.lineno}{latest}, {linecache.getline(file, made.lineno).strip()}"


def _name_of(value: Any) -> str:
    return getattr(getattr(value, "dtype", None), "name", "")


Assignment = ast.Assign | ast.AugAssign | ast.AnnAssign


def _assignments(frame: FrameType) -> Iterator[tuple[str, Assignment]]:
    """The assignments to plain names above the running line of a function, in order."""
    try:
        tree = ast.parse("".join(linecache.getlines(frame.f_code.co_filename)))
    except (SyntaxError, ValueError):
        return
    first, last = frame.f_code.co_firstlineno, frame.f_lineno
    inside = [node for node in ast.walk(tree) if isinstance(node, Assignment) and first <= node.lineno < last]
    for node in sorted(inside, key=lambda node: node.lineno):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield from ((target.id, node) for target in targets if isinstance(target, ast.Name))

"""The table behind the NumPy protocols: the function of graphs for each NumPy function, with NumPy's parameters."""

from __future__ import annotations

import math
import operator
import string
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphs import dispatch, linalg, ops
from graphs.errors import ShapeError
from graphs.frontends.numpy import statistics
from graphs.op import Array, Op
from graphs.ops.elementwise import fmod
from graphs.ops.shapes import as_operand, dtype_of, positive_axis, shape_of
from graphs.ops.slicing import cut


def norm(x: Array, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Array:
    """The norm of all elements, of vectors along one axis, or of matrices along two axes, as in NumPy.

    Raises ShapeError for an `ord` without `axis` where x has more than 2 axes.
    """
    x = as_operand(x)
    x = x if dtype_of(x).kind == "f" else ops.astype(x, np.float64)  # the absolute value of an int may wrap
    axes: Any = tuple(range(np.ndim(x))) if axis is None else np.atleast_1d(axis).tolist()
    if ord is None or len(axes) == 1:
        return linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) != 2:
        raise ShapeError(f"norm: {len(axes)} axes have no norm of order {ord!r}; name one, or two for matrices")
    result = linalg.matrix_norm(ops.moveaxis(x, axes, (-2, -1)), ord="fro" if ord == "f" else ord)
    return ops.expand_dims(result, axis=[a % np.ndim(x) for a in axes]) if keepdims else result


def _svd(a: Array, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """The SVD; `hermitian` changes nothing, as it only promises that the matrices are symmetric."""
    return linalg.svd(a, full_matrices=full_matrices) if compute_uv else linalg.svdvals(a)


def _qr(a: Array, mode: str = "reduced") -> Any:
    return linalg.qr(a).R if mode == "r" else linalg.qr(a, mode=mode)


def _lower_or_upper(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function to accept `UPLO`, which changes nothing: the matrix must be symmetric."""

    def call(a: Array, UPLO: str = "L") -> Any:  # noqa: N803  (NumPy's name)
        if UPLO.upper() not in ("L", "U"):
            raise ValueError("UPLO argument must be 'L' or 'U'")
        return function(a)

    return call


def _pinv(a: Array, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Array:
    return linalg.pinv(a, rtol=rcond if rtol is None else rtol)


def _matrix_rank(A: Array, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Array:  # noqa: N803
    if tol is not None:
        return ops.count_nonzero(ops.greater(linalg.svdvals(A), tol), axis=-1)
    return linalg.matrix_rank(A, rtol=rtol)


_SAME_OF_MATRICES = """
    solve inv det slogdet cholesky svdvals matrix_power matrix_norm vector_norm cross matmul matrix_transpose outer
    tensordot vecdot trace diagonal
"""

OF_MATRICES: dict[Callable[..., Any], Callable[..., Any]] = {
    **{getattr(np.linalg, name): getattr(linalg, name) for name in _SAME_OF_MATRICES.split()},
    np.linalg.pinv: _pinv,
    np.linalg.svd: _svd,
    np.linalg.qr: _qr,
    np.linalg.eigh: _lower_or_upper(linalg.eigh),
    np.linalg.eigvalsh: _lower_or_upper(linalg.eigvalsh),
    np.linalg.matrix_rank: _matrix_rank,
    np.linalg.norm: norm,
}


Parts = int | Sequence[int]


def column_stack(tup: Sequence[Array]) -> Array:
    """Join arrays along the second axis; vectors become columns."""
    return ops.concat([a if np.ndim(a) > 1 else ops.reshape(a, (-1, 1)) for a in tup], axis=1)


def array_split(ary: Array, indices_or_sections: Parts, axis: int = 0) -> list[Array]:
    """Split along an axis at these places, or into so many parts; the first parts are longer by one where need be."""
    at = positive_axis(axis, len(shape_of(ary)))
    if isinstance(indices_or_sections, int):
        least, longer = divmod(int(shape_of(ary)[at]), indices_or_sections)
        sizes = [least + (i < longer) for i in range(indices_or_sections)]
        cuts = np.cumsum(sizes)[:-1].tolist()
    else:
        cuts = list(indices_or_sections)
    return [cut(ary, at, *ends) for ends in zip([0, *cuts], [*cuts, None], strict=True)]


def split(ary: Array, indices_or_sections: Parts, axis: int = 0) -> list[Array]:
    """Split along an axis at these places, or into so many equal parts. Raises TypeError if they cannot be equal."""
    size = shape_of(ary)[positive_axis(axis, len(shape_of(ary)))]
    if isinstance(indices_or_sections, int) and size % indices_or_sections:
        raise TypeError(f"{size} elements are not {indices_or_sections} equal parts")
    return array_split(ary, indices_or_sections, axis)


def _hsplit(ary: Array, indices_or_sections: Parts) -> list[Array]:
    return split(ary, indices_or_sections, axis=1 if len(shape_of(ary)) > 1 else 0)


def _vsplit(ary: Array, indices_or_sections: Parts) -> list[Array]:
    return split(ary, indices_or_sections, axis=0)


def _dsplit(ary: Array, indices_or_sections: Parts) -> list[Array]:
    return split(ary, indices_or_sections, axis=2)


def _dstack(tup: Sequence[Array]) -> Array:
    return ops.concat([ops.atleast_3d(a) for a in tup], axis=2)


def _block(arrays: Any) -> Array:
    depth = _depth(arrays)
    axes = max(depth, *(len(shape_of(as_operand(leaf))) for leaf in _leaves(arrays)), 1)

    def join(part: Any, level: int) -> Array:
        if not isinstance(part, list):
            leaf = as_operand(part)
            return ops.reshape(leaf, (*(1,) * (axes - len(shape_of(leaf))), *shape_of(leaf)))
        return ops.concat([join(inner, level - 1) for inner in part], axis=-level)

    return join(arrays, depth)


def _depth(arrays: Any) -> int:
    return 1 + max(map(_depth, arrays)) if isinstance(arrays, list) else 0


def _leaves(arrays: Any) -> list[Any]:
    return [leaf for part in arrays for leaf in _leaves(part)] if isinstance(arrays, list) else [arrays]


def _rollaxis(a: Array, axis: int, start: int = 0) -> Array:
    count = len(shape_of(a))
    at, to = positive_axis(axis, count), start if start >= 0 else start + count
    return ops.moveaxis(a, at, to - (at < to))


def _diagflat(v: Array, k: int = 0) -> Array:
    return ops.diag(ops.reshape(v, (-1,)), k)


def _delete(arr: Array, obj: Any, axis: int | None = None) -> Array:
    x = ops.reshape(arr, (-1,)) if axis is None else arr
    at = positive_axis(axis or 0, len(shape_of(x)))
    places = np.asarray(obj) if dispatch.interpreter_of(obj) else obj  # NumPy would hand a tensor back to this function
    return ops.take(x, np.delete(np.arange(int(shape_of(x)[at])), places), axis=at)


def _along(func1d: Callable[..., Any], axis: int, arr: Array, *args: Any, **kwargs: Any) -> Array:
    """Call a function of vectors on each vector along an axis."""
    last = ops.moveaxis(arr, axis, -1)
    lead = shape_of(last)[:-1]
    rows = ops.stack([as_operand(func1d(row, *args, **kwargs)) for row in ops.reshape(last, (-1, shape_of(last)[-1]))])
    whole = ops.reshape(rows, (*lead, *shape_of(rows)[1:]))
    rest = len(shape_of(rows)) - 1
    at = positive_axis(axis, len(shape_of(arr)))
    return ops.moveaxis(whole, range(len(lead), len(lead) + rest), range(at, at + rest)) if rest else whole


def _select(condlist: Sequence[Array], choicelist: Sequence[Array], default: Any = 0) -> Array:
    if len(condlist) != len(choicelist):
        raise ShapeError(f"select: {len(condlist)} conditions for {len(choicelist)} choices; give one each")
    chosen = default
    for condition, choice in reversed([*zip(condlist, choicelist, strict=True)]):
        chosen = ops.where(condition, choice, chosen)
    return chosen


def _isclose(a: Array, b: Array, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Array:
    near = ops.less_equal(ops.abs(ops.subtract(a, b)), ops.add(ops.multiply(ops.abs(b), rtol), atol))
    close = ops.logical_or(ops.logical_and(near, ops.isfinite(b)), ops.equal(a, b))
    return ops.logical_or(close, ops.logical_and(ops.isnan(a), ops.isnan(b))) if equal_nan else close


def _allclose(a: Array, b: Array, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Array:
    return ops.all(_isclose(a, b, rtol, atol, equal_nan))


def _array_equal(a1: Array, a2: Array) -> Any:
    first, second = as_operand(a1), as_operand(a2)
    return shape_of(first) == shape_of(second) and ops.all(ops.equal(first, second))


def _vdot(a: Array, b: Array, /) -> Array:
    return ops.vecdot(ops.reshape(a, (-1,)), ops.reshape(b, (-1,)))


def _ediff1d(ary: Array) -> Array:
    return ops.diff(ops.reshape(ary, (-1,)))


def _flatnonzero(a: Array) -> Array:
    return ops.nonzero(ops.reshape(a, (-1,)))[0]


ARRANGING: dict[Callable[..., Any], Callable[..., Any]] = {
    np.column_stack: column_stack,
    np.split: split,
    np.array_split: array_split,
    np.hsplit: _hsplit,
    np.vsplit: _vsplit,
    np.dsplit: _dsplit,
    np.dstack: _dstack,
    np.block: _block,
    np.rollaxis: _rollaxis,
    np.diagflat: _diagflat,
    np.delete: _delete,
    np.apply_along_axis: _along,
    np.select: _select,
    np.isclose: _isclose,
    np.allclose: _allclose,
    np.array_equal: _array_equal,
    np.vdot: _vdot,
    np.ediff1d: _ediff1d,
    np.flatnonzero: _flatnonzero,
    np.fix: ops.trunc,
    np.real: ops.positive,
    np.imag: ops.zeros_like,
    np.iscomplexobj: lambda x: False,
    np.isrealobj: lambda x: True,
}


Function = Callable[..., Any]

UFUNC_OPS: dict[str, Op] = {
    op.kernel.__name__: op
    for op in map(vars(ops).get, ops.public)
    if isinstance(op, Op) and isinstance(op.kernel, np.ufunc)
}
"""The ufuncs that are the kernel of an op. Others are found under their own names, or below."""

_LN2 = math.log(2)
# Ufuncs that are no op, as functions made of ops.
UFUNCS: dict[str, Function] = {
    "cbrt": lambda x: ops.multiply(ops.sign(x), ops.pow(ops.abs(x), 1 / 3)),
    "conjugate": ops.positive,
    "deg2rad": lambda x: ops.multiply(x, math.pi / 180),
    "degrees": lambda x: ops.multiply(x, 180 / math.pi),
    "exp2": lambda x: ops.pow(2.0, x),
    "fabs": ops.abs,
    "float_power": lambda x, y: ops.pow(*[ops.astype(as_operand(part), np.float64) for part in (x, y)]),
    "fmod": fmod,
    "heaviside": lambda x, y: ops.where(
        ops.equal(x, 0), y, ops.where(ops.isnan(x), x, ops.astype(ops.greater(x, 0), dtype_of(x)))
    ),
    "logaddexp2": lambda x, y: ops.divide(ops.logaddexp(ops.multiply(x, _LN2), ops.multiply(y, _LN2)), _LN2),
    "matvec": lambda x, y: ops.squeeze(ops.matmul(x, ops.expand_dims(y, -1)), -1),
    "modf": lambda x: (ops.subtract(x, ops.trunc(x)), ops.trunc(x)),
    "rint": ops.round,
    "rad2deg": lambda x: ops.multiply(x, 180 / math.pi),
    "radians": lambda x: ops.multiply(x, math.pi / 180),
    "vecmat": lambda x, y: ops.squeeze(ops.matmul(ops.expand_dims(x, -2), y), -2),
}


def _accumulating(function: Function, join: Function) -> Function:
    """Wrap a sum or product to take NumPy's `where`, which selects elements, and `initial`."""

    def call(
        a: Array, axis: Any = None, dtype: Any = None, *, keepdims: bool = False, initial: Any = None, where: Any = None
    ) -> Array:
        result = function(a, axis=axis, dtype=dtype, keepdims=keepdims, where=where)
        return result if initial is None else join(result, initial)

    return call


def _extremum(function: Function, join: Function) -> Function:
    """Wrap a maximum or minimum to take NumPy's `where` and `initial`; `where` needs `initial`, or raises TypeError."""

    def call(a: Array, axis: Any = None, *, keepdims: bool = False, initial: Any = None, where: Any = None) -> Array:
        if initial is None and where is not None:
            raise TypeError("where needs initial, since it may select nothing")
        chosen = a if where is None else ops.where(where, a, initial)
        result = function(chosen, axis=axis, keepdims=keepdims)
        return result if initial is None else join(result, initial)

    return call


def _mean(a: Array, axis: Any = None, *, keepdims: bool = False, where: Any = None) -> Array:
    if where is None:
        return ops.mean(a, axis=axis, keepdims=keepdims)
    total = ops.sum(a, axis=axis, keepdims=keepdims, where=where)
    return ops.divide(total, ops.sum(ops.broadcast_to(where, np.shape(a)), axis=axis, keepdims=keepdims))


def _nan_to_num(x: Array, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Array:
    return ops.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


def _round(a: Array, decimals: int = 0) -> Array:
    if not decimals:
        return ops.round(a)
    scale = 10.0 ** abs(decimals)
    wide, narrow = (ops.multiply, ops.divide) if decimals > 0 else (ops.divide, ops.multiply)
    return narrow(ops.round(wide(a, scale)), scale)


def _spread(function: Function) -> Function:
    def call(a: Array, axis: Any = None, *, ddof: float = 0, keepdims: bool = False, correction: Any = None) -> Array:
        return function(a, axis=axis, correction=ddof if correction is None else correction, keepdims=keepdims)

    return call


def _running(function: Function) -> Function:
    def call(a: Array, axis: int | None = None, dtype: Any = None) -> Array:
        return function(ops.flatten(a) if axis is None else a, axis=axis or 0, dtype=dtype)

    return call


def _sorting(function: Function) -> Function:
    def call(a: Array, axis: int | None = -1, kind: str | None = None, *, stable: bool | None = None) -> Array:
        keeps_order = bool(stable) or kind in ("stable", "mergesort")
        return function(ops.flatten(a) if axis is None else a, axis=-1 if axis is None else axis, stable=keeps_order)

    return call


def _take(a: Array, indices: Array, axis: int | None = None) -> Array:
    return ops.take(ops.flatten(a) if axis is None else a, indices, axis=axis or 0)


def _clip(a: Array, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Array:
    return ops.clip(a, min if a_min is None else a_min, max if a_max is None else a_max)


def _pad(array: Array, pad_width: Any, mode: str = "constant", *, constant_values: float = 0) -> Array:
    if mode not in ("constant", "edge", "reflect", "symmetric", "wrap"):
        raise TypeError(f"there is no mode {mode!r}")
    # NumPy takes one pair for all axes too; graphs.pad does not.
    return ops.pad(array, np.broadcast_to(pad_width, (array.ndim, 2)).tolist(), constant_values, mode)


def _where(condition: Array, *branches: Array) -> Array:
    return ops.where(condition, *branches) if branches else ops.nonzero(condition)


def _einsum(*operands: Any, optimize: Any = None) -> Array:
    return ops.einsum(*operands) if isinstance(operands[0], str) else ops.einsum(*_letter_labels(operands))


def _letter_labels(operands: Sequence[Any]) -> list[Any]:
    """Convert NumPy's other way to write labels: `x, [0, 1], y, [1, 2], [0, 2]` becomes `"AB,BC->AC", x, y`."""
    pairs = len(operands) // 2
    labels = ["".join(map(_letter, part)) for part in operands[1 : 2 * pairs : 2]]
    output = ["->" + "".join(map(_letter, operands[-1]))] if len(operands) % 2 else []
    return [",".join(labels) + "".join(output), *operands[: 2 * pairs : 2]]


def _letter(label: Any) -> str:
    return "..." if label is Ellipsis else string.ascii_letters.swapcase()[operator.index(label)]


def _first_axes(function: Function) -> Function:
    """Wrap a function: np.trace and np.diagonal take the first two axes, the standard's functions the last two."""

    def call(a: Array, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Array:
        options = {} if dtype is None else {"dtype": dtype}
        return function(ops.moveaxis(a, (axis1, axis2), (-2, -1)), offset=offset, **options)

    return call


def _cross(a: Array, b: Array, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Array:
    ends = (axisa, axisb, axisc) if axis is None else (axis,) * 3
    product = ops.cross(ops.moveaxis(a, ends[0], -1), ops.moveaxis(b, ends[1], -1))
    return ops.moveaxis(product, -1, ends[2])


def _swapaxes(a: Array, axis1: int, axis2: int) -> Array:
    order = list(range(np.ndim(a)))
    first, second = (positive_axis(axis, len(order)) for axis in (axis1, axis2))
    order[first], order[second] = second, first
    return ops.permute_dims(a, order)


def _searchsorted(a: Array, v: Array, side: str = "left", sorter: Array | None = None) -> Array:
    return ops.searchsorted(a, v, side=side, sorter=sorter)


# The table --------------------------------------------------------------------------------------------------------

# Functions with the same name and meaning of parameters; NumPy's parameter names are translated.
_SAME = """
    any all argmax argmin count_nonzero cumulative_sum cumulative_prod unstack reshape ravel atleast_1d atleast_2d
    atleast_3d matrix_transpose moveaxis broadcast_to broadcast_arrays meshgrid expand_dims squeeze flip flipud fliplr
    rot90 diag roll repeat tile tril triu diff stack vstack hstack append take_along_axis nonzero argwhere
    unique_all unique_counts unique_inverse unique_values dot inner outer kron tensordot sinc gradient zeros_like
    ones_like full_like empty_like result_type
"""

FUNCTIONS: dict[Function, Function] = {
    **{getattr(np, name): getattr(ops, name) for name in _SAME.split()},
    np.sum: _accumulating(ops.sum, ops.add),
    np.prod: _accumulating(ops.prod, ops.multiply),
    np.mean: _mean,
    **dict.fromkeys((np.max, np.amax), _extremum(ops.max, ops.maximum)),
    **dict.fromkeys((np.min, np.amin), _extremum(ops.min, ops.minimum)),
    np.cumsum: _running(ops.cumulative_sum),
    np.cumprod: _running(ops.cumulative_prod),
    np.var: _spread(ops.var),
    np.std: _spread(ops.std),
    np.transpose: ops.permute_dims,
    np.swapaxes: _swapaxes,
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: lambda a: a.size,
    np.pad: _pad,
    np.concatenate: ops.concat,
    np.copy: ops.identity,
    np.where: _where,
    np.clip: _clip,
    np.take: _take,
    np.sort: _sorting(ops.sort),
    np.argsort: _sorting(ops.argsort),
    np.searchsorted: _searchsorted,
    np.einsum: _einsum,
    np.cross: _cross,
    np.trace: _first_axes(ops.trace),
    np.diagonal: _first_axes(ops.diagonal),
    np.nan_to_num: _nan_to_num,
    np.round: _round,
    np.around: _round,
    **ARRANGING,
    **statistics.FUNCTIONS,
    **OF_MATRICES,
}

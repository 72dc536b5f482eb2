"""The part of the table of NumPy functions about joining, splitting and comparing, with NumPy's parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphs import dispatch, ops
from graphs.errors import ShapeError
from graphs.op import Array
from graphs.ops.shapes import as_operand, positive_axis, shape_of
from graphs.ops.slicing import cut

Parts = int | Sequence[int]


def column_stack(tup: Sequence[Array]) -> Array:
    """Vectors as columns, and matrices, beside each other."""
    return ops.concat([a if np.ndim(a) > 1 else ops.reshape(a, (-1, 1)) for a in tup], axis=1)


def array_split(ary: Array, indices_or_sections: Parts, axis: int = 0) -> list[Array]:
    """Parts along an axis, cut at these places, or as many as that, the first ones longer by one where need be."""
    at = positive_axis(axis, len(shape_of(ary)))
    if isinstance(indices_or_sections, int):
        least, longer = divmod(int(shape_of(ary)[at]), indices_or_sections)
        sizes = [least + (i < longer) for i in range(indices_or_sections)]
        cuts = np.cumsum(sizes)[:-1].tolist()
    else:
        cuts = list(indices_or_sections)
    return [cut(ary, at, *ends) for ends in zip([0, *cuts], [*cuts, None], strict=True)]


def split(ary: Array, indices_or_sections: Parts, axis: int = 0) -> list[Array]:
    """Parts along an axis, of equal sizes where a number of them is given. Raises TypeError where that does not fit."""
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

    def joined(part: Any, level: int) -> Array:
        if not isinstance(part, list):
            leaf = as_operand(part)
            return ops.reshape(leaf, (*(1,) * (axes - len(shape_of(leaf))), *shape_of(leaf)))
        return ops.concat([joined(inner, level - 1) for inner in part], axis=-level)

    return joined(arrays, depth)


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
    """A function of vectors, called on each along an axis."""
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


FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
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

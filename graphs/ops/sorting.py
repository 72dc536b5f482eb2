"""Sorting and searching: sort, argsort, searchsorted, count_nonzero; last, functions whose sizes depend on values."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from graphs import dispatch
from graphs.dims import Size
from graphs.errors import ControlFlowError, ShapeError
from graphs.op import Array, Op, Prepared
from graphs.ops.elementwise import not_equal
from graphs.ops.families import composite
from graphs.ops.indexing import add_along_axis, take
from graphs.ops.movement import stop_gradient
from graphs.ops.reductions import sum
from graphs.ops.shapes import Axis, as_operand, dtype_of, positive_axes, positive_axis, shape_of, store
from graphs.spec import TensorSpec

__all__ = [
    "argsort", "argwhere", "count_nonzero", "nonzero", "searchsorted", "sort", "unique_all", "unique_counts",
    "unique_inverse", "unique_values",
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
    ends.sort(axis=axis, kind="stable" if stable else None)
    return out


def _argsort(x: Array, *, axis: int, descending: bool, stable: bool, out: Array = None) -> Array:
    """The indices that sort along one axis; equal elements keep their order when `stable`."""
    kind: Any = "stable" if stable else None
    if descending:
        order = x.shape[axis] - 1 - np.flip(np.argsort(np.flip(x, axis), axis=axis, kind=kind), axis)
    else:
        order = np.argsort(x, axis=axis, kind=kind)
    return order if out is None else store(order, out)


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
)
argsort: Op = Op(
    "argsort",
    _argsort,
    lambda x, **_: TensorSpec(x.shape, np.intp),
    prepare=_prepare_sort,
    cost=_sort_cost,
    family="sorting",
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
    """Wrap an array like x: as a tensor when x is one."""
    return array if dispatch.interpreter_of(x) is None else type(x)(array)


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

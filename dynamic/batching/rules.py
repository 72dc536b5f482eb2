"""How the ops of a group run as one: a rule for each family, from inputs that have a new first axis to such a result.

A second way needs no rule: an op that treats each row (each index of the first axis) alike runs as it is on the rows
of all inputs together, which may then be of any number: `row_roles`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from dynamic.tensor import Tensor
from graphs.op import Attrs, Op
from graphs.ops.elementwise import negative
from graphs.ops.indexing import take, take_along_axis
from graphs.ops.linalg import matmul
from graphs.ops.movement import broadcast_to, expand_dims, permute_dims, reshape
from graphs.ops.reductions import mean

Shape = tuple[int, ...]


class Column(NamedTuple):
    """One input of every op in a group: a tensor with a new first axis, or the one value that all of them share."""

    tensor: Tensor
    stacked: bool

    @property
    def shape(self) -> Shape:
        """The shape of each input."""
        return self.tensor.shape[1:] if self.stacked else self.tensor.shape

    def row(self, i: int) -> Tensor:
        """The input of one op."""
        return self.tensor[i] if self.stacked else self.tensor


Roles = tuple[bool, ...]
Stacked = Callable[[Op, Sequence[Column], Attrs, int], Tensor]
"""`rule(op, columns, attrs, count)`: the results of `count` ops on a first axis. Some column is stacked."""


def stacked_rule(op: Op, attrs: Attrs) -> Stacked | None:
    """The rule for an op, or None: such ops run one by one."""
    if op.family == "elementwise":
        return _elementwise
    if op.name == "getitem" and not all(isinstance(e, (int, slice, type(None))) for e in attrs["key"]):
        return None
    if "axis" in attrs and attrs["axis"] is None:
        return None
    return _RULES.get(op.name)


def view_offset(op: Op, shape: Shape, attrs: Attrs) -> int | None:
    """Where the result begins, in elements, when it is a run of the input's; None when it is none."""
    if op.name == "reshape":
        return 0
    if op.name != "getitem" or 0 in shape:
        return None
    offset, stride, narrowed, axis = 0, math.prod(shape), True, 0
    for entry in attrs["key"]:
        if entry is None:
            continue
        size = shape[axis]
        stride //= size
        first, count, step = _selected(entry, size)
        if count != size and not (narrowed and step == 1):
            return None
        offset += first * stride
        narrowed = narrowed and count == 1
        axis += 1
    return offset


def _selected(entry: int | slice, size: int) -> tuple[int, int, int]:
    """The first index that an entry selects, how many, and the step."""
    if isinstance(entry, int):
        return entry % size, 1, 1
    chosen = range(*entry.indices(size))
    return chosen.start, len(chosen), chosen.step


def full(column: Column, count: int) -> Tensor:
    """A column with its first axis, also where one value is shared."""
    return column.tensor if column.stacked else broadcast_to(column.tensor, (count, *column.shape))


def aligned(column: Column, ndim: int) -> Tensor:
    """A column whose elements have `ndim` axes, so that they broadcast behind the first one."""
    shape = column.shape
    if not column.stacked or len(shape) >= ndim:
        return column.tensor
    return reshape(column.tensor, (len(column.tensor), *(1,) * (ndim - len(shape)), *shape))


def _elementwise(op: Op, columns: Sequence[Column], attrs: Attrs, _count: int) -> Tensor:
    ndim = max(len(c.shape) for c in columns)
    return op.apply([aligned(c, ndim) for c in columns], attrs)


def _same(op: Op, columns: Sequence[Column], attrs: Attrs, _count: int) -> Tensor:
    return op.apply([c.tensor for c in columns], attrs)


def _next_axis(op: Op, columns: Sequence[Column], attrs: Attrs, count: int) -> Tensor:
    """The same along one axis further on, or several."""
    axis = attrs["axis"]
    moved = axis + 1 if isinstance(axis, int) else tuple(a + 1 for a in axis)
    return op.apply([full(c, count) for c in columns], {**attrs, "axis": moved})


def _changed(**change: Callable[[Any, int], Any]) -> Stacked:
    """The same with some attributes changed for the first axis: `change(value, count)`."""

    def rule(op: Op, columns: Sequence[Column], attrs: Attrs, count: int) -> Tensor:
        return op.apply([c.tensor for c in columns], attrs | {n: f(attrs[n], count) for n, f in change.items()})

    return rule


def _broadcast_to(op: Op, columns: Sequence[Column], attrs: Attrs, count: int) -> Tensor:
    shape = attrs["shape"]
    return op.apply([aligned(columns[0], len(shape))], {"shape": (count, *shape)})


def _setitem(op: Op, columns: Sequence[Column], attrs: Attrs, count: int) -> Tensor:
    x, value = columns
    ndim = len(x.shape) - sum(isinstance(e, int) for e in attrs["key"]) + attrs["key"].count(None)
    return op.apply([full(x, count), aligned(value, ndim)], {"key": (slice(None), *attrs["key"])})


def _matmul(_op: Op, columns: Sequence[Column], _attrs: Attrs, _count: int) -> Tensor:
    x, y = columns
    if not y.stacked and len(y.shape) == 2:  # one product of all rows together
        if len(x.shape) == 1:
            return matmul(x.tensor, y.tensor)
        rows = math.prod(x.tensor.shape[:-1])
        product = matmul(reshape(x.tensor, (rows, x.shape[-1])), y.tensor)
        return reshape(product, (*x.tensor.shape[:-1], y.shape[-1]))
    if not x.stacked and len(x.shape) == 2 and len(y.shape) == 1:
        return matmul(y.tensor, permute_dims(x.tensor))
    ndim = max(len(x.shape), len(y.shape), 2)
    left, right = (aligned(_as_matrix(c, at), ndim) for c, at in ((x, -1), (y, -2)))
    return _without(matmul(left, right), [at for c, at in ((x, -2), (y, -1)) if len(c.shape) == 1])


def _as_matrix(column: Column, vector_axis: int) -> Column:
    """A vector as a row (its elements along axis -1) or a column (along -2); all else as it is."""
    if len(column.shape) > 1:
        return column
    shape = column.tensor.shape
    return Column(
        reshape(column.tensor, (*shape, 1) if vector_axis == -2 else (*shape[:-1], 1, shape[-1])), column.stacked
    )


def _without(x: Tensor, axes: Sequence[int]) -> Tensor:
    dropped = {a % x.ndim for a in axes}
    return reshape(x, [s for a, s in enumerate(x.shape) if a not in dropped]) if dropped else x


def _take(_op: Op, columns: Sequence[Column], attrs: Attrs, count: int) -> Tensor:
    x, indices = columns
    axis = attrs["axis"]
    if not indices.stacked:
        return take(x.tensor, indices.tensor, axis=axis + 1)
    if not x.stacked:
        picked = take(x.tensor, indices.tensor, axis=axis)
        return permute_dims(picked, [axis, *(a for a in range(picked.ndim) if a != axis)])
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    flat = (count, *(1,) * axis, math.prod(indices.shape), *(1,) * len(after))
    picked = take_along_axis(x.tensor, reshape(indices.tensor, flat), axis=axis + 1)
    return reshape(picked, (count, *before, *indices.shape, *after))


def _nll_loss(_op: Op, columns: Sequence[Column], _attrs: Attrs, count: int) -> Tensor:
    x, labels = (full(column, count) for column in columns)
    picked = take_along_axis(x, expand_dims(labels, -1), axis=-1)
    return negative(mean(picked, axis=range(1, picked.ndim)))


# The other way: ops on rows ----------------------------------------------------------------------------------------


def row_roles(op: Op, shapes: Sequence[Shape], constant: Roles, attrs: Attrs, out: Shape) -> Roles | None:
    """For an op that treats each row alike: which inputs have rows (True), and which are the same for every row.

    None for any other op, and where an input would have to be repeated for each row.
    """
    test = _ROW_WISE.get("elementwise" if op.family == "elementwise" else op.name)
    return test(shapes, constant, attrs, out) if test and out else None


def _elementwise_rows(shapes: Sequence[Shape], constant: Roles, _attrs: Attrs, out: Shape) -> Roles | None:
    roles = tuple(not c for c in constant)
    right = [
        len(s) == len(out) and s[0] == out[0] if rows else len(s) < len(out)
        for s, rows in zip(shapes, roles, strict=True)
    ]
    return roles if all(right) and any(roles) and len(out) > 1 else None


def _matmul_rows(shapes: Sequence[Shape], constant: Roles, _attrs: Attrs, _out: Shape) -> Roles | None:
    x, y = shapes
    return (True, False) if len(x) > 1 and len(y) == 2 and constant == (False, True) else None


def _take_rows(shapes: Sequence[Shape], constant: Roles, attrs: Attrs, _out: Shape) -> Roles | None:
    return (False, True) if constant[0] and attrs["axis"] == 0 and shapes[1] else None


def _rows_unless(touched: Callable[[Attrs], bool]) -> Callable[..., Roles | None]:
    """All inputs have rows, unless the attributes say that the first axis is `touched`."""

    def test(shapes: Sequence[Shape], _constant: Roles, attrs: Attrs, _out: Shape) -> Roles | None:
        return None if min(map(len, shapes)) < 2 or touched(attrs) else (True,) * len(shapes)

    return test


def _along_rows(attrs: Attrs) -> bool:
    axis = attrs["axis"]
    return axis is None or axis == 0 or (isinstance(axis, tuple) and 0 in axis)


# Table --------------------------------------------------------------------------------------------------------------

_ALONG_AXES = (
    *("sum", "mean", "prod", "max", "min", "any", "all", "argmax", "argmin", "cumulative_sum", "cumulative_prod"),
    *("linear_recurrence", "sort", "argsort", "flip", "roll", "concat", "stack", "take_along_axis"),
    *("softmax", "log_softmax", "softmax_gradient"),
)
_UNCHANGED = ("astype", "identity", "stop_gradient")
_RULES: dict[str, Stacked] = {
    **dict.fromkeys(_ALONG_AXES, _next_axis),
    **dict.fromkeys(_UNCHANGED, _same),
    "broadcast_to": _broadcast_to,
    "permute_dims": _changed(axes=lambda axes, _: (0, *(a + 1 for a in axes))),
    "pad": _changed(pad_width=lambda widths, _: ((0, 0), *widths)),
    "getitem": _changed(key=lambda key, _: (slice(None), *key)),
    "setitem": _setitem,
    "matmul": _matmul,
    "take": _take,
    "nll_loss": _nll_loss,
}
_ROW_WISE: dict[str, Callable[..., Roles | None]] = {
    "elementwise": _elementwise_rows,
    "matmul": _matmul_rows,
    "take": _take_rows,
    "permute_dims": _rows_unless(lambda attrs: attrs["axes"][0] != 0),
    "getitem": _rows_unless(lambda attrs: attrs["key"][0] != slice(None)),
    "pad": _rows_unless(lambda attrs: attrs["pad_width"][0] != (0, 0)),
    **dict.fromkeys(_ALONG_AXES, _rows_unless(_along_rows)),
    **dict.fromkeys(_UNCHANGED, _rows_unless(lambda _: False)),
}

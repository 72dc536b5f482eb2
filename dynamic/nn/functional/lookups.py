"""Rows of a table by their numbers: each, or joined in bags; and numbers as one-hot rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynamic.grad_mode import no_grad
from dynamic.nn.functional.common import Array, check_indices, concrete, refuse
from dynamic.tensor import Tensor
from graphs import ops
from graphs.errors import DTypeError, GraphError, OptionError, ShapeError, located
from graphs.ops.shapes import dtype_of, shape_of

__all__ = ["embedding", "embedding_bag", "one_hot"]


def embedding(
    input: Array,
    weight: Array,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Array:
    """Rows of a table; that of `padding_idx` gets no gradient. Raises OutOfRangeError for other indices.

    With `max_norm`, rows that are looked up and whose `norm_type` norm is larger are first brought to it, in the table.
    """
    refuse("embedding", "leave it out", scale_grad_by_freq=(scale_grad_by_freq, False), sparse=(sparse, False))
    rows = _rows(input, weight)
    check_indices("embedding", input, rows)
    if max_norm is not None:
        _shorten("embedding", weight, input, max_norm, norm_type)
    vectors = ops.embedding(weight, input)
    if padding_idx is None:
        return vectors
    padding = ops.equal(input, padding_idx + rows if padding_idx < 0 else padding_idx)
    return ops.where(ops.expand_dims(padding, -1), ops.stop_gradient(vectors), vectors)


def _rows(indices: Array, table: Array) -> Any:
    """How many rows the table has. Raises ShapeError for what is no table, DTypeError for what are no indices."""
    if len(shape_of(table)) != 2:
        raise ShapeError(f"the table is a matrix, not of shape {shape_of(table)}; reshape it")
    if dtype_of(indices).kind not in "iu":
        raise DTypeError(f"the indices are ints, not {dtype_of(indices)}; convert with .long()")
    return shape_of(table)[0]


def _shorten(name: str, table: Array, indices: Array, max_norm: float, norm_type: float) -> None:
    """Bring the rows at the indices to a norm of at most `max_norm`, in place and without a gradient."""
    places = concrete(indices)
    if not issubclass(type(table), Tensor) or places is None:
        raise GraphError(located(f"{name}: max_norm changes the table, which a trace cannot; divide the rows before"))
    with no_grad():
        looked_up = np.unique(places)
        rows = ops.take(table, looked_up, axis=0)
        norms = ops.vector_norm(rows, axis=-1, keepdims=True, ord=norm_type)
        shorter = ops.multiply(rows, ops.divide(max_norm, ops.add(norms, 1e-7)))
        table[looked_up] = ops.where(ops.greater(norms, max_norm), shorter, rows)


def embedding_bag(
    input: Array,
    weight: Array,
    offsets: Array | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Array | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Array:
    """The sum, mean or max of the rows in each bag: i[B, L], or i[n] with the first place of each bag -> f[B, width].

    Rows of `padding_idx` count for nothing; an empty bag is 0. The rows of a sum may have weights. With
    `include_last_offset` the last of the offsets is the end of the last bag. Raises OptionError, ShapeError and
    OutOfRangeError.
    """
    refuse("embedding_bag", "leave it out", scale_grad_by_freq=(scale_grad_by_freq, False), sparse=(sparse, False))
    if mode not in ("sum", "mean", "max"):
        raise OptionError(located(f"embedding_bag: mode is 'sum', 'mean' or 'max', not {mode!r}; choose one"))
    rows = _rows(input, weight)
    check_indices("embedding_bag", input, rows)
    if max_norm is not None:
        _shorten("embedding_bag", weight, input, max_norm, norm_type)
    numbers, bags, count = _bags(input, offsets, include_last_offset)
    if padding_idx is not None:  # what counts for nothing goes where what is past the last bag goes
        bags = ops.where(ops.equal(numbers, padding_idx + rows if padding_idx < 0 else padding_idx), count, bags)
    vectors = ops.embedding(weight, numbers)
    if per_sample_weights is not None:
        if mode != "sum" or tuple(shape_of(per_sample_weights)) != tuple(shape_of(input)):
            raise OptionError(
                located("embedding_bag: per_sample_weights go with mode='sum', one for each index; leave them out")
            )
        vectors = ops.multiply(vectors, ops.reshape(per_sample_weights, (-1, 1)))
    return _joined(vectors, bags, count, mode)[:count]


def _bags(input: Array, offsets: Array | None, include_last: bool) -> tuple[Array, Array, Any]:
    """All indices in a row, the number of the bag of each, and how many bags there are."""
    shape = shape_of(input)
    if len(shape) == 2 and offsets is None:
        bags = ops.add(ops.expand_dims(ops.arange(shape[0]), 1), ops.zeros((1, shape[1]), dtype=np.int64))
        return ops.reshape(input, (-1,)), ops.reshape(bags, (-1,)), shape[0]
    if len(shape) != 1 or offsets is None or len(shape_of(offsets)) != 1:
        raise ShapeError(located("embedding_bag: takes i[B, L] without offsets, or i[n] with offsets of one axis"))
    _check_offsets(concrete(offsets), shape[0], include_last)
    bags = ops.subtract(ops.searchsorted(offsets, ops.arange(shape[0], dtype=dtype_of(offsets)), side="right"), 1)
    return input, bags, shape_of(offsets)[0] - (1 if include_last else 0)


def _check_offsets(starts: np.ndarray[Any, Any] | None, count: Any, include_last: bool) -> None:
    if starts is None or not starts.size or not isinstance(count, int):
        return
    if starts[0] != 0 or starts[-1] > count or np.any(np.diff(starts) < 0):
        rule = f"offsets are 0 and then no less than the one before, up to {count}"
        raise OptionError(located(f"embedding_bag: {rule}, not {starts.tolist()}; sort them"))
    if include_last and starts[-1] != count:
        raise OptionError(located(f"embedding_bag: the last of the offsets is the number of indices, {count}; add it"))


def _joined(rows: Array, bags: Array, count: Any, mode: str) -> Array:
    """The rows of each bag joined, and after them those that belong to none."""
    shape = (count + 1, shape_of(rows)[1])
    if mode == "max":
        places = ops.broadcast_to(ops.expand_dims(bags, 1), shape_of(rows))
        return ops.scatter_reduce(ops.zeros(shape, dtype_of(rows)), 0, places, rows, "amax", include_self=False)
    total = ops.scatter_add(rows, bags, shape, 0)
    if mode == "sum":
        return total
    sizes = ops.scatter_add(ops.ones(shape_of(bags), dtype_of(rows)), bags, (count + 1,), 0)
    return ops.divide(total, ops.expand_dims(ops.maximum(sizes, 1), 1))


def one_hot(tensor: Array, num_classes: int = -1) -> Array:
    """1 at each index along a new last axis, 0 elsewhere, as int64; a trace needs num_classes."""
    if num_classes == -1:
        array = concrete(tensor)
        if array is None:
            raise GraphError(located("one_hot: the number of classes depends on values here; give num_classes"))
        if not array.size:
            raise ShapeError("no index tells the number of classes; give num_classes")
        num_classes = int(array.max()) + 1
    if num_classes < 1:
        raise OptionError(f"there are 1 class or more, not {num_classes}; give their number")
    check_indices("one_hot", tensor, num_classes)
    return ops.one_hot(tensor, num_classes, np.int64)

"""Values made of nothing but numbers and shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphs import ops
from graphs.errors import OptionError, ShapeError
from graphs.onnx import sizes
from graphs.onnx.sizes import Decider, Sizes
from graphs.onnx.table import Constant, Floats, translates
from graphs.ops.shapes import dtype_of, shape_of


@translates("Constant", since=1)
def constant(
    *, value: Constant | None = None, value_float: float | None = None, value_floats: Floats | None = None,
    value_int: int | None = None, value_ints: Sizes | None = None,
) -> Any:  # fmt: skip
    """The one of these that is there."""
    present = sum(entry is not None for entry in (value, value_float, value_floats, value_int, value_ints))
    if present != 1:
        raise OptionError(f"{present} values; give one")
    if value is not None:
        return value
    floats = value_float if value_floats is None else value_floats
    if floats is not None:
        return np.asarray(floats, np.float32)
    return np.asarray(value_int if value_ints is None else value_ints, np.int64)


@translates("ConstantOfShape")
def constant_of_shape(shape: Sizes, *, value: Constant | None = None) -> Any:
    element = np.zeros(1, np.float32) if value is None else value
    return ops.full(tuple(shape), element.item(), element.dtype)


@translates("EyeLike")
def eye_like(x: Any, *, dtype: np.dtype[Any] | None = None, k: int = 0) -> Any:
    rows, columns = sizes.whole(shape_of(x))
    return ops.eye(rows, columns, k=k, dtype=dtype or dtype_of(x))


@translates("Range")
def numbers_from(start: Decider, limit: Decider, delta: Decider) -> Any:
    """Of floats by their distances, as ONNX has it, so that no sum of steps is rounded."""
    first, end, step = (bound.item() for bound in (start, limit, delta))
    if isinstance(first, float):
        return np.arange(np.maximum(np.ceil((end - first) / step), 0), dtype=start.dtype) * step + first
    kinds = [bound.dtype for bound in (start, limit, delta) if bound.dtype != object]  # sizes are int64
    return ops.astype(ops.arange(first, end, step), kinds[0] if kinds else np.int64)


@translates("OneHot")
def one_hot(indices: Any, depth: Sizes, values: Any, *, axis: int = -1) -> Any:
    """`values` are what stands off and on the indices; a negative index counts from the end."""
    (count,) = depth
    if isinstance(count, int) and count < 1:
        raise ShapeError(f"a depth of {count}; give 1 or more")
    places = ops.astype(indices, np.int64)
    there = ops.equal(ops.expand_dims(ops.remainder(places, count), -1), ops.arange(count))
    inside = ops.logical_and(ops.greater_equal(places, -count), ops.less(places, count))
    chosen = ops.where(ops.logical_and(there, ops.expand_dims(inside, -1)), values[1], values[0])
    return ops.moveaxis(chosen, -1, axis)

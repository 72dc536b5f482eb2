"""What makes of many elements one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphs import dims, ops
from graphs.frontends.onnx.table import Count, Sizes, translates
from graphs.ops.movement import cast
from graphs.ops.shapes import dtype_of, highest, lowest, positive_axes, reduced_shape, shape_of

Reduce = Callable[..., Any]  # of x, its axes, and whether these stay


def _reduction(name: str, function: Reduce) -> None:
    @translates(name)
    def reduce(x: Any, axes: Sizes | None = None, *, keepdims: bool = True, noop_with_empty_axes: bool = False) -> Any:
        """Over the axes, all of them when none is given, unless that is to reduce nothing."""
        if not axes and noop_with_empty_axes:
            return cast(function(x, axis=(), keepdims=True), dtype_of(x))
        over = positive_axes(tuple(int(axis) for axis in axes) if axes else None, len(shape_of(x)))
        return cast(function(x, axis=over, keepdims=keepdims), dtype_of(x))


def _extreme(function: Reduce, of_none: Callable[[np.dtype[Any]], Any]) -> Reduce:
    """An extreme, which of no element is the end of the dtype."""

    def reduce(x: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
        if any(dims.same(shape_of(x)[a], 0) for a in axis):
            return ops.full(reduced_shape(shape_of(x), axis, keepdims), of_none(dtype_of(x)), dtype_of(x))
        return function(x, axis=axis, keepdims=keepdims)

    return reduce


def _norm(x: Any, **over: Any) -> Any:
    return ops.sqrt(ops.sum(ops.square(x), **over))


_reduction("ReduceSum", ops.sum)
_reduction("ReduceMean", ops.mean)
_reduction("ReduceProd", ops.prod)
_reduction("ReduceMax", _extreme(ops.max, lowest))
_reduction("ReduceMin", _extreme(ops.min, highest))
_reduction("ReduceL1", lambda x, **over: ops.sum(ops.abs(x), **over))
_reduction("ReduceL2", _norm)
_reduction("ReduceSumSquare", lambda x, **over: ops.sum(ops.square(x), **over))
_reduction("ReduceLogSum", lambda x, **over: ops.log(ops.sum(x, **over)))
_reduction("ReduceLogSumExp", ops.logsumexp)


def _place(name: str, function: Reduce) -> None:
    @translates(name)
    def place(x: Any, *, axis: int = 0, keepdims: bool = True, select_last_index: bool = False) -> Any:
        """The place of the first extreme along an axis, or of the last."""
        if not select_last_index:
            return ops.astype(function(x, axis=axis, keepdims=keepdims), np.int64)
        last = shape_of(x)[axis] - 1
        return ops.astype(ops.subtract(last, function(ops.flip(x, axis=axis), axis=axis, keepdims=keepdims)), np.int64)


_place("ArgMax", ops.argmax)
_place("ArgMin", ops.argmin)


@translates("LpNormalization")
def unit_norm(x: Any, *, axis: int = -1, p: Count = 2) -> Any:
    """x divided by its norm along an axis; 0 where that is 0."""
    size = _norm(x, axis=axis, keepdims=True) if p == 2 else ops.sum(ops.abs(x), axis=axis, keepdims=True)
    zero = ops.equal(size, 0)
    return ops.where(zero, ops.multiply(x, 0), ops.divide(x, ops.where(zero, 1, size)))

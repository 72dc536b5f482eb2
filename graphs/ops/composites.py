"""Functions made of ops: both engines see only the ops inside."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from graphs import dims
from graphs.op import Array
from graphs.ops.creation import arange
from graphs.ops.elementwise import (
    add,
    divide,
    equal,
    exp,
    isfinite,
    log,
    logaddexp,
    multiply,
    sigmoid,
    sqrt,
    square,
    subtract,
    where,
)
from graphs.ops.families import composite
from graphs.ops.indexing import take
from graphs.ops.movement import astype, cast, expand_dims, reshape, squeeze, stop_gradient
from graphs.ops.reductions import max as _max
from graphs.ops.reductions import mean
from graphs.ops.reductions import sum as _sum
from graphs.ops.shapes import Axis, dtype_of, is_half, positive_axes, shape_of

__all__ = ["embedding", "flatten", "layer_norm", "logsumexp", "one_hot", "silu", "softplus", "std", "var"]


@composite
def logsumexp(x: Array, /, axis: Axis = None, keepdims: bool = False) -> Array:
    """log(sum(exp(x))) over `axis`, without overflow; infinite where x is infinitely large, or all -inf, or nothing."""
    shape = shape_of(x)
    axis = positive_axes(axis, len(shape))
    if any(dims.same(shape[a], 0) for a in axis):
        return subtract(_sum(x, axis=axis, keepdims=keepdims), math.inf)
    if is_half(dtype_of(x)):  # the sum of exponentials may be more than float16 has
        return cast(logsumexp(astype(x, np.float32), axis, keepdims), dtype_of(x))
    largest = stop_gradient(_max(x, axis=axis, keepdims=True))
    peak = where(isfinite(largest), largest, 0)  # an infinity less itself would be NaN
    total = add(log(_sum(exp(subtract(x, peak)), axis=axis, keepdims=True)), peak)
    return total if keepdims else squeeze(total, axis)


def softplus(x: Array, /) -> Array:
    """log(1 + exp(x)), without overflow."""
    return logaddexp(x, 0)


def silu(x: Array, /) -> Array:
    """x * sigmoid(x), also known as swish."""
    return multiply(x, sigmoid(x))


@composite
def var(x: Array, /, axis: Axis = None, correction: float = 0, keepdims: bool = False) -> Array:
    """The variance over `axis`, divided by the number of elements less `correction`, or by 0 where that is negative.

    Where no degree of freedom is left it is infinite or NaN, as in NumPy, and its gradient is NaN.
    """
    shape = shape_of(x)
    axis = positive_axes(axis, len(shape))
    if is_half(dtype_of(x)):  # the squares and their number may be more than float16 has
        return cast(var(astype(x, np.float32), axis, correction, keepdims), dtype_of(x))
    count = dims.product(shape[a] for a in axis)
    squares = square(subtract(x, mean(x, axis=axis, keepdims=True)))
    freedom = dims.maximum(count - correction, 0)  # type: ignore[operator,arg-type]
    return divide(_sum(squares, axis=axis, keepdims=keepdims), freedom)


@composite
def std(x: Array, /, axis: Axis = None, correction: float = 0, keepdims: bool = False) -> Array:
    """The standard deviation over `axis`; gradient 0 where it is 0."""
    spread = var(x, axis=positive_axes(axis, len(shape_of(x))), correction=correction, keepdims=keepdims)
    none = equal(spread, 0)
    return where(none, 0, sqrt(where(none, 1, spread)))  # the slope of sqrt at 0 is infinite: never ask for it


def layer_norm(x: Array, scale: Array, shift: Array, /, eps: float = 1e-5) -> Array:
    """The last axis brought to mean 0 and variance 1, then scaled and shifted (Ba, Kiros and Hinton, 2016)."""
    centred = subtract(x, mean(x, axis=-1, keepdims=True))
    spread = sqrt(add(mean(square(centred), axis=-1, keepdims=True), eps))
    return add(multiply(divide(centred, spread), scale), shift)


def embedding(table: Array, indices: Array, /) -> Array:
    """Rows of a table: f[vocabulary, width], i[...] -> f[..., width]."""
    return take(table, indices, axis=0)


def one_hot(indices: Array, classes: int, /, dtype: npt.DTypeLike = np.float32) -> Array:
    """1 at each index along a new last axis, 0 elsewhere: i[...] -> [..., classes]."""
    return astype(equal(expand_dims(indices, -1), arange(classes)), dtype)


def flatten(x: Array, /) -> Array:
    """All elements along one axis."""
    return reshape(x, (-1,))

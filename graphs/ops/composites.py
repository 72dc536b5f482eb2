"""Functions made of ops: both engines see only the ops inside."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from graphs import dims
from graphs.errors import ShapeError
from graphs.op import Array
from graphs.ops.creation import arange
from graphs.ops.elementwise import abs as _abs
from graphs.ops.elementwise import (
    add,
    divide,
    equal,
    exp,
    isfinite,
    isnan,
    less,
    log,
    logaddexp,
    multiply,
    sin,
    sqrt,
    square,
    subtract,
    where,
)
from graphs.ops.families import composite
from graphs.ops.indexing import take
from graphs.ops.manipulation import astype, diff
from graphs.ops.movement import concat, expand_dims, in_single, reshape, squeeze, stop_gradient
from graphs.ops.reductions import max as _max
from graphs.ops.reductions import mean
from graphs.ops.reductions import sum as _sum
from graphs.ops.shapes import Axis, as_operand, dtype_of, positive_axes, positive_axis, shape_of
from graphs.ops.slicing import cut
from graphs.ops.special import by_size, silu_op

__all__ = [
    "embedding", "flatten", "gradient", "layer_norm", "logsumexp", "nan_to_num", "one_hot", "silu", "sinc", "softplus",
    "std", "var",
]  # fmt: skip


@composite
@in_single
def logsumexp(x: Array, /, axis: Axis = None, keepdims: bool = False) -> Array:
    """log(sum(exp(x))) over `axis`, without overflow; inf where an x is inf, -inf where all are -inf or x is empty."""
    shape = shape_of(x)
    axis = positive_axes(axis, len(shape))
    if any(dims.same(shape[a], 0) for a in axis):
        return subtract(_sum(x, axis=axis, keepdims=keepdims), math.inf)
    largest = stop_gradient(_max(x, axis=axis, keepdims=True))
    peak = where(isfinite(largest), largest, 0)  # an infinity less itself would be NaN
    total = add(log(_sum(exp(subtract(x, peak)), axis=axis, keepdims=True)), peak)
    return total if keepdims else squeeze(total, axis)


@in_single
def softplus(x: Array, /) -> Array:
    """log(1 + exp(x)), without overflow."""
    return logaddexp(x, 0)


@in_single
def silu(x: Array, /) -> Array:
    """x * sigmoid(x), also known as swish."""
    return by_size(silu_op, x)


@composite
@in_single
def var(x: Array, /, axis: Axis = None, correction: float = 0, keepdims: bool = False) -> Array:
    """The variance over `axis`: squared deviations divided by the number of elements less `correction`, at least 0.

    Without a degree of freedom the variance is infinite or NaN, as in NumPy, and its gradient is NaN.
    """
    shape = shape_of(x)
    axis = positive_axes(axis, len(shape))
    count = dims.product(shape[a] for a in axis)
    squares = square(subtract(x, mean(x, axis=axis, keepdims=True)))
    freedom = dims.maximum(count - correction, 0)  # type: ignore[operator,arg-type]
    return divide(_sum(squares, axis=axis, keepdims=keepdims), freedom)


@composite
@in_single
def std(x: Array, /, axis: Axis = None, correction: float = 0, keepdims: bool = False) -> Array:
    """The standard deviation over `axis`; the gradient of a deviation of 0 is 0."""
    spread = var(x, axis=positive_axes(axis, len(shape_of(x))), correction=correction, keepdims=keepdims)
    none = equal(spread, 0)
    return where(none, 0, sqrt(where(none, 1, spread)))  # the slope of sqrt at 0 is infinite: never ask for it


def layer_norm(x: Array, scale: Array, shift: Array, /, eps: float = 1e-5) -> Array:
    """Normalise the last axis to mean 0 and variance 1, then scale and shift it (Ba, Kiros and Hinton, 2016)."""
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


# Signals, and replacing NaN
# -------------------------------------------------------------------------------------------


_NEAR = 0.3  # below it the series is exact in float64, and its slope; above, sin(y) / y loses few digits of its slope
_SERIES = tuple((-1) ** i / math.factorial(2 * i + 1) for i in range(6))


@composite
@in_single
def sinc(x: Array, /) -> Array:
    """sin(pi x) / (pi x), and 1 at 0; gradients near 0 are those of its power series."""
    x = as_operand(x)
    y = multiply(x, math.pi)
    near = less(_abs(y), _NEAR)
    far = where(near, 1, y)
    small = square(where(near, y, 0))
    series: Any = _SERIES[-1]
    for coefficient in _SERIES[-2::-1]:
        series = add(multiply(small, series), coefficient)
    return where(near, series, divide(sin(far), far))


@composite
def nan_to_num(x: Array, /, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Array:
    """x with NaN and infinities replaced, by default by 0 and the largest numbers; gradient 0 for replaced elements."""
    x = as_operand(x)
    if dtype_of(x).kind != "f":
        return x
    largest = float(np.finfo(dtype_of(x)).max)
    x = where(isnan(x), nan, x)
    x = where(equal(x, math.inf), largest if posinf is None else posinf, x)
    return where(equal(x, -math.inf), -largest if neginf is None else neginf, x)


@composite
def gradient(f: Array, /, *varargs: Any, axis: Axis = None, edge_order: int = 1) -> Any:
    """Slopes along each axis of samples, by central differences inside and one-sided ones at the ends, as in NumPy.

    `varargs` are the spacings, one for all axes or one for each: a number, or the coordinates along that axis. For
    several axes the result is a tuple. The derivative of a function is another thing: see `grad` of either engine.
    """
    f = as_operand(f)
    f = f if dtype_of(f).kind == "f" else astype(f, np.float64)
    named = positive_axes(None, len(shape_of(f))) if axis is None else np.atleast_1d(axis)
    axes = [positive_axis(a, len(shape_of(f))) for a in named]
    spacings: Sequence[Any] = varargs or (1.0,)
    if len(spacings) not in (1, len(axes)):
        raise ShapeError(f"{len(spacings)} spacings for {len(axes)} axes; give one, or one for each")
    if edge_order not in (1, 2):
        raise ShapeError(f"slopes at the ends are of order 1 or 2, not {edge_order}; choose one")
    each = spacings if len(spacings) == len(axes) else tuple(spacings) * len(axes)
    slopes = tuple(_slope(f, a, h, edge_order) for a, h in zip(axes, each, strict=True))
    return slopes[0] if len(slopes) == 1 else slopes


def _slope(f: Array, axis: int, spacing: Any, edge_order: int) -> Array:
    size = shape_of(f)[axis]
    if isinstance(size, int) and size <= edge_order:
        raise ShapeError(f"{size} samples along axis {axis} have no slope of order {edge_order}; take more")
    steps = _steps(spacing, f, axis)
    between = divide(diff(f, axis=axis), steps)  # the slope between each two neighbours
    left, right = cut(between, axis, None, -1), cut(between, axis, 1, None)
    weight: Any = 0.5
    if shape_of(steps):
        before, after = cut(steps, axis, None, -1), cut(steps, axis, 1, None)
        weight = divide(before, add(before, after))
    inside = add(left, multiply(subtract(right, left), weight))
    first, last = cut(between, axis, 0, 1), cut(between, axis, -1, None)
    if edge_order == 2:  # a parabola through three samples: its slope between two is the mean of those at both
        first = subtract(multiply(first, 2), cut(inside, axis, 0, 1))
        last = subtract(multiply(last, 2), cut(inside, axis, -1, None))
    return astype(concat([first, inside, last], axis=axis), dtype_of(f), copy=False)


def _steps(spacing: Any, f: Array, axis: int) -> Array:
    """The distances between neighbours along an axis: one number, or one for each pair. Raises ShapeError."""
    if not shape_of(spacing):
        return spacing
    shape = shape_of(f)
    if not dims.same_shape(shape_of(spacing), shape[axis : axis + 1]):
        raise ShapeError(f"{shape_of(spacing)} coordinates along axis {axis} of size {shape[axis]}; give one for each")
    places = as_operand(spacing)
    places = places if dtype_of(places).kind == "f" else astype(places, np.float64)  # small ints would wrap
    return reshape(diff(places), [-1 if a == axis else 1 for a in range(len(shape))])

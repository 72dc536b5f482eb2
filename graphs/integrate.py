"""Ordinary differential equations for both engines; loaded when it is used.

The method is that of Dormand and Prince ("A family of embedded Runge-Kutta formulae", 1980): order 5, steps chosen by
the difference from order 4 (Hairer, Norsett and Wanner, Solving Ordinary Differential Equations I, II.4). A step ends
at each of the times asked for. The gradient is that of the steps taken: their sizes count as constants.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphs import ops
from graphs.errors import DTypeError, ShapeError, locate
from graphs.op import Array
from graphs.ops.shapes import as_operand, dtype_of, shape_of
from graphs.spec import spec_of

Slope = Callable[..., Array]

_NODES = (0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
_STAGES = (
    (),
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
_SAFETY, _LEAST, _MOST = 0.9, 0.2, 5.0  # how a step may change


def odeint(
    func: Slope,
    y0: Array,
    t: Array,
    args: Sequence[Any] = (),
    rtol: float = 1.49e-8,
    atol: float = 1.49e-8,
    mxstep: int = 500,
    tfirst: bool = False,
) -> Array:
    """Solve dy/dt = func(y, t, *args) from y = y0 at t[0]. Returns y at the times `t`, along a new first axis.

    The times rise or fall. Differentiable in y0, t, args and tensors that `func` closes over. Where `mxstep` steps do
    not reach the next time, y is NaN from there on. Raises ShapeError where the slope has another shape than y0,
    DTypeError for times that are no floats.
    """
    y0, t = as_operand(y0), as_operand(t)
    if dtype_of(y0).kind != "f":
        y0 = ops.astype(y0, np.float64)
    if len(shape_of(t)) != 1:
        raise ShapeError(locate(f"odeint: times lie along one axis, not {len(shape_of(t))}; reshape them"))
    if dtype_of(t).kind != "f":
        raise DTypeError(locate(f"odeint: times are floats, not {dtype_of(t)}; convert them with astype"))

    def slope(y: Array, time: Array) -> Array:
        result = func(time, y, *args) if tfirst else func(y, time, *args)
        if shape_of(result) != shape_of(y0):
            raise ShapeError(
                locate(f"odeint: a slope is like y, {spec_of(y0)}, not {spec_of(result)}; return one for each")
            )
        return ops.astype(result, dtype_of(y0))

    def interval(state: Any, end: Array) -> Any:
        start, y = state
        y = _advance(slope, y, start, end, (rtol, atol, mxstep))
        return (end, y), y

    _, after = ops.scan(interval, (t[0], y0), t[1:])
    return ops.concat([ops.expand_dims(y0, 0), after], axis=0)


def _advance(slope: Slope, y0: Array, start: Array, end: Array, options: tuple[float, float, int]) -> Array:
    """y at the end of an interval. A step is a share of the interval: shares are constants, times have gradients."""
    rtol, atol, most = options
    width = ops.subtract(end, start)

    def is_unfinished(state: Any) -> Array:
        done, _, _, count = state
        return ops.logical_and(ops.less(done, 1.0), ops.less(count, most))

    def step(state: Any) -> Any:
        done, share, y, count = state
        last = ops.greater_equal(ops.add(done, share), 1.0)
        share = ops.where(last, ops.subtract(1.0, done), share)
        time, size = ops.add(start, ops.multiply(done, width)), ops.multiply(share, width)
        after, error = _rk_step(slope, y, time, size)
        scale = ops.add(ops.multiply(ops.maximum(ops.abs(y), ops.abs(after)), rtol), atol)
        norm = ops.stop_gradient(ops.sqrt(ops.mean(ops.square(ops.divide(error, scale)))))
        taken = ops.less_equal(norm, 1.0)  # false of NaN, too
        factor = ops.multiply(ops.pow(ops.maximum(norm, 1e-10), -0.2), _SAFETY)
        factor = ops.clip(ops.where(ops.isnan(factor), 0.0, factor), _LEAST, _MOST)
        reached = ops.where(last, 1.0, ops.add(done, share))
        return (
            ops.where(taken, reached, done),
            ops.multiply(share, factor),
            ops.where(taken, after, y),
            ops.add(count, 1),
        )

    first = np.float64(0.05)
    done, _, y, _ = ops.while_loop(is_unfinished, step, (np.zeros(()), first, y0, np.zeros((), np.int64)))
    return ops.where(ops.less(done, 1.0), math.nan, y)


def _rk_step(slope: Slope, y: Array, time: Array, size: Array) -> tuple[Array, Array]:
    """y after one step, and an estimate of its error."""
    slopes: list[Array] = []
    at = y
    for node, weights in zip(_NODES, _STAGES, strict=True):
        at = ops.add(y, _weighted_sum(weights, slopes, size)) if weights else y
        slopes.append(slope(at, ops.add(time, ops.multiply(size, node))))
    return at, _weighted_sum(_ERROR, slopes, size)


def _weighted_sum(weights: Sequence[float], slopes: Sequence[Array], size: Array) -> Array:
    terms = [ops.multiply(ops.multiply(size, weight), k) for weight, k in zip(weights, slopes, strict=True) if weight]
    total = terms[0]
    for term in terms[1:]:
        total = ops.add(total, term)
    return ops.astype(total, dtype_of(slopes[0]))

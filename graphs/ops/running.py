"""Running maxima and minima with their places, and the running logarithm of a sum of exponentials."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from graphs.op import Array, Op, Prepared
from graphs.ops.elementwise import equal, exp, multiply, subtract, where
from graphs.ops.families import composite, ufunc_dtype
from graphs.ops.movement import astype, pad
from graphs.ops.picking import take_along_axis
from graphs.ops.scans import but_last, from_behind, in_front
from graphs.ops.shapes import along, dtype_of
from graphs.spec import TensorSpec

__all__ = ["cummax", "cummin", "cumulative_argmax", "cumulative_argmin", "logcumsumexp"]


class Extremes(NamedTuple):
    """Values, and where along the axis they are."""

    values: Array
    indices: Array


def _places(name: str, ufunc: np.ufunc, doc: str) -> Op:
    def kernel(x: Array, *, axis: int, out: Array = None) -> Array:
        best = ufunc.accumulate(x, axis=axis)
        places = np.arange(x.shape[axis]).reshape(-1, *(1,) * (x.ndim - axis - 1))
        extremes = np.where((x == best) | (x != x), places, 0)  # NaN differs from itself
        return np.maximum.accumulate(extremes, axis=axis, out=out)

    def infer(x: TensorSpec, *, axis: int) -> TensorSpec:
        return TensorSpec(x.shape, np.intp)

    return Op(name, kernel, infer, prepare=along, cost=1, family="sorting", doc=doc)


cumulative_argmax: Op = _places(
    "cumulative_argmax", np.maximum, "Where the largest element so far is along one axis: the last of equals, or NaN."
)
cumulative_argmin: Op = _places(
    "cumulative_argmin", np.minimum, "Where the smallest element so far is along one axis: the last of equals, or NaN."
)


@composite
def cummax(x: Array, /, axis: int = -1) -> Extremes:
    """The largest element so far along one axis, and its index, that of the last of equals, which has the gradient.

    From the first NaN on all are NaN, as in PyTorch.
    """
    places = cumulative_argmax(x, axis=axis)
    return Extremes(take_along_axis(x, places, axis=axis), places)


@composite
def cummin(x: Array, /, axis: int = -1) -> Extremes:
    """The smallest element so far along one axis, and its index, that of the last of equals, which has the gradient.

    From the first NaN on all are NaN, as in PyTorch.
    """
    places = cumulative_argmin(x, axis=axis)
    return Extremes(take_along_axis(x, places, axis=axis), places)


# logcumsumexp -----------------------------------------------------------------------------------------------------

_float = ufunc_dtype(np.logaddexp)


def _prepare_log(x: Array, /, axis: int = -1) -> Prepared:
    (x,), attrs = along(x, axis)
    return (x if dtype_of(x).kind == "f" else astype(x, _float(dtype_of(x), dtype_of(x))),), attrs


def _logcumsumexp(x: Array, *, axis: int, out: Array = None) -> Array:
    """The logarithm of the running sum of exp(x) along one axis, without overflow."""
    return np.logaddexp.accumulate(x, axis=axis, out=out)


def _logcumsumexp_rule(g: Array, x: Array, out: Array, axis: int) -> Array:
    """The sum over k >= i of g[k] * exp(x[i] - out[k]), by factors of at most 1, so that none overflows.

    That is exp(x[i] - out[i]) * r[i], where r[i] = g[i] + exp(out[i] - out[i + 1]) * r[i + 1].
    """
    nothing = equal(out, -math.inf)  # less itself it would be NaN, and its exponential is 0
    after = where(nothing, 0, out)
    before = but_last(pad(out, in_front(len(x.shape), axis), -math.inf), axis)
    factors = exp(subtract(before, after))
    return multiply(exp(subtract(x, after)), from_behind(factors, g, axis))


logcumsumexp: Op = Op(
    "logcumsumexp",
    _logcumsumexp,
    lambda x, *, axis: TensorSpec(x.shape, _float(x.dtype, x.dtype)),
    rules=(_logcumsumexp_rule,),
    prepare=_prepare_log,
    cost=20,  # an exponential and a logarithm count as ten each
    family="composed",
)

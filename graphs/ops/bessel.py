"""The modified Bessel functions of the first kind, of orders 0 and 1: a power series, and far out an asymptotic one.

Abramowitz and Stegun, 9.6.10 and 9.7.1. All is computed in float64; the error is a few units in the last place.
"""

from __future__ import annotations

import math

import numpy as np

from graphs.op import Array, Op
from graphs.ops.elementwise import divide, equal, multiply, sign, subtract, where
from graphs.ops.families import elementwise
from graphs.ops.gamma import in_doubles

__all__ = ["i0", "i0e", "i1", "i1e"]

_FAR = 20.0  # from here on the asymptotic series ends below the spacing of floats
_NEAR_TERMS, _FAR_TERMS = 60, 30


def _near(order: int, x: Array) -> Array:
    """The power series: all its terms have one sign, so that nothing cancels."""
    quarter = x * x / 4
    total = term = (x / 2) ** order
    for k in range(1, _NEAR_TERMS):
        term = term * quarter / (k * (k + order))
        total = total + term
    return total


def _far(order: int, size: Array) -> Array:
    """The asymptotic series, of exp(-x) times the function."""
    total = term = np.ones_like(size)
    for k in range(1, _FAR_TERMS):
        term = term * ((2 * k - 1) ** 2 - 4 * order * order) / (8 * k * size)
        total = total + term
    return total / np.sqrt(2 * math.pi * size)


def _bessel(order: int, x: Array, *, scaled: bool) -> Array:
    size = np.abs(x)
    near = size < _FAR
    inner, outer = _near(order, np.where(near, x, 0)), _far(order, np.maximum(size, _FAR))
    outer = outer if order == 0 else np.copysign(outer, x)
    if scaled:
        return np.where(near, inner * np.exp(-size), outer)
    # In two factors: exp(x) alone overflows a little sooner than the function.
    return np.where(near, inner, outer * np.exp(size / 2) * np.exp(size / 2))


def _slope_of_i1(x: Array, below: Array, value: Array) -> Array:
    """i0 - i1 / x, which is 1/2 at 0."""
    none = equal(x, 0)
    return subtract(below, where(none, 0.5, divide(value, where(none, 1, x))))


def _order(name: str, order: int, *, scaled: bool, rule: object, doc: str) -> Op:
    return elementwise(
        name,
        in_doubles(lambda x: _bessel(order, x, scaled=scaled)),
        rule,  # type: ignore[arg-type]  # a rule in ops, as all are
        dtype=lambda x: np.result_type(x, 0.5),
        flops=300,
        doc=doc,
    )


i0: Op = _order(
    "i0",
    0,
    scaled=False,
    rule=lambda g, x: multiply(g, i1(x)),
    doc="The modified Bessel function of the first kind and order 0.",
)
i1: Op = _order(
    "i1",
    1,
    scaled=False,
    rule=lambda g, x, out: multiply(g, _slope_of_i1(x, i0(x), out)),
    doc="The modified Bessel function of the first kind and order 1.",
)
i0e: Op = _order(
    "i0e",
    0,
    scaled=True,
    rule=lambda g, x, out: multiply(g, subtract(i1e(x), multiply(sign(x), out))),
    doc="exp(-abs(x)) * i0(x).",
)
i1e: Op = _order(
    "i1e",
    1,
    scaled=True,
    rule=lambda g, x, out: multiply(g, subtract(_slope_of_i1(x, i0e(x), out), multiply(sign(x), out))),
    doc="exp(-abs(x)) * i1(x).",
)

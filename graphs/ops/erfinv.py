"""The inverses of the error function and of its complement, by Newton's method in float64.

Near 0 the steps solve erf(y) = x; further out log(erfc(y)) = log(1 - x), which is nearly a parabola, so that each step
doubles the digits however far out y lies. They start from a Taylor polynomial and from S. Winitzki's approximation ("A
handy approximation for the error function and its inverse", 2008), which is right to 4 in 1000.
"""

from __future__ import annotations

import math

import numpy as np

from graphs.op import Array, Op
from graphs.ops.elementwise import exp, multiply, negative, square
from graphs.ops.families import elementwise
from graphs.ops.gamma import in_doubles
from graphs.ops.special import erf, erfcx

__all__ = ["erfcinv", "erfinv"]

_WINITZKI = 0.147
_STEPS = 4
_HALF_ROOT = math.sqrt(math.pi) / 2


def _inverse(x: Array, rest: Array) -> Array:
    """The y >= 0 with erf(y) = x and erfc(y) = rest: of two numbers that add up to 1, the smaller is the exact one."""
    near = x < 0.5
    return np.where(near, _near(np.where(near, x, 0.25)), _far(np.where(near, 0.25, rest)))


def _near(x: Array) -> Array:
    y = _HALF_ROOT * x * (1 + math.pi / 12 * x * x)
    for _ in range(_STEPS):
        y = y - (erf.kernel(y) - x) * _HALF_ROOT * np.exp(y * y)
    return y


def _far(rest: Array) -> Array:
    logarithm = np.log(rest)
    whole = logarithm + np.log1p(1 - rest)  # of 1 - x * x
    middle = 2 / (math.pi * _WINITZKI) + whole / 2
    y = np.sqrt(np.sqrt(middle * middle - whole / _WINITZKI) - middle)
    for _ in range(_STEPS):
        scaled = erfcx.kernel(y)
        y = y + (np.log(scaled) - y * y - logarithm) * _HALF_ROOT * scaled
    return y


def _erfinv(x: Array) -> Array:
    size = np.abs(x)
    inside = size < 1
    values = np.copysign(_inverse(np.where(inside, size, 0), np.where(inside, 1 - size, 1)), x)
    return np.where(inside, values, np.where(size == 1, np.copysign(np.inf, x), np.nan))


def _erfcinv(x: Array) -> Array:
    inside, low = (x > 0) & (x < 2), x < 1
    rest = np.where(inside, np.where(low, x, 2 - x), 1)
    values = np.where(low, 1, -1) * _inverse(1 - rest, rest)
    return np.where(inside, values, np.where(x == 0, np.inf, np.where(x == 2, -np.inf, np.nan)))


def _slope(y: Array) -> Array:
    """The derivative of erfinv, from its result."""
    return multiply(exp(square(y)), _HALF_ROOT)


erfinv: Op = elementwise(
    "erfinv",
    in_doubles(_erfinv),
    lambda g, out: multiply(g, _slope(out)),
    dtype=lambda x: np.result_type(x, 0.5),
    flops=400,
    doc="The y with erf(y) = x; infinite at -1 and 1, NaN beyond.",
)
erfcinv: Op = elementwise(
    "erfcinv",
    in_doubles(_erfcinv),
    lambda g, out: negative(multiply(g, _slope(out))),
    dtype=lambda x: np.result_type(x, 0.5),
    flops=400,
    doc="The y with erfc(y) = x, accurate also where x is tiny; infinite at 0 and 2, NaN beyond.",
)

"""How sure a predicted ratio is: the odds of its side and an interval, by how far off predictions have been.

The logarithm of measured over predicted ratios is taken for a Student's t. It has heavier tails than a normal law: a
prediction that misses, misses by much.
"""

from __future__ import annotations

from math import exp, log, sqrt

from compare.stats import student_quantile, student_within
from compare.words import text

FREEDOM = 8
"""Degrees of freedom: about as many programs as a calibration checks its prices on."""
MOST = 0.99
"""No more is said: fewer than a hundred programs were ever measured beside their prediction."""
_SCALE = sqrt((FREEDOM - 2) / FREEDOM)
"""Of a Student's t whose standard deviation is 1."""
_TAIL = 0.025


def probability(ratio: float, spread: float) -> float:
    """The probability that the side of 1 on which a ratio is predicted is the right one.

    `spread` is the root mean square of the logarithm of measured over predicted ratios.
    """
    inside = student_within(FREEDOM, abs(log(ratio)) / (_SCALE * spread))
    return min(MOST, 0.5 + inside / 2)


def interval(ratio: float, spread: float) -> tuple[float, float]:
    """Where the measured ratio lies with probability 95%."""
    factor = exp(student_quantile(FREEDOM, _TAIL) * _SCALE * spread)
    return ratio / factor, ratio * factor


def told(share: float) -> str:
    """A probability in words."""
    return "99%" if share >= MOST else f"{share:.0%}"


def faster(ratio: float, ends: tuple[float, float]) -> str:
    """`1.8× [1.2, 2.6] faster`, of a ratio that may be below 1: how many times, with its interval."""
    low, high = ends if ratio >= 1 else (1 / ends[1], 1 / ends[0])
    return f"{text.ratio(max(ratio, 1 / ratio))} {text.interval(low, high)} faster"

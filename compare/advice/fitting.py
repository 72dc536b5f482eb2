"""Prices that are not negative, from what steps took: the one fit of all engines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def prices(rows: Sequence[tuple[Sequence[float], float]]) -> tuple[float, ...]:
    """Of rows of terms and seconds: the prices of at least 0 by which the terms come nearest to the seconds.

    Least squares of relative errors, by an active set (Lawson and Hanson, Solving Least Squares Problems, 1974, chapter
    23). SciPy has it as `nnls`, and is not installed with graphduel.
    """
    table = np.array([[term / seconds for term in terms] for terms, seconds in rows])
    scale = np.where(table.any(axis=0), np.abs(table).max(axis=0), 1.0)
    table, target = table / scale, np.ones(len(rows))
    found, free = np.zeros(len(scale)), np.zeros(len(scale), bool)
    for _ in range(3 * len(scale)):  # in theory it ends by itself, in floating point nearly always
        slope = np.where(free, 0.0, table.T @ (target - table @ found))
        if slope.max() <= 1e-9:
            break
        free[slope.argmax()] = True
        found = _stepped(table, target, found, free)
    return tuple(float(price) for price in found / scale)


def _stepped(table: Any, target: Any, prices: Any, free: Any) -> Any:
    """The least squares over the free prices; those that would fall below 0 on the way are free no more."""
    while True:
        best = np.zeros(len(prices))
        best[free] = np.linalg.lstsq(table[:, free], target, rcond=None)[0]
        if best[free].min(initial=1.0) > 0:
            return best
        falling = free & (best <= 0)
        share = (prices[falling] / np.maximum(prices[falling] - best[falling], 1e-300)).min()
        prices = prices + share * (best - prices)
        free &= prices > 1e-12

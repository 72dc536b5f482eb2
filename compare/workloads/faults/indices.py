"""Indices and slices that are off."""

from __future__ import annotations

import numpy as np

import graphs as g
from compare.workloads.faults.fault import Array, Fault, Params, draw, healthy, mean_square

WORDS = np.array([3, 1, 4, 1, 5, 0])
SERIES, Y = draw(40, 8, 2), draw(41, 6, 3)
TABLE = {"table": draw(42, 6, 3)}
SQUARE = {"table": draw(43, 6, 6)}
STEP = {"weight": draw(44, 2, 2) / 2}


def lookup(p: Params, words: Array, y: Array) -> Array:
    """A row of the table for each word."""
    words = words + 0
    return mean_square(g.take(p["table"], words, axis=0) - y)


def chosen(p: Params, words: Array, y: Array) -> Array:
    """Rows of a square table."""
    rows = g.take(p["table"], words, axis=0)
    return mean_square(rows[:, :3] - y)


def forecast(p: Params, series: Array) -> Array:
    """Each value from the one before it."""
    before, after = series[:-1], series[1:]
    return mean_square(g.tanh(before @ p["weight"]) - after)


LOOKUP = healthy(lookup, TABLE, ((WORDS, Y),))
CHOSEN = healthy(chosen, SQUARE, ((WORDS, Y),))
FORECAST = healthy(forecast, STEP, ((SERIES,),))

FAULTS = (
    # words are counted from 1, the table from 0
    Fault("one past the end", LOOKUP, "words + 0", "words + 1"),
    # the first word becomes the last row
    Fault("wrapped around", LOOKUP, "words + 0", "words - 1"),
    Fault("columns for rows", CHOSEN, "axis=0", "axis=1"),
    # a column that is not there
    Fault("beyond the last column", CHOSEN, "(rows[:, :3] - y)", "(rows[:, 2:5] - y) + g.mean(rows[:, 6])"),
    # each value from itself
    Fault("off by one", FORECAST, "series[1:]", "series[:-1]"),
    # the slices have different lengths
    Fault("last value lost", FORECAST, "series[:-1]", "series[:-2]"),
)

"""Indices and slices that are off."""

from __future__ import annotations

import numpy as np

import graphs as g
from compare.claims.c3_debugging.base import Array, Fault, Params, draw, mean_square

WORDS = np.array([3, 1, 4, 1, 5, 0])
SERIES, Y = draw(40, 8, 2), draw(41, 6, 3)
TABLE = {"table": draw(42, 6, 3)}
SQUARE = {"table": draw(43, 6, 6)}
STEP = {"weight": draw(44, 2, 2) / 2}


def lookup(p: Params, words: Array, y: Array) -> Array:
    """A row of the table for each word."""
    words = words + 0
    return mean_square(g.take(p["table"], words, axis=0) - y)


def one_past_the_end(p: Params, words: Array, y: Array) -> Array:
    """Words are counted from 1, the table from 0."""
    words = words + 1  # fault
    return mean_square(g.take(p["table"], words, axis=0) - y)


def wrapped_around(p: Params, words: Array, y: Array) -> Array:
    """The first word becomes the last row."""
    words = words - 1  # fault
    return mean_square(g.take(p["table"], words, axis=0) - y)


def chosen(p: Params, words: Array, y: Array) -> Array:
    """Rows of a square table."""
    rows = g.take(p["table"], words, axis=0)
    return mean_square(rows[:, :3] - y)


def columns_for_rows(p: Params, words: Array, y: Array) -> Array:
    """Columns of a square table."""
    rows = g.take(p["table"], words, axis=1)  # fault
    return mean_square(rows[:, :3] - y)


def beyond_the_last_column(p: Params, words: Array, y: Array) -> Array:
    """A column that is not there."""
    rows = g.take(p["table"], words, axis=0)
    return mean_square(rows[:, 2:5] - y) + g.mean(rows[:, 6])  # fault


def forecast(p: Params, series: Array) -> Array:
    """Each value from the one before it."""
    before, after = series[:-1], series[1:]
    return mean_square(g.tanh(before @ p["weight"]) - after)


def off_by_one(p: Params, series: Array) -> Array:
    """Each value from itself."""
    before, after = series[:-1], series[:-1]  # fault
    return mean_square(g.tanh(before @ p["weight"]) - after)


def last_value_lost(p: Params, series: Array) -> Array:
    """The slices have different lengths."""
    before, after = series[:-2], series[1:]  # fault
    return mean_square(g.tanh(before @ p["weight"]) - after)


FAULTS = (
    Fault("one past the end", "index", lookup, TABLE, ((WORDS, Y),), one_past_the_end),
    Fault("wrapped around", "index", lookup, TABLE, ((WORDS, Y),), wrapped_around),
    Fault("columns for rows", "index", chosen, SQUARE, ((WORDS, Y),), columns_for_rows),
    Fault("beyond the last column", "index", chosen, SQUARE, ((WORDS, Y),), beyond_the_last_column),
    Fault("off by one", "index", forecast, STEP, ((SERIES,),), off_by_one),
    Fault("last value lost", "index", forecast, STEP, ((SERIES,),), last_value_lost),
)

"""Generators and iterators: lazy sequences that values end, or that only structure does."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator

import numpy as np

import graphs
from compare.workloads.programs.program import Array, Program, floats, scalar


def sum_of_shrinking(x: Array) -> Array:
    """A generator that ends when its values are small: f[] -> f[]."""

    def shrinking(x: Array) -> Iterator[Array]:
        while abs(x) > 0.01:
            yield x
            x = x * x / 2

    return sum(shrinking(x), x * 0)


def sum_of_shrinking_graph(x: Array) -> Array:
    """Generator and sum are one loop."""
    return graphs.while_loop(
        lambda state: abs(state[0]) > 0.01,
        lambda state: (state[0] * state[0] / 2, state[1] + state[0]),
        (x, x * 0),
    )[1]


def windows(x: Array, width: int) -> Array:
    """A generator of slices, which a shape ends: f[N] -> f[]."""

    def slices() -> Iterator[Array]:
        for start in range(x.shape[0] - width + 1):
            yield x[start : start + width]

    return graphs.logsumexp(graphs.stack([graphs.prod(part) for part in slices()]))


def fold(x: Array) -> Array:
    """Horner's rule by reduce: f[N] -> f[]."""
    return functools.reduce(lambda total, value: total * 0.5 + value, x)


def leading(x: Array) -> Array:
    """What comes before the first that is not positive: f[N] -> f[]."""
    return sum((value * value for value in itertools.takewhile(lambda value: value > 0, x)), x[0] * 0)


def leading_graph(x: Array) -> Array:
    """A mask: nothing that is not positive up to here."""
    return graphs.sum(graphs.where(graphs.cumulative_sum(graphs.astype(x <= 0, int)) == 0, x * x, 0.0))


def next_above(x: Array, threshold: Array) -> Array:
    """The first that is large, else a default: f[N], f[] -> f[]."""
    return next((value * value for value in x if value > threshold), threshold)


def next_above_graph(x: Array, threshold: Array) -> Array:
    """The place of the first is that of the largest of the bools."""
    large = x > threshold
    return graphs.where(graphs.any(large), x[graphs.argmax(large)] ** 2, threshold)


def smoothed(x: Array, rate: Array) -> Array:
    """A coroutine that keeps a mean and is sent values: f[N], f[] -> f[N]."""

    def mean() -> Iterator[Array]:
        kept = x[0]
        for value in x:
            kept = rate * kept + (1 - rate) * value
            yield kept

    return graphs.stack(list(mean()))


_ROWS = (floats(1, 3, -2, 4), floats(-1, 2, 3, 5), floats(3, 2, 1, 0.5))

PROGRAMS = (
    Program(sum_of_shrinking, sum_of_shrinking_graph, [(scalar(x),) for x in (1, 1.9, 0.001)]),
    Program(windows, windows, [(np.arange(0.5, n), width) for n, width in ((3, 1), (4, 3), (5, 2))]),
    Program(fold, fold, [(row[:n],) for n, row in zip((1, 3, 4), _ROWS, strict=True)]),
    Program(leading, leading_graph, [(row,) for row in _ROWS]),
    Program(next_above, next_above_graph, [(row, scalar(2.5)) for row in (*_ROWS, -_ROWS[2])]),
    Program(smoothed, smoothed, [(row[:n], scalar(0.9)) for n, row in zip((1, 3, 4), _ROWS, strict=True)]),
)

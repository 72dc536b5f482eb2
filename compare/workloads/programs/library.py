"""Ordinary library code: special functions, interpolation, statistics by rank, a step within a radius."""

from __future__ import annotations

import numpy as np

import graphs
from compare.workloads.programs.program import Array, Program, floats, scalar


def log_gamma(x: Array) -> Array:
    """Stirling's series, after as many steps of the recurrence as make it accurate: f[] -> f[]."""
    shift = x * 0
    while x < 8:
        shift = shift + graphs.log(x)
        x = x + 1
    series = 1 / (12 * x) - 1 / (360 * x**3) + 1 / (1260 * x**5) - 1 / (1680 * x**7)
    return (x - 0.5) * graphs.log(x) - x + 0.5 * np.log(2 * np.pi) + series - shift


def log_gamma_graph(x: Array) -> Array:
    """The recurrence is an op."""

    def step(state: Array) -> Array:
        x, shift = state
        return x + 1, shift + graphs.log(x)

    x, shift = graphs.while_loop(lambda state: state[0] < 8, step, (x, x * 0))
    series = 1 / (12 * x) - 1 / (360 * x**3) + 1 / (1260 * x**5) - 1 / (1680 * x**7)
    return (x - 0.5) * graphs.log(x) - x + 0.5 * np.log(2 * np.pi) + series - shift


def interpolated(heights: Array, knots: Array, at: Array) -> Array:
    """Between two knots on a line, beyond them constant: f[N], f[N], f[] -> f[]."""
    if at <= knots[0]:
        return heights[0]
    for i in range(1, knots.shape[0]):
        if at < knots[i]:
            part = (at - knots[i - 1]) / (knots[i] - knots[i - 1])
            return heights[i - 1] * (1 - part) + heights[i] * part
    return heights[-1]


def interpolated_graph(heights: Array, knots: Array, at: Array) -> Array:
    """The knot is a count, and what lies beyond is brought back."""
    i = graphs.minimum(graphs.maximum(graphs.sum(knots <= at), 1), knots.shape[0] - 1)
    part = graphs.minimum(graphs.maximum((at - knots[i - 1]) / (knots[i] - knots[i - 1]), 0.0), 1.0)
    return heights[i - 1] * (1 - part) + heights[i] * part


def deviation(x: Array) -> Array:
    """The median distance from the median, of an odd or an even number: f[N] -> f[]."""

    def median(values: list[Array]) -> Array:
        ranked = sorted(values)
        half = len(ranked) // 2
        if len(ranked) % 2:
            return ranked[half]
        return (ranked[half - 1] + ranked[half]) / 2

    middle = median(list(x))
    return median([abs(value - middle) for value in x])


def deviation_graph(x: Array) -> Array:
    """Arrays are sorted by an op."""

    def median(values: Array) -> Array:
        ranked = graphs.sort(values)
        half = ranked.shape[0] // 2
        if ranked.shape[0] % 2:
            return ranked[half]
        return (ranked[half - 1] + ranked[half]) / 2

    return median(abs(x - median(x)))


def rising_fit(x: Array) -> Array:
    """The nearest sequence that never falls: blocks that would are joined (pool adjacent violators), f[N] -> f[N]."""
    blocks: list[tuple[Array, int]] = []
    for value in x:
        total, count = value, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / count:
            before, size = blocks.pop()
            total, count = total + before, count + size
        blocks.append((total, count))
    return graphs.stack([total / count for total, count in blocks for _ in range(count)])


def rising_fit_graph(x: Array) -> Array:
    """The largest of the smallest means around each place, of all blocks there could be."""
    n = x.shape[0]
    sums = graphs.concat([np.zeros(1), graphs.cumulative_sum(x)])

    def smallest(first: int, place: int) -> Array:
        return graphs.min(graphs.stack([(sums[end] - sums[first]) / (end - first) for end in range(place + 1, n + 1)]))

    rows = [[smallest(first, place) for first in range(place + 1)] for place in range(n)]
    return graphs.stack([graphs.max(graphs.stack(row)) for row in rows])


def trust_region(x: Array, radius: Array) -> Array:
    """Descent on x^4 - 2 x^2 by steps within a radius, which follows how well they went: f[], f[] -> f[]."""
    for _ in range(3):
        step = 4 * x - 4 * x**3
        if abs(step) > radius:
            step = radius if step > 0 else -radius
        after = x + step
        gain = x**4 - 2 * x**2 - (after**4 - 2 * after**2)
        if gain > 0:
            x = after
            if gain > 0.5:
                radius = radius * 2
        else:
            radius = radius / 4
    return x + radius


def trust_region_graph(x: Array, radius: Array) -> Array:
    """Each branch selects."""
    for _ in range(3):
        step = graphs.minimum(graphs.maximum(4 * x - 4 * x**3, -radius), radius)
        after = x + step
        gain = x**4 - 2 * x**2 - (after**4 - 2 * after**2)
        x = graphs.where(gain > 0, after, x)
        radius = graphs.where(gain > 0, graphs.where(gain > 0.5, radius * 2, radius), radius / 4)
    return x + radius


_KNOTS = floats(0, 1, 3, 4)

PROGRAMS = (
    Program(log_gamma, log_gamma_graph, [(scalar(x),) for x in (0.5, 4.2, 11)]),
    Program(
        interpolated, interpolated_graph, [(floats(1, 3, 2, 5), _KNOTS, scalar(at)) for at in (-1, 0.3, 2.2, 3.5, 7)]
    ),
    Program(deviation, deviation_graph, [(floats(*x),) for x in ((3, 1, 2, 9.5), (1, 7, 2.5), (4, -2, 8, 1, 3.5))]),
    Program(rising_fit, rising_fit_graph, [(floats(*x),) for x in ((1, 2, 3, 4), (4, 2.5, 2, 1), (1, 3, 2, 5))]),
    Program(
        trust_region,
        trust_region_graph,
        [(scalar(x), scalar(radius)) for x, radius in ((1.5, 0.4), (0.9, 2), (-0.3, 0.3))],
    ),
)

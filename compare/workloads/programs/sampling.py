"""Sampling, with the draws passed in: proposals until one is accepted, walks through a table, chains."""

from __future__ import annotations

import numpy as np

import graphs
from compare.workloads.programs.program import Array, Program, floats, normal, scalar


def first_accepted(scale: Array, proposals: Array, heights: Array) -> Array:
    """Rejection: the first proposal under the density, else the last, f[], f[N], f[N] -> f[]."""
    for proposal, height in zip(proposals, heights, strict=True):
        if height < graphs.exp(-proposal * proposal / scale):
            break
    return proposal * scale


def first_accepted_graph(scale: Array, proposals: Array, heights: Array) -> Array:
    """All are tried at once, and the place of the first is that of the largest of the bools."""
    accepted = heights < graphs.exp(-proposals * proposals / scale)
    place = graphs.where(graphs.any(accepted), graphs.argmax(accepted), proposals.shape[0] - 1)
    return proposals[place] * scale


def metropolis(start: Array, moves: Array, draws: Array) -> Array:
    """A chain that stays where a move is rejected: the mean of its squares, f[], f[N], f[N] -> f[]."""
    x, total = start, start * 0
    for move, draw in zip(moves, draws, strict=True):
        after = x + move
        if draw < graphs.exp((x * x - after * after) / 2):
            x = after
        total = total + x * x
    return total / moves.shape[0]


def metropolis_graph(start: Array, moves: Array, draws: Array) -> Array:
    """A scan, in which a move is selected."""

    def step(x: Array, proposal: Array) -> Array:
        after = x + proposal[0]
        x = graphs.where(proposal[1] < graphs.exp((x * x - after * after) / 2), after, x)
        return x, x * x

    return graphs.mean(graphs.scan(step, start, graphs.stack([moves, draws], axis=1))[1])


def drawn(weights: Array, draws: Array) -> Array:
    """Draws by weight, each a walk through the weights: the log probability of all, f[N], f[M] -> f[]."""
    total, log_p = graphs.sum(weights), weights[0] * 0
    for draw in draws:
        left = draw * total
        for weight in weights:
            left = left - weight
            if left < 0:
                break
        log_p = log_p + graphs.log(weight / total)
    return log_p


def drawn_graph(weights: Array, draws: Array) -> Array:
    """The walk is a sum, and where it ends a count."""
    total, sums = graphs.sum(weights), graphs.cumulative_sum(weights)
    places = graphs.sum(sums <= graphs.expand_dims(draws * total, axis=1), axis=1)
    return graphs.sum(graphs.log(graphs.take(weights, places) / total))


def thinned(gaps: Array, marks: Array, end: Array) -> Array:
    """Arrivals up to an end, some of them dropped: the sum of the times of the others, f[N], f[N], f[] -> f[]."""
    time, total = gaps[0] * 0, gaps[0] * 0
    for gap, mark in zip(gaps, marks, strict=True):
        time = time + gap
        if time > end:
            break
        if mark < 0.5:
            continue
        total = total + time * mark
    return total


def thinned_graph(gaps: Array, marks: Array, end: Array) -> Array:
    """Times at once, and a mask."""
    times = graphs.cumulative_sum(gaps)
    return graphs.sum(graphs.where((times <= end) & (marks >= 0.5), times * marks, 0.0))


_MOVES, _DRAWS = normal(11, 3, 6), np.random.default_rng(12).random((3, 6))
_GAPS, _MARKS = floats(0.5, 1.2, 0.3, 2), floats(0.9, 0.2, 0.7, 0.8)

PROGRAMS = (
    Program(
        first_accepted,
        first_accepted_graph,
        [
            (scalar(scale), floats(2, 0.5, 1, -3), floats(*heights))
            for scale, heights in ((1, (0.5, 0.6, 0.3, 0.1)), (3, (0.1, 0.9, 0.9, 0.9)), (0.5, (0.9, 0.9, 0.9, 0.9)))
        ],
    ),
    Program(
        metropolis, metropolis_graph, [(scalar(x), *rows) for x, *rows in zip((0, 1, 3), _MOVES, _DRAWS, strict=True)]
    ),
    Program(drawn, drawn_graph, [(floats(1, 3, 2), row[:3]) for row in _DRAWS]),
    Program(thinned, thinned_graph, [(_GAPS, _MARKS, scalar(end)) for end in (0.4, 1.9, 9)]),
)

"""Networks whose structure depends on the example, a length or chance, memories that a network uses, and sampling.

The memories are a stack of strengths, slots by use, the nearest key, and a ring. The draws of the sampling are passed
in: proposals until one is accepted, walks through a table, chains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import numpy as np

import graphs
from compare.workloads.programs import Array, Program, floats, normal, scalar

Params = Any

SEED = 5
_chance = Random(SEED)


def _reset() -> None:
    _chance.seed(SEED)


def _draws(calls: int, layers: int) -> list[Array]:
    chance = Random(SEED)
    return [np.array([chance.random() < 0.5 for _ in range(layers)]) for _ in range(calls)]


def early_exit(layers: Sequence[Array], x: Array) -> Array:
    """Layers until one of the outputs is sure: f[N] -> f[N]."""
    for weight in layers:
        x = graphs.tanh(x @ weight)
        if graphs.max(graphs.softmax(3 * x)) > 0.7:
            break
    return graphs.softmax(3 * x)


def early_exit_graph(layers: Sequence[Array], x: Array) -> Array:
    """Each layer is a branch that is taken until one was sure."""
    sure = False
    for weight in layers:
        x = graphs.cond(sure, lambda x: x, lambda x, weight=weight: graphs.tanh(x @ weight), x)
        sure = graphs.max(graphs.softmax(3 * x)) > 0.7
    return graphs.softmax(3 * x)


def mixture_of_experts(params: Params, rows: Array) -> Array:
    """Each row to the expert that its gate prefers: f[N, M] -> f[N, M]."""
    outputs = []
    for row in rows:
        choice = int(graphs.argmax(row @ params["gate"]))
        outputs.append(graphs.tanh(row @ params["experts"][choice]))
    return graphs.stack(outputs)


def mixture_of_experts_graph(params: Params, rows: Array) -> Array:
    """The experts are one array, and the choice an index into it."""
    experts = graphs.stack(params["experts"])
    outputs = []
    for row in rows:
        choice = graphs.argmax(row @ params["gate"])
        outputs.append(graphs.tanh(row @ experts[choice]))
    return graphs.stack(outputs)


def stochastic_depth(layers: Sequence[Array], x: Array) -> Array:
    """Each layer left out by chance, drawn when it runs: f[N] -> f[N]."""
    for weight in layers:
        if _chance.random() < 0.5:
            x = x + graphs.tanh(x @ weight)
    return x


def stochastic_depth_graph(layers: Sequence[Array], x: Array, keep: Array) -> Array:
    """What was drawn is passed in."""
    for i, weight in enumerate(layers):
        x = graphs.cond(keep[i], lambda x, weight=weight: x + graphs.tanh(x @ weight), lambda x: x, x)
    return x


def recurrent(params: Params, xs: Array) -> Array:
    """A recurrent network over a sequence of any length: f[T, N] -> f[N]."""
    hidden = params["start"]
    for x in xs:
        hidden = graphs.tanh(x + hidden @ params["weight"])
    return hidden


def recurrent_until(params: Params, xs: Array, length: Array) -> Array:
    """A recurrent network over the first steps of a padded sequence: f[T, N], i[] -> f[N]."""
    hidden = params["start"]
    for t in range(int(length)):
        hidden = graphs.tanh(xs[t] + hidden @ params["weight"])
    return hidden


def recurrent_until_graph(params: Params, xs: Array, length: Array) -> Array:
    """Every step is computed, and those past the end are not taken."""
    hidden = params["start"]
    for t in range(xs.shape[0]):
        hidden = graphs.where(t < length, graphs.tanh(xs[t] + hidden @ params["weight"]), hidden)
    return hidden


def growing_memory(weight: Array, xs: Array) -> Array:
    """Attention over all states so far, a list that grows: f[T, N] -> f[N]."""
    memory: list[Array] = []
    state = xs[0]
    for x in xs:
        memory.append(graphs.tanh(x + state @ weight))
        states = graphs.stack(memory)
        state = graphs.softmax(states @ memory[-1]) @ states
    return state


def pondering(params: Params, x: Array) -> Array:
    """Adaptive computation time: steps until the chances of halting add up to one, f[N] -> f[N]."""
    spent, y, steps = 0.0, x * 0, 0
    while spent < 1 and steps < 6:
        x = graphs.tanh(x @ params["weight"])
        p = graphs.sigmoid(graphs.sum(x * params["halt"]))
        if spent + p > 1:
            p = 1 - spent
        y = y + p * x
        spent = spent + p
        steps += 1
    return y


def pondering_graph(params: Params, x: Array) -> Array:
    """Four values are state, and the rest a minimum."""

    def step(state: Array) -> Array:
        x, y, spent, steps = state
        x = graphs.tanh(x @ params["weight"])
        p = graphs.minimum(graphs.sigmoid(graphs.sum(x * params["halt"])), 1 - spent)
        return x, y + p * x, spent + p, steps + 1

    return graphs.while_loop(lambda state: (state[2] < 1) & (state[3] < 6), step, (x, x * 0, 0.0, 0))[1]


_LAYERS = [normal(seed, 3, 3) for seed in (1, 2, 3)]
_EXPERTS = {"gate": normal(4, 3, 3), "experts": _LAYERS}
_CELL = {"start": floats(0.1, -0.1, 0.2), "weight": _LAYERS[0]}
_HALTING = {"weight": _LAYERS[1], "halt": floats(0.5, 1, -0.5)}
_XS = normal(7, 5, 3)
_DEEP = [(_LAYERS, x) for x in _XS]

NETWORKS = (
    Program(early_exit, early_exit_graph, _DEEP),
    Program(mixture_of_experts, mixture_of_experts_graph, [(_EXPERTS, _XS[i : i + 2]) for i in range(4)]),
    Program(
        stochastic_depth,
        stochastic_depth_graph,
        _DEEP,
        graph_inputs=[(*args, keep) for args, keep in zip(_DEEP, _draws(5, 3), strict=True)],
        reset=_reset,
    ),
    Program(recurrent, recurrent, [(_CELL, _XS[:length]) for length in (1, 3, 5)]),
    Program(recurrent_until, recurrent_until_graph, [(_CELL, _XS, np.array(length)) for length in (2, 5, 0)]),
    Program(growing_memory, growing_memory, [(_LAYERS[0], _XS[:length]) for length in (1, 3, 5)]),
    Program(pondering, pondering_graph, [(_HALTING, x) for x in _XS]),
)


# Memories -------------------------------------------------------------------------------------------------------------


SLOTS = 3


def neural_stack(values: Array, pushes: Array, pops: Array) -> Array:
    """A stack whose entries have strengths, so that one may pop a part of them: f[T, N], f[T], f[T] -> f[N]."""
    strengths: list[Array] = []
    for push, left in zip(pushes, pops, strict=True):
        for i in reversed(range(len(strengths))):
            if left <= 0:
                break
            taken = min(strengths[i], left)
            strengths[i] = strengths[i] - taken
            left = left - taken
        strengths.append(push)
    read, left = values[0] * 0, 1.0
    for i in reversed(range(len(strengths))):
        used = min(strengths[i], left)
        read = read + used * values[i]
        left = left - used
        if left <= 0:
            break
    return read


def neural_stack_graph(values: Array, pushes: Array, pops: Array) -> Array:
    """What is left is zero after a break, and so is what is taken then."""
    strengths: list[Array] = []
    for push, left in zip(pushes, pops, strict=True):
        for i in reversed(range(len(strengths))):
            taken = graphs.minimum(strengths[i], left)
            strengths[i] = strengths[i] - taken
            left = left - taken
        strengths.append(push)
    read, left = values[0] * 0, 1.0
    for i in reversed(range(len(strengths))):
        used = graphs.minimum(strengths[i], left)
        read = read + used * values[i]
        left = left - used
    return read


def least_used(writes: Array, use: Array) -> Array:
    """Each value goes into the slot that was used least, and uses it: f[T, N], f[3] -> f[3, N]."""
    slots, used = [writes[0] * 0] * SLOTS, list(use)
    for write in writes:
        place = int(graphs.argmin(graphs.stack(used)))
        slots[place] = graphs.tanh(slots[place] + write)
        used[place] = used[place] + 1
    return graphs.stack(slots)


def least_used_graph(writes: Array, use: Array) -> Array:
    """The slots are one array, and the place a mask."""
    places, slots, used = np.arange(SLOTS), graphs.stack([writes[0] * 0] * SLOTS), use
    for write in writes:
        chosen = places == graphs.argmin(used)
        slots = graphs.where(graphs.expand_dims(chosen, axis=1), graphs.tanh(slots + write), slots)
        used = graphs.where(chosen, used + 1, used)
    return slots


def nearest(params: Mapping[str, Array], x: Array, reach: Array) -> Array:
    """The entry whose key is nearest, or a new one where none is within reach: f[K, N] each, f[N], f[] -> f[N]."""
    best, place = graphs.sum((params["keys"][0] - x) ** 2), 0
    for i in range(1, params["keys"].shape[0]):
        distance = graphs.sum((params["keys"][i] - x) ** 2)
        if distance < best:
            best, place = distance, i
    if best > reach:
        return graphs.tanh(x * graphs.sum(params["keys"]))
    return params["values"][place] * graphs.exp(-best)


def nearest_graph(params: Mapping[str, Array], x: Array, reach: Array) -> Array:
    """All distances, and the place of the smallest."""
    distances = graphs.sum((params["keys"] - x) ** 2, axis=1)
    place = graphs.argmin(distances)
    return graphs.cond(
        distances[place] > reach,
        lambda: graphs.tanh(x * graphs.sum(params["keys"])),
        lambda: params["values"][place] * graphs.exp(-distances[place]),
    )


def ring(x: Array, width: int) -> Array:
    """A ring of the last values, each divided by what it overwrites: f[N] -> f[]."""
    kept: list[Array | None] = [None] * width
    total = x[0] * 0
    for i, value in enumerate(x):
        before = kept[i % width]
        if before is not None:
            total = total + value / before
        kept[i % width] = value
    return total


_VALUES = normal(41, 4, 2)
_STORED = {"keys": normal(42, 3, 2), "values": normal(43, 3, 2)}

MEMORIES = (
    Program(
        neural_stack,
        neural_stack_graph,
        [
            (_VALUES, floats(*pushes), floats(*pops))
            for pushes, pops in (
                ((0.8, 0.5, 0.9, 0.3), (0, 0.1, 0.7, 0.2)),
                ((0.2, 0.3, 0.1, 0.15), (0, 0, 0.9, 0.05)),
                ((0.6, 0.7, 0.8, 1.4), (0, 0.95, 0, 1.3)),
            )
        ],
    ),
    Program(
        least_used,
        least_used_graph,
        [(_VALUES, floats(*use)) for use in ((0, 0.5, 0.7), (3, 2, 0.1), (1.5, 1.1, 0.3))],
    ),
    Program(
        nearest,
        nearest_graph,
        [
            (_STORED, x, scalar(reach))
            for x, reach in ((_STORED["keys"][2] + 0.1, 1), (floats(9, 9), 1), (floats(0, 0), 9))
        ],
    ),
    Program(ring, ring, [(floats(1, 2, 5, 4), width) for width in (1, 2, 5)]),
)


# Sampling -------------------------------------------------------------------------------------------------------------


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

SAMPLING = (
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


PROGRAMS = {"networks": NETWORKS, "memories": MEMORIES, "sampling": SAMPLING}

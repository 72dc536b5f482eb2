"""Networks whose structure depends on the example, on a length, or on chance."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np

import graphs
from compare.workloads.programs.program import Array, Program, floats, normal

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

PROGRAMS = (
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

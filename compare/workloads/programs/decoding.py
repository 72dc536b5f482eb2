"""Decoding: output made one token at a time, until the output itself says stop."""

from __future__ import annotations

import numpy as np

import graphs
from compare.workloads.programs.program import Array, Program, floats, normal
from compare.workloads.programs.shapes import VALUE_SHAPED

END = 0
MOST = 6
WIDTH = 2


def greedy(scores: Array, first: Array) -> Array:
    """The likeliest next token until the end: the log probability of all, f[V, V], i[] -> f[]."""
    token, total, length = int(first), 0.0, 0
    while token != END and length < MOST:
        log_p = graphs.log_softmax(scores[token])
        token = int(graphs.argmax(log_p))
        total = total + log_p[token]
        length += 1
    return total / length


def greedy_graph(scores: Array, first: Array) -> Array:
    """Three values are state, and the token an index."""

    def step(state: Array) -> Array:
        token, total, length = state
        log_p = graphs.log_softmax(scores[token])
        token = graphs.argmax(log_p)
        return token, total + log_p[token], length + 1

    _, total, length = graphs.while_loop(lambda state: (state[0] != END) & (state[2] < MOST), step, (first, 0.0, 0))
    return total / length


def greedy_tokens(scores: Array, first: Array) -> Array:
    """As greedy, and the log probability of each token: f[V, V], i[] -> f[tokens]."""
    token = int(first)
    chosen: list[Array] = []
    while token != END and len(chosen) < MOST:
        log_p = graphs.log_softmax(scores[token])
        token = int(graphs.argmax(log_p))
        chosen.append(log_p[token])
    return graphs.stack(chosen)


def beam(scores: Array, first: Array) -> Array:
    """The best of some hypotheses, each ended or not: its log probability, f[V, V], i[] -> f[]."""
    beams = [(0.0, int(first))]
    for _ in range(3):
        candidates = []
        for total, token in beams:
            if token == END:
                candidates.append((total, token))
                continue
            for after, log_p in enumerate(graphs.log_softmax(scores[token])):
                candidates.append((total + log_p, after))
        beams = sorted(candidates, key=lambda candidate: candidate[0], reverse=True)[:WIDTH]
    return beams[0][0]


def beam_graph(scores: Array, first: Array) -> Array:
    """All continuations at once, impossible ones at minus infinity; the best are found by sorting."""
    vocabulary = scores.shape[0]
    stay = np.where(np.arange(vocabulary) == END, 0.0, -np.inf)
    totals, tokens = np.array([0.0, -np.inf]), graphs.stack([first, first])
    for _ in range(3):
        ended = graphs.expand_dims(tokens == END, axis=1)
        log_p = graphs.where(ended, stay, graphs.log_softmax(graphs.take(scores, tokens), axis=1))
        candidates = graphs.reshape(graphs.expand_dims(totals, axis=1) + log_p, (-1,))
        best = graphs.argsort(candidates, descending=True)[:WIDTH]
        totals, tokens = graphs.take(candidates, best), best % vocabulary
    return totals[0]


def collapse(log_p: Array) -> Array:
    """The likeliest label at each time, repeats and blanks left out: their log probability, f[T, V] -> f[]."""
    total, last = log_p[0, 0] * 0, None
    for row in log_p:
        label = int(graphs.argmax(row))
        if label != last and label != END:
            total = total + row[label]
        last = label
    return total


def collapse_graph(log_p: Array) -> Array:
    """Labels at once, each against the one before."""
    labels = graphs.argmax(log_p, axis=1)
    new = graphs.concat([np.array([True]), labels[1:] != labels[:-1]]) & (labels != END)
    return graphs.sum(graphs.where(new, graphs.max(log_p, axis=1), 0.0))


_SCORES = [2 * normal(seed, 4, 4) for seed in (1, 2, 3, 4)]
_STARTS = [(scores, np.array(first)) for scores, first in zip(_SCORES, (1, 2, 3, 1), strict=True)]
_TIMES = [floats(*normal(seed, 6, 3)) for seed in (1, 2, 3)]

PROGRAMS = (
    Program(greedy, greedy_graph, _STARTS),
    Program(greedy_tokens, None, _STARTS, VALUE_SHAPED),
    Program(beam, beam_graph, _STARTS),
    Program(collapse, collapse_graph, [(log_p,) for log_p in _TIMES]),
)

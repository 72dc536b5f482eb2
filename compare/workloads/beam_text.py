"""Beam decoding: the likeliest continuations of a line grow side by side, until the best of them has ended.

What each of them has read is attended to, as in `decode_text`, and with each character the ones that go on take over
the state of those they came from. How many characters there will be depends on the values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import graphs
from compare.workloads.base import Array, Case, Params, Workload
from compare.workloads.data import VOCABULARY_SIZE
from compare.workloads.decode_text import ENDS, case_of, log_likelihoods, read

BEAMS = 4
"""Continuations that are followed at once."""
MOST = 12
"""Characters written at most."""
UNLIKELY = -1e6
"""The log-likelihood of a beam that is not there yet: lower than that of any that is."""


def loss(params: Params, prompt: Array) -> Array:
    """The mean surprise of the likeliest continuation of a prompt, i[P] -> a scalar, with a state that grows."""
    keys, values = (graphs.expand_dims(part, 0) for part in read(params, prompt))
    tokens, scores, count = prompt[-1:], graphs.zeros((1,), dtype=keys.dtype), 0
    while count < MOST and not (count and int(tokens[0]) % ENDS == 0):
        scores, parents, tokens = best(scores, log_likelihoods(params, tokens, keys, values))
        key, value = read(params, tokens)
        keys, values = extend_beams(keys, parents, key), extend_beams(values, parents, value)
        count += 1
    return -scores[0] / count


def extend_beams(states: Array, parents: Array, new: Array) -> Array:
    """What the chosen beams have read, and their new character: f[K, N, W], i[B], f[B, W] -> f[B, N + 1, W]."""
    return graphs.concat([graphs.take(states, parents, axis=0), graphs.expand_dims(new, 1)], axis=1)


def static_loss(params: Params, prompt: Array) -> Array:
    """The same with all beams from the start and room for all that may be written, in a loop inside the graph."""
    room = np.arange(len(prompt) + MOST)
    keys, values = (spacious(part) for part in read(params, prompt))

    def more(state: Any) -> Array:
        count, tokens, *_ = state
        return (count < MOST) & ((count == 0) | (tokens[0] % ENDS != 0))

    def step(state: Any) -> Any:
        count, tokens, scores, keys, values = state
        each = log_likelihoods(params, tokens, keys, values, room < len(prompt) + count)
        scores, parents, tokens = best(scores, each)
        here = graphs.expand_dims(room == len(prompt) + count, -1)
        read_now = (graphs.expand_dims(part, 1) for part in read(params, tokens))
        key, value = (
            graphs.where(here, new, graphs.take(states, parents, axis=0))
            for new, states in zip(read_now, (keys, values), strict=True)
        )
        return count + 1, tokens, scores, key, value

    first = np.where(np.arange(BEAMS) == 0, 0.0, UNLIKELY)
    start = (np.array(0), graphs.repeat(prompt[-1:], BEAMS), graphs.astype(first, keys.dtype), keys, values)
    count, _, scores, *_ = graphs.while_loop(more, step, start)
    return -scores[0] / graphs.astype(count, scores.dtype)


def spacious(part: Array) -> Array:
    """What was read, for each beam, with zeros where more will be written: f[P, W] -> f[BEAMS, P + MOST, W]."""
    length, width = part.shape
    longer = graphs.concat([part, graphs.zeros((MOST, width), dtype=part.dtype)])
    return graphs.broadcast_to(longer, (BEAMS, length + MOST, width))


def best(scores: Array, each: Array) -> tuple[Array, Array, Array]:
    """The likeliest continuations: f[K], f[K, V] -> their log-likelihoods f[B], where they come from i[B], and i[B].

    The likeliest comes first, and of equals the one that a greedy choice would take.
    """
    total = graphs.reshape(graphs.expand_dims(scores, -1) + each, (-1,))
    chosen = graphs.argsort(total, descending=True)[:BEAMS]
    return graphs.take(total, chosen), chosen // VOCABULARY_SIZE, chosen % VOCABULARY_SIZE


def make(lines: int, prompt: int, width: int, seed: int = 0) -> Case:
    """Prompts of `prompt` characters from `lines` lines."""
    return case_of(loss, static_loss, lines, prompt, width, seed)


WORKLOAD = Workload(
    name="beam_text",
    title="Beam decoding",
    shows="Several states that grow, split and end by value: a tape has those there are, a graph has room for all.",
    expect="open",
    kind="loops until done",
    sizes={
        "small": {"lines": 6, "prompt": 6, "width": 16},
        "medium": {"lines": 10, "prompt": 16, "width": 64},
        "large": {"lines": 16, "prompt": 24, "width": 256},
    },
    make=make,
)

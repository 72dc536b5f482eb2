"""Greedy decoding: a line is continued by the likeliest character, again and again, until one ends it.

What has been read and written so far is attended to, so the state grows with every character, and how many there will
be depends on the values. A graph that is built before takes room for the longest and masks what is not yet written.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

import graphs
from compare.workloads.base import Array, Case, Params, Workload
from compare.workloads.data import VOCABULARY_SIZE, encode, source_lines
from compare.workloads.layers import glorot

Loss = Callable[[Params, Array], Array]

MOST = 24
"""Characters written at most."""
ENDS = 8
"""A character that this divides ends the line."""
_SPACE = int(encode(" ")[0])


def loss(params: Params, prompt: Array) -> Array:
    """The mean surprise of the characters written after a prompt, i[P] -> a scalar, with a state that grows."""
    keys, values = read(params, prompt)
    token = prompt[-1]
    surprises: list[Array] = []
    while len(surprises) < MOST and not (surprises and int(token) % ENDS == 0):
        token, surprise = next_character(params, token, keys, values)
        surprises.append(surprise)
        key, value = read(params, graphs.expand_dims(token, 0))
        keys, values = graphs.concat([keys, key]), graphs.concat([values, value])
    return graphs.mean(graphs.stack(surprises))


def static_loss(params: Params, prompt: Array) -> Array:
    """The same with room for all that may be written, in a loop inside the graph."""
    room = np.arange(len(prompt) + MOST)
    empty = np.zeros((MOST, params["key"].shape[1]), np.float32)
    keys, values = (graphs.concat([part, graphs.astype(empty, part.dtype)]) for part in read(params, prompt))

    def more(state: Any) -> Array:
        count, token, *_ = state
        return (count < MOST) & ((count == 0) | (token % ENDS != 0))

    def step(state: Any) -> Any:
        count, token, total, keys, values = state
        token, surprise = next_character(params, token, keys, values, room < len(prompt) + count)
        here = graphs.expand_dims(room == len(prompt) + count, -1)
        key, value = read(params, graphs.expand_dims(token, 0))
        return count + 1, token, total + surprise, graphs.where(here, key, keys), graphs.where(here, value, values)

    start = (np.array(0), prompt[-1], graphs.astype(np.array(0.0), keys.dtype), keys, values)
    count, _, total, *_ = graphs.while_loop(more, step, start)
    return total / graphs.astype(count, total.dtype)


def read(params: Params, tokens: Array) -> tuple[Array, Array]:
    """The keys and values of characters: i[N] -> f[N, W], f[N, W]."""
    x = graphs.embedding(params["characters"], tokens)
    return x @ params["key"], x @ params["value"]


def next_character(params: Params, token: Array, keys: Array, values: Array, mask: Array = None) -> tuple[Array, Array]:
    """The likeliest character after one, and -log of its probability; `mask`, bool[N], says which keys are there."""
    scores = log_likelihoods(params, token, keys, values, mask)
    return graphs.argmax(scores), -graphs.max(scores)


def log_likelihoods(params: Params, tokens: Array, keys: Array, values: Array, mask: Array = None) -> Array:
    """log p of each character after some, by what was read before them: i[...], f[..., N, W] -> f[..., V]."""
    x = graphs.expand_dims(graphs.embedding(params["characters"], tokens), -2)
    allowed = None if mask is None else graphs.expand_dims(mask, 0)
    seen = graphs.attention(x @ params["query"], keys, values, allowed)
    return graphs.log_softmax(graphs.squeeze((x + seen) @ params["output"], -2))


def case_of(loss: Loss, static_loss: Loss, lines: int, prompt: int, width: int, seed: int) -> Case:
    """Prompts of `prompt` characters from `lines` lines; Glorot init, the embeddings normal."""
    rng = np.random.default_rng(seed)
    params = {name: glorot(rng, width, width) for name in ("query", "key", "value")}
    params |= {
        "characters": rng.standard_normal((VOCABULARY_SIZE, width), np.float32),
        "output": glorot(rng, width, VOCABULARY_SIZE),
    }
    examples = tuple((text,) for text in prompts(lines, prompt, seed))
    return Case(loss, params, examples, (prompt,) * len(examples), static_loss=static_loss)


def prompts(count: int, length: int, seed: int) -> list[Array]:
    """The first `length` characters, after the indentation, of `count` lines, int64[length] each.

    The prompts end in different characters as long as there are enough of them. Continuations of one character by an
    untrained model are much alike, and would all have one length on some machines.
    """
    by_end: dict[int, list[Array]] = {}
    for line in source_lines(16 * count, seed):
        text = line[np.argmax(line != _SPACE) :][:length]
        if len(text) == length:
            by_end.setdefault(int(text[-1]), []).append(text)
    in_turn = itertools.chain(*itertools.zip_longest(*by_end.values()))
    return list(itertools.islice((text for text in in_turn if text is not None), count))


def make(lines: int, prompt: int, width: int, seed: int = 0) -> Case:
    """Lines to go on with."""
    return case_of(loss, static_loss, lines, prompt, width, seed)


WORKLOAD = Workload(
    name="decode_text",
    title="Greedy decoding",
    shows="A state that grows until a value ends it: a tape has what is there, a graph has room for all and masks it.",
    expect="open",
    kind="loops until done",
    sizes={
        "small": {"lines": 8, "prompt": 8, "width": 16},
        "medium": {"lines": 12, "prompt": 16, "width": 64},
        "large": {"lines": 16, "prompt": 24, "width": 256},
    },
    make=make,
)

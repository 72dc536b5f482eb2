"""A character RNN over lines of source text: a step for each character, and every line has its own length.

A line is an example of its own (batch 1), so the lengths are those of real text, in random order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import graphs
from compare.workloads.base import Array, Case, Example, Params, Workload
from compare.workloads.data import VOCABULARY_SIZE, Ids, source_lines
from compare.workloads.layers import Layer, averaged_where, dense, dense_layers, glorot, surprise

Update = Callable[[Params, Any, Array], Any]
Loop = Callable[[Callable[..., Any], Any, Array], tuple[Any, Array]]


def step(params: Params, state: Array, x: Array) -> Array:
    """The state after one character: f[width], f[width] -> f[width]."""
    return graphs.tanh(x @ params["input"] + state @ params["recurrent"] + params["bias"])


def scan_step(step: Update, params: Params) -> Callable[[Any, Array], tuple[Any, Array]]:
    """A step as `graphs.scan` takes it: the new state, and what is read from it, of several arrays the first."""

    def body(state: Any, x: Array) -> tuple[Any, Array]:
        state = step(params, state, x)
        return state, state[0] if isinstance(state, tuple) else state

    return body


def unroll(step: Callable[..., Any], state: Any, xs: Array) -> tuple[Any, Array]:
    """What `graphs.scan` gives, by a loop in Python."""
    outputs = []
    for x in xs:
        state, output = step(state, x)
        outputs.append(output)
    return state, graphs.stack(outputs)


def surprises(step: Update, loop: Loop, params: Params, characters: Array, following: Array) -> Array:
    """-log p(following character | the characters so far): i[T], i[T] -> f[T]."""
    embedded = graphs.embedding(params["embedding"], characters)
    return log_losses(params, loop(scan_step(step, params), params["start"], embedded)[1], following)


def log_losses(params: Params, states: Array, following: Array) -> Array:
    """-log p(following character) from the state before it: f[T, width], i[T] -> f[T]."""
    return surprise(dense(params["output"], states), following)


def loss(params: Params, characters: Array, following: Array) -> Array:
    """The mean cross entropy of the next character."""
    return graphs.mean(surprises(step, unroll, params, characters, following))


def scanned_loss(params: Params, characters: Array, following: Array) -> Array:
    """The same loss with the loop over time as one op, which runs for any length."""
    return graphs.mean(surprises(step, graphs.scan, params, characters, following))


def masked_loss(params: Params, characters: Array, following: Array, mask: Array) -> Array:
    """The loss where `mask`, bool[T], holds: padding after a line changes neither loss nor gradients.

    An RNN looks only back, so what follows the last real character changes no state that counts.
    """
    return averaged_where(mask, surprises(step, unroll, params, characters, following))


def batched_loss(params: Params, characters: Array, following: Array, mask: Array) -> Array:
    """The mean loss of padded lines that go through each step together: i[B, T], i[B, T], bool[B, T] -> a scalar."""
    states = unroll(scan_step(step, params), params["start"], by_time(params, characters))[1]
    return average_losses(params, states, following, mask)


def batched_scanned_loss(params: Params, characters: Array, following: Array, mask: Array) -> Array:
    """The same loss with the loop over time as one op."""
    embedded = by_time(params, characters)
    start = graphs.broadcast_to(params["start"], embedded.shape[1:])
    return average_losses(params, graphs.scan(scan_step(step, params), start, embedded)[1], following, mask)


def by_time(params: Params, characters: Array) -> Array:
    """The embeddings, time first: i[B, T] -> f[T, B, width]."""
    return graphs.embedding(params["embedding"], graphs.permute_dims(characters, (1, 0)))


def average_losses(params: Params, states: Array, following: Array, mask: Array) -> Array:
    """The mean over lines of the mean over the characters of each: f[T, B, width], i[B, T], bool[B, T] -> a scalar."""
    each = graphs.permute_dims(log_losses(params, states, graphs.permute_dims(following, (1, 0))), (1, 0))
    return graphs.mean(averaged_where(mask, each))


def init(width: int, seed: int = 0) -> Params:
    """The parameters: embedding and state of `width` floats, learned start state; Glorot init."""
    rng = np.random.default_rng(seed)
    output: Layer = dense_layers(rng, (width, VOCABULARY_SIZE), glorot)[0]
    return {
        "embedding": rng.standard_normal((VOCABULARY_SIZE, width), np.float32),
        "input": glorot(rng, width, width),
        "recurrent": glorot(rng, width, width),
        "bias": np.zeros(width, np.float32),
        "start": np.zeros(width, np.float32),
        "output": output,
    }


def make(lines: int, max_length: int, width: int, seed: int = 0) -> Case:
    """`lines` lines of 2 to `max_length` characters; an example is one shorter than its line."""
    return case_of(loss, init(width, seed), lines, max_length, seed, masked=masked_loss, scanned=scanned_loss)


def case_of(loss: Any, params: Params, lines: int, max_length: int, seed: int, **more: Any) -> Case:
    """A case of a model that names the character that follows; `more` are other forms of its loss."""
    examples = tuple(map(shift_line, source_lines(lines, seed, max_length)))
    lengths = tuple(len(characters) for characters, _ in examples)
    return Case(loss, params, examples, lengths, dims=(None, ("T",), ("T",)), **more)


def shift_line(line: Ids) -> Example:
    """Each character of a line but the last, and the one that follows it: i[T + 1] -> i[T], i[T]."""
    return line[:-1], line[1:]


WORKLOAD = Workload(
    name="rnn_text",
    title="Character RNN over source lines",
    shows="Inputs of varying length: a fixed graph is compiled for each length, padded, or holds its loop.",
    expect="open",
    kind="sequences of varying length",
    sizes={
        "small": {"lines": 12, "max_length": 40, "width": 32},
        "medium": {"lines": 24, "max_length": 60, "width": 64},
        "large": {"lines": 20, "max_length": 80, "width": 128},
    },
    make=make,
    policies=("exact", "bucket", "pad", "symbolic"),
)

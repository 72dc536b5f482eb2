"""A character LSTM over lines of source text: the language model of `rnn_text` with gates and a second state.

The cell is that of Hochreiter and Schmidhuber (1997) with the forget gate of Gers, Schmidhuber and Cummins (2000).
"""

from __future__ import annotations

import numpy as np

import graphs
from compare.workloads.base import Array, Case, Params, Workload
from compare.workloads.data import VOCABULARY_SIZE
from compare.workloads.layers import averaged_where, dense_layers, glorot
from compare.workloads.rnn_text import case_of, surprises, unroll

State = tuple[Array, Array]

GATES = 4
"""What goes in, what stays, what comes out, and what is new, one after the other in each weight."""


def step(params: Params, state: State, x: Array) -> State:
    """The hidden and the cell state after one character: f[W], f[W] and x f[W] -> f[W], f[W]."""
    hidden, cell = state
    gates = x @ params["input"] + hidden @ params["recurrent"] + params["bias"]
    i, f, o, u = graphs.unstack(graphs.reshape(gates, (GATES, -1)))
    cell = graphs.sigmoid(f) * cell + graphs.sigmoid(i) * graphs.tanh(u)
    return graphs.sigmoid(o) * graphs.tanh(cell), cell


def loss(params: Params, characters: Array, following: Array) -> Array:
    """The mean cross entropy of the next character."""
    return graphs.mean(surprises(step, unroll, params, characters, following))


def scanned_loss(params: Params, characters: Array, following: Array) -> Array:
    """The same loss with the loop over time as one op, which runs for any length."""
    return graphs.mean(surprises(step, graphs.scan, params, characters, following))


def masked_loss(params: Params, characters: Array, following: Array, mask: Array) -> Array:
    """The loss where `mask`, bool[T], holds: padding after a line changes neither loss nor gradients."""
    return averaged_where(mask, surprises(step, unroll, params, characters, following))


def init(width: int, seed: int = 0) -> Params:
    """The parameters: embedding and states of `width` floats, learned start states; Glorot init.

    The forget gate starts open, with a bias of 1 (Jozefowicz, Zaremba and Sutskever, 2015).
    """
    rng = np.random.default_rng(seed)
    return {
        "embedding": rng.standard_normal((VOCABULARY_SIZE, width), np.float32),
        "input": np.concatenate([glorot(rng, width, width) for _ in range(GATES)], axis=1),
        "recurrent": np.concatenate([glorot(rng, width, width) for _ in range(GATES)], axis=1),
        "bias": np.repeat(np.array([0, 1, 0, 0], np.float32), width),
        "start": (np.zeros(width, np.float32), np.zeros(width, np.float32)),
        "output": dense_layers(rng, (width, VOCABULARY_SIZE), glorot)[0],
    }


def make(lines: int, max_length: int, width: int, seed: int = 0) -> Case:
    """As in `rnn_text`."""
    return case_of(loss, init(width, seed), lines, max_length, seed, masked=masked_loss, scanned=scanned_loss)


WORKLOAD = Workload(
    name="lstm_text",
    title="Character LSTM over source lines",
    shows="Varying length, with a cell of many small ops for each character: what a graph saves grows with the line.",
    expect="open",
    kind="sequences of varying length",
    sizes={
        "small": {"lines": 12, "max_length": 24, "width": 16},
        "medium": {"lines": 16, "max_length": 40, "width": 64},
        "large": {"lines": 10, "max_length": 50, "width": 128},
    },
    make=make,
    policies=("exact", "bucket", "pad", "symbolic"),
)

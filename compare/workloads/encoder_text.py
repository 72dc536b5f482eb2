"""A transformer encoder over lines of source text: it reads lines with some characters hidden, and names them all.

A line is an example of its own (batch 1), so the lengths are those of real text. Every function takes axes before
those named, so that a padded batch runs through the same code (Vaswani et al., 2017; Devlin et al., 2019).
"""

from __future__ import annotations

import numpy as np

import graphs
from compare.workloads.base import Array, Case, Example, Params, Workload
from compare.workloads.data import UNKNOWN, VOCABULARY_SIZE, Ids, source_lines
from compare.workloads.layers import averaged_where, dense, dense_layers, glorot, surprise

HEADS = 4
HIDDEN_SHARE = 0.15
"""Of the characters, as BERT hides them."""


def scores(params: Params, characters: Array, places: Array, mask: Array = None) -> Array:
    """Scores of all characters at each place: i[..., T], i[..., T] -> f[..., T, vocabulary], before the softmax."""
    x = graphs.embedding(params["characters"], characters) + graphs.embedding(params["places"], places)
    for block in params["blocks"]:
        x = x + attend(block, layer_norm(block["before"], x), mask)
        x = x + dense(block["down"], graphs.gelu(dense(block["up"], layer_norm(block["between"], x))))
    return dense(params["output"], x)


def attend(block: Params, x: Array, mask: Array) -> Array:
    """Attention of every place to every other: f[..., T, W] -> f[..., T, W]."""
    query, key, value = (heads(x @ block[name]) for name in ("query", "key", "value"))
    allowed = None if mask is None else graphs.expand_dims(graphs.expand_dims(mask, -2), -2)
    mixed = graphs.moveaxis(graphs.attention(query, key, value, allowed), -3, -2)
    return graphs.reshape(mixed, x.shape) @ block["joined"]


def heads(x: Array) -> Array:
    """f[..., T, W] -> f[..., heads, T, W / heads]."""
    return graphs.moveaxis(graphs.reshape(x, (*x.shape[:-1], HEADS, x.shape[-1] // HEADS)), -2, -3)


def layer_norm(layer: Params, x: Array) -> Array:
    """Layer normalisation over the last axis."""
    return graphs.layer_norm(x, layer["scale"], layer["shift"])


def loss(params: Params, characters: Array, places: Array, true: Array) -> Array:
    """The mean cross entropy of the characters of one line."""
    return graphs.mean(surprise(scores(params, characters, places), true))


def masked_loss(params: Params, characters: Array, places: Array, true: Array, mask: Array) -> Array:
    """The mean loss of lines of which `mask`, bool[..., T], holds the characters; nothing looks at the padding."""
    return graphs.mean(averaged_where(mask, surprise(scores(params, characters, places, mask), true)))


def init(width: int, longest: int, blocks: int = 1, seed: int = 0) -> Params:
    """The parameters for lines of up to `longest` characters; Glorot init."""
    rng = np.random.default_rng(seed)
    return {
        "characters": rng.standard_normal((VOCABULARY_SIZE, width), np.float32),
        "places": rng.standard_normal((longest, width), np.float32),
        "blocks": [init_block(rng, width) for _ in range(blocks)],
        "output": dense_layers(rng, (width, VOCABULARY_SIZE), glorot)[0],
    }


def init_block(rng: np.random.Generator, width: int) -> Params:
    """The parameters of one block."""
    up, down = dense_layers(rng, (width, 4 * width, width), glorot)
    norms = {
        name: {"scale": np.ones(width, np.float32), "shift": np.zeros(width, np.float32)}
        for name in ("before", "between")
    }
    return {name: glorot(rng, width, width) for name in ("query", "key", "value", "joined")} | norms | {
        "up": up,
        "down": down,
    }  # fmt: skip


def hide_characters(rng: np.random.Generator, line: Ids) -> Example:
    """A line with some characters hidden, the place of each, and the line as it was: i[T], i[T], i[T]."""
    unseen = rng.random(len(line)) < HIDDEN_SHARE
    return np.where(unseen, UNKNOWN, line), np.arange(len(line)), line


def make(lines: int, max_length: int, width: int, blocks: int, seed: int = 0) -> Case:
    """`lines` lines of 2 to `max_length` characters."""
    rng = np.random.default_rng(seed)
    examples = tuple(hide_characters(rng, line) for line in source_lines(lines, seed, max_length))
    lengths = tuple(len(characters) for characters, *_ in examples)
    return Case(loss, init(width, max_length, blocks, seed), examples, lengths, masked_loss, (None, *[("T",)] * 3))


WORKLOAD = Workload(
    name="encoder_text",
    title="Transformer encoder over source lines",
    shows="Inputs of varying length without a loop over them: one graph with a symbolic size can serve all.",
    expect="open",
    kind="sequences of varying length",
    sizes={
        "small": {"lines": 16, "max_length": 40, "width": 32, "blocks": 1},
        "medium": {"lines": 24, "max_length": 60, "width": 64, "blocks": 2},
        "large": {"lines": 14, "max_length": 100, "width": 128, "blocks": 4},
    },
    make=make,
    policies=("exact", "bucket", "pad", "symbolic"),
)

"""The training steps that the engines are measured on, each one function of parameters and inputs over `graphs`.

A row is a loss, its parameters and its inputs; a step is the loss and the gradient of every parameter. All float32.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

import graphs as g
from benchmarks import trained
from benchmarks.rows import Array, Params, Row, dense


def tiny_mlp(params: Params, x: Array, y: Array) -> Array:
    """The mean squared error of a tanh network: f[B, 16], f[B, 1] -> a scalar."""
    h = g.tanh(x @ params["w1"] + params["b1"])
    h = g.tanh(h @ params["w2"] + params["b2"])
    return g.mean((h @ params["w3"] + params["b3"] - y) ** 2)


def mlp(params: Params, x: Array, y: Array) -> Array:
    """The cross entropy of a ReLU network: f[B, 784], i[B] -> a scalar."""
    h = g.relu(x @ params["w1"] + params["b1"])
    h = g.relu(h @ params["w2"] + params["b2"])
    return g.cross_entropy(h @ params["w3"] + params["b3"], y)


def chain(params: Params) -> Array:
    """The mean square of x after four rounds of `h = tanh(h a + b) exp(-h^2) + h / 2`: three f[N] -> a scalar."""
    h = params["x"]
    for _ in range(4):
        h = g.tanh(h * params["a"] + params["b"]) * g.exp(-h * h) + h / 2
    return g.mean(h * h)


def rnn(params: Params, xs: Array) -> Array:
    """The mean square of a tanh RNN's last state: f[T, B, 32] -> a scalar."""
    h = params["h"]
    for t in range(xs.shape[0]):
        h = g.tanh(xs[t] @ params["w"] + h @ params["u"] + params["b"])
    return g.mean(h * h)


def transformer(params: Params, x: Array, y: Array, heads: int = 4) -> Array:
    """The mean squared error of a post-norm transformer block: f[B, T, D], f[B, T, D] -> a scalar."""
    batch, length, width = x.shape

    def split(h: Array) -> Array:
        return g.permute_dims(g.reshape(h, (batch, length, heads, width // heads)), (0, 2, 1, 3))

    q, k, v = (split(x @ params[name]) for name in ("wq", "wk", "wv"))
    scores = (q @ g.matrix_transpose(k)) / (width // heads) ** 0.5
    mixed = g.permute_dims(g.softmax(scores, axis=-1) @ v, (0, 2, 1, 3))
    attended = g.reshape(mixed, (batch, length, width)) @ params["wo"]
    h = _normed(x + attended, params["scale1"], params["shift1"])
    inner = g.relu(h @ params["w1"] + params["b1"]) @ params["w2"] + params["b2"]
    return g.mean((_normed(h + inner, params["scale2"], params["shift2"]) - y) ** 2)


def _normed(x: Array, scale: Array, shift: Array) -> Array:
    mean = g.mean(x, axis=-1, keepdims=True)
    centred = x - mean
    variance = g.mean(centred * centred, axis=-1, keepdims=True)
    return centred / g.sqrt(variance + 1e-5) * scale + shift


def _tiny_mlp_row() -> Row:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((8, 16), np.float32)
    return Row(tiny_mlp, dense(rng, 16, 32, 32, 1), (x, rng.standard_normal((8, 1), np.float32)))


def _mlp_row() -> Row:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((64, 784), np.float32)
    return Row(mlp, dense(rng, 784, 256, 256, 10), (x, rng.integers(0, 10, 64)))


def _chain_row(elements: int) -> Row:
    x, a, b = np.random.default_rng(0).standard_normal((3, elements), np.float32)
    return Row(chain, {"x": x, "a": 1 + a / 10, "b": b / 10}, ())


def _rnn_row() -> Row:
    rng = np.random.default_rng(0)
    params = {
        "w": rng.standard_normal((32, 64), np.float32) / np.float32(32**0.5),
        "u": rng.standard_normal((64, 64), np.float32) / np.float32(8),
        "b": np.zeros(64, np.float32),
        "h": np.zeros((16, 64), np.float32),
    }
    return Row(rnn, params, (rng.standard_normal((32, 16, 32), np.float32),))


def _transformer_row(length: int) -> Row:
    rng, width = np.random.default_rng(0), 64
    params = {
        name: rng.standard_normal((width, width), np.float32) / np.float32(8) for name in ("wq", "wk", "wv", "wo")
    }
    params |= dense(rng, width, 4 * width, width)
    for i in (1, 2):
        params |= {f"scale{i}": np.ones(width, np.float32), f"shift{i}": np.zeros(width, np.float32)}
    x, y = rng.standard_normal((2, 4, length, width), np.float32)
    return Row(transformer, params, (x, y))


PIECES: dict[str, Callable[[], Row]] = {
    "tiny MLP": _tiny_mlp_row,
    "MLP": _mlp_row,
    "chain 1e3": partial(_chain_row, 1_000),
    "chain 1e5": partial(_chain_row, 100_000),
    "chain 4e6": partial(_chain_row, 4_000_000),
    "RNN": _rnn_row,
    "transformer T=32": partial(_transformer_row, 32),
    "transformer T=128": partial(_transformer_row, 128),
}
ROWS = PIECES | trained.ROWS

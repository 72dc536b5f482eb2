"""Four training steps of what people train: a CNN with batch norm, an LSTM and a GPT block over words, and a VAE.

Rows as those of `benchmarks.programs`, which are small pieces: here convolution, pooling, normalisations, gathers and a
cross entropy over 1,000 classes are in one step. All float32.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import graphs as g
from benchmarks.rows import Array, Params, Row, dense


def cnn(params: Params, x: Array, y: Array) -> Array:
    """The cross entropy of two blocks of convolution, batch norm, ReLU, pooling: f[B, 3, 32, 32], i[B] -> a scalar."""
    h = x
    for i in (1, 2):
        h = g.conv2d(h, params[f"k{i}"], padding=1)
        h = g.relu(g.batch_norm(h, params[f"scale{i}"], params[f"shift{i}"]))
        h = g.max_pool2d(h, 2)
    return g.cross_entropy(g.reshape(h, (x.shape[0], -1)) @ params["w1"] + params["b1"], y)


def lstm(params: Params, words: Array, following: Array) -> Array:
    """The cross entropy of the next word after an LSTM over embeddings: i[T, B], i[T, B] -> a scalar."""
    embedded = g.take(params["embedding"], words)
    size = params["u"].shape[0]
    h = c = np.zeros((words.shape[1], size), np.float32)
    states = []
    for t in range(words.shape[0]):
        gates = embedded[t] @ params["w"] + h @ params["u"] + params["b"]
        i, f, new, o = g.split(gates, 4, axis=1)
        c = g.sigmoid(f) * c + g.sigmoid(i) * g.tanh(new)
        h = g.sigmoid(o) * g.tanh(c)
        states.append(h)
    logits = g.reshape(g.stack(states), (-1, size)) @ params["w1"] + params["b1"]
    return g.cross_entropy(logits, g.reshape(following, (-1,)))


def gpt(params: Params, words: Array, following: Array, heads: int = 4) -> Array:
    """The cross entropy of the next word after a pre-norm block with a causal mask: i[B, T], i[B, T] -> a scalar."""
    batch, length = words.shape
    x = g.take(params["embedding"], words) + params["positions"]
    width = x.shape[2]

    def split(h: Array) -> Array:
        return g.permute_dims(g.reshape(h, (batch, length, heads, width // heads)), (0, 2, 1, 3))

    h = _normed(x, params["scale1"], params["shift1"])
    q, k, v = (split(h @ params[name]) for name in ("wq", "wk", "wv"))
    mask = np.triu(np.full((length, length), -np.inf, np.float32), 1)
    mixed = g.softmax((q @ g.matrix_transpose(k)) / (width // heads) ** 0.5 + mask, axis=-1) @ v
    x = x + g.reshape(g.permute_dims(mixed, (0, 2, 1, 3)), (batch, length, width)) @ params["wo"]
    h = _normed(x, params["scale2"], params["shift2"])
    x = x + g.gelu(h @ params["w1"] + params["b1"]) @ params["w2"] + params["b2"]
    logits = g.reshape(_normed(x, params["scale3"], params["shift3"]), (-1, width)) @ params["head"]
    return g.cross_entropy(logits, g.reshape(following, (-1,)))


def vae(params: Params, x: Array, noise: Array) -> Array:
    """What a variational autoencoder of pixels is trained on: f[B, 784], f[B, 20] -> a scalar."""
    h = g.relu(x @ params["w1"] + params["b1"])
    mean, deviation = h @ params["wm"] + params["bm"], h @ params["wd"] + params["bd"]  # the second as a log variance
    h = g.relu((mean + g.exp(deviation / 2) * noise) @ params["w2"] + params["b2"])
    logits = h @ params["w3"] + params["b3"]
    pixels = g.sum(g.softplus(logits) - logits * x)
    return pixels - g.sum(1 + deviation - mean * mean - g.exp(deviation)) / 2


def _normed(x: Array, scale: Array, shift: Array) -> Array:
    centred = x - g.mean(x, axis=-1, keepdims=True)
    variance = g.mean(centred * centred, axis=-1, keepdims=True)
    return centred / g.sqrt(variance + 1e-5) * scale + shift


def _scales(count: int, width: int) -> Params:
    params: Params = {}
    for i in range(1, count + 1):
        params |= {f"scale{i}": np.ones(width, np.float32), f"shift{i}": np.zeros(width, np.float32)}
    return params


def _weights(rng: np.random.Generator, *sizes: int) -> Array:
    return rng.standard_normal(sizes, np.float32) / np.float32(sizes[0] ** 0.5)


def _cnn_row() -> Row:
    rng = np.random.default_rng(0)
    params: Params = {
        f"k{i}": rng.standard_normal((m, n, 3, 3), np.float32) / 9 for i, n, m in ((1, 3, 32), (2, 32, 32))
    }
    params |= _scales(2, 32) | dense(rng, 32 * 8 * 8, 10)
    return Row(cnn, params, (rng.standard_normal((16, 3, 32, 32), np.float32), rng.integers(0, 10, 16)))


def _lstm_row() -> Row:
    rng, words, width, size = np.random.default_rng(0), 1000, 64, 128
    params = {"embedding": rng.standard_normal((words, width), np.float32), "w": _weights(rng, width, 4 * size)}
    params |= {"u": _weights(rng, size, 4 * size), "b": np.zeros(4 * size, np.float32)} | dense(rng, size, words)
    return Row(lstm, params, (rng.integers(0, words, (24, 16)), rng.integers(0, words, (24, 16))))


def _gpt_row() -> Row:
    rng, words, width, length = np.random.default_rng(0), 1000, 64, 64
    params = {"embedding": rng.standard_normal((words, width), np.float32), "positions": _weights(rng, length, width)}
    params |= {name: _weights(rng, width, width) for name in ("wq", "wk", "wv", "wo")} | dense(
        rng, width, 4 * width, width
    )
    params |= _scales(3, width) | {"head": _weights(rng, width, words)}
    return Row(gpt, params, (rng.integers(0, words, (4, length)), rng.integers(0, words, (4, length))))


def _vae_row() -> Row:
    rng, pixels, inner, code = np.random.default_rng(0), 784, 256, 20
    params = {"w1": _weights(rng, pixels, inner), "w2": _weights(rng, code, inner), "w3": _weights(rng, inner, pixels)}
    params |= {"wm": _weights(rng, inner, code), "wd": _weights(rng, inner, code) / 8}
    params |= {b: np.zeros(n, np.float32) for b, n in (("b1", inner), ("b2", inner), ("b3", pixels), ("bm", code))}
    params["bd"] = np.zeros(code, np.float32)
    return Row(vae, params, (rng.random((64, pixels), np.float32), rng.standard_normal((64, code), np.float32)))


ROWS: dict[str, Callable[[], Row]] = {"CNN": _cnn_row, "LSTM": _lstm_row, "GPT block": _gpt_row, "VAE": _vae_row}

"""The training steps in plain NumPy: the same ops as the losses and no more thought, every result a new array.

What one writes first. `benchmarks.handwritten` is what one writes when it has to be fast.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.rows import Params

Array = Any
Result = tuple[Array, Params]


def tiny_mlp(params: Params, x: Array, y: Array) -> Result:
    w1, b1, w2, b2, w3, b3 = params.values()
    h1 = np.tanh(x @ w1 + b1)
    h2 = np.tanh(h1 @ w2 + b2)
    error = h2 @ w3 + b3 - y
    d3 = error * np.float32(2 / error.size)
    d2 = (d3 @ w3.T) * (1 - h2 * h2)
    d1 = (d2 @ w2.T) * (1 - h1 * h1)
    return np.mean(error**2), _dense_gradients((x, d1), (h1, d2), (h2, d3))


def mlp(params: Params, x: Array, y: Array) -> Result:
    w1, b1, w2, b2, w3, b3 = params.values()
    h1 = np.maximum(x @ w1 + b1, 0)
    h2 = np.maximum(h1 @ w2 + b2, 0)
    logits = h2 @ w3 + b3
    logits -= logits.max(axis=1, keepdims=True)
    exponentials, each = np.exp(logits), np.arange(len(y))
    total = exponentials.sum(axis=1, keepdims=True)
    loss = np.mean(np.log(total[:, 0]) - logits[each, y])
    d3 = exponentials / total
    d3[each, y] -= 1
    d3 /= len(y)
    d2 = (d3 @ w3.T) * (h2 > 0)
    d1 = (d2 @ w2.T) * (h1 > 0)
    return loss, _dense_gradients((x, d1), (h1, d2), (h2, d3))


def _dense_gradients(*layers: tuple[Array, Array]) -> Params:
    """The gradients of weights and biases from each layer's input and the cotangent of its output."""
    grads: Params = {}
    for i, (x, d) in enumerate(layers, 1):
        grads |= {f"w{i}": x.T @ d, f"b{i}": d.sum(axis=0)}
    return grads


def chain(params: Params) -> Result:
    h, a, b = params["x"], params["a"], params["b"]
    saved = []
    for _ in range(4):
        t, e = np.tanh(h * a + b), np.exp(-h * h)
        saved.append((h, t, e))
        h = t * e + h / 2
    loss, dh = np.mean(h * h), h * np.float32(2 / h.size)
    ga, gb = np.zeros_like(a), np.zeros_like(b)
    for h, t, e in reversed(saved):
        du = dh * e * (1 - t * t)
        ga += du * h
        gb += du
        dh = du * a + dh * (0.5 - 2 * h * t * e)
    return loss, {"x": dh, "a": ga, "b": gb}


def rnn(params: Params, xs: Array) -> Result:
    w, u, b, h = params.values()
    states = [h]
    for x in xs:
        states.append(np.tanh(x @ w + states[-1] @ u + b))
    loss, dh = np.mean(states[-1] ** 2), states[-1] * np.float32(2 / h.size)
    gw, gu, gb = np.zeros_like(w), np.zeros_like(u), np.zeros_like(b)
    for x, before, after in zip(xs[::-1], states[-2::-1], states[:0:-1], strict=True):
        d = dh * (1 - after * after)
        gw += x.T @ d
        gu += before.T @ d
        gb += d.sum(axis=0)
        dh = d @ u.T
    return loss, {"w": gw, "u": gu, "b": gb, "h": dh}


def transformer(params: Params, x: Array, y: Array, heads: int = 4) -> Result:
    batch, length, width = x.shape
    p, size = params, batch * length

    def split(h: Array) -> Array:
        return h.reshape(batch, length, heads, -1).transpose(0, 2, 1, 3)

    def joined(h: Array) -> Array:
        return h.transpose(0, 2, 1, 3).reshape(size, width)

    x, y = x.reshape(size, width), y.reshape(size, width)
    q, k, v = (split(x @ p[name]) for name in ("wq", "wk", "wv"))
    scale = np.float32((width // heads) ** -0.5)
    scores = q @ k.swapaxes(2, 3) * scale
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    attention = exponentials / exponentials.sum(axis=-1, keepdims=True)
    mixed = joined(attention @ v)
    normed1, inverse1 = _normalised(x + mixed @ p["wo"])
    h = normed1 * p["scale1"] + p["shift1"]
    inner = np.maximum(h @ p["w1"] + p["b1"], 0)
    normed2, inverse2 = _normalised(h + inner @ p["w2"] + p["b2"])
    error = normed2 * p["scale2"] + p["shift2"] - y

    grads: Params = {}
    d = error * np.float32(2 / error.size)
    grads |= {"scale2": (d * normed2).sum(axis=0), "shift2": d.sum(axis=0)}
    d = _normalised_gradient(d * p["scale2"], normed2, inverse2)
    d_inner = (d @ p["w2"].T) * (inner > 0)
    grads |= {"w2": inner.T @ d, "b2": d.sum(axis=0), "w1": h.T @ d_inner, "b1": d_inner.sum(axis=0)}
    d = d + d_inner @ p["w1"].T
    grads |= {"scale1": (d * normed1).sum(axis=0), "shift1": d.sum(axis=0)}
    d = _normalised_gradient(d * p["scale1"], normed1, inverse1)
    grads["wo"] = mixed.T @ d
    d_mixed = split(d @ p["wo"].T)
    d_attention = d_mixed @ v.swapaxes(2, 3)
    d_scores = attention * (d_attention - (d_attention * attention).sum(axis=-1, keepdims=True)) * scale
    grads["wq"] = x.T @ joined(d_scores @ k)
    grads["wk"] = x.T @ joined(d_scores.swapaxes(2, 3) @ q)
    grads["wv"] = x.T @ joined(attention.swapaxes(2, 3) @ d_mixed)
    return np.mean(error**2), grads


def _normalised(x: Array) -> tuple[Array, Array]:
    """The rows of x with mean 0 and variance 1, and one over their deviations."""
    centred = x - x.mean(axis=-1, keepdims=True)
    inverse = 1 / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + np.float32(1e-5))
    return centred * inverse, inverse


def _normalised_gradient(d: Array, normed: Array, inverse: Array) -> Array:
    """The cotangent of the rows from that of the normalised rows."""
    return (d - d.mean(axis=-1, keepdims=True) - normed * (d * normed).mean(axis=-1, keepdims=True)) * inverse


STEPS = {f.__name__: f for f in (tiny_mlp, mlp, chain, rnn, transformer)}

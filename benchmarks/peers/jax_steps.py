"""The steps in JAX: `jax.jit` of `jax.value_and_grad`, the parameters on the device."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
from jax import numpy as jnp

from benchmarks.modes import Mode
from benchmarks.rows import Params, Row

Value = Any


def tiny_mlp(params: Params, x: Value, y: Value) -> Value:
    h = jnp.tanh(x @ params["w1"] + params["b1"])
    h = jnp.tanh(h @ params["w2"] + params["b2"])
    return jnp.mean((h @ params["w3"] + params["b3"] - y) ** 2)


def mlp(params: Params, x: Value, y: Value) -> Value:
    h = jax.nn.relu(x @ params["w1"] + params["b1"])
    h = jax.nn.relu(h @ params["w2"] + params["b2"])
    return _cross_entropy(h @ params["w3"] + params["b3"], y)


def chain(params: Params) -> Value:
    h = params["x"]
    for _ in range(4):
        h = jnp.tanh(h * params["a"] + params["b"]) * jnp.exp(-h * h) + h / 2
    return jnp.mean(h * h)


def rnn(params: Params, xs: Value) -> Value:
    h = params["h"]
    for t in range(xs.shape[0]):
        h = jnp.tanh(xs[t] @ params["w"] + h @ params["u"] + params["b"])
    return jnp.mean(h * h)


def transformer(params: Params, x: Value, y: Value, heads: int = 4) -> Value:
    batch, length, width = x.shape

    def split(h: Value) -> Value:
        return h.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)

    q, k, v = (split(x @ params[name]) for name in ("wq", "wk", "wv"))
    p = jax.nn.softmax(q @ k.swapaxes(2, 3) / (width // heads) ** 0.5)
    mixed = (p @ v).transpose(0, 2, 1, 3).reshape(batch, length, width)
    h = _normed(x + mixed @ params["wo"], params["scale1"], params["shift1"])
    inner = jax.nn.relu(h @ params["w1"] + params["b1"]) @ params["w2"] + params["b2"]
    return jnp.mean((_normed(h + inner, params["scale2"], params["shift2"]) - y) ** 2)


def _normed(x: Value, scale: Value, shift: Value) -> Value:
    centred = x - x.mean(-1, keepdims=True)
    variance = jnp.mean(centred * centred, -1, keepdims=True)
    return centred * jax.lax.rsqrt(variance + 1e-5) * scale + shift


def cnn(params: Params, x: Value, y: Value) -> Value:
    h = x
    for i in (1, 2):
        h = jax.lax.conv_general_dilated(h, params[f"k{i}"], (1, 1), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW"))
        centred = h - h.mean((0, 2, 3), keepdims=True)
        inverse = jax.lax.rsqrt(jnp.mean(centred * centred, (0, 2, 3), keepdims=True) + 1e-5)
        h = jax.nn.relu(centred * inverse * params[f"scale{i}"][:, None, None] + params[f"shift{i}"][:, None, None])
        h = jax.lax.reduce_window(h, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return _cross_entropy(h.reshape(len(h), -1) @ params["w1"] + params["b1"], y)


def lstm(params: Params, words: Value, following: Value) -> Value:
    size = params["u"].shape[0]
    inputs = params["embedding"][words] @ params["w"] + params["b"]

    def step(state: Any, now: Value) -> Any:
        h, c = state
        i, f, new, o = jnp.split(now + h @ params["u"], 4, axis=1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(new)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    start = jnp.zeros((words.shape[1], size))
    _, states = jax.lax.scan(step, (start, start), inputs)
    return _cross_entropy(states.reshape(-1, size) @ params["w1"] + params["b1"], following.reshape(-1))


def gpt(params: Params, words: Value, following: Value, heads: int = 4) -> Value:
    batch, length = words.shape
    x = params["embedding"][words] + params["positions"]
    width = x.shape[2]

    def split(h: Value) -> Value:
        return h.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)

    h = _normed(x, params["scale1"], params["shift1"])
    q, k, v = (split(h @ params[name]) for name in ("wq", "wk", "wv"))
    scores = q @ k.swapaxes(2, 3) / (width // heads) ** 0.5
    p = jax.nn.softmax(jnp.where(jnp.tri(length, dtype=bool), scores, -jnp.inf))
    x = x + (p @ v).transpose(0, 2, 1, 3).reshape(batch, length, width) @ params["wo"]
    h = _normed(x, params["scale2"], params["shift2"])
    x = x + jax.nn.gelu(h @ params["w1"] + params["b1"], approximate=False) @ params["w2"] + params["b2"]
    logits = _normed(x, params["scale3"], params["shift3"]).reshape(-1, width) @ params["head"]
    return _cross_entropy(logits, following.reshape(-1))


def vae(params: Params, x: Value, noise: Value) -> Value:
    h = jax.nn.relu(x @ params["w1"] + params["b1"])
    mean, deviation = h @ params["wm"] + params["bm"], h @ params["wd"] + params["bd"]
    h = jax.nn.relu((mean + jnp.exp(deviation / 2) * noise) @ params["w2"] + params["b2"])
    logits = h @ params["w3"] + params["b3"]
    pixels = jnp.sum(jax.nn.softplus(logits) - logits * x)
    return pixels - jnp.sum(1 + deviation - mean * mean - jnp.exp(deviation)) / 2


def _cross_entropy(logits: Value, y: Value) -> Value:
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], axis=1))


LOSSES = {f.__name__: f for f in (tiny_mlp, mlp, chain, rnn, transformer, cnn, lstm, gpt, vae)}


def jitted(row: Row) -> Mode:
    """The step, waited for: a call of JAX returns before its result is there."""
    params, inputs = jax.device_put((row.params, row.inputs))
    compiled = jax.jit(jax.value_and_grad(LOSSES[row.loss.__name__]))
    run = partial(compiled, params, *inputs)
    return Mode(lambda: jax.block_until_ready(run()), partial(jax.tree.map, jax.device_get))

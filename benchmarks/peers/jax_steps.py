"""The steps in JAX: `jax.jit` of `jax.value_and_grad`, the parameters on the device."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
from jax import numpy as jnp

from benchmarks.arms import Arm
from benchmarks.programs import Params, Row

Value = Any


def tiny_mlp(params: Params, x: Value, y: Value) -> Value:
    h = jnp.tanh(x @ params["w1"] + params["b1"])
    h = jnp.tanh(h @ params["w2"] + params["b2"])
    return jnp.mean((h @ params["w3"] + params["b3"] - y) ** 2)


def mlp(params: Params, x: Value, y: Value) -> Value:
    h = jax.nn.relu(x @ params["w1"] + params["b1"])
    h = jax.nn.relu(h @ params["w2"] + params["b2"])
    logits = jax.nn.log_softmax(h @ params["w3"] + params["b3"])
    return -jnp.mean(jnp.take_along_axis(logits, y[:, None], axis=1))


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


LOSSES = {f.__name__: f for f in (tiny_mlp, mlp, chain, rnn, transformer)}


def jitted(row: Row) -> Arm:
    """The step, waited for: a call of JAX returns before its result is there."""
    params, inputs = jax.device_put((row.params, row.inputs))
    compiled = jax.jit(jax.value_and_grad(LOSSES[row.loss.__name__]))
    run = partial(compiled, params, *inputs)
    return Arm(lambda: jax.block_until_ready(run()), partial(jax.tree.map, jax.device_get))

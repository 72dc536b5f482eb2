"""The steps in TensorFlow: `tf.function` of a loss and its gradients, for these shapes alone."""

from __future__ import annotations

import os
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # or its import writes a page about devices

import tensorflow as tf

from benchmarks.modes import Mode
from benchmarks.rows import Params, Row
from compare.errors import UnsupportedError

Tensor = Any


def tiny_mlp(params: Params, x: Tensor, y: Tensor) -> Tensor:
    h = tf.tanh(x @ params["w1"] + params["b1"])
    h = tf.tanh(h @ params["w2"] + params["b2"])
    return tf.reduce_mean((h @ params["w3"] + params["b3"] - y) ** 2)


def mlp(params: Params, x: Tensor, y: Tensor) -> Tensor:
    h = tf.nn.relu(x @ params["w1"] + params["b1"])
    h = tf.nn.relu(h @ params["w2"] + params["b2"])
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, h @ params["w3"] + params["b3"]))


def chain(params: Params) -> Tensor:
    h = params["x"]
    for _ in range(4):
        h = tf.tanh(h * params["a"] + params["b"]) * tf.exp(-h * h) + h / 2
    return tf.reduce_mean(h * h)


def rnn(params: Params, xs: Tensor) -> Tensor:
    h = params["h"]
    for x in tf.unstack(xs):
        h = tf.tanh(x @ params["w"] + h @ params["u"] + params["b"])
    return tf.reduce_mean(h * h)


def transformer(params: Params, x: Tensor, y: Tensor, heads: int = 4) -> Tensor:
    batch, length, width = x.shape

    def split(h: Tensor) -> Tensor:
        return tf.transpose(tf.reshape(h, (batch, length, heads, width // heads)), (0, 2, 1, 3))

    x, y = tf.reshape(x, (-1, width)), tf.reshape(y, (-1, width))
    q, k, v = (split(x @ params[name]) for name in ("wq", "wk", "wv"))
    p = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) / (width // heads) ** 0.5)
    mixed = tf.reshape(tf.transpose(p @ v, (0, 2, 1, 3)), (-1, width))
    h = _normed(x + mixed @ params["wo"], params["scale1"], params["shift1"])
    inner = tf.nn.relu(h @ params["w1"] + params["b1"]) @ params["w2"] + params["b2"]
    return tf.reduce_mean((_normed(h + inner, params["scale2"], params["shift2"]) - y) ** 2)


def _normed(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    centred = x - tf.reduce_mean(x, -1, keepdims=True)
    variance = tf.reduce_mean(centred * centred, -1, keepdims=True)
    return centred * tf.math.rsqrt(variance + 1e-5) * scale + shift


LOSSES = {f.__name__: f for f in (tiny_mlp, mlp, chain, rnn, transformer)}


def function(row: Row) -> Mode:
    """The step as a graph of TensorFlow's, run by its executor. Raises UnsupportedError where nobody wrote it."""
    if row.loss.__name__ not in LOSSES:
        raise UnsupportedError("nobody has written this step for TensorFlow")
    loss = LOSSES[row.loss.__name__]
    params = {name: tf.constant(value) for name, value in row.params.items()}
    inputs = [tf.constant(value) for value in row.inputs]

    @tf.function
    def step() -> Any:
        with tf.GradientTape() as tape:
            tape.watch(params)
            value = loss(params, *inputs)
        return value, tape.gradient(value, params)

    return Mode(step, _arrays)


def _arrays(result: Any) -> Any:
    return tf.nest.map_structure(lambda tensor: tensor.numpy(), result)

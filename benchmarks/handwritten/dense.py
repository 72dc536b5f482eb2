"""Networks of dense layers. `a.dot(b, out)` is the cheapest call of a matrix product in NumPy."""

from __future__ import annotations

import numpy as np
from numpy import add, divide, exp, greater, log, maximum, multiply, subtract, tanh, vdot

from benchmarks.handwritten.buffers import Array, Step, buffer, like
from benchmarks.rows import Params, Row

ONE, ZERO = np.float32(1), np.float32(0)


def tiny_mlp(row: Row) -> Step:
    """f[B, 16], f[B, 1]: two tanh layers and a linear one, mean squared error."""
    params, (x, y) = row.params, row.inputs
    batch, (m, n) = len(x), params["w2"].shape
    h1, h2, residual = buffer(batch, m), buffer(batch, n), buffer(batch, 1)
    d1, d2, slope1, slope2 = buffer(batch, m), buffer(batch, n), buffer(batch, m), buffer(batch, n)
    rows, scale, grads = np.ones(batch, np.float32), np.float32(2 / y.size), like(params)
    (gw1, gb1, gw2, gb2, gw3, gb3), h1_t, h2_t = grads.values(), h1.T, h2.T

    def step(params: Params, x: Array, y: Array) -> tuple[Array, Params]:
        w1, b1, w2, b2, w3, b3 = params.values()
        x.dot(w1, h1)
        add(h1, b1, h1)
        tanh(h1, h1)
        h1.dot(w2, h2)
        add(h2, b2, h2)
        tanh(h2, h2)
        h2.dot(w3, residual)
        add(residual, b3, residual)
        subtract(residual, y, residual)
        loss = vdot(residual, residual) / y.size

        multiply(residual, scale, residual)
        h2_t.dot(residual, gw3)
        rows.dot(residual, gb3)
        residual.dot(w3.T, d2)
        multiply(h2, h2, slope2)
        subtract(ONE, slope2, slope2)
        multiply(d2, slope2, d2)
        h1_t.dot(d2, gw2)
        rows.dot(d2, gb2)
        d2.dot(w2.T, d1)
        multiply(h1, h1, slope1)
        subtract(ONE, slope1, slope1)
        multiply(d1, slope1, d1)
        x.T.dot(d1, gw1)
        rows.dot(d1, gb1)
        return loss, grads

    return step


def mlp(row: Row) -> Step:
    """f[B, 784], i[B]: two ReLU layers and a linear one, cross entropy."""
    params, batch = row.params, len(row.inputs[0])
    (m, n), classes = params["w2"].shape, len(params["b3"])
    h1, h2, logits = buffer(batch, m), buffer(batch, n), buffer(batch, classes)
    d1, d2, mask1, mask2 = buffer(batch, m), buffer(batch, n), np.empty((batch, m), bool), np.empty((batch, n), bool)
    largest, total = buffer(batch, 1), buffer(batch, 1)
    rows, examples, grads = np.ones(batch, np.float32), np.arange(batch), like(params)
    columns, share = np.ones((classes, 1), np.float32), np.float32(1 / batch)
    (gw1, gb1, gw2, gb2, gw3, gb3), h1_t, h2_t = grads.values(), h1.T, h2.T

    def step(params: Params, x: Array, y: Array) -> tuple[Array, Params]:
        w1, b1, w2, b2, w3, b3 = params.values()
        x.dot(w1, h1)
        add(h1, b1, h1)
        maximum(h1, ZERO, out=h1)
        h1.dot(w2, h2)
        add(h2, b2, h2)
        maximum(h2, ZERO, out=h2)
        h2.dot(w3, logits)
        add(logits, b3, logits)
        maximum.reduce(logits, axis=1, out=largest, keepdims=True)
        subtract(logits, largest, logits)
        chosen = logits[examples, y]
        exp(logits, logits)
        logits.dot(columns, total)
        loss = (log(total).sum() - chosen.sum()) * share

        divide(share, total, total)
        multiply(logits, total, logits)
        logits[examples, y] -= share
        h2_t.dot(logits, gw3)
        rows.dot(logits, gb3)
        logits.dot(w3.T, d2)
        greater(h2, ZERO, mask2)
        multiply(d2, mask2, d2)
        h1_t.dot(d2, gw2)
        rows.dot(d2, gb2)
        d2.dot(w2.T, d1)
        greater(h1, ZERO, mask1)
        multiply(d1, mask1, d1)
        x.T.dot(d1, gw1)
        rows.dot(d1, gb1)
        return loss, grads

    return step

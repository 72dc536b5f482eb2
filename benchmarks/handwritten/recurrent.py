"""The RNN: the products with the inputs for all steps at once, forward and backward; a loop over the rest."""

from __future__ import annotations

import numpy as np
from numpy import add, multiply, subtract, tanh, vdot

from benchmarks.handwritten.buffers import Array, Step, buffer, like
from benchmarks.rows import Params, Row

ONE = np.float32(1)


def rnn(row: Row) -> Step:
    """f[T, B, 32]: the mean square of the last state."""
    (length, batch, _), width = row.inputs[0].shape, len(row.params["u"])
    states, drives, slopes = (buffer(n, batch, width) for n in (length + 1, length, length))
    carried, u_t, rows = buffer(batch, width), buffer(width, width), np.ones(length * batch, np.float32)
    flat, before = drives.reshape(-1, width), states[:-1].reshape(-1, width).T
    forward = list(zip(drives, states[:-1], states[1:], strict=True))
    backward = list(zip(drives, slopes, strict=True))[::-1]
    grads = like(row.params)
    gw, gu, gb, gh = (grads[name] for name in ("w", "u", "b", "h"))
    scale = np.float32(2 / (batch * width))

    def step(params: Params, xs: Array) -> tuple[Array, Params]:
        w, u, b = params["w"], params["u"], params["b"]
        inputs = xs.reshape(length * batch, -1)
        inputs.dot(w, flat)
        add(flat, b, flat)
        states[0] = params["h"]
        for drive, h, following in forward:
            h.dot(u, carried)
            add(carried, drive, carried)
            tanh(carried, following)
        loss = vdot(following, following) / following.size

        multiply(states[1:], states[1:], slopes)
        subtract(ONE, slopes, slopes)
        np.copyto(u_t, u.T)
        multiply(following, scale, gh)
        for d, slope in backward:
            multiply(gh, slope, d)
            d.dot(u_t, gh)
        inputs.T.dot(flat, gw)
        before.dot(flat, gu)
        rows.dot(flat, gb)
        return loss, grads

    return step

"""The chain of elementwise ops: forward and backward block by block, so that what lies between stays in the cache."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy import add, exp, multiply, subtract, tanh, vdot

from benchmarks.handwritten.buffers import LINE, Array, Step, buffer, like
from benchmarks.rows import Params, Row

ROUNDS = 4
BLOCK = 16_384  # floats: the 28 buffers that a block touches take 1.8 MB, and an op runs much longer than its call
HALF, MINUS_TWO = np.float32(0.5), np.float32(-2)
Block = Callable[..., Array]


def chain(row: Row) -> Step:
    """The mean square of x after the rounds; x, a and b are f[N]."""
    size, grads = row.params["x"].size, like(row.params)
    even = -(-size // max(1, round(size / BLOCK)))  # blocks of about one size, so that none is much of a remainder
    length = -(-even // LINE) * LINE
    slices = [slice(i, min(i + length, size)) for i in range(0, size, length)]
    workspace = buffer(5 * ROUNDS + 2, length)
    blocks = [_block(workspace[:, : s.stop - s.start], [g[s] for g in grads.values()], size) for s in slices]
    work = list(zip(blocks, slices, strict=True))

    def step(params: Params) -> tuple[Array, Params]:
        x, a, b = params.values()
        squares = [block(x[s], a[s], b[s]) for block, s in work]
        return np.float32(sum(squares) / size), grads

    return step


def _block(space: Array, grads: list[Array], size: int) -> Block:
    """The sum of squares of one block, its gradients written into `grads`.

    `-h h` is `(-2 h) (h / 2)`, exactly, and both factors are needed anyway. With `y = t e`, the derivative of `t e` in
    `h a + b` is `e (1 - t t) = e - t y`, and in h it is `-2 h y`, plus 1/2 for `h / 2`.
    """
    states, rounds = space[:ROUNDS], space[ROUNDS : 5 * ROUNDS].reshape(ROUNDS, 4, -1)
    inner, outer = space[5 * ROUNDS :]
    gx, ga, gb = grads
    scale = np.float32(2 / size)

    def block(x: Array, a: Array, b: Array) -> Array:
        h = x
        for following, (t, e, y, m) in zip(states, rounds, strict=True):
            multiply(h, a, t)
            add(t, b, t)
            tanh(t, t)
            multiply(h, MINUS_TWO, m)
            multiply(h, HALF, following)
            multiply(m, following, e)
            exp(e, e)
            multiply(t, e, y)
            add(y, following, following)
            h = following
        squares = vdot(h, h)
        multiply(h, scale, gx)
        for k in reversed(range(ROUNDS)):
            h, (t, e, y, m) = states[k - 1] if k else x, rounds[k]
            du, dm = (gb, ga) if k == ROUNDS - 1 else (inner, outer)
            multiply(t, y, t)
            subtract(e, t, t)
            multiply(t, gx, du)
            multiply(du, h, dm)
            if k < ROUNDS - 1:
                add(gb, du, gb)
                add(ga, dm, ga)
            multiply(m, y, y)
            add(y, HALF, y)
            multiply(gx, y, gx)
            multiply(du, a, y)
            add(gx, y, gx)
        return squares

    return block

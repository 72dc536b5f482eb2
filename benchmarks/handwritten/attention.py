"""The transformer block: q, k and v in one product, no array copied to change its layout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import add, divide, exp, greater, matmul, maximum, multiply, sqrt, subtract, vdot

from benchmarks.handwritten.buffers import Array, Step, buffer, like
from benchmarks.rows import Params, Row

ZERO, ONE, EPSILON = np.float32(0), np.float32(1), np.float32(1e-5)


def transformer(row: Row, heads: int = 4) -> Step:
    """f[B, T, D], f[B, T, D]: attention, a ReLU layer, a normalisation after each, mean squared error."""
    batch, length, width = row.inputs[0].shape
    size, wide, grads = batch * length, len(row.params["b1"]), like(row.params)
    attend, attend_back = _attention(batch, length, width, heads, grads)
    norm1, norm1_back = _norm(size, width, grads["scale1"], grads["shift1"])
    norm2, norm2_back = _norm(size, width, grads["scale2"], grads["shift2"])
    h, residual, inner, d_inner, dh = (buffer(size, n) for n in (width, width, wide, wide, width))
    mask, rows, scale = np.empty((size, wide), bool), np.ones(size, np.float32), np.float32(2 / (size * width))
    h_t, inner_t = h.T, inner.T
    gw1, gb1, gw2, gb2 = (grads[name] for name in ("w1", "b1", "w2", "b2"))

    def step(params: Params, x: Array, y: Array) -> tuple[Array, Params]:
        w1, b1, w2, b2 = (params[name] for name in ("w1", "b1", "w2", "b2"))
        x, y = x.reshape(size, width), y.reshape(size, width)
        attend(params, x, residual)
        add(residual, x, residual)
        norm1(residual, params["scale1"], params["shift1"], h)
        h.dot(w1, inner)
        add(inner, b1, inner)
        maximum(inner, ZERO, out=inner)
        inner.dot(w2, residual)
        add(residual, b2, residual)
        add(residual, h, residual)
        norm2(residual, params["scale2"], params["shift2"], residual)
        subtract(residual, y, residual)
        loss = vdot(residual, residual) / residual.size

        multiply(residual, scale, residual)
        norm2_back(residual, params["scale2"])
        rows.dot(residual, gb2)
        inner_t.dot(residual, gw2)
        residual.dot(w2.T, d_inner)
        greater(inner, ZERO, mask)
        multiply(d_inner, mask, d_inner)
        rows.dot(d_inner, gb1)
        h_t.dot(d_inner, gw1)
        d_inner.dot(w1.T, dh)
        add(dh, residual, dh)
        norm1_back(dh, params["scale1"])
        attend_back(params, x, dh)
        return loss, grads

    return step


def _norm(size: int, width: int, gscale: Array, gshift: Array) -> tuple[Callable[..., None], Callable[..., None]]:
    """Forward and backward of `(x - mean) / sqrt(variance + 1e-5) * scale + shift` over the rows of f[N, D].

    Means over a row are products with a vector of 1/D, sums over rows products with ones.
    """
    normed, products = buffer(size, width), buffer(size, width)
    mean, inverse, weights = buffer(size, 1), buffer(size, 1), buffer(width, 1)
    average, rows = np.full((width, 1), 1 / width, np.float32), np.ones(size, np.float32)

    def forward(x: Array, scale: Array, shift: Array, out: Array) -> None:
        x.dot(average, mean)
        subtract(x, mean, normed)
        multiply(normed, normed, products)
        products.dot(average, inverse)
        add(inverse, EPSILON, inverse)
        sqrt(inverse, inverse)
        divide(ONE, inverse, inverse)
        multiply(normed, inverse, normed)
        multiply(normed, scale, out)
        add(out, shift, out)

    def backward(d: Array, scale: Array) -> None:
        """The cotangent of the output becomes that of the input, in place."""
        rows.dot(d, gshift)
        multiply(d, normed, products)
        rows.dot(products, gscale)
        multiply(scale[:, None], average, weights)
        products.dot(weights, mean)
        multiply(normed, mean, normed)
        d.dot(weights, mean)
        multiply(d, scale, d)
        subtract(d, normed, d)
        subtract(d, mean, d)
        multiply(d, inverse, d)

    return forward, backward


def _attention(
    batch: int, length: int, width: int, heads: int, grads: Params
) -> tuple[Callable[..., None], Callable[..., None]]:
    """Forward and backward of the projections, the attention of each head, and the projection back, f[N, D].

    Scores are kept as [B, H, keys, queries]: reductions over keys then run along whole rows. The sum over keys of
    `p dp`, which the gradient of a softmax needs, is the sum over a head's width of `mixed dmixed`.
    """
    size, each = batch * length, width // heads
    w, gw = buffer(width, 3 * width), buffer(width, 3 * width)
    qkv, dqkv, mixed, dmixed, products = (buffer(size, n) for n in (3 * width, 3 * width, width, width, width))
    p, dp = buffer(batch, heads, length, length), buffer(batch, heads, length, length)
    column, delta = buffer(batch, heads, 1, length), buffer(size, heads)
    wq, wk, wv = _thirds(w)
    grads["wq"], grads["wk"], grads["wv"] = _thirds(gw)
    gwo, mixed_t = grads["wo"], mixed.T
    by_head = (batch, length, heads, each)
    (q, k, v), (dq, dk, dv) = ([_heads(part, by_head) for part in _thirds(a)] for a in (qkv, dqkv))
    q_t, p_t, dp_t, mixed_heads = q.swapaxes(2, 3), p.swapaxes(2, 3), dp.swapaxes(2, 3), _heads(mixed, by_head)
    dmixed_heads = _heads(dmixed, by_head)
    dmixed_t, delta_heads = dmixed_heads.swapaxes(2, 3), delta.reshape(batch, length, 1, heads).transpose(0, 3, 2, 1)
    in_heads = np.kron(np.eye(heads, dtype=np.float32), np.ones((each, 1), np.float32))
    scale = np.float32(each**-0.5)

    def forward(params: Params, x: Array, out: Array) -> None:
        multiply(params["wq"], scale, wq)
        np.copyto(wk, params["wk"])
        np.copyto(wv, params["wv"])
        x.dot(w, qkv)
        matmul(k, q_t, p)
        maximum.reduce(p, axis=2, out=column, keepdims=True)
        subtract(p, column, p)
        exp(p, p)
        add.reduce(p, axis=2, out=column, keepdims=True)
        divide(ONE, column, column)
        multiply(p, column, p)
        matmul(p_t, v, mixed_heads)
        mixed.dot(params["wo"], out)

    def backward(params: Params, x: Array, d: Array) -> None:
        mixed_t.dot(d, gwo)
        d.dot(params["wo"].T, dmixed)
        matmul(p, dmixed_heads, dv)
        matmul(v, dmixed_t, dp)
        multiply(mixed, dmixed, products)
        products.dot(in_heads, delta)
        subtract(dp, delta_heads, dp)
        multiply(dp, p, dp)
        matmul(dp_t, k, dq)
        matmul(dp, q, dk)
        x.T.dot(dqkv, gw)
        multiply(grads["wq"], scale, grads["wq"])

    return forward, backward


def _thirds(x: Array) -> list[Any]:
    return np.split(x, 3, axis=1)


def _heads(x: Array, by_head: tuple[int, ...]) -> Array:
    """f[N, D] as f[B, H, T, D / H], a view."""
    return x.reshape(by_head).transpose(0, 2, 1, 3)

"""What layers compute, with PyTorch's names and options: products and attention."""

from __future__ import annotations

import math

from dynamic.nn.functional.common import Array, check_dtypes, refuse
from dynamic.nn.functional.dropping import dropout
from graphs import ops
from graphs.errors import GraphError, located
from graphs.ops import neural
from graphs.ops.affine import by_rows
from graphs.ops.shapes import shape_of

__all__ = ["bilinear", "linear", "scaled_dot_product_attention"]


def linear(input: Array, weight: Array, bias: Array | None = None) -> Array:
    """x @ weight.T + bias: f[..., in], f[out, in], f[out] -> f[..., out]."""
    check_dtypes(input, weight, bias)
    return by_rows(input, weight) if bias is None else ops.linear(input, weight, bias)


def bilinear(input1: Array, input2: Array, weight: Array, bias: Array | None = None) -> Array:
    """x1 @ weight @ x2 + bias for each output: f[..., m], f[..., n], f[out, m, n] -> f[..., out]."""
    check_dtypes(input1, input2, weight, bias)
    product = ops.einsum("...m,omn,...n->...o", input1, weight, input2)
    return product if bias is None else ops.add(product, bias)


def scaled_dot_product_attention(
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Array | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Array:
    """softmax(query @ key.T * scale + mask) @ value; a mask of bools is True where attention is allowed."""
    check_dtypes(query, key, value)
    refuse("scaled_dot_product_attention", "repeat the heads of key and value", enable_gqa=(enable_gqa, False))
    if is_causal:
        if attn_mask is not None:
            raise GraphError(located("scaled_dot_product_attention: is_causal and attn_mask; give one of them"))
        rows, columns = (ops.arange(shape_of(x)[-2]) for x in (query, key))
        attn_mask = ops.less_equal(columns, ops.expand_dims(rows, -1))
    if scale is not None:
        query = ops.multiply(query, scale * math.sqrt(shape_of(query)[-1]))
    if dropout_p == 0:
        return ops.attention(query, key, value, mask=attn_mask)
    weights = attention_weights(query, key, attn_mask)
    return ops.matmul(dropout(weights, dropout_p), value)


def attention_weights(query: Array, key: Array, mask: Array | None) -> Array:
    """softmax(query @ key.T / sqrt(D)), masked: f[..., T, D], f[..., S, D] -> f[..., T, S]."""
    return neural.attention_weights(query, key, mask)

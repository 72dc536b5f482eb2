"""What layers compute, with PyTorch's names and options: products, look-ups, dropout and attention."""

from __future__ import annotations

import math

import numpy as np

from dynamic.nn import draws
from dynamic.nn.functional.common import Array, check_dtypes, check_indices, concrete, refuse, replaced
from graphs import ops
from graphs.errors import DTypeError, GraphError, OptionError, ShapeError, located
from graphs.ops import neural
from graphs.ops.affine import by_rows
from graphs.ops.shapes import dtype_of, shape_of

__all__ = [
    "bilinear", "dropout", "dropout1d", "dropout2d", "dropout3d", "embedding", "linear", "one_hot",
    "scaled_dot_product_attention",
]  # fmt: skip


def linear(input: Array, weight: Array, bias: Array | None = None) -> Array:
    """x @ weight.T + bias: f[..., in], f[out, in], f[out] -> f[..., out]."""
    check_dtypes(input, weight, bias)
    return by_rows(input, weight) if bias is None else ops.linear(input, weight, bias)


def bilinear(input1: Array, input2: Array, weight: Array, bias: Array | None = None) -> Array:
    """x1 @ weight @ x2 + bias for each output: f[..., m], f[..., n], f[out, m, n] -> f[..., out]."""
    check_dtypes(input1, input2, weight, bias)
    product = ops.einsum("...m,omn,...n->...o", input1, weight, input2)
    return product if bias is None else ops.add(product, bias)


def embedding(
    input: Array,
    weight: Array,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Array:
    """Rows of a table; that of `padding_idx` gets no gradient. Raises OutOfRangeError for other indices."""
    refuse("embedding", "divide the rows yourself under no_grad", max_norm=(max_norm, None))
    refuse("embedding", "leave it out", scale_grad_by_freq=(scale_grad_by_freq, False), sparse=(sparse, False))
    if len(shape_of(weight)) != 2:
        raise ShapeError(f"the table is a matrix, not of shape {shape_of(weight)}; reshape it")
    if dtype_of(input).kind not in "iu":
        raise DTypeError(f"the indices are ints, not {dtype_of(input)}; convert with .long()")
    rows = shape_of(weight)[0]
    check_indices("embedding", input, rows)
    found = ops.embedding(weight, input)
    if padding_idx is None:
        return found
    padding = ops.equal(input, padding_idx + rows if padding_idx < 0 else padding_idx)
    return ops.where(ops.expand_dims(padding, -1), ops.stop_gradient(found), found)


def one_hot(tensor: Array, num_classes: int = -1) -> Array:
    """1 at each index along a new last axis, 0 elsewhere, as int64; a trace needs num_classes."""
    if num_classes == -1:
        array = concrete(tensor)
        if array is None:
            raise GraphError(located("one_hot: the number of classes depends on values here; give num_classes"))
        if not array.size:
            raise ShapeError("no index tells the number of classes; give num_classes")
        num_classes = int(array.max()) + 1
    if num_classes < 1:
        raise OptionError(f"there are 1 class or more, not {num_classes}; give their number")
    check_indices("one_hot", tensor, num_classes)
    return ops.one_hot(tensor, num_classes, np.int64)


def dropout(input: Array, p: float = 0.5, training: bool = True, inplace: bool = False) -> Array:
    """Each element 0 with probability p, else divided by 1 - p, in training."""
    return _dropped("dropout", input, p, training, inplace, ())


def dropout1d(input: Array, p: float = 0.5, training: bool = True, inplace: bool = False) -> Array:
    """dropout of whole channels of f[N, C, L] or f[C, L]."""
    return _dropped("dropout1d", input, p, training, inplace, (-1,))


def dropout2d(input: Array, p: float = 0.5, training: bool = True, inplace: bool = False) -> Array:
    """dropout of whole channels of f[N, C, H, W], or of f[N, C, L]."""
    return _dropped("dropout2d", input, p, training, inplace, tuple(range(2 - len(shape_of(input)), 0)))


def dropout3d(input: Array, p: float = 0.5, training: bool = True, inplace: bool = False) -> Array:
    """dropout of whole channels of f[N, C, D, H, W] or f[C, D, H, W]."""
    return _dropped("dropout3d", input, p, training, inplace, (-3, -2, -1))


def _dropped(name: str, x: Array, p: float, training: bool, inplace: bool, together: tuple[int, ...]) -> Array:
    if not 0 <= p <= 1:
        raise OptionError(f"{name}: p is a probability, not {p}; give a number from 0 to 1")
    if not training or p == 0:
        return x
    shape = tuple(1 if i - len(shape_of(x)) in together else size for i, size in enumerate(shape_of(x)))
    if p == 1:
        return replaced(x, ops.multiply(x, 0), inplace)
    kept = ops.bernoulli(draws.key_for(x), 1 - p, shape)
    return replaced(x, ops.where(kept, ops.multiply(x, 1 / (1 - p)), 0), inplace)


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

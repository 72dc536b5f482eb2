"""Attention with several heads."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator
from typing import Any

import numpy as np

from dynamic.nn import functional as F
from dynamic.nn import init
from dynamic.nn.functional.layers import attention_weights
from dynamic.nn.linear import Linear
from dynamic.nn.making import empty, full
from dynamic.nn.module import Module
from graphs import ops
from graphs.errors import GraphError, OptionError, ShapeError, located
from graphs.ops.shapes import check_groups, dtype_of, shape_of
from graphs.ops.slicing import cut

__all__ = ["MultiheadAttention"]

Array = Any


class SDPBackend(enum.Enum):
    """PyTorch's kernels for attention, by name: there is one here."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextlib.contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False) -> Iterator[None]:
    """A block in which nothing changes, whichever kernels are asked for. Raises ValueError for what is none."""
    del set_priority
    for backend in backends if isinstance(backends, (list, tuple)) else [backends]:
        if not isinstance(backend, SDPBackend):
            raise OptionError(located(f"sdpa_kernel: {backend!r} is no kernel; give one of SDPBackend"))
    yield


class MultiheadAttention(Module):
    """Attention in several subspaces at once (Vaswani et al., 2017)."""

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        F.common.refuse(
            "MultiheadAttention",
            "leave it out",
            add_bias_kv=(add_bias_kv, False),
            add_zero_attn=(add_zero_attn, False),
        )
        check_groups(embed_dim, num_heads, "heads")
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        self.kdim, self.vdim = kdim or embed_dim, vdim or embed_dim
        self.head_dim = embed_dim // num_heads
        widths = {"q_proj_weight": embed_dim, "k_proj_weight": self.kdim, "v_proj_weight": self.vdim}
        self._qkv_same_embed_dim = set(widths.values()) == {embed_dim}
        if self._qkv_same_embed_dim:
            self.in_proj_weight = empty((3 * embed_dim, embed_dim), device, dtype)
        for name, width in widths.items():
            value = None if self._qkv_same_embed_dim else empty((embed_dim, width), device, dtype)
            self.register_parameter(name, value)
        if not self._qkv_same_embed_dim:
            self.register_parameter("in_proj_weight", None)
        self.register_parameter("in_proj_bias", full((3 * embed_dim,), 0.0, device, dtype) if bias else None)
        self.out_proj = Linear(embed_dim, embed_dim, bias, device, dtype)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        for bias in (self.in_proj_bias, self.out_proj.bias):
            if bias is not None:
                init.zeros_(bias)

    def forward(
        self,
        query: Array,
        key: Array,
        value: Array,
        key_padding_mask: Array | None = None,
        need_weights: bool = True,
        attn_mask: Array | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Array, Array | None]:
        """f[T, N, E] (f[N, T, E] with batch_first, or f[T, E]), and the weights of attention if they are needed.

        Masks of bools are True where attention is not allowed; of floats, they are added. Raises GraphError for
        is_causal without an attn_mask.
        """
        if is_causal and attn_mask is None:
            raise GraphError(located("MultiheadAttention: is_causal is a hint about attn_mask; give that too"))
        axes = [len(shape_of(x)) for x in (query, key, value)]
        if axes[0] not in (2, 3) or set(axes) != {axes[0]}:
            raise ShapeError(located(f"MultiheadAttention: query, key and value have 2 or 3 axes alike, not {axes}"))
        single = axes[0] == 2
        inputs = [self._by_batch(x, single) for x in (query, key, value)]
        q, k, v = map(self._heads, self._projected(*inputs))
        mask = _allowed(attn_mask, key_padding_mask, self.num_heads, single, q)
        p = self.dropout if self.training else 0.0
        weights = None
        if need_weights or p:
            weights = F.dropout(attention_weights(q, k, mask), p)
            mixed = ops.matmul(weights, v)
        else:
            mixed = ops.attention(q, k, v, mask=mask)
        output = self.out_proj(self._together(mixed))
        if single:
            output = ops.squeeze(output, 0)
        elif not self.batch_first:
            output = ops.permute_dims(output, (1, 0, 2))
        if not need_weights or weights is None:
            return output, None
        weights = ops.mean(weights, axis=1) if average_attn_weights else weights
        return output, ops.squeeze(weights, 0) if single else weights

    def _by_batch(self, x: Array, single: bool) -> Array:
        """f[N, T, E]."""
        return ops.expand_dims(x, 0) if single else x if self.batch_first else ops.permute_dims(x, (1, 0, 2))

    def _projected(self, query: Array, key: Array, value: Array) -> list[Array]:
        bias, width = self.in_proj_bias, self.embed_dim
        packed, places = self.in_proj_weight, [(i * width, (i + 1) * width) for i in range(3)]
        biases = [None] * 3 if bias is None else [cut(bias, 0, *place) for place in places]
        # Not one product that is cut afterwards: the gradient of a slice is as large as the whole.
        weights = [self.q_proj_weight, self.k_proj_weight, self.v_proj_weight]
        weights = weights if packed is None else [cut(packed, 0, *place) for place in places]
        return [F.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True)]

    def _heads(self, x: Array) -> Array:
        """f[N, T, E] -> f[N, heads, T, E / heads]."""
        batch, length, _ = shape_of(x)
        return ops.permute_dims(ops.reshape(x, (batch, length, self.num_heads, self.head_dim)), (0, 2, 1, 3))

    def _together(self, x: Array) -> Array:
        """f[N, heads, T, E / heads] -> f[N, T, E]."""
        batch, _, length, _ = shape_of(x)
        return ops.reshape(ops.permute_dims(x, (0, 2, 1, 3)), (batch, length, self.embed_dim))


def _allowed(attn_mask: Array | None, padding: Array | None, heads: int, single: bool, like: Array) -> Array | None:
    """Both masks as one that `graphs.attention` takes: True where allowed, or floats that are added."""
    masks = []
    if attn_mask is not None:
        shape = shape_of(attn_mask)
        masks.append(ops.reshape(attn_mask, (shape[0] // heads, heads, *shape[1:])) if len(shape) == 3 else attn_mask)
    if padding is not None:
        padding = ops.expand_dims(padding, 0) if single else padding
        masks.append(ops.expand_dims(padding, (1, 2)))
    if not masks:
        return None
    if all(dtype_of(mask).kind == "b" for mask in masks):
        allowed = ops.logical_not(masks[0])
        return allowed if len(masks) == 1 else ops.logical_and(allowed, ops.logical_not(masks[1]))
    added = [
        ops.where(m, -np.inf, ops.zeros((), dtype=dtype_of(like))) if dtype_of(m).kind == "b" else m for m in masks
    ]
    return added[0] if len(added) == 1 else ops.add(*added)

"""Transformers (Vaswani et al., 2017): layers, stacks of layers, the whole model, and multi-head attention."""

from __future__ import annotations

import contextlib
import copy
import enum
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dynamic.nn import functional as F
from dynamic.nn import init
from dynamic.nn.containers import ModuleList
from dynamic.nn.functional.layers import attention_weights
from dynamic.nn.linear import Linear, NonDynamicallyQuantizableLinear
from dynamic.nn.module import Module
from dynamic.nn.normalization import LayerNorm
from dynamic.nn.parameter import empty, full
from dynamic.nn.simple import Dropout
from dynamic.tensor import Tensor, wrap
from graphs import ops
from graphs.errors import GraphError, OptionError, ShapeError, locate
from graphs.frontends.torch.words import as_dtype
from graphs.ops.shapes import check_groups, dtype_of, shape_of
from graphs.ops.slicing import cut

__all__ = [
    "MultiheadAttention", "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
    "TransformerEncoderLayer",
]  # fmt: skip


Array = Any


def _activation(name_or_function: str | Callable[[Array], Array]) -> Callable[[Array], Array]:
    if not isinstance(name_or_function, str):
        return name_or_function
    activations: dict[str, Callable[[Array], Array]] = {"relu": F.relu, "gelu": F.gelu}
    if name_or_function not in activations:
        raise OptionError(f"activation is 'relu', 'gelu' or a function, not {name_or_function!r}; pass a function")
    return activations[name_or_function]


class _Layer(Module):
    """Base of both layers: attentions by name, then a network at each position.

    Each of these parts has a residual around it, and a norm before or after it. Parts are made in the order in which
    PyTorch makes them, which is the order of the random numbers and of `state_dict`.
    """

    attentions: tuple[str, ...]

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        made = {"device": device, "dtype": dtype}
        for name in self.attentions:
            setattr(self, name, MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **made))
        self.linear1 = Linear(d_model, dim_feedforward, bias, **made)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **made)
        self.norm_first = norm_first
        parts = range(1, len(self.attentions) + 2)
        for i in parts:
            setattr(self, f"norm{i}", LayerNorm(d_model, layer_norm_eps, bias=bias, **made))
        for i in parts:
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = _activation(activation)

    def _feed_forward(self, x: Array, dropout: Module) -> Array:
        return dropout(self.linear2(self.dropout(self.activation(self.linear1(x)))))

    def _add_and_norm(self, x: Array, norm: Module, part: Callable[[Array], Array]) -> Array:
        return x + part(norm(x)) if self.norm_first else norm(x + part(x))

    @staticmethod
    def _attend(attention: Module, dropout: Module, x: Array, memory: Array, **masks: Any) -> Array:
        return dropout(attention(x, memory, memory, need_weights=False, **masks)[0])


class TransformerEncoderLayer(_Layer):
    """Self-attention, then a network at each position, a residual around both."""

    attentions = ("self_attn",)

    def forward(
        self,
        src: Array,
        src_mask: Array | None = None,
        src_key_padding_mask: Array | None = None,
        is_causal: bool = False,
    ) -> Array:
        """Run the layer; the shape stays the same, and masks are as in MultiheadAttention."""
        masks = {"attn_mask": src_mask, "key_padding_mask": src_key_padding_mask, "is_causal": is_causal}
        x = self._add_and_norm(src, self.norm1, lambda x: self._attend(self.self_attn, self.dropout1, x, x, **masks))
        return self._add_and_norm(x, self.norm2, lambda x: self._feed_forward(x, self.dropout2))


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to the memory of an encoder, then a network at each position."""

    attentions = ("self_attn", "multihead_attn")

    def forward(
        self,
        tgt: Array,
        memory: Array,
        tgt_mask: Array | None = None,
        memory_mask: Array | None = None,
        tgt_key_padding_mask: Array | None = None,
        memory_key_padding_mask: Array | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Array:
        """Run the layer; the result has the shape of `tgt`, and masks are as in MultiheadAttention."""
        own = {"attn_mask": tgt_mask, "key_padding_mask": tgt_key_padding_mask, "is_causal": tgt_is_causal}
        other = {"attn_mask": memory_mask, "key_padding_mask": memory_key_padding_mask, "is_causal": memory_is_causal}
        x = self._add_and_norm(tgt, self.norm1, lambda x: self._attend(self.self_attn, self.dropout1, x, x, **own))
        x = self._add_and_norm(
            x, self.norm2, lambda x: self._attend(self.multihead_attn, self.dropout2, x, memory, **other)
        )
        return self._add_and_norm(x, self.norm3, lambda x: self._feed_forward(x, self.dropout3))


class _Stack(Module):
    def __init__(self, layer: Module, num_layers: int, norm: Module | None) -> None:
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def _through(self, x: Array, *args: Any, **masks: Any) -> Array:
        for layer in self.layers:
            x = layer(x, *args, **masks)
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(_Stack):
    """Copies of one encoder layer, one after another."""

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__(encoder_layer, num_layers, norm)

    def forward(
        self,
        src: Array,
        mask: Array | None = None,
        src_key_padding_mask: Array | None = None,
        is_causal: bool | None = None,
    ) -> Array:
        """Run all layers; the shape stays the same."""
        return self._through(src, src_mask=mask, src_key_padding_mask=src_key_padding_mask, is_causal=bool(is_causal))


class TransformerDecoder(_Stack):
    """Copies of one decoder layer, one after another."""

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    def forward(
        self,
        tgt: Array,
        memory: Array,
        tgt_mask: Array | None = None,
        memory_mask: Array | None = None,
        tgt_key_padding_mask: Array | None = None,
        memory_key_padding_mask: Array | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Array:
        """Run all layers; the result has the shape of `tgt`."""
        masks = {"tgt_mask": tgt_mask, "memory_mask": memory_mask, "tgt_key_padding_mask": tgt_key_padding_mask}
        causal = {"tgt_is_causal": bool(tgt_is_causal), "memory_is_causal": memory_is_causal}
        return self._through(tgt, memory, **masks, memory_key_padding_mask=memory_key_padding_mask, **causal)


class Transformer(Module):
    """A transformer of an encoder and a decoder."""

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = F.relu,
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        layer = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)

        def norm() -> Module:
            return LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)

        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*layer, device=device, dtype=dtype), num_encoder_layers, norm()
        )
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*layer, device=device, dtype=dtype), num_decoder_layers, norm()
        )
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        for param in self.parameters():
            if len(param.shape) > 1:
                init.xavier_uniform_(param)

    def forward(
        self,
        src: Array,
        tgt: Array,
        src_mask: Array | None = None,
        tgt_mask: Array | None = None,
        memory_mask: Array | None = None,
        src_key_padding_mask: Array | None = None,
        tgt_key_padding_mask: Array | None = None,
        memory_key_padding_mask: Array | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Array:
        """Run encoder and decoder; the result has the shape of `tgt`."""
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        masks = (tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        return self.decoder(tgt, memory, *masks, tgt_is_causal, memory_is_causal)

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """f[sz, sz]: 0 where attention is allowed, up to the position itself, and -inf elsewhere."""
        return wrap(np.triu(np.full((sz, sz), -np.inf, as_dtype(dtype)), 1))


class SDPBackend(enum.Enum):
    """The names of PyTorch's kernels for attention; here there is one kernel."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextlib.contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False) -> Iterator[None]:
    """A block without effect, whichever kernels are named. Raises ValueError for a value that is no SDPBackend."""
    del set_priority
    for backend in backends if isinstance(backends, (list, tuple)) else [backends]:
        if not isinstance(backend, SDPBackend):
            raise OptionError(locate(f"sdpa_kernel: {backend!r} is no kernel; give one of SDPBackend"))
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
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias, device, dtype)
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
        """f[T, N, E] (f[N, T, E] with batch_first, or f[T, E]), and the attention weights if they are needed.

        A bool mask is True where attention is not allowed; a float mask is added. Raises GraphError for is_causal
        without an attn_mask.
        """
        if is_causal and attn_mask is None:
            raise GraphError(locate("MultiheadAttention: is_causal is a hint about attn_mask; give that too"))
        axes = [len(shape_of(x)) for x in (query, key, value)]
        if axes[0] not in (2, 3) or set(axes) != {axes[0]}:
            raise ShapeError(locate(f"MultiheadAttention: query, key and value have 2 or 3 axes alike, not {axes}"))
        single = axes[0] == 2
        inputs = [self._by_batch(x, single) for x in (query, key, value)]
        q, k, v = map(self._heads, self._project(*inputs))
        mask = _combine_masks(attn_mask, key_padding_mask, self.num_heads, single, q)
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
        """The input as f[N, T, E]."""
        return ops.expand_dims(x, 0) if single else x if self.batch_first else ops.permute_dims(x, (1, 0, 2))

    def _project(self, query: Array, key: Array, value: Array) -> list[Array]:
        bias, width = self.in_proj_bias, self.embed_dim
        packed, places = self.in_proj_weight, [(i * width, (i + 1) * width) for i in range(3)]
        biases = [None] * 3 if bias is None else [cut(bias, 0, *place) for place in places]
        # Not one product that is sliced afterwards: the gradient of a slice is as large as the whole.
        weights = [self.q_proj_weight, self.k_proj_weight, self.v_proj_weight]
        weights = weights if packed is None else [cut(packed, 0, *place) for place in places]
        return [F.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True)]

    def _heads(self, x: Array) -> Array:
        """Split the heads: f[N, T, E] -> f[N, heads, T, E / heads]."""
        batch, length, _ = shape_of(x)
        return ops.permute_dims(ops.reshape(x, (batch, length, self.num_heads, self.head_dim)), (0, 2, 1, 3))

    def _together(self, x: Array) -> Array:
        """Merge the heads: f[N, heads, T, E / heads] -> f[N, T, E]."""
        batch, _, length, _ = shape_of(x)
        return ops.reshape(ops.permute_dims(x, (0, 2, 1, 3)), (batch, length, self.embed_dim))


def _combine_masks(
    attn_mask: Array | None, padding: Array | None, heads: int, single: bool, like: Array
) -> Array | None:
    """Combine both masks for `graphs.attention`: True where attention is allowed, or floats that are added."""
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

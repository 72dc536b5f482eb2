"""The layers of transformers (Vaswani et al., 2017), and stacks of them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from dynamic.nn import functional as F
from dynamic.nn import init
from dynamic.nn.attention import MultiheadAttention
from dynamic.nn.containers import ModuleList
from dynamic.nn.linear import Linear
from dynamic.nn.module import Module
from dynamic.nn.normalization import LayerNorm
from dynamic.nn.simple import Dropout
from dynamic.tensor import Tensor
from graphs.errors import OptionError

__all__ = [
    "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer",
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
    """What both layers have: attentions by name, then a network at each position.

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

    def _added(self, x: Array, norm: Module, part: Callable[[Array], Array]) -> Array:
        return x + part(norm(x)) if self.norm_first else norm(x + part(x))

    @staticmethod
    def _attended(attention: Module, dropout: Module, x: Array, memory: Array, **masks: Any) -> Array:
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
        """The same shape; masks as MultiheadAttention takes them."""
        masks = {"attn_mask": src_mask, "key_padding_mask": src_key_padding_mask, "is_causal": is_causal}
        x = self._added(src, self.norm1, lambda x: self._attended(self.self_attn, self.dropout1, x, x, **masks))
        return self._added(x, self.norm2, lambda x: self._feed_forward(x, self.dropout2))


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
        """The shape of `tgt`; masks as MultiheadAttention takes them."""
        own = {"attn_mask": tgt_mask, "key_padding_mask": tgt_key_padding_mask, "is_causal": tgt_is_causal}
        other = {"attn_mask": memory_mask, "key_padding_mask": memory_key_padding_mask, "is_causal": memory_is_causal}
        x = self._added(tgt, self.norm1, lambda x: self._attended(self.self_attn, self.dropout1, x, x, **own))
        x = self._added(x, self.norm2, lambda x: self._attended(self.multihead_attn, self.dropout2, x, memory, **other))
        return self._added(x, self.norm3, lambda x: self._feed_forward(x, self.dropout3))


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
        """The same shape."""
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
        """The shape of `tgt`."""
        masks = {"tgt_mask": tgt_mask, "memory_mask": memory_mask, "tgt_key_padding_mask": tgt_key_padding_mask}
        causal = {"tgt_is_causal": bool(tgt_is_causal), "memory_is_causal": memory_is_causal}
        return self._through(tgt, memory, **masks, memory_key_padding_mask=memory_key_padding_mask, **causal)


class Transformer(Module):
    """An encoder and a decoder."""

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
        """The shape of `tgt`."""
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        masks = (tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        return self.decoder(tgt, memory, *masks, tgt_is_causal, memory_is_causal)

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """f[sz, sz]: 0 where attention is allowed, up to the own position, and -inf elsewhere."""
        return Tensor(np.triu(np.full((sz, sz), -np.inf, np.float32 if dtype is None else dtype), 1))

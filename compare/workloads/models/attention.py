"""Attention of several heads, as the transformers here share it."""

import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    """Queries of `x`, keys and values of `memory`, both (batch, tokens, width); `mask` is added to scores, or bool."""

    def __init__(self, width, heads, bias=True):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width, bias) for _ in range(3))
        self.out = nn.Linear(width, width, bias)

    def forward(self, x, memory=None, mask=None, causal=False):
        """What each query has read, (batch, tokens, width)."""
        memory = x if memory is None else memory
        q, k, v = (self._split(tensor) for tensor in (self.query(x), self.key(memory), self.value(memory)))
        read = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)
        return self.out(read.transpose(1, 2).flatten(2))

    def _split(self, x):
        return x.unflatten(2, (self.heads, -1)).transpose(1, 2)

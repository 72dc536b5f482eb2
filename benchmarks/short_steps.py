"""Six steps of PyTorch of 40 to 400 µs, for `benchmarks.by_hand`: what is added to a call shows in them first."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
labels = torch.randint(0, 10, (256,))
mlp = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))
norm = nn.LayerNorm(64)
gate = nn.Linear(64, 128)
heads = nn.Linear(32, 96)
cell = nn.GRUCell(16, 32)


def cross_entropy(logits: Any) -> Any:
    """256 rows of 10 classes."""
    return functional.cross_entropy(logits, labels)


def penalty(w: Any) -> Any:
    """Five elementwise ops on 4,096 numbers."""
    return (torch.tanh(w) * torch.sigmoid(w) + 0.1 * w * w).mean()


def perceptron(x: Any) -> Any:
    """Two layers and cross entropy, 64 examples."""
    return functional.cross_entropy(mlp(x), labels[: x.shape[0]])


def gated(x: Any) -> Any:
    """A normalisation and a gated layer, 32 rows."""
    value, weight = gate(norm(x)).chunk(2, dim=-1)
    return (value * functional.gelu(weight)).pow(2).mean()


def attention(x: Any) -> Any:
    """Four heads that look back over 16 places, 4 examples."""
    queries, keys, values = heads(x).unflatten(-1, (3, 4, 8)).permute(2, 0, 3, 1, 4)
    return functional.scaled_dot_product_attention(queries, keys, values, is_causal=True).pow(2).mean()


def recurrent(x: Any) -> Any:
    """Two steps of a GRU of 32, 16 examples."""
    return cell(x[1], cell(x[0])).pow(2).mean()


cross_entropy_calls = [(torch.randn(256, 10, requires_grad=True),)]
penalty_calls = [(torch.randn(64, 64, requires_grad=True),)]
perceptron_calls = [(torch.randn(64, 32),)]
gated_calls = [(torch.randn(32, 64),)]
attention_calls = [(torch.randn(4, 16, 32),)]
recurrent_calls = [(torch.randn(2, 16, 16),)]

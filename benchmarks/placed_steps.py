"""Three training steps of PyTorch whose models have blocks that repeat, for `benchmarks.places`.

`BLOCKS` says which classes of modules repeat in each, and how often: the outermost of each class.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)


class DecoderBlock(nn.Module):
    """Attention of four heads that looks back, and a feed-forward part."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.heads, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        """Return values of the shape of `x`, (batch, length, width)."""
        queries, keys, values = self.heads(self.norms[0](x)).unflatten(-1, (3, 4, -1)).permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        return x + self.down(functional.gelu(self.up(self.norms[1](x))))


class Mixer(nn.Module):
    """An MLP over the patches, and one over the channels."""

    def __init__(self, patches: int, width: int) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.patches = nn.Sequential(nn.Linear(patches, 64), nn.GELU(), nn.Linear(64, patches))
        self.channels = nn.Sequential(nn.Linear(width, 128), nn.GELU(), nn.Linear(128, width))

    def forward(self, x: Any) -> Any:
        """Return values of the shape of `x`, (batch, patches, width)."""
        x = x + self.patches(self.before(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.between(x))


class Gate(nn.Module):
    """A gated layer, which stands in each residual block."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.value, self.weight = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: Any) -> Any:
        """Return values of the shape of `x`."""
        return torch.tanh(self.value(x)) * torch.sigmoid(self.weight(x))


class Residual(nn.Module):
    """A residual block around a gate."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.gate = nn.LayerNorm(width), Gate(width)

    def forward(self, x: Any) -> Any:
        """Return values of the shape of `x`."""
        return x + self.gate(self.norm(x))


class Stage(nn.Module):
    """Three residual blocks and a layer that closes them."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.blocks, self.last = nn.ModuleList([Residual(width) for _ in range(3)]), nn.Linear(width, width)

    def forward(self, x: Any) -> Any:
        """Return values of the shape of `x`."""
        for block in self.blocks:
            x = block(x)
        return functional.relu(self.last(x))


decoder = nn.Sequential(nn.Embedding(65, 128), *(DecoderBlock(128) for _ in range(6)), nn.Linear(128, 65))
decoder_rates = torch.optim.AdamW(decoder.parameters(), lr=1e-4)
mixer = nn.Sequential(nn.Linear(48, 96), *(Mixer(64, 96) for _ in range(8)), nn.Linear(96, 10))
staged = nn.Sequential(nn.Linear(64, 256), Stage(256), Stage(256), nn.Linear(256, 10))


def transformer(x: Any, y: Any) -> Any:
    """A training step of six blocks with AdamW, on 8 lines of 64 tokens."""
    decoder_rates.zero_grad()
    loss = functional.cross_entropy(decoder(x).flatten(0, 1), y.flatten())
    loss.backward()
    decoder_rates.step()
    return loss.detach()


def mlp_mixer(x: Any, y: Any) -> Any:
    """The loss of eight mixers, on 16 pictures of 64 patches."""
    return functional.cross_entropy(mixer(x).mean(1), y)


def nested(x: Any, y: Any) -> Any:
    """The loss of two stages of three residual blocks, each with a gate, on 512 rows."""
    return functional.cross_entropy(staged(x), y)


transformer_calls = [(torch.randint(0, 65, (8, 64)), torch.randint(0, 65, (8, 64)))]
mlp_mixer_calls = [(torch.randn(16, 64, 48), torch.randint(0, 10, (16,)))]
nested_calls = [(torch.randn(512, 64), torch.randint(0, 10, (512,)))]

BLOCKS = {
    "transformer": {"DecoderBlock": 6},
    "mlp_mixer": {"Mixer": 8},
    "nested": {"Stage": 2, "Residual": 6, "Gate": 6},
}

"""Steps of PyTorch's that draw random numbers: a diffusion model, a flow, a recommender; and what draws, by name."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

Made = tuple[Callable[..., Any], list[tuple[Any, ...]]]
"""A loss and its calls."""


def diffusion() -> Made:
    """The loss of a denoiser at random times, of a network that goes down and up again."""
    import torch
    from torch import nn
    from torch.nn import functional as F  # noqa: N812  (as everybody calls it)

    class Block(nn.Module):
        def __init__(self, into: int, out: int) -> None:
            super().__init__()
            self.first, self.last = nn.Conv2d(into, out, 3, padding=1), nn.Conv2d(out, out, 3, padding=1)
            self.norm, self.time, self.beside = nn.GroupNorm(4, out), nn.Linear(16, out), nn.Conv2d(into, out, 1)

        def forward(self, x: Any, t: Any) -> Any:
            h = F.silu(self.norm(self.first(x))) + self.time(t)[:, :, None, None]
            return self.last(F.dropout(F.silu(h), 0.1, self.training)) + self.beside(x)

    torch.manual_seed(0)
    down, middle, up = Block(1, 8), Block(8, 16), Block(24, 8)
    out, kept = nn.Conv2d(8, 1, 1), torch.cumprod(1 - torch.linspace(1e-4, 0.02, 1000), 0)

    def denoised(x: Any, t: Any) -> Any:
        angles = t[:, None].float() * torch.exp(-math.log(1e4) * torch.arange(8) / 8)
        t = torch.cat([angles.sin(), angles.cos()], 1)
        fine = down(x, t)
        coarse = middle(F.avg_pool2d(fine, 2), t)
        return out(up(torch.cat([F.interpolate(coarse, scale_factor=2), fine], 1), t))

    def loss(x: Any) -> Any:
        t, noise = torch.randint(0, 1000, (x.shape[0],)), torch.randn_like(x)
        share = kept[t][:, None, None, None]
        return F.mse_loss(denoised(share.sqrt() * x + (1 - share).sqrt() * noise, t), noise)

    return loss, [(torch.randn(2, 1, 8, 8),)]


def flow() -> Made:
    """The likelihood of data under couplings that scale and shift one half by the other, with noise on the data."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    nets = nn.ModuleList(nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 6)) for _ in range(6))
    base = torch.distributions.Normal(0.0, 1.0)

    def loss(x: Any) -> Any:
        x, volume = x + torch.rand_like(x) / 256, torch.zeros(())
        for net in nets:
            one, other = x.chunk(2, 1)
            scale, shift = net(one).chunk(2, 1)
            scale = 2 * torch.tanh(scale)
            x, volume = torch.cat((other * scale.exp() + shift, one), 1), volume + scale.sum(1)
        return -(base.log_prob(x).sum(1) + volume).mean()

    return loss, [(torch.randn(32, 6),)]


def recommender() -> Made:
    """The loss of the next item in padded sequences, of items that were taken and items that were not."""
    import torch
    from torch import nn
    from torch.nn import functional as F  # noqa: N812  (as everybody calls it)

    torch.manual_seed(0)
    items, places = nn.Embedding(100, 16, padding_idx=0), nn.Embedding(10, 16)
    layer, norm = nn.TransformerEncoderLayer(16, 2, 32, 0.2, batch_first=True, norm_first=True), nn.LayerNorm(16)
    later = torch.triu(torch.ones(10, 10, dtype=torch.bool), 1)

    def loss(seen: Any, taken: Any, left: Any) -> Any:
        x = F.dropout(items(seen) * 4 + places(torch.arange(10)), 0.2)
        hidden, counts = norm(layer(x, src_mask=later)), taken != 0
        good, bad = (hidden * items(taken)).sum(-1), (hidden * items(left)).sum(-1)
        return (F.softplus(-good)[counts] + F.softplus(bad)[counts]).mean()

    seen, taken, left = (torch.randint(1, 100, (4, 10)) for _ in range(3))
    seen[:, :3], taken[:, :2] = 0, 0
    return loss, [(seen, taken, left)]


STEPS = {"diffusion": diffusion, "flow": flow, "recommender": recommender}


def _drawing(expression: str) -> Callable[[Any], Any]:
    """A function of a tensor `x` of four rows and five columns."""

    def draw(x: Any) -> Any:
        import torch

        return eval(expression, {"torch": torch, "F": torch.nn.functional, "x": x})

    return draw


DRAWS = {
    name: _drawing(expression)
    for name, expression in {
        "dropout": "F.dropout(x, 0.3)",
        "dropout in place": "F.dropout(x * 1, 0.3, inplace=True)",
        "channels": "F.dropout2d(x[None, :, :, None], 0.5)",
        "alpha": "F.alpha_dropout(x, 0.5, True)",
        "attention": "F.scaled_dot_product_attention(x[None], x[None], x[None], dropout_p=0.3)",
        "gumbel": "F.gumbel_softmax(x)",
        "reparametrised": "torch.distributions.Normal(x, x.exp()).rsample()",
        "sampled": "torch.distributions.Normal(x, x.exp()).sample() * x",
        "an order": "x[torch.randperm(4)]",
        "classes": "x[:, torch.multinomial(x.exp()[0], 3)]",
        "coins": "torch.bernoulli(x.sigmoid()) * x",
        "several": "x * torch.rand(5) + torch.randn_like(x) + torch.randint(0, 9, (5,))",
        "mapped": "torch.func.vmap(lambda row: F.dropout(row, 0.5), randomness='different')(x)",
        "a slope": "F.rrelu(x, training=True)",
        "one op": "torch.native_dropout(x, 0.5, True)[0]",
    }.items()
}
NOT_ALONE = ("a slope", "one op")
"""What gives more than what it draws."""

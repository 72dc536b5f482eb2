"""A transformer of equal blocks with AdamW: one training step."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width=64, heads=4):
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        h = self.first(x)
        x = x + self.attention(h, h, h, need_weights=False)[0]
        return x + self.mlp(self.second(x))


torch.manual_seed(0)
model = nn.Sequential(*[Block() for _ in range(6)], nn.Linear(64, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)


def step(x, y):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x).mean(1), y)
    loss.backward()
    optimizer.step()
    return loss


def batches():
    return [(torch.randn(8, 16, 64), torch.randint(0, 10, (8,)))]

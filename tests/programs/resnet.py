"""Residual blocks with group norm, average pooling, a cosine schedule, gradients that add up over two batches."""

import numpy as np

import dynamic as torch
import dynamic.nn as nn
import dynamic.nn.functional as F
from tests.programs import start


class Block(nn.Module):
    def __init__(self, inner, outer, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.norm1 = nn.GroupNorm(2, outer)
        self.conv2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.norm2 = nn.GroupNorm(2, outer)
        self.shortcut = nn.Identity() if inner == outer else nn.Conv2d(inner, outer, 1, stride)

    def forward(self, x):
        out = F.relu(self.norm1(self.conv1(x)))
        out = self.norm2(self.conv2(out))
        out += self.shortcut(x)
        return F.relu(out)


rng = np.random.default_rng(0)
layers = [Block(3, 4), Block(4, 8, 2), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(32, 5)]
model = start(nn.Sequential(*layers))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
losses = []
for step in range(8):
    x = torch.tensor(rng.standard_normal((3, 3, 8, 8)).astype(np.float32))
    y = torch.tensor(rng.integers(0, 5, 3))
    loss = F.cross_entropy(model(x), y) / 2
    loss.backward()
    if step % 2:
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()
    losses.append(loss.item())

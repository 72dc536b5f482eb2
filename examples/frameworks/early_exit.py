"""A network that leaves at its first exit when that is sure enough: a branch on a value, of which both sides are met.

graphduel compare examples/frameworks/early_exit.py:loss --framework torch
"""

import torch
import torch.nn.functional as F
from torch import nn


class EarlyExit(nn.Module):
    def __init__(self, threshold=1.5):
        super().__init__()
        self.threshold = threshold
        self.stem = nn.Sequential(nn.Linear(64, 256), nn.ReLU())
        self.exit1 = nn.Linear(256, 10)
        self.trunk = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU())
        self.exit2 = nn.Linear(256, 10)

    def forward(self, x):
        h = self.stem(x)
        first = self.exit1(h)
        p = F.softmax(first, dim=1)
        entropy = -(p * p.log()).sum(dim=1).mean()
        if entropy < self.threshold:
            return first
        return self.exit2(self.trunk(h))


def loss(model, x, y):
    return F.cross_entropy(model(x), y)


def batches():
    torch.manual_seed(0)
    model = EarlyExit()
    # large inputs make the first exit sure of itself
    return [(model, scale * torch.randn(32, 64), torch.randint(0, 10, (32,))) for scale in (1.0, 20.0, 1.0, 20.0)]

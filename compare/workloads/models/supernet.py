"""A supernet of neural architecture search (Guo et al., Single Path One-Shot, ECCV 2020): each step trains one path.

4 layers with 3 candidates each, over 64 features, 59,082 parameters; batches of 128.
Licence: our own code, under that of the project.
"""

import torch
from torch import nn
from torch.nn import functional as F

DEPTH, WIDTH = 4, 64


def candidates():
    """A linear layer, a bottleneck, and a gate."""
    narrow = nn.Sequential(nn.Linear(WIDTH, 16), nn.ReLU(), nn.Linear(16, WIDTH))
    return nn.ModuleList([nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU()), narrow, Gate()])


class Gate(nn.Module):
    """What passes, times how much of it."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, 2 * WIDTH)

    def forward(self, x):
        return F.glu(self.linear(x))


class Supernet(nn.Module):
    """The candidate that is chosen in each layer."""

    def __init__(self, classes=10):
        super().__init__()
        self.layers, self.head = nn.ModuleList(candidates() for _ in range(DEPTH)), nn.Linear(WIDTH, classes)

    def forward(self, x, path):
        for layer, choice in zip(self.layers, path, strict=True):
            x = x + layer[choice](x)
        return self.head(x)


torch.manual_seed(0)
model = Supernet()
inputs = [
    (torch.randn(128, WIDTH), torch.randint(0, 10, (128,)), tuple(torch.randint(0, 3, (DEPTH,)).tolist()))
    for _ in range(6)
]


def loss(x, labels, path):
    """The cross entropy of a batch."""
    return F.cross_entropy(model(x, path), labels)

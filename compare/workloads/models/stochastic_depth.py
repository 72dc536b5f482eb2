"""A residual network with stochastic depth (Huang et al., ECCV 2016): each step runs the blocks that were drawn for it.

6 blocks of 16 channels on images of 32 by 32, 14,730 parameters; batches of 8.
Licence: our own code, under that of the project.
"""

import torch
from torch import nn
from torch.nn import functional as F

DEPTH, WIDTH = 6, 16


class Block(nn.Module):
    """A normalised convolution with a shortcut."""

    def __init__(self):
        super().__init__()
        self.convolution, self.norm = nn.Conv2d(WIDTH, WIDTH, 3, padding=1), nn.BatchNorm2d(WIDTH)

    def forward(self, x):
        return F.relu(x + self.norm(self.convolution(x)))


class Network(nn.Module):
    """The blocks that are kept, one after another."""

    def __init__(self, classes=10):
        super().__init__()
        self.stem, self.head = nn.Conv2d(3, WIDTH, 3, padding=1), nn.Linear(WIDTH, classes)
        self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))

    def forward(self, images, kept):
        x = self.stem(images)
        for number in kept:
            x = self.blocks[number](x)
        return self.head(x.mean((2, 3)))


torch.manual_seed(0)
model = Network()
_kept = [tuple(place for place, drawn in enumerate(torch.rand(DEPTH)) if drawn < 0.7) for _ in range(6)]
inputs = [(torch.randn(8, 3, 32, 32), torch.randint(0, 10, (8,)), kept) for kept in _kept]


def loss(images, labels, kept):
    """The cross entropy of a batch."""
    return F.cross_entropy(model(images, kept), labels)

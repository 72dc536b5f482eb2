"""WaveNet's stack of dilated causal convolutions.

Each layer sees twice as far back as the one before; gates, residuals, and a sum over all layers.
Source: van den Oord et al., WaveNet, 2016 (arXiv:1609.03499).
Licence: our own code, under that of the project.
Sizes: 2 stacks of 5 layers, width 16, 64 levels of sound instead of 256, pieces of 256 samples, batches of 2.
"""

import torch
import torch.nn.functional as F
from torch import nn

LEVELS, WIDTH, STACKS, DEPTH = 64, 16, 2, 5


class Layer(nn.Module):
    def __init__(self, dilation):
        super().__init__()
        self.dilation = dilation
        self.both = nn.Conv1d(WIDTH, 2 * WIDTH, 2, dilation=dilation)
        self.out, self.skip = nn.Conv1d(WIDTH, WIDTH, 1), nn.Conv1d(WIDTH, WIDTH, 1)

    def forward(self, x):
        signal, gate = self.both(F.pad(x, (self.dilation, 0))).chunk(2, dim=1)
        hidden = torch.tanh(signal) * torch.sigmoid(gate)
        return x + self.out(hidden), self.skip(hidden)


class WaveNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.levels = nn.Embedding(LEVELS, WIDTH)
        self.layers = nn.ModuleList(Layer(1 << depth) for _ in range(STACKS) for depth in range(DEPTH))
        self.head = nn.Sequential(nn.ReLU(), nn.Conv1d(WIDTH, WIDTH, 1), nn.ReLU(), nn.Conv1d(WIDTH, LEVELS, 1))

    def forward(self, sound):
        x, total = self.levels(sound).transpose(1, 2), 0
        for layer in self.layers:
            x, skipped = layer(x)
            total = total + skipped
        return self.head(total)


def loss(model, sound):
    return F.cross_entropy(model(sound[:, :-1]), sound[:, 1:])


def batches():
    torch.manual_seed(0)
    model = WaveNet()
    return [(model, torch.randint(0, LEVELS, (2, 257))) for _ in range(3)]

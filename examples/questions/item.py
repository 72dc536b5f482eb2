"""A loss that reads a value of a tensor for its scale: the graph ends there, and another begins."""

import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))

    def forward(self, x):
        scale = x.detach().abs().max().item()
        return self.layers(x / scale) * scale


def loss(model, x):
    return model(x).square().mean()


def batches():
    torch.manual_seed(0)
    model = Scaled()
    return [(model, torch.randn(64, 32))]

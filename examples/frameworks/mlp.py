"""A perceptron as in PyTorch's quickstart, on made-up images: full batches of 64, and the last one of an epoch.

graphduel compare examples/frameworks/mlp.py:loss --framework torch
"""

import torch
from torch import nn


class NeuralNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.flatten = nn.Flatten()
        self.linear_relu_stack = nn.Sequential(
            nn.Linear(28 * 28, 512),
            nn.ReLU(),
            nn.Linear(512, 512),
            nn.ReLU(),
            nn.Linear(512, 10),
        )

    def forward(self, x):
        x = self.flatten(x)
        logits = self.linear_relu_stack(x)
        return logits


def loss(model, x, y):
    return nn.functional.cross_entropy(model(x), y)


def batches():
    torch.manual_seed(0)
    model = NeuralNetwork()
    return [(model, torch.rand(n, 1, 28, 28), torch.randint(0, 10, (n,))) for n in (64, 64, 64, 32)]

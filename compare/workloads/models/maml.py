"""MAML: gradients through steps of gradient descent, on curves of a sine.

Source: Finn et al., Model-Agnostic Meta-Learning, 2017 (arXiv:1703.03400).
Licence: our own code, under that of the project.
Sizes: two hidden layers of 40 units as published, 4 tasks of 10 points, 2 inner steps.
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call

TASKS, POINTS, INNER_STEPS, RATE = 4, 10, 2, 0.01


def loss(model, x, y, x_test, y_test):
    total = 0
    for task in range(TASKS):
        weights = dict(model.named_parameters())
        for _ in range(INNER_STEPS):
            error = F.mse_loss(functional_call(model, weights, (x[task],)), y[task])
            slopes = torch.autograd.grad(error, list(weights.values()), create_graph=True)
            weights = {name: w - RATE * slope for (name, w), slope in zip(weights.items(), slopes, strict=True)}
        total = total + F.mse_loss(functional_call(model, weights, (x_test[task],)), y_test[task])
    return total / TASKS


def batches():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(1, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU(), nn.Linear(40, 1))
    return [(model, *_tasks()) for _ in range(3)]


def _tasks():
    height, shift = torch.rand(TASKS, 1, 1) * 4.9 + 0.1, torch.rand(TASKS, 1, 1) * torch.pi
    x, x_test = (torch.rand(TASKS, POINTS, 1) * 10 - 5 for _ in range(2))
    return x, height * torch.sin(x - shift), x_test, height * torch.sin(x_test - shift)

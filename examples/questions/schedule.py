"""A learning rate that a schedule changes after every step: the optimizer reads it as a number of Python's."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)


def step(x):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    schedule.step()
    return loss


def batches():
    return [(torch.randn(32, 16),) for _ in range(6)]

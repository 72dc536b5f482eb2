"""A neural differential equation, solved with steps that adapt to the error.

How many steps there are is decided by values: a loop of Python until the end of time is reached.
Source: Chen et al., Neural Ordinary Differential Equations, 2018 (arXiv:1806.07366); the pair of methods is that of
Bogacki and Shampine, Appl. Math. Lett. 2, 1989.
Licence: our own code, under that of the project.
Sizes: two variables, 64 hidden units, batches of 16 starts, times of 0.5 to 1.5.
"""

import torch
import torch.nn.functional as F
from torch import nn

TOLERANCE = 1e-3


def solved(field, y, end):
    """The state at the end, by an embedded Runge-Kutta pair of the orders 3 and 2."""
    time, size = 0.0, 0.25
    k1 = field(y)
    while time < end:
        size = min(size, end - time)
        k2 = field(y + size / 2 * k1)
        k3 = field(y + 3 * size / 4 * k2)
        after = y + size * (2 * k1 + 3 * k2 + 4 * k3) / 9
        k4 = field(after)
        off = size * (-5 * k1 / 72 + k2 / 12 + k3 / 9 - k4 / 8)
        error = float((off / (TOLERANCE * (1 + y.abs()))).square().mean().sqrt().detach())
        if error <= 1:
            time, y, k1 = time + size, after, k4
        size *= min(4.0, max(0.2, 0.9 * max(error, 1e-6) ** (-1 / 3)))
        if end - time < 1e-6:
            break
    return y


def loss(field, start, end, target):
    return F.mse_loss(solved(field, start, end), target)


def batches():
    torch.manual_seed(0)
    field = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 2))
    for parameter in field.parameters():
        parameter.data *= 3
    return [(field, torch.randn(16, 2), end, torch.randn(16, 2)) for end in (1.0, 0.5, 1.5)]

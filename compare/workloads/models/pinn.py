"""A network that solves Burgers' equation: its second derivatives are in the loss.

Source: Raissi et al., Physics-informed neural networks, J. Comput. Phys. 378, 2019 (arXiv:1711.10561).
Licence: our own code, under that of the project.
Sizes: 4 hidden layers of 20 units, 256 points inside and 64 on the border.
"""

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import nn

VISCOSITY = 0.01 / torch.pi


def slope(values, x):
    return torch.autograd.grad(values.sum(), x, create_graph=True)[0]


def loss(model, t, x, t_border, x_border, u_border):
    t, x = t.detach().requires_grad_(), x.detach().requires_grad_()
    u = model(torch.cat([t, x], dim=1))
    u_x = slope(u, x)
    off = slope(u, t) + u * u_x - VISCOSITY * slope(u_x, x)
    at_border = model(torch.cat([t_border, x_border], dim=1))
    return off.square().mean() + F.mse_loss(at_border, u_border)


def batches():
    torch.manual_seed(0)
    widths, layers = [2, 20, 20, 20, 20], []
    for width, out in pairwise(widths):
        layers += [nn.Linear(width, out), nn.Tanh()]
    model = nn.Sequential(*layers, nn.Linear(20, 1))
    return [(model, *_points()) for _ in range(3)]


def _points(inside=256, border=64):
    t, x = torch.rand(inside, 1), torch.rand(inside, 1) * 2 - 1
    x_border = torch.rand(border, 1) * 2 - 1
    return t, x, torch.zeros(border, 1), x_border, -torch.sin(torch.pi * x_border)

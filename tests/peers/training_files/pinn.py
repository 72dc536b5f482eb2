import torch
from torch import nn

net = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 1))


def residual(x, t):
    x.requires_grad = True
    t.requires_grad = True
    u = net(torch.cat([x, t], dim=1))
    u_t = torch.autograd.grad(u.sum(), t, create_graph=True)[0]
    u_x = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
    u_xx = torch.autograd.grad(u_x.sum(), x, create_graph=True)[0]
    return u_t + u * u_x - 0.01 * u_xx


def loss(x, t):
    return residual(x, t).pow(2).mean()


inputs = [(torch.rand(50, 1), torch.rand(50, 1)) for _ in range(2)]

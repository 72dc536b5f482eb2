"""Attention with rotary positions in bfloat16: compiled and eager numbers differ, as every two roundings do."""

import torch


def rotate(x):
    a, b = x.chunk(2, -1)
    return torch.cat((-b, a), -1)


def loss(x, w, cos, sin):
    q, k, v = (x @ w).chunk(3, -1)
    q, k = q * cos + rotate(q) * sin, k * cos + rotate(k) * sin
    attention = torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5, -1)
    return (attention @ v).float().square().mean()


def batches():
    torch.manual_seed(0)
    angles = torch.outer(torch.arange(16.0), 10000 ** (-torch.arange(0, 1, 1 / 16)))
    angles = torch.cat((angles, angles), -1)
    given = torch.randn(4, 16, 32), torch.randn(32, 96) / 6, angles.cos(), angles.sin()
    x, w, cos, sin = (array.bfloat16() for array in given)
    return [(x, w.requires_grad_(), cos, sin)]

"""A sine fitted by a polynomial of the third order, the gradients by hand: PyTorch's first tutorial."""

import math

import numpy as np

import dynamic as torch

dtype = torch.float
device = torch.device("cpu")
x = torch.linspace(-math.pi, math.pi, 2000, device=device, dtype=dtype)
y = torch.sin(x)
a, b, c, d = (torch.tensor(v, device=device, dtype=dtype) for v in np.random.default_rng(0).standard_normal(4))
learning_rate = 1e-6
losses = []
for t in range(200):
    y_pred = a + b * x + c * x**2 + d * x**3
    loss = (y_pred - y).pow(2).sum().item()
    if t % 20 == 19:
        losses.append(loss)
    grad_y_pred = 2.0 * (y_pred - y)
    a -= learning_rate * grad_y_pred.sum()
    b -= learning_rate * (grad_y_pred * x).sum()
    c -= learning_rate * (grad_y_pred * x**2).sum()
    d -= learning_rate * (grad_y_pred * x**3).sum()

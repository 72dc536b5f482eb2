"""MAML on sinusoids: gradients of what one step of gradient descent leads to, by autograd.grad with create_graph."""

import numpy as np

import dynamic as torch
import dynamic.nn as nn
import dynamic.nn.functional as F
from dynamic import optim
from tests.programs import start

rng = np.random.default_rng(5)
model = start(nn.Sequential(nn.Linear(1, 10), nn.Tanh(), nn.Linear(10, 1)).double())
meta = optim.Adam(model.parameters(), lr=0.01)


def forward(params, x):
    return F.linear(torch.tanh(F.linear(x, params[0], params[1])), params[2], params[3])


def task():
    height, phase = rng.uniform(0.1, 5), rng.uniform(0, np.pi)
    points = rng.uniform(-5, 5, (2, 10, 1))
    return [(torch.tensor(x), torch.tensor(height * np.sin(x - phase))) for x in points]


losses = []
for _ in range(8):
    total = 0.0
    for _ in range(3):
        (x, y), (x_query, y_query) = task()
        params = list(model.parameters())
        for _ in range(2):
            loss = F.mse_loss(forward(params, x), y)
            grads = torch.autograd.grad(loss, params, create_graph=True, retain_graph=True, only_inputs=True)
            params = [p - 0.01 * g for p, g in zip(params, grads)]
        total = total + F.mse_loss(forward(params, x_query), y_query)
    meta.zero_grad()
    total.backward()
    meta.step()
    losses.append(total.item())

"""Logistic regression on two clouds, by plain tensors."""

import numpy as np

import dynamic as torch

rng = np.random.default_rng(1)
X = torch.from_numpy(np.concatenate([rng.normal(-1, 1, (50, 2)), rng.normal(1, 1, (50, 2))])).float()
y = torch.cat((torch.zeros(50), torch.ones(50))).view(-1, 1)
w = torch.zeros(2, 1, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
losses = []
for epoch in range(30):
    p = torch.sigmoid(X.mm(w) + b)
    loss = -(y * torch.log(p) + (1 - y) * torch.log(1 - p)).mean()
    loss.backward()
    with torch.no_grad():
        w -= 0.5 * w.grad
        b -= 0.5 * b.grad
    w.grad.zero_()
    b.grad.zero_()
    losses.append(loss.item())
losses.append(((p > 0.5).float() == y).float().mean().item())

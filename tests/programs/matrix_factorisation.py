"""A rating matrix with gaps as a product of two thin ones, by masked squares and weight decay."""

import numpy as np

import dynamic as torch

rng = np.random.default_rng(8)
ratings = torch.from_numpy(rng.integers(1, 6, (12, 9)))
known = torch.tensor(rng.random((12, 9)) < 0.6)
U = torch.tensor(rng.normal(0, 0.3, (12, 3)), dtype=torch.float32, requires_grad=True)
V = torch.tensor(rng.normal(0, 0.3, (9, 3)), dtype=torch.float32, requires_grad=True)
losses = []
for _ in range(30):
    gap = (ratings - U @ V.t()).masked_fill(~known, 0.0)
    loss = gap.pow(2).sum() / known.sum() + 0.01 * (U.norm() ** 2 + V.norm() ** 2)
    loss.backward()
    for p in (U, V):
        p.data.add_(p.grad, alpha=-0.2)
        p.grad.zero_()
    losses.append(loss.item())

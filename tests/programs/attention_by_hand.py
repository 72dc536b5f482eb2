"""One head of causal attention by hand: tril, masked_fill, softmax, transpose."""

import numpy as np

import dynamic as torch
import dynamic.nn.functional as F

rng = np.random.default_rng(10)
B, T, C = 2, 6, 8
x = torch.tensor(rng.standard_normal((B, T, C)), dtype=torch.float32)
target = torch.tensor(rng.integers(0, C, (B, T)))
key, query, value = (torch.tensor(rng.normal(0, 0.3, (C, C)), dtype=torch.float32).requires_grad_() for _ in range(3))
tril = torch.tril(torch.ones(T, T))
losses = []
for _ in range(12):
    k, q, v = x @ key, x @ query, x @ value
    wei = q @ k.transpose(-2, -1) * C**-0.5
    wei = wei.masked_fill(tril == 0, float("-inf"))
    out = F.softmax(wei, dim=-1) @ v
    loss = F.cross_entropy(out.view(B * T, C), target.view(B * T))
    loss.backward()
    with torch.no_grad():
        for w in (key, query, value):
            w -= 0.5 * w.grad
            w.grad = None
    losses.append(loss.item())

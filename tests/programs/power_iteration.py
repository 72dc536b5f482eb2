"""The largest eigenvalue by power iteration, its gradient in the matrix, and the same by linalg."""

import numpy as np

import dynamic as torch

A = torch.tensor(np.random.default_rng(6).standard_normal((8, 8)))
A = (A @ A.t()).requires_grad_()
v = torch.ones(8, dtype=torch.double) / 8**0.5
losses = []
for i in range(60):
    v = A.mv(v)
    v = v / v.norm()
    if i % 12 == 11:
        losses.append(torch.dot(v, A.mv(v)).item())
top = torch.dot(v, A.mv(v))
top.backward()
losses += [A.grad.abs().sum().item(), torch.linalg.eigvalsh(A.detach()).max().item()]
losses += [torch.linalg.slogdet(A.detach())[1].item(), torch.linalg.norm(torch.linalg.inv(A.detach())).item()]

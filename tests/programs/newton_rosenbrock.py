"""Rosenbrock's function by Newton's method: gradients of gradients, and a linear system."""

import dynamic as torch

p = torch.tensor([-1.2, 1.0], dtype=torch.float64, requires_grad=True)
losses = []
for _ in range(6):
    f = (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2
    (g,) = torch.autograd.grad(f, p, create_graph=True)
    H = torch.stack([torch.autograd.grad(gi, p, retain_graph=True)[0] for gi in g])
    with torch.no_grad():
        p -= torch.linalg.solve(H, g)
    losses.append(f.item())
losses += p.tolist()

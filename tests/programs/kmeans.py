"""k-means by cdist, argmin and scatter_add."""

import numpy as np

import dynamic as torch

rng = np.random.default_rng(7)
x = torch.tensor(np.concatenate([rng.normal(c, 0.6, (40, 2)) for c in ((0, 0), (4, 1), (1, 5))]), dtype=torch.float32)
centres = x[[0, 50, 100]].clone()
losses = []
for _ in range(8):
    distances = torch.cdist(x, centres)
    nearest, labels = distances.min(dim=1)
    losses.append(nearest.pow(2).mean().item())
    sums = torch.zeros_like(centres).scatter_add(0, labels.unsqueeze(1).expand(-1, 2), x)
    counts = torch.bincount(labels, minlength=3).clamp(min=1)
    centres = sums / counts.unsqueeze(1)
losses += torch.sort(centres[:, 0]).values.tolist()

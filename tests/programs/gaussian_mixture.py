"""A mixture of three normal distributions fitted by the gradient of its likelihood."""

import math

import numpy as np

import dynamic as torch

rng = np.random.default_rng(5)
x = torch.tensor(np.concatenate([rng.normal(m, 0.5, 60) for m in (-3, 0, 4)]), dtype=torch.float64)
means = torch.tensor([-1.0, 0.5, 1.0], dtype=torch.float64, requires_grad=True)
log_stds = torch.zeros(3, dtype=torch.float64, requires_grad=True)
logits = torch.zeros(3, dtype=torch.float64, requires_grad=True)
losses = []
for step in range(40):
    z = (x.unsqueeze(1) - means) / log_stds.exp()
    log_probs = -0.5 * z.pow(2) - log_stds - 0.5 * math.log(2 * math.pi)
    loss = -torch.logsumexp(log_probs + torch.log_softmax(logits, dim=0), dim=1).mean()
    grads = torch.autograd.grad(loss, [means, log_stds, logits])
    with torch.no_grad():
        for p, g in zip((means, log_stds, logits), grads):
            p.sub_(0.3 * g)
    losses.append(loss.item())

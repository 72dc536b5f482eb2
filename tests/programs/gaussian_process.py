"""The scales of a Gaussian process by its marginal likelihood: cholesky, solve, logdet."""

import math

import dynamic as torch

x = torch.linspace(0, 5, 20, dtype=torch.float64)
y = torch.sin(2 * x) + 0.1 * torch.cos(9 * x)
log_scale = torch.zeros(1, dtype=torch.float64, requires_grad=True)
log_noise = torch.full((1,), -1.0, dtype=torch.float64, requires_grad=True)
losses = []
for _ in range(20):
    gaps = x.unsqueeze(0) - x.unsqueeze(1)
    K = torch.exp(-0.5 * (gaps / log_scale.exp()) ** 2) + torch.eye(20, dtype=torch.float64) * (2 * log_noise).exp()
    L = torch.linalg.cholesky(K)
    alpha = torch.linalg.solve(K, y.unsqueeze(1)).squeeze(1)
    loss = 0.5 * y.dot(alpha) + L.diagonal().log().sum() + 10 * math.log(2 * math.pi)
    loss.backward()
    for p in (log_scale, log_noise):
        with torch.no_grad():
            p.add_(p.grad.clamp(-5, 5), alpha=-0.02)
        p.grad = None
    losses.append(loss.item())

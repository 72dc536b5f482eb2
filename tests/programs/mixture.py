"""A mixture density network: parameters of its own, custom modules in a list, and the log of a sum of exponentials."""

import math

import numpy as np

import dynamic as torch
import dynamic.nn as nn
from dynamic.optim import Adam
from tests.programs import start


class Scaled(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(outer, inner))
        self.scale = nn.Parameter(torch.tensor(1.0))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x):
        return self.scale * (x @ self.weight.T)


class MDN(nn.Module):
    def __init__(self, hidden=10, parts=3):
        super().__init__()
        self.layers = nn.ModuleList([Scaled(1, hidden), Scaled(hidden, hidden)])
        self.heads = nn.ModuleDict({name: nn.Linear(hidden, parts) for name in ("pi", "mu", "sigma")})

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return torch.log_softmax(self.heads["pi"](x), dim=1), self.heads["mu"](x), self.heads["sigma"](x)


rng = np.random.default_rng(0)
y = rng.uniform(-2, 2, (24, 1))
x = torch.tensor((y + 0.7 * np.sin(3 * y)).astype(np.float32))
y = torch.tensor(y.astype(np.float32))
model = start(MDN())
optimizer = Adam(model.parameters(), lr=2e-2, weight_decay=1e-3)
losses = []
for _ in range(7):
    log_pi, mu, log_sigma = model(x)
    log_normal = -0.5 * ((y - mu) / log_sigma.exp()) ** 2 - log_sigma - 0.5 * math.log(2 * math.pi)
    loss = -torch.logsumexp(log_pi + log_normal, dim=1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

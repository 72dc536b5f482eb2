"""A recurrent net by hand on a sum of sines, the state detached between pieces."""

import math

import numpy as np

import dynamic as torch
from dynamic.autograd import Variable

rng = np.random.default_rng(9)
steps = torch.linspace(0, 6 * math.pi, 121)
series = (torch.sin(steps) + 0.5 * torch.cos(2 * steps)).unsqueeze(-1)
w1 = Variable(torch.FloatTensor(rng.normal(0, 0.4, (9, 8)).tolist()), requires_grad=True)
w2 = Variable(torch.FloatTensor(rng.normal(0, 0.3, (8, 1)).tolist()), requires_grad=True)
losses = []
for epoch in range(6):
    hidden, total = torch.zeros(1, 8), 0.0
    for start in range(0, 120, 20):
        loss = 0
        for j in range(start, start + 20):
            hidden = torch.tanh(torch.cat((series[j : j + 1], hidden), 1).mm(w1))
            loss = loss + (hidden.mm(w2) - series[j + 1]).pow(2).sum() / 2
        loss.backward()
        for w in (w1, w2):
            w.data -= 0.02 * w.grad.data
            w.grad.data.zero_()
        hidden = hidden.detach()
        total += loss.item()
    losses.append(total)

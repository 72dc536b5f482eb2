"""A small net of neurons, each a list of scalars, as in micrograd: thousands of tensors of one element."""

import numpy as np

import dynamic as torch

rng = np.random.default_rng(2)


class Neuron:
    def __init__(self, nin, nonlin=True):
        self.w = [torch.tensor(rng.uniform(-1, 1), dtype=torch.float64, requires_grad=True) for _ in range(nin)]
        self.b = torch.zeros((), dtype=torch.float64, requires_grad=True)
        self.nonlin = nonlin

    def __call__(self, x):
        act = sum((wi * xi for wi, xi in zip(self.w, x)), self.b)
        return act.relu() if self.nonlin else act

    def parameters(self):
        return [*self.w, self.b]


class MLP:
    def __init__(self, nin, nouts):
        sz = [nin, *nouts]
        self.layers = [[Neuron(sz[i], nonlin=i != len(nouts) - 1) for _ in range(sz[i + 1])] for i in range(len(nouts))]

    def __call__(self, x):
        for layer in self.layers:
            x = [n(x) for n in layer]
        return x[0]

    def parameters(self):
        return [p for layer in self.layers for n in layer for p in n.parameters()]


xs = rng.normal(size=(12, 2)).tolist()
ys = [1.0 if a * b > 0 else -1.0 for a, b in xs]
model = MLP(2, [6, 1])
losses = []
for k in range(8):
    scores = [model(x) for x in xs]
    margin = sum((1 + -yi * si).relu() for yi, si in zip(ys, scores)) * (1.0 / len(xs))
    total = margin + 1e-4 * sum(p * p for p in model.parameters())
    for p in model.parameters():
        p.grad = None
    total.backward()
    for p in model.parameters():
        p.data -= 0.1 * p.grad
    losses.append(total.item())

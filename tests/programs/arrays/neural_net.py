"""A classifier of three spirals: a list of layers, Adam written by hand over it, L2 by a sum of squares."""

import numpy.random as npr

import graphs as np
import graphs.stats.norm as norm
from dynamic import grad
from graphs.special import logsumexp


def init_params(scale, sizes, rs):
    return [(scale * rs.randn(m, n), scale * rs.randn(n)) for m, n in zip(sizes[:-1], sizes[1:])]


def predict(params, inputs):
    for W, b in params:
        outputs = np.dot(inputs, W) + b
        inputs = np.tanh(outputs)
    return outputs - logsumexp(outputs, axis=1, keepdims=True)


def log_posterior(params, inputs, targets):
    log_prior = sum([np.sum(norm.logpdf(W, 0, 3)) + np.sum(norm.logpdf(b, 0, 3)) for W, b in params])
    return log_prior + np.sum(predict(params, inputs) * targets)


def spirals(count, rs):
    rates = np.linspace(0.2, 2, count)
    angles = np.concatenate([rates * 3 + 2 * np.pi * k / 3 for k in range(3)]) + 0.1 * rs.randn(3 * count)
    points = np.column_stack([np.cos(angles), np.sin(angles)]) * np.tile(rates, 3)[:, None]
    return points, np.repeat(np.eye(3), count, axis=0)


inputs, targets = spirals(30, npr.RandomState(1))
params = init_params(0.3, [2, 12, 3], npr.RandomState(0))
gradient = grad(lambda params: -log_posterior(params, inputs, targets))
m = [[np.zeros(p.shape) for p in layer] for layer in params]
v = [[np.zeros(p.shape) for p in layer] for layer in params]
losses = []
for step in range(40):
    losses.append(-log_posterior(params, inputs, targets))
    found = gradient(params)
    moved = []
    for layer, ms, vs, gs in zip(params, m, v, found):
        parts = []
        for i, (p, g) in enumerate(zip(layer, gs)):
            ms[i] = 0.9 * ms[i] + 0.1 * g
            vs[i] = 0.999 * vs[i] + 0.001 * g**2
            mhat, vhat = ms[i] / (1 - 0.9 ** (step + 1)), vs[i] / (1 - 0.999 ** (step + 1))
            parts.append(p - 0.05 * mhat / (np.sqrt(vhat) + 1e-8))
        moved.append(tuple(parts))
    params = moved
accuracy = np.mean(np.argmax(predict(params, inputs), axis=1) == np.argmax(targets, axis=1))
losses.append(accuracy)

"""Variational inference by a mixture: each component its own samples, weighted by its share."""

import numpy.random as npr

import graphs as np
import graphs.stats.norm as norm
from dynamic import value_and_grad
from graphs.special import logsumexp

K, D, SAMPLES = 3, 2, 20


def log_density(x):
    mu, log_sigma = x[:, 0], x[:, 1]
    first = norm.logpdf(log_sigma, 0, 1.35) + norm.logpdf(mu, -0.5, np.exp(log_sigma))
    second = norm.logpdf(log_sigma, 0.1, 1.35) + norm.logpdf(mu, 0.5, np.exp(log_sigma))
    return np.logaddexp(first, second)


def diagonal(params, x):
    return np.sum(norm.logpdf(x, params[:D], np.exp(params[D:])), axis=-1)


def bound(params, noise):
    weights, parts = params[:K] - logsumexp(params[:K]), np.reshape(params[K:], (K, -1))
    found = []
    for part, own in zip(parts, noise):
        samples = own * np.exp(part[D:]) + part[:D]
        log_q = logsumexp(np.vstack([diagonal(other, samples) for other in parts]).T + weights, axis=1, keepdims=False)
        found.append(np.mean(log_density(samples) - log_q))
    return -np.sum(np.stack(found) * np.exp(weights))


rs = npr.RandomState(1)
params = np.concatenate([np.ones(K)] + [np.concatenate([rs.randn(D), -1 * np.ones(D)]) for _ in range(K)])
step = value_and_grad(bound)
losses = []
for _ in range(20):
    value, gradient = step(params, rs.randn(K, SAMPLES, D))
    losses.append(value)
    params = params - 0.05 * gradient

"""A variational autoencoder of stripes, its two nets as lists of layers, the bound by reparametrised samples."""

import numpy.random as npr

import graphs as np
import graphs.stats.norm as norm
from dynamic import value_and_grad


def layers(sizes, rs):
    return [(rs.randn(m, n) * 0.3, np.zeros(n)) for m, n in zip(sizes[:-1], sizes[1:])]


def net(params, inputs):
    for W, b in params[:-1]:
        inputs = np.maximum(np.dot(inputs, W) + b, 0)
    W, b = params[-1]
    return np.dot(inputs, W) + b


def log_bernoulli(targets, logits):
    signs = targets * 2 - 1
    return np.sum(-np.logaddexp(0, -logits * signs), axis=-1)


def bound(params, images, noise):
    encoder, decoder = params
    found = net(encoder, images)
    means, log_stds = np.array_split(found, 2, axis=1)
    latents = noise * np.exp(log_stds) + means
    prior = np.sum(norm.logpdf(latents, 0.0, 1.0), axis=1)
    posterior = np.sum(norm.logpdf(latents, means, np.exp(log_stds)), axis=1)
    return -np.mean(log_bernoulli(images, net(decoder, latents)) + prior - posterior)


rs = npr.RandomState(0)
images = np.array([np.roll(np.tile([1.0, 1, 0, 0], 4), k) for k in range(4)] * 5)
params = [layers([16, 12, 4], rs), layers([2, 12, 16], rs)]
step = value_and_grad(bound)
losses = []
for _ in range(20):
    value, gradient = step(params, images, rs.randn(20, 2))
    losses.append(value)
    params = [[(W - 0.1 * dW, b - 0.1 * db) for (W, b), (dW, db) in zip(*pair)] for pair in zip(params, gradient)]

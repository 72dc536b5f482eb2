"""Expectation-maximisation of a hidden Markov model: the expected counts are a gradient."""

import numpy.random as npr

import graphs as np
from dynamic import value_and_grad
from graphs.special import logsumexp

TEXT = "the rain in spain stays mainly in the plain"
LETTERS = sorted(set(TEXT))
data = [np.array([LETTERS.index(c) for c in word]) for word in TEXT.split()]


def normalize(a):
    return a / np.where(a.sum(-1, keepdims=True) > 0.0, a.sum(-1, keepdims=True), 1.0)


def log_partition(natural, words):
    log_pi, log_A, log_B = natural
    total = 0.0
    for word in words:
        log_alpha = log_pi
        for y in word:
            log_alpha = logsumexp(log_alpha[:, None] + log_A, axis=0) + log_B[:, y]
        total = total + logsumexp(log_alpha)
    return total


rs = npr.RandomState(0)
params = [normalize(rs.rand(3)), normalize(rs.rand(3, 3)), normalize(rs.rand(3, len(LETTERS)))]
losses = []
for _ in range(8):
    with np.errstate(divide="ignore"):
        natural = list(map(np.log, params))
    value, expected = value_and_grad(lambda natural: log_partition(natural, data))(natural)
    losses.append(-value)
    previous, params = params, list(map(normalize, expected))
losses.append(float(all(np.allclose(a, b, atol=0.5) for a, b in zip(previous, params))))

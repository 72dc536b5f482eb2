"""The dispersion of counts by Newton's method on the slope of the log-likelihood: gradients of gradients."""

import numpy.random as npr

import graphs as np
from dynamic import grad
from graphs.special import gammaln


def log_likelihood(r, p, x):
    return gammaln(r + x) - gammaln(r) - gammaln(x + 1) + x * np.log(p) + r * np.log(1 - p)


rs = npr.RandomState(0)
data = rs.poisson(rs.gamma(5.0, 1.0, size=200)).astype(float)


def total(r, p):
    return np.sum(log_likelihood(r, p, data))


def share(r):
    return np.sum(data) / np.sum(r + data)


slope = grad(total)


def profile(r):
    return total(r, share(r))


curvature = grad(grad(profile))
r = 2.0
losses = []
for _ in range(8):
    losses.append(-total(r, share(r)))
    r = r - grad(profile)(r) / curvature(r)
losses += [r, share(r), abs(slope(r, share(r))) < 1e-6]

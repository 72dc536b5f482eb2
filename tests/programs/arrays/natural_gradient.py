"""Natural gradients: the curvature of the divergence from where one stands, solved for the step."""

import numpy.random as npr

import graphs as np
from dynamic import grad, hessian, jacobian


def divergence(theta, other):
    m1, s1, m2, s2 = theta[:2], theta[2:], other[:2], other[2:]
    return np.sum(s2 - s1 + 0.5 * (np.exp(2 * s1) + (m1 - m2) ** 2) / np.exp(2 * s2) - 0.5)


def log_density(x):
    return -0.5 * np.sum((x[:, :1] - 1) ** 2 + (x[:, 1:] - x[:, :1] ** 2) ** 2, axis=1)


def objective(theta, noise):
    samples = noise * np.exp(theta[2:]) + theta[:2]
    return -np.mean(log_density(samples)) - np.sum(theta[2:])


rs = npr.RandomState(0)
theta = np.array([0.0, 0.0, -1.0, -1.0])
noise = rs.randn(200, 2)
gradient = grad(objective)
losses = []
for _ in range(15):
    losses.append(objective(theta, noise))
    fisher = hessian(lambda other, here=theta: divergence(here, other))(theta)
    theta = theta - 0.1 * np.linalg.solve(fisher, gradient(theta, noise))
losses += list(np.ravel(jacobian(lambda t: np.array([t[0] * t[1], t[2] ** 2]))(theta)))
sign, logdet = np.linalg.slogdet(fisher)
losses.append(sign * logdet)

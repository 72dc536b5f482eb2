"""The slope of a spiral by a net, fitted to its path: gradients through the solution of the equation."""

import numpy.random as npr

import graphs as np
from dynamic import grad
from graphs.integrate import odeint

times = np.linspace(0.0, 1.0, 8)
start = np.array([2.0, 0.0])
true_path = odeint(lambda y, t, a: np.dot(y**3, a), start, times, args=(np.array([[-0.1, 2.0], [-2.0, -0.1]]),))


def slope(y, t, W1, b1, W2, b2):
    return np.dot(np.tanh(np.dot(y, W1) + b1), W2) + b2


def loss(*params):
    path = odeint(slope, start, times, tuple(params), rtol=1e-9, atol=1e-9)
    return np.mean(np.abs(path - true_path))


rs = npr.RandomState(0)
params = [rs.randn(2, 8) * 0.5, rs.randn(8) * 0.1, rs.randn(8, 2) * 0.5, rs.randn(2) * 0.1]
gradient = grad(loss, (0, 1, 2, 3))
losses = []
for _ in range(6):
    losses.append(loss(*params))
    params = [p - 0.1 * g for p, g in zip(params, gradient(*params))]

"""The hyperparameters of a Gaussian process by its marginal likelihood, and its predictions between the points."""

import graphs as np
import graphs.stats.multivariate_normal as mvn
from dynamic import value_and_grad
from graphs.linalg import solve


def rbf(params, x, xp):
    scale, lengths = np.exp(params[0]), np.exp(params[1:])
    gaps = np.expand_dims(x / lengths, 1) - np.expand_dims(xp / lengths, 0)
    return scale * np.exp(-0.5 * np.sum(gaps**2, axis=2))


def unpack(params):
    return params[0], params[2:], np.exp(params[1]) + 0.001


def log_marginal(params, x, y):
    mean, kernel, noise = unpack(params)
    return mvn.logpdf(y, mean * np.ones(len(y)), rbf(kernel, x, x) + noise * np.eye(len(y)))


def predict(params, x, y, at):
    mean, kernel, noise = unpack(params)
    inner, cross = rbf(kernel, x, x) + noise * np.eye(len(y)), rbf(kernel, x, at)
    spread = rbf(kernel, at, at) - np.dot(solve(inner, cross).T, cross)
    return mean + np.dot(solve(inner, cross).T, y - mean), np.sqrt(np.diag(spread))


x = np.concatenate([np.linspace(0, 3, num=8), np.linspace(6, 8, num=8)]).reshape((16, 1)) / 2
y = (np.cos(2 * x) + 0.05 * np.sin(31 * x)).ravel() / 2.0
params = np.array([0.1, -1.0, 0.2, -0.3])
objective = value_and_grad(lambda params: -log_marginal(params, x, y))
losses = []
for _ in range(25):
    value, gradient = objective(params)
    losses.append(value)
    params = params - 0.01 * gradient
means, stds = predict(params, x, y, np.reshape(np.linspace(-1, 5, 9), (9, 1)))
losses += list(means) + list(stds)

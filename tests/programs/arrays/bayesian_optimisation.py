"""The next point to look at: expected improvement of a Gaussian process, climbed by its gradient."""

import graphs as np
from dynamic import value_and_grad
from graphs.stats import norm


def function(x):
    return np.sum(x * np.sin(10.0 * x) + x) - 1


def kernel(a, b):
    return np.exp(-0.5 * np.sum((np.expand_dims(a, 1) - np.expand_dims(b, 0)) ** 2, axis=2) / 0.02)


def predict(x, y, at):
    inner = kernel(x, x) + 1e-3 * np.eye(len(y))
    cross = kernel(x, at)
    means = np.dot(np.linalg.solve(inner, cross).T, y)
    return means, np.sqrt(np.diag(kernel(at, at) - np.dot(cross.T, np.linalg.solve(inner, cross))))


def improvement(at, x, y):
    mean, std = predict(x, y, np.atleast_2d(at))
    best = np.max(y)
    return np.sum((mean - best) * norm.cdf(mean, best, std) + std * norm.pdf(mean, best, std))


x = np.array([[0.1], [0.5], [0.9]])
y = np.array([function(row) for row in x])
climb = value_and_grad(improvement)
losses = []
for _ in range(5):
    points = []
    for start in np.linspace(0.05, 1.05, 4):
        at = np.array([start])
        for _ in range(10):
            value, gradient = climb(at, x, y)
            at = np.clip(at + 0.02 * gradient, 0.0, 1.1)
        points.append((float(value), at))
    value, at = max(points, key=lambda pair: pair[0])
    losses += [value, float(at[0])]
    x = np.concatenate((x, np.atleast_2d(at)))
    y = np.concatenate((y, np.reshape(np.array(function(at)), (1,))))

"""Logistic regression on four points, as a function of one vector of weights."""

import graphs as np
from dynamic import grad


def sigmoid(x):
    return 0.5 * (np.tanh(x / 2.0) + 1)


inputs = np.array([[0.52, 1.12, 0.77], [0.88, -1.08, 0.15], [0.52, 0.06, -1.30], [0.74, -2.49, 1.39]])
targets = np.array([True, True, False, True])


def training_loss(weights):
    predictions = sigmoid(np.dot(inputs, weights))
    probabilities = predictions * targets + (1 - predictions) * (1 - targets)
    return -np.sum(np.log(probabilities))


gradient = grad(training_loss)
weights = np.zeros(3)
losses = []
for _ in range(40):
    losses.append(training_loss(weights))
    weights -= gradient(weights) * 0.1

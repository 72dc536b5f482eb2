"""An LSTM that adds up a row of numbers, as one function of a dict."""

import numpy.random as npr

import graphs as np
from dynamic import grad


def sigmoid(x):
    return 0.5 * (np.tanh(x) + 1.0)


def gate(weights, *args):
    return np.dot(np.hstack(args + (np.ones((args[0].shape[0], 1)),)), weights)


def predict(params, inputs):
    hiddens = np.repeat(params["hiddens"], inputs.shape[0], axis=0)
    cells = np.repeat(params["cells"], inputs.shape[0], axis=0)
    for x in np.split(inputs, inputs.shape[1], axis=1):
        change = np.tanh(gate(params["change"], x, hiddens))
        forget, take, give = (sigmoid(gate(params[name], x, hiddens)) for name in ("forget", "in", "out"))
        cells = cells * forget + take * change
        hiddens = give * np.tanh(cells)
    return np.ravel(gate(params["predict"], hiddens))


def loss(params, inputs, targets):
    return np.mean(np.square(predict(params, inputs) - targets))


rs = npr.RandomState(3)
width = 6
params = {name: rs.randn(2 + width, width) * 0.4 for name in ("change", "forget", "in", "out")}
params.update(hiddens=np.zeros((1, width)), cells=np.zeros((1, width)), predict=rs.randn(width + 1, 1) * 0.4)
inputs = rs.uniform(-1, 1, (20, 7))
targets = np.cumsum(inputs, axis=1)[:, -1]
gradient = grad(loss)
losses = []
for _ in range(25):
    losses.append(loss(params, inputs, targets))
    found = gradient(params, inputs, targets)
    params = {name: value - 0.2 * np.clip(found[name], -1.0, 1.0) for name, value in params.items()}

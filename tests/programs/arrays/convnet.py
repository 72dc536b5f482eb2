"""A small convolutional net on bars and crosses: one vector of weights, cut into layers; windows as indices."""

import numpy.random as npr

import graphs as np
from dynamic import grad


class Parser:
    def __init__(self):
        self.places, self.size = {}, 0

    def add(self, name, shape):
        start = self.size
        self.size += np.prod(shape)
        self.places[name] = (slice(start, self.size), shape)

    def get(self, vector, name):
        place, shape = self.places[name]
        return np.reshape(vector[place], shape)


def logsumexp(x, axis, keepdims=False):
    peak = np.max(x)
    return peak + np.log(np.sum(np.exp(x - peak), axis=axis, keepdims=keepdims))


rows = np.arange(6)[:, None, None, None] + np.arange(3)[None, None, :, None]
columns = np.arange(6)[None, :, None, None] + np.arange(3)[None, None, None, :]
parser = Parser()
parser.add("kernels", (4, 3, 3))
parser.add("bias", (4, 1, 1))
parser.add("out", (4 * 3 * 3, 3))


def predict(weights, images):
    windows = images[:, rows, columns]
    units = np.einsum("nijab,kab->nkij", windows, parser.get(weights, "kernels")) + parser.get(weights, "bias")
    units = np.maximum(units, 0.0).reshape((images.shape[0], 4, 3, 2, 3, 2))
    units = np.max(np.max(units, axis=5), axis=3)
    scores = np.dot(units.reshape((units.shape[0], -1)), parser.get(weights, "out"))
    return scores - logsumexp(scores, axis=1, keepdims=True)


def loss(weights, images, targets):
    return 0.01 * np.dot(weights, weights) - np.sum(predict(weights, images) * targets) / len(targets)


rs = npr.RandomState(0)
images = np.zeros((30, 8, 8))
for i in range(30):
    at = rs.randint(1, 7)
    if i % 3 != 1:
        images[i, at, :] = 1.0
    if i % 3 != 0:
        images[i, :, at] = 1.0
targets = np.array(np.arange(30)[:, None] % 3 == np.arange(3), dtype=float)
weights = rs.randn(parser.size) * 0.1
direction = np.zeros(parser.size)
gradient = grad(loss)
losses = []
for _ in range(20):
    losses.append(loss(weights, images, targets))
    direction = 0.9 * direction + 0.1 * gradient(weights, images, targets)
    weights -= 0.5 * direction

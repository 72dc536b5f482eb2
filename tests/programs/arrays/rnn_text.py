"""A character model: one-hot rows, a bias as a column of ones, a loop over time."""

import numpy.random as npr

import graphs as np
from dynamic import value_and_grad
from graphs.special import logsumexp

TEXT = "hello world, hello wide world"
LETTERS = sorted(set(TEXT))


def one_hot(text):
    codes = np.array([LETTERS.index(c) for c in text])
    return np.array(codes[:, None] == np.arange(len(LETTERS))[None, :], dtype=float)


def concat_and_multiply(weights, *args):
    return np.dot(np.hstack(args + (np.ones((args[0].shape[0], 1)),)), weights)


def predict(params, inputs):
    hiddens = np.repeat(params["init hiddens"], inputs.shape[1], axis=0)
    output = []
    for row in inputs:
        hiddens = np.tanh(concat_and_multiply(params["change"], row, hiddens))
        logits = concat_and_multiply(params["predict"], hiddens)
        output.append(logits - logsumexp(logits, axis=1, keepdims=True))
    return output


def loss(params, inputs, targets):
    steps, count, _ = inputs.shape
    total = 0.0
    for logprobs, target in zip(predict(params, inputs), targets):
        total += np.sum(logprobs * target)
    return -total / (steps * count)


rs = npr.RandomState(0)
data = np.stack([one_hot(TEXT[i : i + 12]) for i in (0, 7, 13)], axis=1)
size, width = len(LETTERS), 10
params = {
    "init hiddens": rs.randn(1, width) * 0.1,
    "change": rs.randn(size + width + 1, width) * 0.3,
    "predict": rs.randn(width + 1, size) * 0.3,
}
step = value_and_grad(loss)
losses = []
for _ in range(15):
    value, gradient = step(params, data[:-1], data[1:])
    losses.append(value)
    params = {name: params[name] - 1.5 * gradient[name] for name in params}

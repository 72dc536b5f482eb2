"""A small convolutional network on the handwritten digits, trained with dropout in both engines."""

from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import dynamic
import graphs as g
import static
from compare.workloads.data import load_digits

BATCH, EPOCHS, RATE, MOMENTUM = 64, 20, 0.05, 0.9
Array = Any
Params = dict[str, Array]
Step = Callable[[Params, Array, Array, Array], tuple[Array, Params]]


def logits(params: Params, x: Array, key: Array = None) -> Array:
    """Images f[N, 64] -> f[N, 10]; a key switches dropout on."""
    h = g.reshape(x, (-1, 1, 8, 8))
    h = g.relu(g.conv2d(h, params["w1"], params["b1"], padding="same"))
    h = g.max_pool2d(h, 2)
    h = g.relu(g.conv2d(h, params["w2"], params["b2"], padding="same"))
    h = g.reshape(g.max_pool2d(h, 2), (x.shape[0], -1))
    return g.dropout(h, 0.25, key) @ params["w3"] + params["b3"]


def loss(params: Params, x: Array, y: Array, key: Array) -> Array:
    return g.cross_entropy(logits(params, x, key), y)


def init() -> Params:
    """He (2015): normal weights of variance 2 / inputs, biases zero."""
    shapes = {"w1": (16, 1, 3, 3), "w2": (32, 16, 3, 3), "w3": (128, 10)}
    inputs = {"w1": 9, "w2": 16 * 9, "w3": 128}
    keys = g.split_key(g.random_key(0), len(shapes))
    weights = {
        name: g.normal(key, shape, "float32") * np.float32(np.sqrt(2 / inputs[name]))
        for key, (name, shape) in zip(keys, shapes.items(), strict=True)
    }
    biases = {name: np.zeros(size, np.float32) for name, size in {"b1": 16, "b2": 32, "b3": 10}.items()}
    return weights | biases


def train(step: Step, x: Array, y: Array) -> tuple[Params, list[float]]:
    """Stochastic gradient descent with momentum; every step has a key of its own."""
    params, rng, key = init(), np.random.default_rng(1), g.random_key(2)
    speed = g.tree_map(np.zeros_like, params)
    curve: list[float] = []
    for _ in range(EPOCHS):
        for chosen in np.split(rng.permutation(len(x))[: len(x) // BATCH * BATCH], len(x) // BATCH):
            value, gradients = step(params, x[chosen], y[chosen], g.fold_in(key, len(curve)))
            speed = g.tree_map(lambda v, d: MOMENTUM * v - RATE * d, speed, gradients)
            params = g.tree_map(np.add, params, speed)
            curve.append(float(value))
    return params, curve


def main() -> None:
    x, y, x_test, y_test = load_digits()
    compiled = static.compile(static.value_and_grad(loss), init(), x[:BATCH], y[:BATCH], g.random_key(0))
    steps: dict[str, Step] = {"dynamic": dynamic.value_and_grad(loss), "static": compiled}
    curves = {}
    for engine, step in steps.items():
        with threadpool_limits(1):  # these matrices are too small to share between threads
            params, curves[engine] = train(step, x, y)
        accuracy = np.mean(np.argmax(logits(params, x_test), axis=1) == y_test)
        print(f"{engine:8} loss {curves[engine][0]:.4f} -> {curves[engine][-1]:.4f}, accuracy {accuracy:.1%}")
        assert accuracy >= 0.96
    np.testing.assert_allclose(curves["static"], curves["dynamic"], rtol=1e-2, atol=1e-3)


if __name__ == "__main__":
    main()

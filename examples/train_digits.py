"""One training step, run by both engines on the handwritten digits: equal loss curves and accuracy."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import dynamic
import graphs as g
import static
from compare.workloads.data import load_digits

BATCH, EPOCHS = 64, 12
OPTIMIZER = g.optim.sgd(learning_rate=0.02, momentum=0.9, nesterov=True)
Array = Any
Params = dict[str, Array]
State = dict[str, Any]
Step = Callable[[Params, State, Array, Array], tuple[Array, Params, State]]


def logits(params: Params, x: Array) -> Array:
    h = g.relu(x @ params["w1"] + params["b1"])
    h = g.relu(h @ params["w2"] + params["b2"])
    return h @ params["w3"] + params["b3"]


def loss(params: Params, x: Array, y: Array) -> Array:
    return g.cross_entropy(logits(params, x), y)


def init(widths: tuple[int, ...] = (64, 128, 64, 10)) -> Params:
    """He (2015): normal weights of variance 2 / inputs, biases zero."""
    rng, params = np.random.default_rng(0), {}
    for i, (inputs, outputs) in enumerate(pairwise(widths), start=1):
        params[f"w{i}"] = rng.standard_normal((inputs, outputs), np.float32) * np.float32(np.sqrt(2 / inputs))
        params[f"b{i}"] = np.zeros(outputs, np.float32)
    return params


def minibatches(x: Array, y: Array) -> Iterator[tuple[Array, Array]]:
    """Every epoch in an order of its own, the last few digits left out, so that shapes never change."""
    rng = np.random.default_rng(1)
    for _ in range(EPOCHS):
        order = rng.permutation(len(x))
        for start in range(0, len(x) - BATCH + 1, BATCH):
            chosen = order[start : start + BATCH]
            yield x[chosen], y[chosen]


def step(engine: ModuleType, params: Params, state: State, x: Array, y: Array) -> tuple[Array, Params, State]:
    """Loss, gradient, clipping and update: run op by op by `dynamic`, compiled as one graph by `static`."""
    value, gradients = engine.value_and_grad(loss)(params, x, y)
    params, state = OPTIMIZER.update(g.optim.clip_by_global_norm(gradients, 1.0), state, params)
    return value, params, state


def train(step: Step, x: Array, y: Array) -> tuple[Params, list[float]]:
    params, curve = init(), []
    state = OPTIMIZER.init(params)
    for batch in minibatches(x, y):
        value, params, state = step(params, state, *batch)
        curve.append(float(value))
    return params, curve


def main() -> None:
    x, y, x_test, y_test = load_digits()
    steps: dict[str, Step] = {"dynamic": partial(step, dynamic), "static": static.jit(partial(step, static))}
    curves = {}
    for engine, run in steps.items():
        with threadpool_limits(1):  # these matrices are too small to share between threads
            params, curves[engine] = train(run, x, y)
        accuracy = np.mean(np.argmax(logits(params, x_test), axis=1) == y_test)
        print(f"{engine:8} loss {curves[engine][0]:.4f} -> {curves[engine][-1]:.4f}, accuracy {accuracy:.1%}")
        assert accuracy >= 0.95
    np.testing.assert_allclose(curves["static"], curves["dynamic"], rtol=1e-3, atol=1e-5)


if __name__ == "__main__":
    main()

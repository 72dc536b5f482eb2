"""A function of your own in both engines: equal gradients, the same graph, and what a step takes in each."""

from functools import partial
from timeit import repeat
from typing import Any

import numpy as np

import dynamic
import graphs as g
import static

Array = Any


def loss(params: dict[str, Array], x: Array) -> Array:
    """The negative log likelihood of points f[N, D] under a mixture of K round Gaussians."""
    offsets = g.expand_dims(x, 1) - params["centres"]
    distances = g.sum((offsets / g.exp(params["log_width"])) ** 2, axis=-1)
    weights = g.log_softmax(params["weights"]) - x.shape[1] * params["log_width"][:, 0]
    return -g.mean(g.logsumexp(weights - distances / 2, axis=-1))


def main() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((200, 2), np.float32)
    params = {
        "centres": rng.standard_normal((5, 2), np.float32),
        "log_width": np.zeros((5, 1), np.float32),
        "weights": np.zeros(5, np.float32),
    }
    eager = dynamic.value_and_grad(loss)
    compiled = static.compile(static.value_and_grad(loss), params, x)
    results = [eager(params, x), compiled(params, x)]
    for one, other in zip(*map(g.tree.leaves, results), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
    tape, graph = dynamic.record(eager, params, x), static.trace(static.value_and_grad(loss), params, x)
    assert g.isomorphic(tape, graph)
    print(
        f"loss {float(results[0][0]):.4f}, equal gradients, and one graph, {len(graph.nodes)} nodes backward included."
    )
    print(f"Forward:\n{static.trace(loss, params, x)}\n")
    for name, step in (("dynamic", eager), ("static", compiled)):
        seconds = min(repeat(partial(step, params, x), number=100)) / 100
        print(f"{name:8} {seconds * 1e6:7.1f} us a step")


if __name__ == "__main__":
    main()

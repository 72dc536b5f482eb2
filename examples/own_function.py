"""A function of your own in both engines: first what is equal, then what each of them costs."""

from typing import Any

import numpy as np

import compare
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
    params = {
        "centres": rng.standard_normal((5, 2), np.float32),
        "log_width": np.zeros((5, 1), np.float32),
        "weights": np.zeros(5, np.float32),
    }
    calls = [(params, rng.standard_normal((n, 2), np.float32)) for n in (200, 120, 200, 80)]

    tape = dynamic.record(dynamic.value_and_grad(loss), *calls[0])
    graph = static.trace(static.value_and_grad(loss), *calls[0])
    assert g.isomorphic(tape, graph)
    print(f"One graph, {len(graph.nodes)} nodes backward included. Forward:\n{static.trace(loss, *calls[0])}\n")

    # Outputs and gradients are compared before anything is timed; what a mode refuses is in the result.
    result = compare.compare(loss, inputs=calls, modes=["dynamic", "static", "static-symbolic"])
    print(result)


if __name__ == "__main__":
    main()

"""A mixture of experts on handwritten digits: a router sends each digit to one expert (Fedus, Zoph, Shazeer, 2022).

Which rows an expert gets depends on values. Plain Python runs each expert on its own rows alone; a graph that is built
before runs every expert on all rows and keeps one result for each.
"""

from __future__ import annotations

import numpy as np

import graphs
from compare.workloads.base import Array, Case, Params, Workload
from compare.workloads.data import load_digits, minibatches
from compare.workloads.layers import Layer, dense, dense_layers, he, mlp
from compare.workloads.mlp_digits import CLASSES, PIXELS


def route(params: Params, x: Array) -> tuple[Array, Array]:
    """The probability of each expert for each row, and the likeliest: f[B, 64] -> f[B, experts], i[B]."""
    shares = graphs.softmax(dense(params["router"], x))
    return shares, graphs.argmax(shares, axis=-1)


def loss(params: Params, x: Array, y: Array) -> Array:
    """The mean cross entropy, each expert run on the rows that are sent to it: f[B, 64], i[B] -> a scalar."""
    shares, chosen = route(params, x)
    experts = np.asarray(chosen)
    results, order = [], []
    for number, layers in enumerate(params["experts"]):
        rows = np.flatnonzero(experts == number)
        if len(rows):
            results.append(expert(layers, graphs.take(x, rows), graphs.take(shares, rows)[:, number]))
            order.append(rows)
    logits = graphs.take(graphs.concat(results), np.argsort(np.concatenate(order)))
    return graphs.cross_entropy(logits, y)


def static_loss(params: Params, x: Array, y: Array) -> Array:
    """The same by every expert on all rows, of which one counts."""
    shares, chosen = route(params, x)
    logits = sum(
        graphs.where(graphs.expand_dims(chosen == number, -1), expert(layers, x, shares[:, number]), 0)
        for number, layers in enumerate(params["experts"])
    )
    return graphs.cross_entropy(logits, y)


def expert(layers: list[Layer], x: Array, share: Array) -> Array:
    """What an expert says, by its share, through which the router learns: f[R, 64], f[R] -> f[R, 10]."""
    return mlp(layers, x, graphs.relu) * graphs.expand_dims(share, -1)


def make(experts: int, hidden: int, batch: int, batches: int, seed: int = 0) -> Case:
    """`batches` disjoint minibatches of `batch` digits."""
    rng = np.random.default_rng(seed)
    router = he(rng, PIXELS, experts)
    params = {
        "router": {
            "weight": router,
            "bias": -load_digits()[0].mean(axis=0) @ router,
        },  # a mean digit leaves it undecided
        "experts": [dense_layers(rng, (PIXELS, hidden, CLASSES), he) for _ in range(experts)],
    }
    return Case(loss, params, minibatches(rng, batch, batches), (batch,) * batches, static_loss=static_loss)


WORKLOAD = Workload(
    name="moe_digits",
    title="Mixture of experts on digits",
    shows="Routing by value: a tape runs each expert on its own rows, a fixed graph runs all of them on all rows.",
    expect="dynamic",
    kind="structure that varies",
    sizes={
        "small": {"experts": 8, "hidden": 256, "batch": 64, "batches": 4},
        "medium": {"experts": 16, "hidden": 512, "batch": 128, "batches": 8},
        "large": {"experts": 32, "hidden": 1024, "batch": 128, "batches": 8},
    },
    make=make,
)

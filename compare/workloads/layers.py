"""What the models have in common: initial weights and dense layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

import graphs
from compare.workloads.base import Array

Layer = dict[str, Array]
Weights = npt.NDArray[np.float32]
Init = Callable[[np.random.Generator, int, int], Weights]


def glorot(rng: np.random.Generator, inputs: int, outputs: int) -> Weights:
    """f32[inputs, outputs], uniform, variance 2 / (inputs + outputs): for tanh (Glorot and Bengio, 2010)."""
    limit = np.sqrt(6 / (inputs + outputs))
    return rng.uniform(-limit, limit, (inputs, outputs)).astype(np.float32)


def he(rng: np.random.Generator, inputs: int, outputs: int) -> Weights:
    """f32[inputs, outputs], normal with variance 2 / inputs: for relu (He, Zhang, Ren and Sun, 2015)."""
    return rng.standard_normal((inputs, outputs), np.float32) * np.float32(np.sqrt(2 / inputs))


def dense_layers(rng: np.random.Generator, widths: Sequence[int], init: Init) -> list[Layer]:
    """The layers between neighbouring widths: weights from `init`, biases zero."""
    return [
        {"weight": init(rng, inputs, outputs), "bias": np.zeros(outputs, np.float32)}
        for inputs, outputs in pairwise(widths)
    ]


def dense(layer: Layer, x: Array) -> Array:
    """x @ weight + bias."""
    return x @ layer["weight"] + layer["bias"]


def surprise(scores: Array, true: Array) -> Array:
    """-log p(true) by the scores of all classes: f[..., T, classes], i[..., T] -> f[..., T]."""
    chosen = graphs.take_along_axis(graphs.log_softmax(scores), graphs.expand_dims(true, -1))
    return -graphs.squeeze(chosen, -1)


def averaged_where(mask: Array, each: Array) -> Array:
    """The mean along the last axis of those that the mask keeps: bool[..., T], f[..., T] -> f[...]."""
    counts = graphs.sum(graphs.astype(mask, each.dtype), axis=-1)
    return graphs.sum(graphs.where(mask, each, 0), axis=-1) / counts


def mlp(layers: Sequence[Layer], x: Array, activation: Callable[[Array], Array]) -> Array:
    """Dense layers with the activation between them: f[B, inputs] -> f[B, outputs]."""
    for layer in layers[:-1]:
        x = activation(dense(layer, x))
    return dense(layers[-1], x)

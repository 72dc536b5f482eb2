"""What the models have in common: initial weights and dense layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

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


def mlp(layers: Sequence[Layer], x: Array, activation: Callable[[Array], Array]) -> Array:
    """Dense layers with the activation between them: f[B, inputs] -> f[B, outputs]."""
    for layer in layers[:-1]:
        x = activation(dense(layer, x))
    return dense(layers[-1], x)

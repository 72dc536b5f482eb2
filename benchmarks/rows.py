"""What a row of the table is: a loss, its parameters and its inputs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

Array = Any
Params = dict[str, Array]


class Row(NamedTuple):
    """A loss `loss(params, *inputs) -> scalar` with the values it is measured on."""

    loss: Callable[..., Array]
    params: Params
    inputs: tuple[Array, ...]


def dense(rng: np.random.Generator, *sizes: int) -> Params:
    """Weights and biases of layers between these widths, w1 and b1 first."""
    params: Params = {}
    for i, (m, n) in enumerate(pairwise(sizes), 1):
        params[f"w{i}"] = rng.standard_normal((m, n), np.float32) / np.float32(m**0.5)
        params[f"b{i}"] = np.zeros(n, np.float32)
    return params

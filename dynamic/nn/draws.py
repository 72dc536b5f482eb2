"""Random numbers for initial values and dropout, from one seeded generator. They are not PyTorch's numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynamic.tensor import Tensor
from graphs import captured

Array = np.ndarray[Any, Any]
generator = np.random.default_rng()


def manual_seed(seed: int) -> None:
    """Start the generator again from a seed."""
    generator.bit_generator.state = np.random.default_rng(seed).bit_generator.state


def uniform(shape: tuple[int, ...], low: float, high: float) -> Array:
    """Numbers from `low` up to `high`, in float64."""
    return generator.uniform(low, high, shape)


def normal(shape: tuple[int, ...], mean: float, std: float) -> Array:
    """Normal numbers of this mean and standard deviation, in float64."""
    return generator.normal(mean, std, shape)


def permutation(count: int) -> Array:
    """The numbers from 0 to `count`, mixed."""
    return generator.permutation(count)


def new_key() -> Array:
    """A key of `graphs.uniform` that was never given out before."""
    return generator.integers(0, 1 << 64, 2, np.uint64)


def key_for(x: Any) -> Any:
    """A key for one op on x: an array, or in a trace something that is another key in each call of the graph."""
    return new_key() if isinstance(x, (Tensor, np.ndarray)) else captured.Fresh(new_key)

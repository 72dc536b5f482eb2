"""Random numbers for initial values, dropout and the order of examples, from generators that a seed restarts.

The numbers are not PyTorch's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dynamic.random import default_generator
from dynamic.tensor import Tensor
from graphs import capture, ops

Array = np.ndarray[Any, Any]


def _numpy_generator(generator: Any) -> np.random.Generator:
    numbers: np.random.Generator = (default_generator if generator is None else generator).numpy
    return numbers


def uniform(shape: tuple[int, ...], low: float, high: float, generator: Any = None) -> Array:
    """Uniform numbers from `low` up to `high`, in float64."""
    return _numpy_generator(generator).uniform(low, high, shape)


def normal(shape: tuple[int, ...], mean: float, std: float, generator: Any = None) -> Array:
    """Normal numbers of this mean and standard deviation, in float64."""
    return _numpy_generator(generator).normal(mean, std, shape)


def integers(high: int, count: int, generator: Any = None) -> Array:
    """`count` integers from 0 up to, but without, `high`."""
    return _numpy_generator(generator).integers(0, high, count)


def permutation(count: int, generator: Any = None) -> Array:
    """The integers from 0 to `count` - 1, in random order."""
    return _numpy_generator(generator).permutation(count)


def new_key() -> Array:
    """A new key of `graphs.uniform`, drawn from the default generator."""
    return _numpy_generator(None).integers(0, 1 << 64, 2, np.uint64)


def key_for(x: Any) -> Any:
    """A key for one op on x: an array, or in a trace an input that is a new key in each call and loop iteration."""
    if issubclass(type(x), (Tensor, np.ndarray)):
        return new_key()
    return capture.Fresh(default_generator.drawing(new_key), np.zeros(2, np.uint64), by_turn=ops.fold_in)

"""Windows: weights that fall off to both ends, by which a signal is multiplied before a Fourier transform.

Harris, "On the use of windows for harmonic analysis with the discrete Fourier transform", 1978. Each has
`window_length` values. A periodic one leaves out the last of a symmetric one that is longer by one, so that it can be
repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dynamic.creation import leaf as made
from dynamic.tensor import Tensor
from graphs.errors import DTypeError
from graphs.frontends.torch.guard import guard
from graphs.frontends.torch.words import as_dtype
from graphs.ops.shapes import as_count

__all__ = ["bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window"]

Array = np.ndarray[Any, Any]


def _window(length: int, periodic: bool, options: dict[str, Any], weights: Callable[[Array], Array]) -> Tensor:
    """The weights at places from 0 to 1. Raises OptionError for a negative length, DTypeError for ints."""
    dtype = as_dtype(options.pop("dtype") or np.float32)
    if dtype.kind != "f":
        raise DTypeError(f"the weights are floats, not {dtype}; use float32")
    count = as_count(length, "the length of the window")
    last = count if periodic else count - 1
    values = np.ones(count) if count <= 1 else weights(np.arange(count) / last)
    return made(values.astype(dtype), dtype, **options)


def _cosines(places: Array, *shares: float) -> Array:
    return np.sum([share * np.cos(2 * np.pi * i * places) for i, share in enumerate(shares)], axis=0)


def hann_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """One period of a cosine, from 0 up to 1 and back."""
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
    return _window(window_length, periodic, options, lambda places: _cosines(places, 0.5, -0.5))


def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """`alpha - beta * cos`, which does not fall to 0."""
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
    return _window(window_length, periodic, options, lambda places: _cosines(places, alpha, -beta))


def blackman_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A sum of two cosines, which falls off faster."""
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
    return _window(window_length, periodic, options, lambda places: _cosines(places, 0.42, -0.5, 0.08))


def bartlett_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A triangle, from 0 up to 1 and back."""
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
    return _window(window_length, periodic, options, lambda places: 1 - np.abs(2 * places - 1))


def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Kaiser's: `beta` trades the width of the main lobe for the height of the others."""
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}

    def weights(places: Array) -> Array:
        return np.i0(beta * np.sqrt(np.maximum(1 - (2 * places - 1) ** 2, 0))) / np.i0(beta)

    return _window(window_length, periodic, options, weights)


guard(globals(), __all__)

"""Tensors made from data or from nothing, with PyTorch's names and defaults (float32)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dynamic.tensor import Tensor, as_array
from graphs import ops

__all__ = [
    "arange",
    "as_tensor",
    "eye",
    "from_numpy",
    "full",
    "full_like",
    "linspace",
    "ones",
    "ones_like",
    "tensor",
    "zeros",
    "zeros_like",
]


def tensor(data: Any, dtype: npt.DTypeLike | None = None, requires_grad: bool = False) -> Tensor:
    """A leaf with a copy of `data`: Python floats become float32, ints int64; arrays keep their dtype.

    Raises DTypeError when a gradient is required of ints or bools.
    """
    return Tensor(np.array(as_array(data, dtype)), requires_grad=requires_grad)


def from_numpy(array: np.ndarray[Any, Any]) -> Tensor:
    """A leaf that shares the array's memory."""
    return Tensor(array)


def as_tensor(data: Any, dtype: npt.DTypeLike | None = None) -> Tensor:
    """`data` itself when it is a tensor of that dtype, else a leaf that shares memory where it can."""
    if isinstance(data, Tensor) and dtype in (None, data.dtype):
        return data
    return Tensor(data, dtype)


def zeros(*shape: Any, dtype: npt.DTypeLike = np.float32, requires_grad: bool = False) -> Tensor:
    """Zeros of a shape, given as sizes or as one tuple."""
    return Tensor(np.zeros(_shape(shape), dtype), requires_grad=requires_grad)


def ones(*shape: Any, dtype: npt.DTypeLike = np.float32, requires_grad: bool = False) -> Tensor:
    """Ones of a shape, given as sizes or as one tuple."""
    return Tensor(np.ones(_shape(shape), dtype), requires_grad=requires_grad)


def full(shape: Any, fill_value: float, dtype: npt.DTypeLike | None = None, requires_grad: bool = False) -> Tensor:
    """One value everywhere."""
    kind = as_array(fill_value, None).dtype if dtype is None else dtype
    return Tensor(np.full(shape, fill_value, kind), requires_grad=requires_grad)


def eye(n: int, m: int | None = None, dtype: npt.DTypeLike = np.float32, requires_grad: bool = False) -> Tensor:
    """The identity matrix."""
    return Tensor(np.eye(n, m, dtype=dtype), requires_grad=requires_grad)


def arange(start: float, stop: float | None = None, step: float = 1, dtype: npt.DTypeLike | None = None) -> Tensor:
    """Evenly spaced values; int64 when all three numbers are ints, float32 otherwise."""
    first, last = (0, start) if stop is None else (start, stop)
    whole = all(isinstance(v, int) for v in (first, last, step))
    return Tensor(ops.arange(first, last, step, dtype=dtype or (np.int64 if whole else np.float32)))


def linspace(start: float, stop: float, steps: int, dtype: npt.DTypeLike = np.float32) -> Tensor:
    """`steps` evenly spaced values, both ends included."""
    return Tensor(ops.linspace(start, stop, num=steps, dtype=dtype))


def zeros_like(x: Any, dtype: npt.DTypeLike | None = None, requires_grad: bool = False) -> Tensor:
    """Zeros with the shape and dtype of another tensor."""
    return zeros(x.shape, dtype=dtype or x.dtype, requires_grad=requires_grad)


def ones_like(x: Any, dtype: npt.DTypeLike | None = None, requires_grad: bool = False) -> Tensor:
    """Ones with the shape and dtype of another tensor."""
    return ones(x.shape, dtype=dtype or x.dtype, requires_grad=requires_grad)


def full_like(x: Any, fill_value: float, dtype: npt.DTypeLike | None = None, requires_grad: bool = False) -> Tensor:
    """One value everywhere, with the shape and dtype of another tensor."""
    return full(x.shape, fill_value, dtype=dtype or x.dtype, requires_grad=requires_grad)


def _shape(given: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(given[0]) if len(given) == 1 and not isinstance(given[0], int) else given

"""Python scalars take the dtype of the tensors they meet (NEP 50), before an op is inferred or run."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphs.dims import Dim
from graphs.errors import DTypeError

_SCALARS = (bool, int, float)


def is_scalar(value: Any) -> bool:
    """Whether a value is a Python number, which has no dtype of its own."""
    return type(value) in _SCALARS


def scalar_dtype(value: Any, others: Sequence[Any]) -> np.dtype[Any]:
    """The dtype a Python number, or a symbolic size, takes beside values that have a dtype."""
    kind: Any = int if isinstance(value, Dim) else type(value)
    return _weak_dtype(kind, _dtype_numbers(others))


def typed(value: Any, others: Sequence[Any]) -> np.ndarray[Any, Any]:
    """A Python number as a 0-d array of the dtype it takes beside `others`; anything else as an array.

    Raises DTypeError when the number does not fit that dtype.
    """
    kind: Any = type(value)
    if kind not in _SCALARS:
        return np.asarray(value)
    numbers = _dtype_numbers(others)
    if value and value == value:
        return _cached(value, kind, numbers)
    # 0.0 and -0.0 are the same key, and NaN is never found again: those are made anew.
    return np.asarray(value, _weak_dtype(kind, numbers))


def _dtype_numbers(values: Sequence[Any]) -> tuple[int, ...]:
    # Numbers are hashed faster than dtypes, and this is done for every number that meets a tensor.
    return tuple([v.dtype.num for v in values if hasattr(v, "dtype")])


@functools.lru_cache(maxsize=1024)
def _weak_dtype(kind: Any, numbers: tuple[int, ...]) -> np.dtype[Any]:
    # Under NEP 50 the result depends on what kind of number it is, never on its value.
    return np.result_type(kind(1), *(_DTYPES[number] for number in numbers))


@functools.lru_cache(maxsize=4096)
def _cached(value: float, kind: Any, numbers: tuple[int, ...]) -> np.ndarray[Any, Any]:
    dtype = _weak_dtype(kind, numbers)
    try:
        array = np.asarray(value, dtype)
    except OverflowError:
        raise DTypeError(f"{value} does not fit {dtype}; convert the tensor with astype first") from None
    array.flags.writeable = False
    return array


_DTYPES: dict[int, np.dtype[Any]] = {np.dtype(code).num: np.dtype(code) for code in "?bhilqBHILQefdg"}

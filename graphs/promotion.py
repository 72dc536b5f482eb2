"""Python scalars take the dtype of the tensors they meet (NEP 50), before an op is inferred or run."""

from __future__ import annotations

import functools
import math
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
    return _weak_dtype(kind, tuple([o.dtype for o in others if hasattr(o, "dtype")]))


@functools.lru_cache(maxsize=1024)
def _weak_dtype(kind: Any, dtypes: tuple[np.dtype[Any], ...]) -> np.dtype[Any]:
    # Under NEP 50 the result depends on what kind of number it is, never on its value.
    return np.result_type(kind(1), *dtypes)


def typed(value: Any, others: Sequence[Any]) -> np.ndarray[Any, Any]:
    """A Python number as a 0-d array of the dtype it takes beside `others`; anything else as an array.

    Raises DTypeError when the number does not fit that dtype.
    """
    if not is_scalar(value):
        return np.asarray(value)
    dtype = scalar_dtype(value, others)
    try:
        # 0.0 and -0.0 are the same key, and NaN is never found again: those are made anew.
        return _cached(value, dtype) if value and not math.isnan(value) else np.asarray(value, dtype)
    except OverflowError:
        raise DTypeError(f"{value} does not fit {dtype}; convert the tensor with astype first") from None


@functools.lru_cache(maxsize=1024)
def _cached(value: float, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    array = np.asarray(value, dtype)
    array.flags.writeable = False
    return array

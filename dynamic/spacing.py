"""Evenly spaced numbers as PyTorch computes them: an int dtype converts the ends before anything is computed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphs.errors import OptionError

Array = np.ndarray[Any, Any]


def progression(first: float, last: float, step: float, dtype: np.dtype[Any]) -> Array:
    """The numbers from `first` up to but without `last`, in double or int64.

    Of int64 the number of values is counted after the ends were converted, of others before. Raises OptionError for a
    step that converts to 0.
    """
    if dtype.kind not in "iu":
        return first + step * np.arange(max(0, math.ceil((last - first) / step)))
    start, width = int(first), int(step)
    if dtype != np.int64:
        return start + width * np.arange(max(0, math.ceil((last - first) / step)))
    if width == 0:
        raise OptionError(f"a step of {step} is 0 in {dtype}, and never arrives; give a whole number")
    return start + width * np.arange(max(0, -((start - int(last)) // width)))


def evenly(start: Any, end: Any, steps: int, dtype: np.dtype[Any]) -> Array:
    """`steps` numbers from `start` to `end` in double, each counted from the end that is nearer."""
    if steps < 2:
        return np.full(steps, float(start))
    first, last = map(int, (start, end)) if dtype.kind in "iu" else map(float, (start, end))
    step, places = (last - first) / (steps - 1), np.arange(steps)
    return np.where(places < steps // 2, first + step * places, last - step * (steps - 1 - places))

"""How layers make their parameters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dynamic.nn.parameter import Parameter
from graphs.ops.dtypes import check_device
from graphs.ops.shapes import new_shape


def empty(shape: tuple[int, ...], device: Any = None, dtype: Any = None) -> Any:
    """A parameter without values yet. Raises ShapeError, and ValueError for a device that is not the CPU."""
    if device is not None:
        check_device(getattr(device, "type", device))
    return Parameter(np.zeros(new_shape(shape), np.float32 if dtype is None else dtype))


def full(shape: tuple[int, ...], value: float, device: Any = None, dtype: Any = None) -> Any:
    """A parameter of one value."""
    param = empty(shape, device, dtype)
    param._data.fill(value)
    return param


def bound_of(fan: int) -> float:
    """The limit of uniform initial values for this many inputs."""
    return 1 / math.sqrt(fan) if fan > 0 else 0.0

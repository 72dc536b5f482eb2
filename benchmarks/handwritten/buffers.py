"""What a hand-written step is, and the buffers it is planned with."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from benchmarks.rows import Params

Array = Any
LINE = 16  # floats in a cache line
Step = Callable[..., tuple[Array, Params]]


def buffer(*shape: int) -> Array:
    """A float32 buffer that a step writes before it reads, aligned: vectors that straddle cache lines are slower."""
    size = prod(shape)
    room = np.empty(size + LINE, np.float32)
    start = -room.ctypes.data % (4 * LINE) // 4
    return room[start : start + size].reshape(shape)


def like(params: Params) -> Params:
    """A buffer for the gradient of each parameter."""
    return {name: buffer(*value.shape) for name, value in params.items()}

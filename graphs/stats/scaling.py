"""What distributions share: location and scale, and what is outside of their support."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

from graphs import ops
from graphs.op import Array
from graphs.promotion import is_scalar, typed


def of_one_kind(function: Callable[..., Array]) -> Callable[..., Array]:
    """The function with Python numbers among its arguments brought to the dtype of the arrays beside them."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Array:
        bound = signature.bind(*args, **options)
        bound.apply_defaults()
        beside = [value for value in bound.arguments.values() if hasattr(value, "dtype")]
        for name, value in bound.arguments.items():
            if beside and is_scalar(value) and not isinstance(value, bool):
                bound.arguments[name] = typed(value, beside)
        return function(*bound.args, **bound.kwargs)

    return call


def standard(x: Array, loc: Array, scale: Array) -> Array:
    """(x - loc) / scale."""
    return ops.divide(ops.subtract(x, loc), scale)


def unscaled(logpdf: Array, scale: Array) -> Array:
    """The logarithm of a density of (x - loc) / scale, as one of x."""
    return ops.subtract(logpdf, ops.log(scale))


def within(inside: Array, z: Array, other: float, function: Callable[[Array], Array], outside: float) -> Array:
    """`function(z)` where `inside` holds, and `outside` elsewhere, with gradient 0; `other` is a place inside."""
    return ops.where(inside, function(ops.where(inside, z, other)), outside)


NEVER = -math.inf

"""Helpers of the functions in this folder."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynamic.tensor import Tensor
from graphs.errors import DTypeError, GraphError, OptionError, OutOfRangeError, locate
from graphs.promotion import mixing

Array = Any


def write_result(x: Array, result: Array, inplace: bool = True) -> Array:
    """Return the result, with `inplace` written over x. Raises GraphError for an array, and InplaceError."""
    if not inplace:
        return result
    if isinstance(x, np.ndarray):
        raise GraphError(locate("inplace=True: only a tensor is changed in place; leave it out"))
    return x._assign(result)


def refuse(name: str, remedy: str, **options: Any) -> None:
    """Raise GraphError for the first option with an unsupported value; options are pairs (value, supported)."""
    for option, (value, supported) in options.items():
        if value is not supported and value != supported:
            raise GraphError(locate(f"{name}: {option}={value!r} is not supported; {remedy}"))


def check_dtypes(x: Array, *others: Array | None) -> None:
    """Raise DTypeError unless all operands have one dtype: layers convert none, as in PyTorch."""
    for other in others:
        if other is not None and other.dtype != x.dtype and not mixing:
            raise DTypeError(
                f"takes operands of one dtype, not of {x.dtype} and {other.dtype}; convert with .to(dtype)"
            )


def check_shares(what: str, x: Array) -> None:
    """Raise OptionError unless all elements are from 0 to 1; symbols are not checked."""
    array = concrete(x)
    if array is not None and not np.all((array >= 0) & (array <= 1)):
        raise OptionError(f"{what} is made of probabilities, from 0 to 1; use sigmoid, or the loss of logits")


def concrete(x: Array) -> np.ndarray[Any, Any] | None:
    """The array of a tensor; None for a symbol, which has no values yet."""
    return x._data if issubclass(type(x), Tensor) else x if isinstance(x, np.ndarray) else None


def check_indices(name: str, indices: Array, size: Any, besides: int | None = None) -> bool:
    """Whether all are from 0 to the size, where they are known. Raises OutOfRangeError unless the others are `besides`.

    NumPy counts negative indices from the end; PyTorch refuses them.
    """
    array = concrete(indices)
    if array is None or not isinstance(size, int) or not array.size or array.dtype.kind not in "iu":
        return False
    low, high = int(array.min()), int(array.max())
    if low >= 0 and high < size:
        return True
    if besides is not None:
        rest = array[array != besides]
        low, high = (int(rest.min()), int(rest.max())) if rest.size else (0, 0)
    if low < 0 or high >= size:
        raise OutOfRangeError(locate(f"{name}: index {low if low < 0 else high} is not from 0 to {size - 1}"))
    return False


def reduction_of(reduction: str, size_average: bool | None, reduce: bool | None) -> str:
    """The reduction that PyTorch's older options, True if None, stand for; `reduction` if neither is given."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is not None and not reduce:
        return "none"
    return "mean" if size_average is None or size_average else "sum"

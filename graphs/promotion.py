"""Python scalars take the dtype of the tensors beside them (NEP 50), before an op is inferred or run."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphs.blocks import Table
from graphs.dims import Dim
from graphs.errors import DTypeError

SCALARS = (bool, int, float)

# While this table has entries, functions that take operands of one dtype, such as PyTorch's products, promote
# instead: for runs in another precision of code that holds arrays of its own.
mixing: Table[bool] = {}


def is_scalar(value: Any) -> bool:
    """Whether a value is a Python number, which has no dtype of its own."""
    return type(value) in SCALARS


def check_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype. Raises DTypeError for one that no tensor has: longdouble, complex numbers, objects, text."""
    if dtype.num not in HELD:
        longer = ", which has more than 64 bits" if dtype.kind == "f" else ""
        raise DTypeError(f"tensors hold bools, ints or floats, not {dtype}{longer}; convert first")
    return dtype


def check_operands(values: Sequence[Any]) -> None:
    """Raise DTypeError unless every value is a number, or an array or list of a dtype that tensors have."""
    for value in values:
        if type(value) not in SCALARS:
            check_dtype(value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype)


def scalar_dtype(value: Any, others: Sequence[Any]) -> np.dtype[Any]:
    """The dtype a Python number, or a symbolic size, takes beside values that have a dtype."""
    kind: Any = int if isinstance(value, Dim) else type(value)
    return weak_dtype(kind, _dtype_numbers(others))


def weak_to_array(value: Any, others: Sequence[Any]) -> np.ndarray[Any, Any]:
    """A Python number as a 0-d array of the dtype it takes beside `others`; anything else as an array.

    Raises DTypeError when the number does not fit that dtype, and for values that no tensor holds.
    """
    kind: Any = type(value)
    if kind not in SCALARS:
        array = np.asarray(value)
        check_dtype(array.dtype)
        return array
    beside = _dtype_numbers(others)
    if value and value == value:
        return numbers[value, kind, *beside]
    # 0.0 and -0.0 are the same key, and NaN is never found again: their arrays are made anew.
    return np.asarray(value, weak_dtype(kind, beside))


def _dtype_numbers(values: Sequence[Any]) -> tuple[int, ...]:
    # Numbers are hashed faster than dtypes, and this is done for every number beside a tensor.
    return tuple([v.dtype.num for v in values if hasattr(v, "dtype")])


@functools.lru_cache(maxsize=1024)
def weak_dtype(kind: Any, numbers: tuple[int, ...]) -> np.dtype[Any]:
    """The dtype that a Python number of type `kind` takes beside dtypes, given by their numbers."""
    # Under NEP 50 the result depends on the type of the number, never on its value.
    return np.result_type(kind(1), *(HELD[number] for number in numbers))


class _Numbers(dict[tuple[Any, ...], np.ndarray[Any, Any]]):
    """Cache of nonzero Python numbers as arrays: `numbers[value, type of the value, *numbers of the dtypes beside it]`.

    The arrays are 0-d and read-only, each made once. Raises DTypeError when the number does not fit its dtype.
    """

    most = 4096

    def __missing__(self, key: tuple[Any, ...]) -> np.ndarray[Any, Any]:
        value, kind, *others = key
        dtype = weak_dtype(kind, tuple(others))
        try:
            array = np.asarray(value, dtype)
        except OverflowError:
            raise DTypeError(f"{value} does not fit {dtype}; convert the tensor with astype first") from None
        array.flags.writeable = False
        if len(self) >= self.most:
            self.clear()
        self[key] = array
        return array


numbers = _Numbers()


def dtype_of_number(num: int) -> np.dtype[Any]:
    """The dtype with this `dtype.num`, in the machine's byte order."""
    return HELD[num]


HELD: dict[int, np.dtype[Any]] = {np.dtype(code).num: np.dtype(code) for code in "?bhilqBHILQefd"}
"""The dtypes that tensors have, by number."""

"""Dtypes: their names, what they hold, how they promote (NEP 50), and what the array API standard asks about them."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy import bool_ as bool
from numpy import float16, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64

from graphs.errors import DTypeError
from graphs.promotion import is_scalar
from graphs.spec import TensorSpec

Kind = Any  # a name such as "real floating", a dtype, or a tuple of these

e, pi, inf, nan, newaxis = np.e, np.pi, np.inf, np.nan, None

_DTYPES: dict[str, Any] = {
    "bool": bool,
    "int8": int8,
    "int16": int16,
    "int32": int32,
    "int64": int64,
    "uint8": uint8,
    "uint16": uint16,
    "uint32": uint32,
    "uint64": uint64,
    "float16": float16,
    "float32": float32,
    "float64": float64,
}


@dataclass(frozen=True)
class FloatInfo:
    """The limits of a floating point dtype, as Python numbers."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class IntInfo:
    """The limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: np.dtype[Any]


def _dtype(value: Any) -> np.dtype[Any]:
    """The dtype of an array, tensor, symbol or spec, or the dtype itself; refuses those that no tensor has."""
    given = value.dtype if hasattr(value, "shape") and not isinstance(value, type) else value
    return TensorSpec((), given).dtype


def finfo(type: Any, /) -> FloatInfo:  # noqa: A002
    """The limits of a floating point dtype, or of the dtype of an array. Raises DTypeError for any other dtype."""
    dtype = _dtype(type)
    if dtype.kind != "f":
        raise DTypeError(f"finfo: {dtype} is no floating point dtype; use iinfo for integers")
    info = np.finfo(dtype)
    return FloatInfo(
        info.bits, float(info.eps), float(info.max), float(info.min), float(info.smallest_normal), info.dtype
    )


def iinfo(type: Any, /) -> IntInfo:  # noqa: A002
    """The limits of an integer dtype, or of the dtype of an array. Raises DTypeError for any other dtype."""
    dtype = _dtype(type)
    if dtype.kind not in "iu":
        raise DTypeError(f"iinfo: {dtype} is no integer dtype; use finfo for floating point")
    info = np.iinfo(dtype)
    return IntInfo(info.bits, int(info.max), int(info.min), info.dtype)


def isdtype(dtype: npt.DTypeLike, kind: Kind) -> builtin_bool:
    """Whether a dtype is of a kind: "bool", "signed integer", "unsigned integer", "integral", "real floating",
    "complex floating", "numeric", a dtype, or a tuple of these."""  # noqa: D205, D209
    return np.isdtype(np.dtype(dtype), kind)


def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    """The dtype that arrays, tensors, symbols, dtypes and Python numbers take together, as NumPy 2 promotes."""
    return np.result_type(*(a if is_scalar(a) else _dtype(a) for a in arrays_and_dtypes))


def can_cast(from_: Any, to: npt.DTypeLike, /) -> builtin_bool:
    """Whether promotion may turn a dtype, or that of an array, into another."""
    target = np.dtype(to)
    return np.result_type(_dtype(from_), target) == target

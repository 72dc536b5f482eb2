"""Dtypes: their names, limits and promotion (NEP 50), the constants, and the array API standard's namespace info."""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from graphs.dispatch import interpreter_of
from graphs.errors import DTypeError
from graphs.promotion import is_scalar
from graphs.spec import TensorSpec

__all__ = [
    "__array_api_version__", "__array_namespace_info__", "bool", "can_cast", "e", "finfo", "float16", "float32",
    "float64", "iinfo", "inf", "int8", "int16", "int32", "int64", "isdtype", "nan", "newaxis", "pi", "result_type",
    "uint8", "uint16", "uint32", "uint64",
]  # fmt: skip  # fmt: skip

Kind = Any  # a name such as "real floating", a dtype, or a tuple of these

bool = np.bool_
int8, int16, int32, int64 = np.int8, np.int16, np.int32, np.int64
uint8, uint16, uint32, uint64 = np.uint8, np.uint16, np.uint32, np.uint64
float16, float32, float64 = np.float16, np.float32, np.float64
e, pi, inf, nan, newaxis = np.e, np.pi, np.inf, np.nan, None

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")
__array_api_version__ = VERSIONS[-1]

_INTEGERS = (int8, int16, int32, int64, uint8, uint16, uint32, uint64)
_STANDARD: tuple[type[np.generic], ...] = (bool, *_INTEGERS, float32, float64)


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
    """The dtype of an array, tensor, symbol or spec, or of a dtype. Raises DTypeError for one that no tensor has."""
    holds_values = hasattr(value, "shape") and not isinstance(value, (type, np.dtype))
    return TensorSpec((), value.dtype if holds_values else value).dtype


def finfo(type: Any) -> FloatInfo:
    """The limits of a floating point dtype, or of the dtype of an array. Raises DTypeError for any other."""
    dtype = _dtype(type)
    if dtype.kind != "f":
        raise DTypeError(f"finfo: {dtype} is no floating point dtype; use iinfo for integers")
    info: Any = np.finfo(dtype)
    return FloatInfo(info.bits, float(info.eps), float(info.max), float(info.min), float(info.smallest_normal), dtype)


def iinfo(type: Any) -> IntInfo:
    """The limits of an integer dtype, or of the dtype of an array. Raises DTypeError for any other."""
    dtype = _dtype(type)
    if dtype.kind not in "iu":
        raise DTypeError(f"iinfo: {dtype} is no integer dtype; use finfo for floating point")
    info = np.iinfo(dtype)
    return IntInfo(info.bits, info.max, info.min, dtype)


def isdtype(dtype: npt.DTypeLike, kind: Kind) -> builtins.bool:
    """Whether a dtype is of a kind: "integral", "real floating" ..., a dtype, or one of several in a tuple."""
    return np.isdtype(np.dtype(dtype), kind)


def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    """The common dtype of arrays, tensors, symbols, dtypes and Python numbers, as NumPy 2 promotes them."""
    return np.result_type(
        *(a if is_scalar(a) else np.dtype(a.dtype) if interpreter_of(a) else _dtype(a) for a in arrays_and_dtypes)
    )


def can_cast(from_: Any, to: npt.DTypeLike, /) -> builtins.bool:
    """Whether promotion may turn a dtype, or that of an array, into another."""
    target = np.dtype(to)
    return np.result_type(_dtype(from_), target) == target


class NamespaceInfo:
    """The answers that the array API standard asks of a namespace: capabilities, devices and dtypes."""

    def capabilities(self) -> dict[str, Any]:
        """Which optional behaviour is supported. A static trace refuses operations whose shapes depend on values."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """The only device."""
        return "cpu"

    def devices(self) -> list[str]:
        """Every device."""
        return ["cpu"]

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype[Any]]:
        """The default dtypes of numbers."""
        names = {"real floating": float64, "integral": int64, "indexing": np.intp}
        return {kind: np.dtype(dtype) for kind, dtype in names.items()}

    def dtypes(self, *, device: Any = None, kind: Kind = None) -> dict[str, np.dtype[Any]]:
        """The dtypes of a kind, by name; all by default. float16 works but is not listed, as the standard lacks it."""
        candidates = map(np.dtype, _STANDARD)
        return {dtype.name: dtype for dtype in candidates if kind is None or isdtype(dtype, kind)}


def __array_namespace_info__() -> NamespaceInfo:  # noqa: N807  (the standard's name)
    """The capabilities, devices and dtypes of this namespace, for the array API standard."""
    return NamespaceInfo()


def check_device(device: Any) -> None:
    """Raise ValueError for any device but the CPU."""
    if device not in (None, "cpu"):
        raise ValueError(f"there is no device {device!r}; arrays are on 'cpu'")

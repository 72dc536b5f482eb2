"""Arrays made from nothing. On numbers they are plain NumPy arrays; on symbolic sizes they are nodes of the graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from graphs import dims
from graphs.dims import Shape, Size
from graphs.op import Attrs, Op
from graphs.ops.shapes import as_shape, dtype_of, shape_of
from graphs.spec import TensorSpec

Array = Any
Prepared = tuple[tuple[Any, ...], Attrs]


def _prepare_full(shape: Any, fill_value: float, /, dtype: npt.DTypeLike | None = None) -> Prepared:
    kind = np.asarray(fill_value).dtype if dtype is None else np.dtype(dtype)
    return (), {"shape": as_shape(shape), "value": fill_value, "dtype": kind}


def _full(*, shape: Shape, value: float, dtype: np.dtype[Any], out: Array = None) -> Array:
    if out is None:
        return np.full(shape, value, dtype)
    out[...] = value
    return out


def _prepare_arange(
    start: Size, /, stop: Size | None = None, step: int = 1, dtype: npt.DTypeLike | None = None
) -> Prepared:
    first, last = (0, start) if stop is None else (start, stop)
    kind = np.dtype(np.int64) if dtype is None else np.dtype(dtype)
    return (), {"start": first, "stop": last, "step": step, "dtype": kind}


def _arange(*, start: int, stop: int, step: int, dtype: np.dtype[Any], out: Array = None) -> Array:
    values = np.arange(start, stop, step, dtype=dtype)
    if out is None:
        return values
    out[...] = values
    return out


full: Op = Op(
    "full",
    _full,
    lambda *, shape, value, dtype: TensorSpec(shape, dtype),
    prepare=_prepare_full,
    cost=lambda *, out, **_: 0,
    family="creation",
    arity=0,
    doc="An array of one value: `full(shape, fill_value, dtype=None)`.",
)
arange: Op = Op(
    "arange",
    _arange,
    lambda *, start, stop, step, dtype: TensorSpec(
        (dims.maximum(stop - start, 0) if step == 1 else len(range(start, stop, step)),), dtype
    ),
    prepare=_prepare_arange,
    cost=lambda *, out, **_: 0,
    family="creation",
    arity=0,
    doc="The integers from `start` (0) up to `stop`, which may be symbolic.",
)


def zeros(shape: Any, dtype: npt.DTypeLike = np.float64) -> Array:
    """An array of zeros."""
    return full(shape, 0, dtype)


def ones(shape: Any, dtype: npt.DTypeLike = np.float64) -> Array:
    """An array of ones."""
    return full(shape, 1, dtype)


def full_like(x: Array, fill_value: float, /, dtype: npt.DTypeLike | None = None) -> Array:
    """An array of one value, with the shape and dtype of another."""
    return full(shape_of(x), fill_value, dtype_of(x) if dtype is None else dtype)


def zeros_like(x: Array, /, dtype: npt.DTypeLike | None = None) -> Array:
    """Zeros with the shape and dtype of another array."""
    return full_like(x, 0, dtype)


def ones_like(x: Array, /, dtype: npt.DTypeLike | None = None) -> Array:
    """Ones with the shape and dtype of another array."""
    return full_like(x, 1, dtype)


def eye(n: int, m: int | None = None, /, dtype: npt.DTypeLike = np.float64) -> Array:
    """The identity matrix."""
    return np.eye(n, m, dtype=dtype)


def linspace(start: float, stop: float, /, num: int, dtype: npt.DTypeLike = np.float64) -> Array:
    """`num` evenly spaced values, both ends included."""
    return np.linspace(start, stop, num, dtype=dtype)

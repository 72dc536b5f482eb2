"""Creation of arrays: plain NumPy arrays for sizes that are numbers, nodes of the graph for symbolic sizes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from graphs import dims, dispatch, promotion
from graphs.dims import Dim, Shape, Size
from graphs.errors import DTypeError, ShapeError, add_context
from graphs.op import Array, Op, Prepared
from graphs.ops.dtypes import check_device
from graphs.ops.families import composite
from graphs.ops.movement import astype, identity, stack
from graphs.ops.shapes import as_count, as_shape, dtype_of, shape_of, store
from graphs.promotion import check_dtype
from graphs.spec import TensorSpec

__all__ = [
    "arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like", "linspace", "ones",
    "ones_like", "zeros", "zeros_like",
]  # fmt: skip

DType = npt.DTypeLike | None


def _prepare_full(shape: Any, fill_value: float, dtype: DType = None, device: Any = None) -> Prepared:
    check_device(device)
    kind = check_dtype(np.asarray(fill_value).dtype)
    kind = kind if dtype is None else check_dtype(np.dtype(dtype))
    return (), {"shape": as_shape(shape), "value": fill_value, "dtype": kind}


def _full(*, shape: Shape, value: float, dtype: np.dtype[Any], out: Array = None) -> Array:
    """An array of one value: `full(shape, fill_value, dtype=None)`."""
    if out is None:
        return np.full(shape, value, dtype)
    out[...] = value
    return out


def _prepare_arange(
    start: Size | float,
    /,
    stop: Size | float | None = None,
    step: float = 1,
    dtype: DType = None,
    device: Any = None,
) -> Prepared:
    check_device(device)
    first, last = (0, start) if stop is None else (start, stop)
    if step == 0:
        raise ShapeError("a step of 0 never arrives; use a step that is positive or negative")
    whole = all(isinstance(v, (int, np.integer, Dim)) for v in (first, last, step))
    kind = np.dtype(np.int64 if whole else np.float64) if dtype is None else np.dtype(dtype)
    return (), {"start": first, "stop": last, "step": step, "dtype": check_dtype(kind)}


def _arange(*, start: Any, stop: Any, step: Any, dtype: np.dtype[Any], out: Array = None) -> Array:
    """The numbers from `start` (0) up to `stop`, which may be symbolic, `step` apart."""
    # In float16 and float32 NumPy would add up a rounded step, and end far from the right value.
    values = np.arange(start, stop, step, dtype=np.float64 if dtype.kind == "f" else dtype)
    return store(values.astype(dtype, copy=False), out)


def _infer_arange(*, start: Any, stop: Any, step: Any, dtype: np.dtype[Any]) -> TensorSpec:
    if isinstance(start, Dim) or isinstance(stop, Dim):
        if step != 1:
            raise ShapeError(f"a step of {step} between symbolic sizes is not supported; use 1 and multiply")
        return TensorSpec((dims.maximum(stop - start, 0),), dtype)
    return TensorSpec((max(0, math.ceil((stop - start) / step)),), dtype)


full: Op = Op(
    "full",
    _full,
    lambda *, shape, value, dtype: TensorSpec(shape, dtype),
    prepare=_prepare_full,
    again=lambda *, shape, value, dtype: _prepare_full(shape, value, dtype),
    cost=0,
    family="creation",
)
arange: Op = Op(
    "arange",
    _arange,
    _infer_arange,
    prepare=_prepare_arange,
    again=lambda *, start, stop, step, dtype: _prepare_arange(start, stop, step, dtype),
    cost=0,
    family="creation",
)


def zeros(shape: Any, dtype: DType = None, device: Any = None) -> Array:
    """An array of zeros; float64 by default."""
    return full(shape, 0, dtype or np.float64, device)


def ones(shape: Any, dtype: DType = None, device: Any = None) -> Array:
    """An array of ones; float64 by default."""
    return full(shape, 1, dtype or np.float64, device)


def empty(shape: Any, dtype: DType = None, device: Any = None) -> Array:
    """An array to be filled. It holds zeros, so that every run is the same."""
    return zeros(shape, dtype, device)


def full_like(x: Array, /, fill_value: float, dtype: DType = None, device: Any = None) -> Array:
    """An array of one value, with the shape and dtype of x; a tensor for a tensor, a symbol for a symbol."""
    made = full(shape_of(x), fill_value, dtype or dtype_of(x), device)
    interpreter = dispatch.interpreter_of(x)
    # Code that then writes into the result must not write into an array that no engine watches.
    return made if interpreter is None else interpreter(identity, (made,), {})


def zeros_like(x: Array, /, dtype: DType = None, device: Any = None) -> Array:
    """Zeros with the shape and dtype of another array."""
    return full_like(x, 0, dtype, device)


def ones_like(x: Array, /, dtype: DType = None, device: Any = None) -> Array:
    """Ones with the shape and dtype of another array."""
    return full_like(x, 1, dtype, device)


def empty_like(x: Array, /, dtype: DType = None, device: Any = None) -> Array:
    """An array to be filled, with the shape and dtype of another. It holds zeros."""
    return zeros_like(x, dtype, device)


@composite
def eye(n_rows: int, n_cols: int | None = None, /, k: int = 0, *, dtype: DType = None, device: Any = None) -> Array:
    """Ones on the k-th diagonal, zeros elsewhere."""
    check_device(device)
    rows = as_count(n_rows, "the number of rows")
    columns = rows if n_cols is None else as_count(n_cols, "the number of columns")
    return _check_dtypes("eye", np.eye(rows, columns, k, dtype=dtype or np.float64))


@composite
def linspace(
    start: float, stop: float, /, num: int, dtype: DType = None, device: Any = None, endpoint: bool = True
) -> Array:
    """`num` evenly spaced values from `start` to `stop`, which is left out without `endpoint`."""
    check_device(device)
    _check_dtypes("linspace", np.asarray(start), np.asarray(stop))
    count = as_count(num, "the number of values")
    made = np.linspace(float(start), float(stop), count, endpoint=endpoint, dtype=dtype or np.float64)
    return _check_dtypes("linspace", made)


def asarray(obj: Any, /, *, dtype: DType = None, device: Any = None, copy: bool | None = None) -> Array:
    """An array of numbers, nested lists or anything with a buffer; tensors and symbols stay what they are.

    Nested lists that hold tensors or symbols are stacked. `copy=False` raises ValueError where a copy is needed.
    """
    check_device(device)
    if copy is not False and isinstance(obj, (list, tuple)) and _holds_special(obj):
        obj, copy = stack([asarray(part) for part in obj]), None
    if dispatch.interpreter_of(obj) is None:
        return _check_dtypes("asarray", np.array(obj, dtype=dtype, copy=copy))
    if dtype is not None and dtype_of(obj) != np.dtype(dtype):
        if copy is False:
            raise ValueError(f"asarray: {dtype_of(obj)} becomes {np.dtype(dtype)} only in a copy; allow one")
        return astype(obj, dtype)
    return identity(obj) if copy else obj


def _holds_special(obj: Any) -> bool:
    """Whether nested lists hold a tensor or symbol."""
    if isinstance(obj, (list, tuple)):
        return any(map(_holds_special, obj))
    return dispatch.interpreter_of(obj) is not None


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """The array of any object that supports DLPack, sharing its memory where possible."""
    check_device(device)
    return _check_dtypes("from_dlpack", np.from_dlpack(x, copy=copy))


def _check_dtypes(name: str, array: Array, *others: Array) -> Array:
    """Return the array. Raises DTypeError, naming the function, for a dtype that no tensor has."""
    try:
        promotion.check_operands((array, *others))
    except DTypeError as error:
        raise add_context(error, name, "") from None
    return array

"""The discrete Fourier transform, of real and imaginary parts along a last axis of size 2: tensors are real."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphs import dims
from graphs.dims import Size
from graphs.errors import DTypeError, ShapeError
from graphs.op import Array, Op, Prepared
from graphs.ops.shapes import as_operand, positive_axis, shape_of, store
from graphs.spec import TensorSpec

__all__ = ["fourier"]


def _prepare(x: Array, /, axis: int = -1, inverse: bool = False) -> Prepared:
    x = as_operand(x)
    return (x,), {"axis": positive_axis(axis, len(shape_of(x)) - 1), "inverse": bool(inverse)}


def _infer(x: TensorSpec, *, axis: int, inverse: bool) -> TensorSpec:
    if x.dtype not in (np.float32, np.float64):
        raise DTypeError("takes float32 and float64; convert with astype(x, 'float32')")
    if not dims.same(x.shape[-1], 2) or dims.same(x.shape[axis], 0):
        raise ShapeError(f"takes numbers with their two parts along the last axis, not {x.shape}; stack the parts")
    return x


def _transform(x: Array, *, axis: int, inverse: bool, out: Array = None) -> Array:
    """The sums of x[k] exp(-2 pi i jk / n) over k, for each j; with `inverse` the other sign, and no factor 1 / n."""
    kind = np.complex64 if x.dtype == np.float32 else np.complex128
    numbers = np.ascontiguousarray(x).view(kind)[..., 0]
    result = np.fft.ifft(numbers, axis=axis, norm="forward") if inverse else np.fft.fft(numbers, axis=axis)
    return store(np.ascontiguousarray(result[..., None], kind).view(x.dtype), out)


def _flops(x: TensorSpec, *, out: TensorSpec, axis: int, inverse: bool) -> Size:
    length: Any = x.shape[axis]
    return x.size * 5 // 2 * max(1, math.ceil(math.log2(length))) if isinstance(length, int) else x.size * 50


fourier: Op = Op(
    "fourier",
    _transform,
    _infer,
    rules=(lambda g, axis, inverse: fourier(g, axis=axis, inverse=not inverse),),  # the conjugate transposed
    prepare=_prepare,
    cost=_flops,
    family="composed",
    doc="The discrete Fourier transform along `axis`, of pairs of parts along the last axis; `inverse` without 1 / n.",
)

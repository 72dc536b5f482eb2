"""Fourier transforms, as products with the matrix of the transform: a complex number is a pair along the last axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphs import ops
from graphs.errors import ShapeError
from graphs.onnx.sizes import Sizes
from graphs.onnx.table import translates
from graphs.ops.shapes import dtype_of, positive_axis, shape_of


@translates("DFT", since=20)
def fourier(
    x: Any, length: Sizes | None = None, axis: Sizes | None = None, *, inverse: bool = False, onesided: bool = False
) -> Any:
    """Along an axis, cut or padded with zeros to that length; of real numbers (1 in the last axis) or complex ones."""
    at = -2 if axis is None else int(axis[0])
    if positive_axis(at, len(shape_of(x))) == len(shape_of(x)) - 1:
        raise ShapeError(f"axis {at} has the parts of a number; use one before it")
    if length is not None and isinstance(length[0], int) and length[0] < 1:
        raise ShapeError(f"a length of {length[0]}; give 1 or more")
    return _fourier(x, length, at, inverse, onesided)


def _fourier(x: Any, length: Sizes | None, axis: int, inverse: bool, onesided: bool) -> Any:
    at = axis % len(shape_of(x))
    rows = ops.moveaxis(x, at, -2)  # [..., count, 1 or 2]
    if inverse and onesided:
        half = int(shape_of(rows)[-2])
        count = 2 * (half - 1) if length is None else int(length[0])
        whole = _mirrored(_of_length(rows, count // 2 + 1), count)
        return _fourier(ops.moveaxis(whole, -2, at), [count], at, True, False)[..., :1]
    count = int(shape_of(rows)[-2] if length is None else length[0])
    rows = _of_length(rows, count)
    angles = 2 * np.pi * np.outer(np.arange(count), np.arange(count // 2 + 1 if onesided else count)) / count
    scale = 1 / count if inverse else 1.0
    cos, sin = (np.asarray(f(angles) * scale, dtype_of(x)) for f in (np.cos, np.sin))
    sin = -sin if not inverse else sin
    parts = [rows[..., part] for part in range(int(shape_of(rows)[-1]))]
    real, imaginary = ops.matmul(parts[0], cos), ops.matmul(parts[0], sin)
    if len(parts) == 2:
        real = ops.subtract(real, ops.matmul(parts[1], sin))
        imaginary = ops.add(imaginary, ops.matmul(parts[1], cos))
    return ops.moveaxis(ops.stack([real, imaginary], axis=-1), -2, at)


def _mirrored(half: Any, count: int) -> Any:
    """All of a transform of real numbers, of which this is the first half: the others are conjugates."""
    rest = ops.flip(half[..., 1 : count - count // 2, :], axis=-2)
    return ops.concat([half, ops.multiply(rest, np.asarray([1, -1], dtype_of(half)))], axis=-2)


def _of_length(rows: Any, count: int) -> Any:
    have = int(shape_of(rows)[-2])
    if have >= count:
        return rows[..., :count, :]
    widths = [(0, count - have if axis == len(shape_of(rows)) - 2 else 0) for axis in range(len(shape_of(rows)))]
    return ops.pad(rows, widths)


@translates("STFT")
def short_fourier(
    signal: Any, step: Sizes, window: Any = None, length: Sizes | None = None, *, onesided: bool = True
) -> Any:
    """The transforms of frames of a signal [N, T, 1 or 2], `step` apart, each times a window."""
    count = int(shape_of(window)[0] if length is None else length[0])
    starts = np.arange(0, int(shape_of(signal)[1]) - count + 1, int(step[0]))
    frames = ops.take(signal, starts[:, None] + np.arange(count), axis=1)  # [N, frames, count, 1 or 2]
    weighted = frames if window is None else ops.multiply(frames, ops.expand_dims(window, -1))
    return _fourier(weighted, None, 2, False, onesided)

"""Images of other sizes: along each axis the result is a matrix, of weights, times the elements.

Values read between the elements of an image.

Fourier transforms, as products with the matrix of the transform: a complex number is a pair along the last axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from graphs import dims, ops
from graphs.dims import Dim
from graphs.errors import OptionError, ShapeError
from graphs.frontends.onnx.table import Sizes, translates, whole
from graphs.frontends.torch.sampling import grid_sample
from graphs.ops.shapes import dtype_of, positive_axis, shape_of

Array = np.ndarray[Any, Any]
Mode = Literal["nearest", "linear", "cubic"]
Transformation = Literal[
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize"
]
Rounding = Literal["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
Policy = Literal["stretch", "not_larger", "not_smaller"]


@translates("Resize")
def resize(
    x: Any, roi: Any = None, scales: Any = None, sizes: Sizes | None = None, *, mode: Mode = "nearest",
    coordinate_transformation_mode: Transformation = "half_pixel", nearest_mode: Rounding = "round_prefer_floor",
    cubic_coeff_a: float = -0.75, exclude_outside: bool = False, extrapolation_value: float = 0.0,
    antialias: bool = False, axes: Sizes | None = None, keep_aspect_ratio_policy: Policy = "stretch",
) -> Any:  # fmt: skip
    """x at other sizes along some axes, which are given, or as multiples of what they are."""
    ndim = len(shape_of(x))
    at = [axis % ndim for axis in (range(ndim) if axes is None else whole(axes))]
    if scales is not None and np.any(np.asarray(scales) <= 0):
        raise OptionError(f"the scales are {np.asarray(scales).tolist()}; give some that are more than 0")
    shape = [shape_of(x)[axis] for axis in at]
    if sizes is None:
        left = [isinstance(size, Dim) and factor == 1 for size, factor in zip(shape, scales, strict=True)]
    else:
        left = [isinstance(size, Dim) and dims.same(size, want) for size, want in zip(shape, sizes, strict=True)]
        sizes = [1 if stays else want for stays, want in zip(left, sizes, strict=True)]
    # A symbolic size stays as it is, as that of the examples does; any other axis needs its number.
    have = [1 if stays else int(size) for stays, size in zip(left, shape, strict=True)]
    factors, wanted = _wanted(have, scales, sizes, keep_aspect_ratio_policy)
    crop = None if roi is None or not np.size(roi) else np.asarray(roi, np.float64)
    for number, axis in enumerate(at):
        window = (0.0, 1.0) if crop is None else (float(crop[number]), float(crop[number + len(at)]))
        places = _places(coordinate_transformation_mode, have[number], wanted[number], factors[number], window)
        if wanted[number] == have[number] and np.array_equal(places, np.arange(have[number])):
            continue
        if mode == "nearest":
            x = ops.take(x, _nearest(places, have[number], nearest_mode), axis=axis)
        else:
            width = min(factors[number], 1) if antialias else 1.0
            matrix = _weights(places, have[number], _kernel(mode, cubic_coeff_a), width, exclude_outside)
            x = _along(matrix.astype(dtype_of(x)), x, axis)
        if coordinate_transformation_mode == "tf_crop_and_resize":
            outside = (places < 0) | (places > have[number] - 1)
            shape = [-1 if i == axis else 1 for i in range(len(shape_of(x)))]
            x = ops.where(outside.reshape(shape), np.asarray(extrapolation_value, dtype_of(x)), x)
    return x


def _wanted(have: list[int], scales: Any, sizes: Any, policy: str) -> tuple[list[float], list[int]]:
    """The factor and the size of each axis."""
    if sizes is None:
        factors = np.asarray(scales).tolist()
        return factors, [math.floor(size * factor) for size, factor in zip(have, factors, strict=True)]
    factors = [want / size for want, size in zip(sizes, have, strict=True)]
    if policy == "stretch":
        return factors, [int(size) for size in sizes]
    factor = min(factors) if policy == "not_larger" else max(factors)
    return [factor] * len(have), [math.floor(size * factor + 0.5) for size in have]


def _places(mode: str, have: int, want: int, factor: float, window: tuple[float, float]) -> Array:
    """Where each element of the result is among those of x: a whole number is at one."""
    i = np.arange(want, dtype=np.float64)
    if mode == "asymmetric":
        return i / factor
    if mode == "align_corners":
        length = factor * have
        return i * (have - 1) / (length - 1) if length > 1 else np.zeros(want)
    if mode == "tf_crop_and_resize":
        start, end = window
        step = (end - start) * (have - 1) / (want - 1) if want > 1 else 0.0
        return start * (have - 1) + i * step if want > 1 else np.full(1, 0.5 * (start + end) * (have - 1))
    if mode == "pytorch_half_pixel" and want == 1:
        return np.full(1, -0.5)
    centres = (i + 0.5) / factor - 0.5
    if mode == "half_pixel_symmetric":
        adjusted = want / (factor * have)
        return have / 2 * (1 - adjusted) + centres
    return centres


def _nearest(places: Array, have: int, mode: str) -> Array:
    halves = places - np.floor(places) == 0.5
    rounded = {
        "round_prefer_floor": np.where(halves, np.floor(places), np.floor(places + 0.5)),
        "round_prefer_ceil": np.floor(places + 0.5),
        "floor": np.floor(places),
        "ceil": np.ceil(places),
    }[mode]
    return np.clip(rounded, 0, have - 1).astype(np.int64)


def _kernel(mode: str, a: float) -> tuple[Callable[[Array], Array], int]:
    """The weight of an element by its distance, and how far it reaches."""
    if mode == "linear":
        return lambda d: np.maximum(1 - d, 0), 1

    def cubic(d: Array) -> Array:
        near = (a + 2) * d**3 - (a + 3) * d**2 + 1
        far = a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a
        return np.where(d <= 1, near, np.where(d < 2, far, 0.0))

    return cubic, 2


def _weights(
    places: Array, have: int, kernel: tuple[Callable[[Array], Array], int], width: float, exclude_outside: bool
) -> Array:
    """[want, have]: what each element of the result has of each of x; beyond the ends are the elements there."""
    weigh, support = kernel
    reach = math.ceil(support / width)
    matrix = np.zeros((len(places), have))
    for row, place in zip(matrix, places, strict=True):
        taps = np.arange(math.floor(place) - reach, math.floor(place) + reach + 2)
        shares = weigh(np.abs(taps - place) * width)
        if exclude_outside:
            shares = np.where((taps >= 0) & (taps < have), shares, 0.0)
        if exclude_outside or width < 1:
            shares = shares / shares.sum()
        np.add.at(row, np.clip(taps, 0, have - 1), shares)
    return matrix


def _along(matrix: Array, x: Any, axis: int) -> Any:
    return ops.moveaxis(ops.matmul(ops.moveaxis(x, axis, -1), matrix.T), -1, axis)


_MODES = {"linear": "bilinear", "cubic": "bicubic"}  # as they are called from opset 20 on


@translates("GridSample")
def sample(x: Any, grid: Any, *, align_corners: bool = False, mode: str = "linear", padding_mode: str = "zeros") -> Any:
    return grid_sample(x, grid, _MODES.get(mode, mode), padding_mode, align_corners)


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

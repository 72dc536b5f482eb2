"""Resizing of images, as PyTorch's `interpolate`: from the nearest elements, or linearly along each axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphs.dims import Shape
from graphs.errors import DTypeError, ShapeError
from graphs.op import Array
from graphs.ops.elementwise import add, multiply
from graphs.ops.families import composite
from graphs.ops.indexing import take
from graphs.ops.pooling import window_spread
from graphs.ops.shapes import as_operand, dtype_of, shape_of

__all__ = ["interpolate"]

PerAxis = float | Sequence[float] | None

_LINEAR = {"linear": 1, "bilinear": 2, "trilinear": 3}  # the number of axes that each is about
_MODES = ("nearest", "nearest-exact", *_LINEAR)


@composite
def interpolate(
    x: Array,
    size: PerAxis = None,
    scale_factor: PerAxis = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
) -> Array:
    """Resize the last one to three axes of x f[N, C, ...] to `size`, or by `scale_factor`, rounded down.

    `mode` is "nearest", "nearest-exact" (by the centres of elements), or for one, two and three axes "linear",
    "bilinear" and "trilinear". In the linear modes `align_corners` aligns the first and last elements with those of x;
    otherwise the outer edges are aligned. All as in PyTorch. Raises ShapeError, and DTypeError for integers in a linear
    mode.
    """
    x = as_operand(x)
    sizes = _concrete_sizes(shape_of(x)[2:])
    rank = len(sizes)
    if mode not in _MODES:
        raise ShapeError(f"mode is one of {', '.join(map(repr, _MODES))}, not {mode!r}; choose one")
    if _LINEAR.get(mode, rank) != rank:
        raise ShapeError(f"mode {mode!r} is for {_LINEAR[mode]} axes after batch and channels, not {rank}")
    if mode not in _LINEAR and align_corners is not None:
        raise ShapeError("align_corners is for linear modes; leave it out")
    if mode in _LINEAR and dtype_of(x).kind != "f":
        raise DTypeError(f"{mode!r} takes floating point values; convert with astype(x, 'float32')")
    wanted, scales = _output_sizes(sizes, size, scale_factor)
    for axis, (have, want, scale) in enumerate(zip(sizes, wanted, scales, strict=True), 2):
        # PyTorch resizes images in mode "nearest" by their sizes where these stay or double, whatever the factor was.
        by_sizes = mode == "nearest" and len(sizes) == 2 and want in (have, 2 * have)
        step = have / want if recompute_scale_factor or by_sizes or scale is None else 1 / scale
        if mode in _LINEAR:
            x = _interpolate_axis(x, axis, _sources(have, want, step, align_corners))
        else:
            x = _take_places(x, axis, have, _nearest(have, want, step, mode == "nearest-exact", dtype_of(x)))
    return x


def _take_places(x: Array, axis: int, have: int, places: Any) -> Array:
    """Take the elements at `places` along an axis; where each is repeated equally often, by `window_spread`."""
    times = len(places) // have
    if not np.array_equal(places, np.repeat(np.arange(have), times)):
        return take(x, places, axis=axis)
    others = shape_of(x)[axis + 1 :]
    window = ((times, times, 0, 0, 1), *((1, 1, 0, 0, 1),) * len(others))
    return window_spread(x, sizes=(len(places), *others), window=window)  # whose gradient is a sum, and no scattering


def _concrete_sizes(sizes: Shape) -> list[int]:
    numbers = [size for size in sizes if isinstance(size, int)]
    if len(numbers) < len(sizes):
        raise ShapeError(f"the sizes that change are numbers, not {sizes}; only batch and channels may be symbolic")
    if not 1 <= len(sizes) <= 3:
        raise ShapeError(f"takes one to three axes after batch and channels, not {len(sizes)}; reshape them")
    if min(numbers) < 1:
        raise ShapeError("there is nothing between no elements; check the size first")
    return numbers


def _output_sizes(sizes: list[int], size: PerAxis, scale: PerAxis) -> tuple[list[int], list[float | None]]:
    """The output sizes, and the scale factors where these were given. Raises ShapeError."""
    if (size is None) == (scale is None):
        raise ShapeError("give either size or scale_factor")
    each = _each(size if scale is None else scale, len(sizes))
    factors: list[float | None] = [None] * len(sizes) if scale is None else [*each]
    wanted = each if scale is None else [have * by for have, by in zip(sizes, each, strict=True)]
    whole = [math.floor(want) for want in wanted]
    if min(whole) < 1:
        raise ShapeError(f"sizes of {whole} hold nothing; ask for 1 or more")
    return whole, factors


def _each(value: Any, rank: int) -> list[float]:
    values: list[float] = [value] * rank if np.ndim(value) == 0 else list(value)
    if len(values) != rank:
        raise ShapeError(f"{len(values)} sizes for {rank} axes; give one, or one for each")
    return values


def _nearest(have: int, want: int, step: float, exact: bool, dtype: np.dtype[Any]) -> Any:
    """The places of the nearest elements, computed in the dtype of x and then in float32, as PyTorch does.

    So a place just below a whole number may be rounded up to it, depending on the dtype.
    """
    kind = dtype.type if dtype.kind == "f" and dtype.itemsize > 2 else np.float32
    places = np.arange(want, dtype=kind)
    places = np.maximum((places + kind(0.5)) * kind(step) - kind(0.5), 0) + kind(0.5) if exact else places * kind(step)
    return np.minimum(np.floor(places.astype(np.float32)).astype(np.intp), have - 1)


def _sources(have: int, want: int, step: float, align_corners: bool | None) -> Any:
    """The position of each result among the elements of x; a whole number is an element's own position."""
    if align_corners:
        return np.linspace(0, have - 1, want)
    if have == want:
        return np.arange(float(want))
    return np.clip((np.arange(want) + 0.5) * step - 0.5, 0, have - 1)


def _interpolate_axis(x: Array, axis: int, sources: Any) -> Array:
    """Interpolate linearly between the elements on both sides of each position along an axis."""
    left = np.floor(sources).astype(np.intp)
    after = np.arange(x.ndim) == axis
    share = (sources - left).astype(dtype_of(x)).reshape(np.where(after, -1, 1))
    right = left + (sources > left)
    return add(multiply(take(x, left, axis=axis), 1 - share), multiply(take(x, right, axis=axis), share))

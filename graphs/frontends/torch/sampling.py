"""Sampling: values between the elements of an image or a volume, at the places in a grid."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphs import dims, ops
from graphs.errors import OptionError, ShapeError, locate
from graphs.op import Array
from graphs.ops.shapes import dtype_of, shape_of

__all__ = ["affine_grid", "grid_sample"]

_MODES, _PADDING_MODES = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


def grid_sample(
    input: Array, grid: Array, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Array:
    """f[N, C, H, W] at the places f[N, P, Q, 2] -> f[N, C, P, Q]; or f[N, C, D, H, W] at f[N, O, P, Q, 3].

    Places go from -1 to 1, the last axis first: with `align_corners` between the centres of the outermost elements,
    else between their edges. Outside lie zeros, the nearest element, or the input mirrored. "bilinear" is linear along
    each axis; "bicubic", for images alone, is the cubic convolution of Keys (1981) with a = -0.75.
    Raises ShapeError and OptionError.
    """
    rank = _check_grid(input, grid, mode, padding_mode)
    align = bool(align_corners)
    sizes = shape_of(input)[2:]
    places = [_to_element_units(grid[..., rank - 1 - axis], size, align) for axis, size in enumerate(sizes)]
    if mode == "bicubic":
        low = [ops.floor(place) for place in places]
        weights = [_cubic(ops.subtract(place, start)) for place, start in zip(places, low, strict=True)]
        starts = [ops.subtract(start, 1) for start in low]
    else:
        places = [_clamp_place(p, size, padding_mode, align) for p, size in zip(places, sizes, strict=True)]
        starts = [ops.round(place) if mode == "nearest" else ops.floor(place) for place in places]
        shares = [ops.subtract(place, start) for place, start in zip(places, starts, strict=True)]
        weights = [[None] if mode == "nearest" else [ops.subtract(1, share), share] for share in shares]
    total: Array = None
    for corner in itertools.product(*(range(len(along)) for along in weights)):
        at = [ops.add(start, step) for start, step in zip(starts, corner, strict=True)]
        if mode == "bicubic":
            at = [_clamp_place(place, size, padding_mode, align) for place, size in zip(at, sizes, strict=True)]
        part = _read(input, at, [along[step] for along, step in zip(weights, corner, strict=True)])
        total = part if total is None else ops.add(total, part)
    return total


def _check_grid(x: Array, grid: Array, mode: str, padding_mode: str) -> int:
    """The number of sampled axes. Raises ShapeError and OptionError for wrong arguments."""
    rank = len(shape_of(x)) - 2
    fits = rank in (2, 3) and len(shape_of(grid)) == rank + 2 and dims.same(shape_of(grid)[-1], rank)
    if not fits or not dims.same(shape_of(x)[0], shape_of(grid)[0]):
        shapes = f"shapes {shape_of(x)} and {shape_of(grid)}"
        raise ShapeError(locate(f"grid_sample: takes f[N, C, H, W] and f[N, P, Q, 2], or an axis more, not {shapes}"))
    if any(dims.same(size, 0) for size in shape_of(x)[2:]):
        raise ShapeError(locate(f"grid_sample: there is nothing to read in shape {shape_of(x)}; check the sizes"))
    if mode not in _MODES or (mode == "bicubic" and rank == 3):
        allowed = _MODES if rank == 2 else _MODES[:2]
        raise OptionError(locate(f"grid_sample: mode is one of {', '.join(allowed)}, not {mode!r}; choose one"))
    if padding_mode not in _PADDING_MODES:
        modes = ", ".join(_PADDING_MODES)
        raise OptionError(locate(f"grid_sample: padding_mode is one of {modes}, not {padding_mode!r}; choose one"))
    return rank


def _to_element_units(place: Array, size: Any, align: bool) -> Array:
    """Convert places from -1 to 1 into fractional element indices."""
    if align:
        return ops.multiply(ops.add(place, 1), (size - 1) / 2)
    return ops.divide(ops.subtract(ops.multiply(ops.add(place, 1), size), 1), 2)


def _clamp_place(place: Array, size: Any, padding_mode: str, align: bool) -> Array:
    """The place to read for a place: itself, the nearest place inside, or its mirror image."""
    if padding_mode == "zeros":
        return place
    if padding_mode == "reflection":
        place = _mirror_place(place, size, align)
    inner = ops.where(ops.greater_equal(place, size - 1), size - 1, place)
    return ops.where(ops.less_equal(place, 0), 0, inner)


def _mirror_place(place: Array, size: Any, align: bool) -> Array:
    """Mirror a place at the centres of the outermost elements, or at their edges, as often as needed."""
    low, span = (0.0, size - 1) if align else (-0.5, size)
    if span == 0:
        return ops.multiply(place, 0)
    far = ops.subtract(place, low)
    far = ops.where(ops.less(far, 0), ops.negative(far), far)
    flips = ops.floor(ops.divide(far, span))
    rest = ops.subtract(far, ops.multiply(flips, span))
    return ops.add(ops.where(ops.equal(ops.remainder(flips, 2), 0), rest, ops.subtract(span, rest)), low)


def _read(x: Array, places: Sequence[Array], weights: Sequence[Array]) -> Array:
    """The elements at places f[N, P, ...] times their weights; 0 outside."""
    batch, channels, *sizes = shape_of(x)
    inside: Array = None
    for place, size in zip(places, sizes, strict=True):
        here = ops.logical_and(ops.greater_equal(place, 0), ops.less(place, size))
        inside = here if inside is None else ops.logical_and(inside, here)
    number: Array = np.zeros((), np.int64)
    for place, size in zip(places, sizes, strict=True):
        number = ops.add(ops.multiply(number, size), ops.astype(ops.where(inside, place, 0), np.int64))
    flat = ops.reshape(x, (batch, channels, dims.product(sizes)))
    values = ops.take_along_axis(flat, ops.reshape(number, (batch, 1, -1)), axis=2)
    values = ops.reshape(values, (batch, channels, *shape_of(number)[1:]))
    for weight in weights:
        values = values if weight is None else ops.multiply(values, ops.expand_dims(weight, 1))
    return ops.where(ops.expand_dims(inside, 1), values, 0)


def _cubic(share: Array) -> list[Array]:
    """The weights of the four neighbours of a place; `share` is its distance from the second."""
    a = -0.75

    def near(d: Array) -> Array:
        return ops.add(ops.multiply(ops.multiply(ops.subtract(ops.multiply(d, a + 2), a + 3), d), d), 1)

    def far(d: Array) -> Array:
        inner = ops.add(ops.multiply(ops.subtract(ops.multiply(d, a), 5 * a), d), 8 * a)
        return ops.subtract(ops.multiply(inner, d), 4 * a)

    rest = ops.subtract(1, share)
    return [far(ops.add(share, 1)), near(share), near(rest), far(ops.add(rest, 1))]


def affine_grid(theta: Array, size: Sequence[int], align_corners: bool | None = None) -> Array:
    """The grid for grid_sample from affine maps: f[N, 2, 3] and (N, C, H, W) -> f[N, H, W, 2].

    In three dimensions: f[N, 3, 4] and (N, C, D, H, W) -> f[N, D, H, W, 3]. Raises ShapeError.
    """
    rank, out = len(size) - 2, tuple(size[2:])
    if rank not in (2, 3) or tuple(shape_of(theta)) != (size[0], rank, rank + 1) or min(size) < 1:
        shapes = f"shape {shape_of(theta)} for a size of {tuple(size)}"
        raise ShapeError(locate(f"affine_grid: takes f[N, 2, 3] and (N, C, H, W), or an axis more, not {shapes}"))
    along = [np.linspace(-1, 1, n) if n > 1 else np.zeros(1) for n in out]
    if not align_corners:
        along = [line * ((n - 1) / n) for line, n in zip(along, out, strict=True)]
    places = np.meshgrid(*along, indexing="ij")[::-1]
    flat = np.stack([*(place.ravel() for place in places), np.ones(places[0].size)], axis=1).astype(dtype_of(theta))
    return ops.reshape(ops.matmul(flat, ops.matrix_transpose(theta)), (size[0], *out, rank))

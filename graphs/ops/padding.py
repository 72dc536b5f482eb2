"""Borders around an array: of one value, or of its own elements, as NumPy's and PyTorch's modes choose them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphs import dims
from graphs.dims import Size
from graphs.errors import ShapeError
from graphs.op import Array
from graphs.ops import movement
from graphs.ops.creation import arange
from graphs.ops.elementwise import less, maximum, minimum, remainder, subtract, where
from graphs.ops.families import composite
from graphs.ops.indexing import take
from graphs.ops.shapes import shape_of

__all__ = ["pad"]


@composite
def pad(x: Array, /, pad_width: Any, value: float = 0, mode: str = "constant") -> Array:
    """x with a border: one (before, after) pair per axis, or one number for all.

    `mode` "constant" fills it with `value`; the others with elements of x, as often as it takes: "edge" or "replicate"
    the nearest, "wrap" or "circular" those from the other end, "reflect" those mirrored at the nearest, and
    "symmetric" those mirrored at the edge. Names and meanings are NumPy's and PyTorch's. Raises ShapeError.
    """
    if mode == "constant":
        return movement.pad(x, pad_width, value)
    if mode not in _PLACES:
        raise ShapeError(f"mode is one of 'constant', {', '.join(map(repr, _PLACES))}, not {mode!r}; choose one")
    if value != 0:
        raise ShapeError(f"mode {mode!r} takes no value; leave it out, or use mode 'constant'")
    (x,), attrs = movement.prepare_pad(x, pad_width)
    for axis, (before, after) in enumerate(attrs["pad_width"]):
        if before or after:
            x = take(x, _places(shape_of(x)[axis], before, after, mode), axis=axis)
    return x


def _places(size: Size, before: int, after: int, mode: str) -> Array:
    """Which element of an axis each of the padded one is."""
    if dims.same(size, 0):
        raise ShapeError(f"an axis of size 0 has nothing to pad with in mode {mode!r}; use mode 'constant'")
    return _PLACES[mode](subtract(arange(before + size + after), before), size)


def _edge(places: Array, size: Size) -> Array:
    return minimum(maximum(places, 0), size - 1)


def _reflect(places: Array, size: Size) -> Array:
    there_and_back = dims.maximum(2 * size - 2, 1)
    turned = remainder(places, there_and_back)
    return where(less(turned, size), turned, subtract(there_and_back, turned))


def _symmetric(places: Array, size: Size) -> Array:
    turned = remainder(places, 2 * size)
    return where(less(turned, size), turned, subtract(2 * size - 1, turned))


_PLACES: dict[str, Callable[[Array, Size], Array]] = {
    "edge": _edge,
    "replicate": _edge,
    "reflect": _reflect,
    "symmetric": _symmetric,
    "wrap": remainder,
    "circular": remainder,
}

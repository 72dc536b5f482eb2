"""Cotangents that are not one array."""

from __future__ import annotations

from typing import Any, NamedTuple

from graphs.dims import Shape


class PartCotangents(dict[int, Any]):
    """The cotangent of several tensors at once, by number; those that are missing are zero."""


class SliceCotangent(NamedTuple):
    """The cotangent of a value of this shape that is `g` where a basic index selects it, and zero elsewhere."""

    g: Any
    shape: Shape
    key: tuple[Any, ...]

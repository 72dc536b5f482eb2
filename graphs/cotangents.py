"""Cotangents that are not one array."""

from __future__ import annotations

from typing import Any


class PartCotangents(dict[int, Any]):
    """The cotangent of several tensors at once, by number; those that are missing are zero."""

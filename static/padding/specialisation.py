"""What a call is compiled for: the words that shape policies and the proof about their padding share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from graphs.spec import TensorSpec

Names = tuple[str | None, ...]
"""The name of each axis of an array, None where it has none."""


class Specialisation(NamedTuple):
    """What a call is compiled for: a spec for each traced leaf, and the sizes of the axes to pad, before and after."""

    specs: list[TensorSpec]
    true: Mapping[str, int]
    padded: Mapping[str, int]

"""All seeded faults, family after family."""

from __future__ import annotations

from functools import cache

from compare.claims.c3_debugging.base import Fault
from compare.claims.c3_debugging.corpus import (
    axes,
    branches,
    broadcasting,
    dtypes,
    gradients,
    indices,
    inputs,
    numerics,
    shapes,
    states,
    training,
)

_FAMILIES = (shapes, broadcasting, axes, dtypes, indices, numerics, branches, gradients, training, states, inputs)


@cache
def corpus() -> tuple[Fault, ...]:
    """Every fault. Raises ValueError when two have one name."""
    found = tuple(fault for family in _FAMILIES for fault in family.FAULTS)
    if len({fault.name for fault in found}) < len(found):
        raise ValueError("two faults have one name; rename one")
    return found

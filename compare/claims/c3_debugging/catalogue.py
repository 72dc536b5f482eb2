"""All seeded faults, family after family."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import ModuleType

from compare.claims.c3_debugging.base import Fault

_FAMILIES = (
    "shapes",
    "broadcasting",
    "axes",
    "dtypes",
    "indices",
    "numerics",
    "branches",
    "gradients",
    "training",
    "states",
    "inputs",
)
_CORPUS = "compare.claims.c3_debugging.corpus"


@cache
def corpus(load: Callable[[str], ModuleType] = import_module) -> tuple[Fault, ...]:
    """Every fault, of modules as `load` gives them. Raises ValueError when two have one name."""
    faults = tuple(fault for family in _FAMILIES for fault in load(f"{_CORPUS}.{family}").FAULTS)
    if len({fault.name for fault in faults}) < len(faults):
        raise ValueError("two faults have one name; rename one")
    return faults

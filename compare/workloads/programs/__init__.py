"""The corpus behind claim C1: programs with control flow, each as ordinary Python and as a fixed graph takes it."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType

from compare.workloads.programs.program import Program

__all__ = ["FAMILIES", "Program", "programs"]

FAMILIES = (
    "branches",
    "loops",
    "convergence",
    "recursion",
    "containers",
    "shapes",
    "state",
    "exceptions",
    "generators",
    "networks",
    "decoding",
    "dynamic_programming",
    "integrators",
    "sampling",
    "training",
    "structures",
    "memories",
    "parsers",
    "library",
)
"""The kinds of control flow, a file each."""


def programs(load: Callable[[str], ModuleType] = import_module) -> tuple[Program, ...]:
    """Every program, family by family, of modules as `load` gives them."""
    modules = (load(f"{__name__}.{family}") for family in FAMILIES)
    return tuple(program for module in modules for program in module.PROGRAMS)

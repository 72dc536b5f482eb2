"""The corpus behind claim C1: programs with control flow, each as ordinary Python and as a fixed graph takes it.

`Program` says what one is: one computation, as Python writes it and as a graph holds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import count
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from graphs import tree

Array = Any
Function = Callable[..., Any]
Arguments = tuple[Any, ...]

FEWEST_INPUTS = 3
"""Fewer inputs cannot tell a trace that is right from one that is right by luck."""


@dataclass(frozen=True)
class Program:
    """A function of arrays whose control flow depends on values, or on structure, and the inputs that show it.

    `plain` is ordinary Python over graphs ops, as one writes it for a graph that is built while it runs. `graph` is
    the same for a graph that is built before: `plain` itself where tracing is expected to unroll it rightly, None
    where no fixed graph can say it, with the reason in `cannot`. Both are differentiated in their first argument.

    `inputs` are the arguments of calls, made in this order, on paths that differ. A program that keeps something
    between calls has a `reset`, which puts that back; its graph takes it as an argument, in `graph_inputs`. `family` is
    the kind of control flow, which `programs` enters.
    Raises ValueError for fewer than three inputs, and where there is neither a graph nor a reason.
    """

    plain: Function
    graph: Function | None
    inputs: Sequence[Arguments]
    cannot: str = ""
    graph_inputs: Sequence[Arguments] | None = None
    reset: Callable[[], None] | None = None
    family: str = ""

    def __post_init__(self) -> None:
        if len(self.inputs) < FEWEST_INPUTS:
            raise ValueError(f"{self.name} has {len(self.inputs)} inputs; give at least {FEWEST_INPUTS}")
        if (self.graph is None) != bool(self.cannot):
            raise ValueError(f"{self.name}: give a graph, or say in cannot why there is none")

    @property
    def name(self) -> str:
        """The name of its Python function."""
        return self.plain.__name__

    def nearby(self) -> Iterator[Arguments]:
        """Further arguments, without end: the inputs in turn, with each floating array at up to 4% more or less.

        A matrix is scaled whole, so that it stays symmetric; a loop that converges still does.
        """
        for seed in count():
            random = np.random.default_rng(seed)
            leaves, structure = tree.flatten(self.inputs[seed % len(self.inputs)])
            yield tree.unflatten(structure, [_scale_leaf(leaf, random) for leaf in leaves])


def _scale_leaf(leaf: Any, random: np.random.Generator) -> Any:
    if not isinstance(leaf, np.ndarray) or leaf.dtype.kind != "f":
        return leaf
    return leaf * random.uniform(0.96, 1.04, leaf.shape if leaf.ndim < 2 else ())


def floats(*values: Any) -> npt.NDArray[np.float64]:
    """A float64 array: `floats(1, 2)` of two numbers, `floats([1, 2], [3, 4])` of two rows."""
    return np.array(values, np.float64)


def scalar(value: float) -> npt.NDArray[np.float64]:
    """A float64 array without axes."""
    return np.array(value, np.float64)


def normal(seed: int, *shape: int) -> npt.NDArray[np.float64]:
    """Made-up numbers, the same in every run."""
    return np.asarray(np.random.default_rng(seed).standard_normal(shape))


FAMILIES = {
    "branches": "branches",
    "loops": "loops",
    "convergence": "loops",
    "recursion": "recursion",
    "containers": "containers",
    "shapes": "states",
    "state": "states",
    "exceptions": "branches",
    "generators": "containers",
    "networks": "networks",
    "decoding": "searches",
    "dynamic_programming": "searches",
    "integrators": "numerics",
    "sampling": "networks",
    "training": "numerics",
    "structures": "recursion",
    "memories": "networks",
    "parsers": "searches",
    "library": "numerics",
}
"""The kinds of control flow, each with the file that has its programs, in the order of a record."""


def programs(load: Callable[[str], ModuleType] = import_module) -> tuple[Program, ...]:
    """Every program, family by family, of modules as `load` gives them."""
    modules = {file: load(f"{__name__}.{file}") for file in dict.fromkeys(FAMILIES.values())}
    families = ((family, modules[file].PROGRAMS[family]) for family, file in FAMILIES.items())
    return tuple(replace(program, family=family) for family, these in families for program in these)

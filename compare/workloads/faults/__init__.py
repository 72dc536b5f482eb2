"""The seeded faults: each is a healthy training, and a line that is made wrong in it. All of them, family by family.

Each file has several families, and marks the line at fault by a comment.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import graphs

Array = Any
Params = dict[str, Array]
Example = tuple[Any, ...]
Loss = Callable[..., Any]
Update = Callable[[Params, Params], Params]
Floats = npt.NDArray[np.float32]
Edited = Callable[[str, str], AbstractContextManager[ModuleType]]
"""`edited(name, source)`: the module of this name in an engine, while it has this source (`Library.edited`)."""

MARK = "# fault"
"""Ends the line at fault, where a fault has several lines."""
FAMILIES = {
    "shape": "shapes",
    "broadcasting": "shapes",
    "wrong value": "shapes",
    "dtype": "numerics",
    "index": "shapes",
    "numeric": "numerics",
    "branch": "states",
    "gradient": "numerics",
    "training": "inputs",
    "state": "states",
    "data": "inputs",
}
"""What the faults of a family are called, each with the file that has them, in the order of a record."""
_CORPUS = "compare.workloads.faults"
RATE = 0.05


class SourceLine(NamedTuple):
    """A line of a source file."""

    file: str
    line: int

    @classmethod
    def parse(cls, text: str) -> SourceLine | None:
        """The place that a `model.py:12` names."""
        file, _, line = text.rpartition(":")
        return cls(file, int(line)) if file and line.isdecimal() else None


class Training(NamedTuple):
    """What a fault is put into, and a debugger is given: a loss, a rule that updates parameters, and examples of steps.

    `declared` is an example of the specs that the loss is written for. `reset` forgets what earlier runs left
    behind in Python.
    """

    loss: Callable[..., Any]
    update: Callable[[Any, Any], Any]
    params: dict[str, Any]
    examples: tuple[tuple[Any, ...], ...]
    declared: tuple[Any, ...]
    reset: Callable[[], None]


def sgd(params: Params, gradients: Params) -> Params:
    """One step of gradient descent."""
    return {name: params[name] - gradients[name] * RATE for name in params}


def draw(seed: int, *shape: int) -> Floats:
    """f32[shape], normal, the same for the same seed."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def nothing() -> None:
    """Most losses leave nothing behind."""


def healthy(
    loss: Loss,
    params: Params,
    examples: tuple[Example, ...],
    update: Update = sgd,
    reset: Callable[[], None] = nothing,
) -> Training:
    """A training without a fault; a wrong one shows at the latest in the last of the examples.

    `loss(params, *example) -> scalar` is a plain function over graphs ops, and every parameter should get a gradient.
    """
    return Training(loss, update, params, examples, examples[0], reset)


class SeededFault(NamedTuple):
    """A training with its fault, the place of that, and the files that are the user's while it runs."""

    training: Training
    place: SourceLine
    files: frozenset[str]


@dataclass(frozen=True)
class Fault:
    """One seeded fault: in the source of a function, by default the loss, `old` becomes `new`, and all else stays.

    That line is at fault; of several the one that ends in MARK. `family` is the kind of fault, which `corpus` enters.
    """

    name: str
    healthy: Training
    old: str
    new: str
    function: Callable[..., Any] | None = None
    family: str = ""

    @property
    def file(self) -> str:
        """The name of its file."""
        return self.healthy.loss.__module__.rpartition(".")[2]

    @property
    def is_in_data(self) -> bool:
        """Whether the examples are wrong, and the training is self.healthy."""
        return self.function not in (None, self.healthy.update)

    @cached_property
    def edit(self) -> tuple[str, int]:
        """The source of the module with the fault, and the line at fault.

        Raises ValueError unless `old` stands in the function once.
        """
        function = inspect.getsource(self.function or self.healthy.loss)
        if (times := function.count(self.old)) != 1:
            raise ValueError(f"{self.name}: {self.old!r} stands there {times} times; it must stand once")
        module = inspect.getsource(sys.modules[self.healthy.loss.__module__])
        line = module.partition(function)[0].count("\n") + function.partition(self.old)[0].count("\n") + 1
        marked = (i for i, line in enumerate(self.new.splitlines()) if line.endswith(MARK))
        return module.replace(function, function.replace(self.old, self.new)), line + next(marked, 0)

    @contextmanager
    def seeded(self, edited: Edited) -> Iterator[SeededFault]:
        """The training with its fault in an engine, while the source of that is there."""
        source, line = self.edit
        with edited(f"{_CORPUS}.{self.file}", source) as module:
            families = module.FAULTS.values()
            faulty = next(fault.healthy for family in families for fault in family if fault.name == self.name)
            files = [function.__code__.co_filename for function in (sgd, self.healthy.loss, faulty.loss)]
            yield SeededFault(
                faulty._replace(declared=self.healthy.declared),
                SourceLine(Path(files[-1]).name, line),
                frozenset(files),
            )


@cache
def corpus(load: Callable[[str], ModuleType] = import_module) -> tuple[Fault, ...]:
    """Every fault, of modules as `load` gives them. Raises ValueError when two have one name."""
    modules = {file: load(f"{_CORPUS}.{file}") for file in dict.fromkeys(FAMILIES.values())}
    families = ((family, modules[file].FAULTS[family]) for family, file in FAMILIES.items())
    faults = tuple(replace(fault, family=family) for family, these in families for fault in these)
    if len({fault.name for fault in faults}) < len(faults):
        raise ValueError("two faults have one name; rename one")
    return faults


def mean_square(difference: Array) -> Array:
    """The mean of the squares: the loss of most faults here."""
    return graphs.mean(graphs.square(difference))

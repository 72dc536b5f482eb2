"""What a seeded fault is: a healthy training, the same with one line wrong, and what it runs on."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import graphs
from compare.engines.debugging import SourceLine, Training

Array = Any
Params = dict[str, Array]
Example = tuple[Any, ...]
Loss = Callable[..., Any]
Update = Callable[[Params, Params], Params]
Floats = npt.NDArray[np.float32]

MARK = "# fault"
"""Ends the line at fault, in the source of the faulty function."""
RATE = 0.05


def sgd(params: Params, gradients: Params) -> Params:
    """One step of gradient descent."""
    return {name: params[name] - gradients[name] * RATE for name in params}


def draw(seed: int, *shape: int) -> Floats:
    """f32[shape], normal, the same for the same seed."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def nothing() -> None:
    """Most losses leave nothing behind."""


@dataclass(frozen=True)
class Fault:
    """One seeded fault. The faulty one of `loss`, `update` and `examples` has a line that ends in MARK.

    healthy    `healthy(params, *example) -> scalar`, a plain function over graphs ops
    faulty     the same with a line wrong; None where the loss is not at fault
    params     the parameters; every one of them should get a gradient
    examples   of the training steps; a wrong one shows at the latest in the last
    """

    name: str
    family: str
    healthy: Loss
    params: Params
    examples: tuple[Example, ...]
    faulty: Loss | None = None
    faulty_update: Update | None = None
    faulty_examples: Callable[[], tuple[Example, ...]] | None = None
    reset: Callable[[], None] = nothing

    def training(self, *, faulty: bool) -> Training:
        """The training with or without its fault."""
        right = Training(self.healthy, sgd, self.params, self.examples, self.examples[0], self.reset)
        if not faulty:
            return right
        return right._replace(
            loss=self.faulty or right.loss,
            update=self.faulty_update or right.update,
            examples=self.faulty_examples() if self.faulty_examples else right.examples,
        )

    @cached_property
    def place(self) -> SourceLine:
        """The line at fault. Raises ValueError unless exactly one line is marked."""
        wrong = [f for f in (self.faulty, self.faulty_update, self.faulty_examples) if f is not None]
        marked = [place for function in wrong for place in _marked(function)]
        if len(marked) != 1:
            raise ValueError(f"{self.name}: {len(marked)} lines end in {MARK!r}; mark exactly one")
        return marked[0]


def _marked(function: Callable[..., Any]) -> list[SourceLine]:
    lines, first = inspect.getsourcelines(function)
    file = Path(inspect.getsourcefile(function) or "").name
    return [SourceLine(file, first + i) for i, line in enumerate(lines) if line.rstrip().endswith(MARK)]


def mean_square(difference: Array) -> Array:
    """The mean of the squares: the loss of most faults here."""
    return graphs.mean(graphs.square(difference))

"""What a debugger can do with a training, whichever engine runs it: what an adapter offers as `Engine.debugger`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from typing import Any, NamedTuple

import numpy as np
import optree

from compare.records.checks import Phase
from compare.workloads.faults.fault import SourceLine, Training

TRAINING = 25
"""Training steps after which the loss should have fallen."""

TrainingUpdate = Callable[..., tuple[Any, Any]]
"""`step(params, *example) -> (loss, params)`: one training step as a user of the engine runs it."""


class Event(NamedTuple):
    """One intermediate value: the op (or the input) it comes from, the user's line, and the value or its spec."""

    name: str
    line: str
    value: Any

    @property
    def is_input(self) -> bool:
        """Whether the value was handed in, not computed."""
        return self.name.startswith("input ")


class ToolReport(NamedTuple):
    """What a tool reports without knowing the healthy training: the phase, the ops before, and the user's line."""

    when: Phase
    message: str
    ops: int
    place: SourceLine | None = None


@dataclass(frozen=True)
class Attempt:
    """What some training steps computed, in order where an engine shows that, and how they ended.

    `results` are losses and final parameters, None after an error, of which there is a `report`. `gradients` are those
    of the first step, and `step` is what ran, where they are kept.
    """

    events: tuple[Event, ...]
    results: tuple[Any, ...] | None
    report: ToolReport | None = None
    gradients: Mapping[str, Any] = field(default_factory=dict)
    step: TrainingUpdate | None = None

    @property
    def ops(self) -> int:
        """How many ops ran; a trace runs none."""
        return ops_of(self.events)


class Tools(ABC):
    """The tools of an arm. `attempt`, alone and checked, `reach` and `train` are in the order to try them in."""

    @abstractmethod
    def attempt(self, training: Training, *, checked: bool = False) -> Attempt:
        """Run the steps of a training; `checked` stops at NaN and infinity, as far as the engine looks for them."""

    @abstractmethod
    def step(self, training: Training) -> TrainingUpdate:
        """One training step as a user of the engine runs it."""

    @abstractmethod
    def reach(self, training: Training, faulty: Attempt) -> ToolReport | None:
        """Does every parameter get a gradient, and one that is not zero throughout?"""

    def train(self, training: Training, faulty: Attempt) -> ToolReport | None:
        """Train for a while: does the loss fall?"""
        training.reset()
        step, params, losses = faulty.step or self.step(training), training.params, []
        for example in islice(cycle(training.examples), TRAINING):
            loss, params = step(params, *example)
            losses.append(float(loss))
        count = len(training.examples)
        message = rise_message(losses, count)
        return ToolReport("step", message, max(1, faulty.ops * TRAINING // count)) if message else None


def zero_gradient(gradients: Mapping[str, Any], ops: int) -> ToolReport | None:
    """The report that a gradient is zero throughout; None where none is."""
    zero = [name for name, gradient in gradients.items() if not np.any(gradient)]
    return ToolReport("backward", f"the gradient of {zero[0]} is zero", ops) if zero else None


def rise_message(losses: Sequence[float], count: int) -> str:
    """What to say of losses that have not fallen, from the first `count` of them to the last; empty if they have."""
    first, last = np.mean(losses[:count]), np.mean(losses[-count:])
    if last < first:  # false for NaN as well
        return ""
    return f"the loss went from {first:.3g} to {last:.3g} in {TRAINING} steps"


def same(first: Any, second: Any) -> bool:
    """Whether two values have one spec and, where both are arrays, are equal to rounding, NaN to NaN."""
    if first.shape != second.shape or first.dtype != second.dtype:
        return False
    computed = isinstance(first, np.ndarray) and isinstance(second, np.ndarray)
    return not computed or np.allclose(first, second, rtol=1e-4, atol=1e-6, equal_nan=True)


def same_results(first: Attempt, second: Attempt) -> bool:
    """Whether two attempts ended well and alike, in every loss and parameter."""
    if first.results is None or second.results is None:
        return False
    pairs = zip(_leaves(first.results), _leaves(second.results), strict=True)
    return all(same(np.asarray(a), np.asarray(b)) for a, b in pairs)


def _leaves(tree: Any) -> list[Any]:
    return optree.tree_leaves(tree)


def ops_of(events: Sequence[Event]) -> int:
    """How many ops ran; a trace runs none."""
    return sum(isinstance(event.value, np.ndarray) and not event.is_input for event in events)

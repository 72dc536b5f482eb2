"""The interface of the debuggers that `Engine.debugger` returns, whichever engine runs the training; and its errors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle, islice
from typing import Any, NamedTuple

import numpy as np
import optree

from compare.engines.mode import Role
from compare.errors import CompareError, without_folders
from compare.records.checks import Phase
from compare.workloads.faults import SourceLine, Training

TRAINING = 25
"""The number of training steps after which the loss should have fallen."""

TrainingUpdate = Callable[..., tuple[Any, Any]]
"""`step(params, *example) -> (loss, params)`: one training step as a user of the engine runs it."""


class Event(NamedTuple):
    """One intermediate value: the name of its op or input, the user's line, and the value or its spec."""

    name: str
    line: str
    value: Any

    @property
    def is_input(self) -> bool:
        """Return whether the value is an input of the step, not a result of an op."""
        return self.name.startswith("input ")


class ToolReport(NamedTuple):
    """A fault that a tool finds without the healthy training: phase, message, ops before it, the user's line."""

    when: Phase
    message: str
    ops: int
    place: SourceLine | None = None


@dataclass(frozen=True)
class Attempt:
    """The record of some training steps: their values in order where the engine shows them, and how they ended.

    `results` are losses and final parameters, or None after an error, which the `report` describes. `gradients` are
    the gradients of the first step and `step` is the function that ran, where they are kept.
    """

    events: tuple[Event, ...]
    results: tuple[Any, ...] | None
    report: ToolReport | None = None
    gradients: Mapping[str, Any] = field(default_factory=dict)
    step: TrainingUpdate | None = None

    @property
    def ops(self) -> int:
        """Return how many ops ran; a trace runs none."""
        return ops_of(self.events)


class Tools(ABC):
    """The tools of a mode. Try them in this order: `attempt`, `attempt` with `checked`, `reach`, `train`."""

    @abstractmethod
    def attempt(self, training: Training, *, checked: bool = False) -> Attempt:
        """Run the steps of a training; `checked` stops at NaN and infinity, as far as the engine looks for them."""

    @abstractmethod
    def step(self, training: Training) -> TrainingUpdate:
        """Return one training step as a user of the engine runs it."""

    @abstractmethod
    def reach(self, training: Training, faulty: Attempt) -> ToolReport | None:
        """Report a parameter without a gradient, or whose gradient is all zero; None where there is none."""

    def train(self, training: Training, faulty: Attempt) -> ToolReport | None:
        """Train for TRAINING steps and report a loss that does not fall; None where it falls.

        The means of the losses over the first and over the last pass of the examples are compared.
        """
        training.reset()
        step, params, losses = faulty.step or self.step(training), training.params, []
        for example in islice(cycle(training.examples), TRAINING):
            loss, params = step(params, *example)
            losses.append(float(loss))
        count = len(training.examples)
        first, last = np.mean(losses[:count]), np.mean(losses[-count:])
        if last < first:  # false for NaN as well
            return None
        message = f"the loss went from {first:.3g} to {last:.3g} in {TRAINING} steps"
        return ToolReport("step", message, max(1, faulty.ops * TRAINING // count))


def zero_gradient(gradients: Mapping[str, Any], ops: int) -> ToolReport | None:
    """Return a report of the first gradient that is all zero; None where there is none."""
    zero = [name for name, gradient in gradients.items() if not np.any(gradient)]
    return ToolReport("backward", f"the gradient of {zero[0]} is zero", ops) if zero else None


def same(first: Any, second: Any) -> bool:
    """Return whether two values have one spec and, where both are arrays, equal numbers to rounding; NaN equals NaN."""
    if first.shape != second.shape or first.dtype != second.dtype:
        return False
    computed = isinstance(first, np.ndarray) and isinstance(second, np.ndarray)
    return not computed or np.allclose(first, second, rtol=1e-4, atol=1e-6, equal_nan=True)


def same_results(first: Attempt, second: Attempt) -> bool:
    """Return whether two attempts ended without an error and with the same losses and parameters."""
    if first.results is None or second.results is None:
        return False
    pairs = zip(_leaves(first.results), _leaves(second.results), strict=True)
    return all(same(np.asarray(a), np.asarray(b)) for a, b in pairs)


def _leaves(tree: Any) -> list[Any]:
    return optree.tree_leaves(tree)


def ops_of(events: Sequence[Event]) -> int:
    """Return how many ops ran; a trace runs none."""
    return sum(isinstance(event.value, np.ndarray) and not event.is_input for event in events)


LONG = 400
"""The length in characters from which on only the first line of an error message is shown."""


class Errors(Role):
    """The meaning of the engine's errors."""

    def said(self, error: BaseException) -> str | None:
        """Return the compiler's reason for refusing, in a sentence with the user's line; None for other errors."""
        return None

    @contextmanager
    def checked(self) -> Iterator[None]:
        """A context in which NaN and infinity are errors, by the framework's own switch."""
        yield

    def traced(self, error: BaseException) -> bool:
        """Return whether a compiled function failed while it was traced or compiled, before any data ran."""
        return False

    def refuses(self, error: BaseException, mode: str = "") -> bool:
        """Return whether an error means that the engine does not support something, in this mode or in any."""
        return isinstance(error, NotImplementedError)

    def summary(self, error: BaseException) -> str:
        """Return the message of an error in a user's function; of a message of LONG characters only the first line."""
        said = f"{error}" if isinstance(error, CompareError) else f"{type(error).__name__}: {error}"
        return said if len(said) < LONG else said.strip().splitlines()[0]

    def reason(self, error: BaseException) -> str:
        """Return the message of an error in one line, without folders."""
        said = [line.strip() for line in str(error).splitlines() if line.strip()]
        return without_folders(f"{type(error).__name__}: {said[0]}" if said else type(error).__name__)

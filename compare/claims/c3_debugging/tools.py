"""What both debuggers can do with a training, whichever engine runs it; each engine's own part is a subclass."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any, NamedTuple

import numpy as np

from compare.claims.c3_debugging.base import SourceLine, Training
from compare.records.debugging import EngineName, Phase
from graphs import tree
from graphs.ir import Graph
from graphs.reach import unreached

TRAINING = 25
"""Training steps after which the loss should have fallen."""

TrainingUpdate = Callable[..., tuple[Any, Any]]
_PLACE = re.compile(r"\(([^()\s]+\.py:\d+)\)")


class Event(NamedTuple):
    """One intermediate value: the op (or the input) it comes from, the user's line, and the value or its spec."""

    name: str
    line: str
    value: Any

    @property
    def is_input(self) -> bool:
        """Whether the value was given, not computed."""
        return self.name.startswith("input ")


@dataclass(frozen=True)
class Attempt:
    """What some training steps computed, in order, and how they ended.

    `results` are losses and final parameters, None after an error; `when` tells in which phase the error came.
    """

    events: tuple[Event, ...]
    results: tuple[Any, ...] | None
    error: Exception | None = None
    when: Phase = "never"

    @property
    def ops(self) -> int:
        """How many ops ran; a trace runs none."""
        return sum(isinstance(event.value, np.ndarray) and not event.is_input for event in self.events)


class ToolReport(NamedTuple):
    """What a tool found without knowing the healthy training."""

    when: Phase
    message: str
    ops: int

    @property
    def place(self) -> SourceLine | None:
        """The user's line that the message names."""
        found = _PLACE.search(self.message)
        return SourceLine.parse(found[1]) if found else None


class Tools(ABC):
    """The tools of one engine."""

    name: EngineName

    @abstractmethod
    def attempt(self, training: Training, *, checked: bool = False) -> Attempt:
        """Run the steps of a training, looking at every value; `checked` stops at NaN and infinity."""

    @abstractmethod
    def step(self, training: Training) -> TrainingUpdate:
        """`step(params, *example) -> (loss, params)`: one training step as a user of the engine runs it."""

    @abstractmethod
    def gradients(self, training: Training) -> Any:
        """The gradients of the loss on the first example, as arrays."""

    @abstractmethod
    def graph(self, training: Training) -> tuple[Graph, Phase, int]:
        """The graph of the loss, the phase in which it is known, and how many ops run until then."""

    # In the order in which somebody would try them -------------------------------------------------------------

    def run(self, training: Training) -> ToolReport | None:
        """Run the training steps: does anything raise?"""
        return _ended(self.attempt(training))

    def check(self, training: Training) -> ToolReport | None:
        """Run them again, stopping at the first NaN or infinity."""
        return _ended(self.attempt(training, checked=True))

    def reach(self, training: Training) -> ToolReport | None:
        """Does every parameter get a gradient, and one that is not zero throughout?"""
        training.reset()
        graph, when, ops = self.graph(training)
        for name, stops in unreached(graph).items():
            if any(name.endswith(f"[{parameter!r}]") for parameter in training.params):
                return ToolReport(when, f"{name} gets no gradient{_stopped(stops)}", ops)
        training.reset()
        zero = [name for name, gradient in self.gradients(training).items() if not np.any(gradient)]
        return (
            ToolReport("backward", f"the gradient of {zero[0]} is zero", self.attempt(training).ops) if zero else None
        )

    def train(self, training: Training) -> ToolReport | None:
        """Train for a while: does the loss fall?"""
        training.reset()
        step, params, losses = self.step(training), training.params, []
        for example in islice(cycle(training.examples), TRAINING):
            loss, params = step(params, *example)
            losses.append(float(loss))
        count = len(training.examples)
        message = risen(losses, count)
        return ToolReport("step", message, self.attempt(training).ops * TRAINING // count) if message else None


def risen(losses: Sequence[float], count: int) -> str:
    """What to say of losses that have not fallen, from the first `count` of them to the last; empty if they have."""
    first, last = np.mean(losses[:count]), np.mean(losses[-count:])
    if last < first:  # false for NaN as well
        return ""
    return f"the loss went from {first:.3g} to {last:.3g} in {TRAINING} steps"


def same(first: Any, second: Any) -> bool:
    """Whether two values have one spec and, where both are known, are equal to rounding, NaN to NaN."""
    if first.shape != second.shape or first.dtype != second.dtype:
        return False
    known = isinstance(first, np.ndarray) and isinstance(second, np.ndarray)
    return not known or np.allclose(first, second, rtol=1e-4, atol=1e-6, equal_nan=True)


def same_results(first: Attempt, second: Attempt) -> bool:
    """Whether two attempts ended well and alike, in every loss and parameter."""
    if first.results is None or second.results is None:
        return False
    pairs = zip(tree.leaves(first.results), tree.leaves(second.results), strict=True)
    return all(same(np.asarray(a), np.asarray(b)) for a, b in pairs)


def inputs_of(example: Sequence[Any]) -> list[Event]:
    """The values that a step is given."""
    return [Event(f"input {i}", "", np.asarray(value)) for i, value in enumerate(example)]


def _ended(attempt: Attempt) -> ToolReport | None:
    if attempt.error is None:
        return None
    message = f"{type(attempt.error).__name__}: {' '.join(str(attempt.error).split())}"
    notes = " ".join(getattr(attempt.error, "__notes__", ()))
    return ToolReport(attempt.when, f"{message} {notes}".strip(), attempt.ops)


def _stopped(stops: Sequence[Any]) -> str:
    return f": it stops at {stops[0].op.name} ({stops[0].source})" if stops else ": nothing of it reaches the loss"

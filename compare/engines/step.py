"""What an engine runs, and what it tells of that: a step over its calls, compilations, graph breaks, ops by line."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from compare.engines.heap import ByteCounter
from compare.workloads.base import Example

Function = Callable[..., Any]

LOSS = "the first, or as 'loss'"
"""Where `loss_in` looks."""


def loss_in(returned: Any) -> Any:
    """The loss in what a function returns: itself, the first of a tuple, or what a dict calls `loss`."""
    if isinstance(returned, tuple) and returned:
        return returned[0]
    return returned.get("loss") if isinstance(returned, dict) else returned


@dataclass(frozen=True)
class Compilation:
    """One compilation: why there was one, and the seconds it took where the framework says so."""

    reason: str
    seconds: float | None = None


@dataclass(frozen=True)
class Observed:
    """What an engine tells of the step it ran: compilations in their order, and graph breaks by reason.

    `limits` says what has been compiled so often that it runs eager where it is new again.
    """

    compilations: Sequence[Compilation] = ()
    breaks: Mapping[str, int] = field(default_factory=dict)
    limits: Sequence[str] = ()

    def since(self, before: Observed) -> Observed:
        """What came after an earlier look."""
        added = {reason: count - before.breaks.get(reason, 0) for reason, count in self.breaks.items()}
        breaks = {reason: count for reason, count in added.items() if count}
        return Observed(self.compilations[len(before.compilations) :], breaks, self.limits[len(before.limits) :])


@dataclass
class LineOp:
    """An op of a step: the user's line that it is of, `model.py:12` or "", and its seconds, with the Python before it.

    `made` are the bytes of the arrays that it makes, `saved` those among them that backward reads, `saved_bytes` their
    bytes.
    """

    line: str
    seconds: float = 0.0
    made: int = 0
    saved: int = 0
    saved_bytes: int = 0


class StepEngine(Protocol):
    """What a step, and who times it, asks of its engine."""

    def observed(self, step: Function) -> Observed:
        """What compiling a step has meant so far."""

    @property
    def counter(self) -> ByteCounter:
        """What counts the bytes of a step."""

    def wait(self, result: Any) -> None:
        """Return when a result is computed."""

    def numpy(self, tree: Any) -> Any:
        """A container of the engine's arrays as one of NumPy's."""


class Step:
    """A step, and the calls it is made for, as the engine takes them. A call returns when the result is computed.

    `built` is what the engine has built, to which `params` are passed before each example. A call gives the value and
    the gradients, as the engine's arrays.
    """

    def __init__(
        self, engine: StepEngine, built: Function, examples: Sequence[Example], params: tuple[Any, ...] = ()
    ) -> None:
        self.engine, self.built, self.examples = engine, built, examples
        self.run = partial(built, *params)
        self.before = engine.observed(built)
        self.live = engine.counter.live()

    def __call__(self, *example: Any) -> tuple[Any, Any]:
        """The value and the gradients."""
        result: tuple[Any, Any] = self.run(*example)
        self.engine.wait(result)
        return result

    def epoch(self) -> None:
        """Every example once."""
        for example in self.examples:
            self(*example)

    @property
    def observed(self) -> Observed:
        """What the engine tells of this step."""
        return self.engine.observed(self.built).since(self.before)

    @property
    def compiles(self) -> int:
        """The compilations so far."""
        return len(self.observed.compilations)

    @property
    def compile_seconds(self) -> float:
        """The seconds they took, where the engine says so."""
        return math.fsum(made.seconds or 0.0 for made in self.observed.compilations)

    def computed(self, lengths: Sequence[int]) -> int:
        """The elements computed in an epoch of examples of these useful lengths: more where the arm pads."""
        return sum(lengths)

    def executables(self) -> list[Any]:
        """The compiled graphs held now, where the engine shows them."""
        return []

    def close(self) -> None:
        """Release everything compiled."""
        del self.built, self.run


class TrainingFunction(ABC):
    """A whole training step: a function that differentiates, and changes its state, the `tensors`, by itself.

    These are what there was before the first call; the step gives those that stand in their places after it.
    """

    tensors: Sequence[Any] = ()

    @abstractmethod
    def build(self, arm: str) -> Function:
        """`step(*call) -> (what the function returns, the state after it)`, as the arm runs it."""

    @abstractmethod
    def nudge(self, seed: int) -> None:
        """Change every parameter by as much as rounding does (`compare.engines.nudge`)."""

"""What an engine runs, and what it tells of that: a step over its calls, compilations, graph breaks, ops by line."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from compare.engines.containers import named_parts
from compare.engines.heap import ByteCounter
from compare.workloads.base import Example

Function = Callable[..., Any]
Context = Callable[[], AbstractContextManager[object]]

LOSS_NAME = "loss"
LOSS = "the first, or as 'loss'"
"""Where `loss_in` looks."""


def loss_in(returned: Any) -> Any:
    """The loss in what a function returns: itself, the first of a tuple, or what it calls `loss`.

    Names have mappings, named tuples and dataclasses.
    """
    parts = named_parts(returned)
    if parts is not None and (LOSS_NAME in parts or not isinstance(returned, tuple)):
        return parts.get(LOSS_NAME)
    return returned[0] if isinstance(returned, (tuple, list)) and returned else returned


@dataclass(frozen=True)
class Compilation:
    """One compilation: why there was one, and the seconds it took where the framework says so."""

    reason: str
    seconds: float | None = None


@dataclass(frozen=True)
class Observations:
    """What an engine tells of the step it ran: compilations in their order, and graph breaks by reason.

    `limits` says what has been compiled so often that it runs eager where it is new again.
    """

    compilations: Sequence[Compilation] = ()
    breaks: Mapping[str, int] = field(default_factory=dict)
    limits: Sequence[str] = ()

    def since(self, before: Observations) -> Observations:
        """What came after an earlier look."""
        added = {reason: count - before.breaks.get(reason, 0) for reason, count in self.breaks.items()}
        breaks = {reason: count for reason, count in added.items() if count}
        return Observations(self.compilations[len(before.compilations) :], breaks, self.limits[len(before.limits) :])


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


def as_it_is(returned: Any) -> Any:
    """The same."""
    return returned


@dataclass(frozen=True)
class BoundCall:
    """A call that is ready. What depends on the structure of its arguments is done.

    `run` is what a clock may read: the call as the user writes it, its backward pass, and nothing else. `result` makes
    the value and the gradients of what `run` returns. `within` is entered around both, once for many runs: a switch of
    the framework, and what brings back what a run leaves. A call of it all is one run with its result.
    """

    run: Callable[[], Any]
    result: Function = as_it_is
    within: Context = nullcontext

    def __call__(self) -> tuple[Any, Any]:
        """The value and the gradients."""
        with self.within():
            result: tuple[Any, Any] = self.result(self.run())
        return result


@dataclass(frozen=True)
class Turns:
    """What brings back the state that is timed: before each block, and, where that must be, before each call."""

    block: Callable[[], None] | None = None
    call: Callable[[], None] | None = None

    @classmethod
    def of(cls, several: Sequence[Turns]) -> Turns:
        """Those of several steps, which take turns."""
        return cls(
            _together([each.block for each in several if each.block]),
            _together([each.call for each in several if each.call]),
        )


def _together(several: Sequence[Callable[[], None]]) -> Callable[[], None] | None:
    if len(several) < 2:
        return several[0] if several else None

    def all_of_them() -> None:
        for each in several:
            each()

    return all_of_them


ALIKE = Turns()
"""Of calls that change nothing."""


class Rerun(partial[Any]):
    """A run that may put another in its place, once it has seen what a function gives: no clock reads the choice."""

    def become(self, function: Function, *args: Any) -> None:
        """From now on it is this call."""
        self.__setstate__((function, args, {}, {}))  # type: ignore[attr-defined]  # of CPython and PyPy alike


class Bindable(ABC):
    """A step that can be bound to the arguments of a call; called as it is, it binds and runs."""

    @abstractmethod
    def bind(self, *args: Any) -> BoundCall:
        """The call with these arguments, ready."""

    def turns(self, step: Step) -> Turns:
        """What blocks of runs begin with, of the step that it was built for."""
        return ALIKE

    def __call__(self, *args: Any) -> tuple[Any, Any]:
        """The value and the gradients."""
        return self.bind(*args)()


def inside(*contexts: Context) -> Context:
    """Contexts as one, the first outermost."""

    @contextmanager
    def together() -> Iterator[None]:
        with ExitStack() as stack:
            for context in contexts:
                stack.enter_context(context())
            yield

    return together


def bind_call(built: Function, args: tuple[Any, ...]) -> BoundCall:
    """The call of whatever an engine has built, ready."""
    return built.bind(*args) if isinstance(built, Bindable) else BoundCall(partial(built, *args))


class StepDevices(Protocol):
    """What a step, and who times it, asks of where its arrays lie."""

    @property
    def counter(self) -> ByteCounter:
        """What counts the bytes of a step."""

    @property
    def waits(self) -> Function | None:
        """What returns when a result is computed; None where every call does."""


class StepEngine(Protocol):
    """What they ask of its engine."""

    @property
    def devices(self) -> StepDevices:
        """Where its arrays lie."""

    def observed(self, step: Function) -> Observations:
        """What compiling a step has meant so far."""

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
        self.engine, self.built, self.examples, self.params = engine, built, examples, params
        self.before = engine.observed(built)
        self.live = engine.devices.counter.live()
        self._bound: dict[int, BoundCall] = {}

    def ready(self, *example: Any) -> BoundCall:
        """The call of an example, ready; it waits for what it computes."""
        call = bind_call(self.built, (*self.params, *example))
        waits = self.engine.devices.waits
        return replace(call, run=_wait_for(call.run, waits)) if waits else call

    def bind(self, index: int) -> BoundCall:
        """The call of the example of that number, made ready once."""
        if index not in self._bound:
            self._bound[index] = self.ready(*self.examples[index])
        return self._bound[index]

    def __call__(self, *example: Any) -> tuple[Any, Any]:
        """The value and the gradients."""
        return self.ready(*example)()

    @contextmanager
    def within(self) -> Iterator[None]:
        """Where the `run` of each of its calls may be called."""
        with ExitStack() as stack:
            for index in range(len(self.examples)):
                stack.enter_context(self.bind(index).within())
            yield

    def epoch(self) -> None:
        """Every example once."""
        with self.within():
            self.run_each()

    def run_each(self) -> None:
        """The runs of an epoch; to be called `within`."""
        for index in range(len(self.examples)):
            self.bind(index).run()

    def turns(self) -> Turns:
        """What blocks of its runs begin with."""
        return self.built.turns(self) if isinstance(self.built, Bindable) else ALIKE

    @property
    def observed(self) -> Observations:
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
        self._bound.clear()
        del self.built


def _wait_for(run: Callable[[], Any], waits: Function) -> Callable[[], Any]:
    def wrapper() -> Any:
        returned = run()
        waits(returned)
        return returned

    return wrapper


@dataclass(frozen=True)
class StateReader:
    """What reads the state after a call, by what messages call it.

    `before` are the values that stood in the same places before the first call.
    """

    before: Mapping[str, Any] = field(default_factory=dict)
    read: Callable[[], Mapping[str, Any]] = dict


class ValueStep(Bindable):
    """`step(*args) -> (what run returns, ())`."""

    def __init__(self, run: Function) -> None:
        self.run = run

    def bind(self, *args: Any) -> BoundCall:
        """See the base."""
        return BoundCall(partial(self.run, *args), lambda value: (value, ()))


class WholeStep(Bindable):
    """`step(*call) -> (what run returns, ())` of a function that trains; what else it does stands in the state."""

    def __init__(self, run: Function, within: Context = nullcontext) -> None:
        self.run, self.within = run, within

    def bind(self, *args: Any) -> BoundCall:
        """See the base."""
        return BoundCall(partial(self.run, *args), lambda value: (() if value is None else value, ()), self.within)


class TrainingFunction:
    """A whole training step: a function that differentiates, and changes its state, by itself.

    `run` makes the function that an arm runs, and where it is called.
    """

    def __init__(self, run: Callable[[str], tuple[Function, Context]]) -> None:
        self.run = run

    def build(self, arm: str) -> WholeStep:
        """`step(*call) -> (what the function returns, ())`, as the arm runs it."""
        return WholeStep(*self.run(arm))

"""Steps and their reports: a step with its calls, compilations, graph breaks, ops by line.

Read `BoundCall` and `Step` first.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from types import ModuleType
from typing import Any, Protocol

from compare.engines.containers import named_parts
from compare.engines.process import ByteCounter
from compare.workloads.base import Example

Function = Callable[..., Any]
Context = Callable[[], AbstractContextManager[object]]

LOSS_NAME = "loss"
LOSS = "the first, or as 'loss'"
"""The words for the places where `loss_in` looks."""


def loss_in(returned: Any) -> Any:
    """Return the loss in a function's result: the result itself, its first item, or its part named `loss`.

    Mappings, named tuples and dataclasses have named parts.
    """
    parts = named_parts(returned)
    if parts is not None and (LOSS_NAME in parts or not isinstance(returned, tuple)):
        return parts.get(LOSS_NAME)
    return returned[0] if isinstance(returned, (tuple, list)) and returned else returned


def kind_of_loss(returned: Any) -> str:
    """Return what a function's result has in the place of a loss, as `a dict without 'loss', but with 'rec', 'kl'`."""
    loss, parts = loss_in(returned), named_parts(returned)
    if loss is None and parts:
        return f"{_a(returned)} without {LOSS_NAME!r}, but with {', '.join(map(repr, parts))}"
    return _a(loss) if loss is returned else f"{_a(returned)} that begins with {_a(loss)}"


def _a(value: Any) -> str:
    name = type(value).__name__
    return "nothing" if value is None else f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


@dataclass(frozen=True)
class Compilation:
    """One compilation: its reason, and where the framework tells them its seconds, and those of each phase.

    The backward pass belongs to the compilation of its forward pass.
    """

    reason: str
    seconds: float | None = None
    phases: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Observations:
    """An engine's report of a step: compilations in order, and graph breaks by reason.

    `limits` names functions compiled so often that new calls of them run eagerly.
    """

    compilations: Sequence[Compilation] = ()
    breaks: Mapping[str, int] = field(default_factory=dict)
    limits: Sequence[str] = ()

    def since(self, before: Observations) -> Observations:
        """Return the observations made after an earlier report."""
        added = {reason: count - before.breaks.get(reason, 0) for reason, count in self.breaks.items()}
        breaks = {reason: count for reason, count in added.items() if count}
        return Observations(self.compilations[len(before.compilations) :], breaks, self.limits[len(before.limits) :])


@dataclass
class LineOp:
    """An op of a step, with its user's line (`model.py:12` or "") and its seconds, Python code before it included.

    `made` are the bytes of the arrays that it makes, `saved` the number of these that backward reads, and `saved_bytes`
    their bytes.
    """

    line: str
    seconds: float = 0.0
    made: int = 0
    saved: int = 0
    saved_bytes: int = 0


def as_it_is(returned: Any) -> Any:
    """Return the argument unchanged."""
    return returned


@dataclass(frozen=True)
class BoundCall:
    """A call that is ready to run; work that depends on the structure of its arguments is done.

    `run` is the part to time: the call as the user writes it, its backward pass, and nothing else. `result` makes the
    value and the gradients from what `run` returns. `within` is entered around both, once for many runs: it sets a
    switch of the framework, and undoes what a run leaves. Calling the object is one run with its result.
    """

    run: Callable[[], Any]
    result: Function = as_it_is
    within: Context = nullcontext

    def __call__(self) -> tuple[Any, Any]:
        """Return the value and the gradients."""
        with self.within():
            result: tuple[Any, Any] = self.result(self.run())
        return result


@dataclass(frozen=True)
class Turns:
    """Functions that restore the timed state: before each block and, where needed, before each call."""

    block: Callable[[], None] | None = None
    call: Callable[[], None] | None = None

    @classmethod
    def of(cls, several: Sequence[Turns]) -> Turns:
        """Return the turns of several steps that are timed alternately."""
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
"""The turns of calls that change nothing."""


class Rerun(partial[Any]):
    """A run that may replace itself after it has seen a function's result; no clock reads that choice."""

    def become(self, function: Function, *args: Any) -> None:
        """Replace this run by a call of `function`."""
        self.__setstate__((function, args, {}, {}))  # type: ignore[attr-defined]  # of CPython and PyPy alike


class Bindable(ABC):
    """A step that can be bound to the arguments of a call; calling the step binds and runs it."""

    @abstractmethod
    def bind(self, *args: Any) -> BoundCall:
        """Bind a call with these arguments, ready to run."""

    def turns(self, step: Step) -> Turns:
        """Return the turns of blocks of runs; `step` is the Step that holds this one."""
        return ALIKE

    def __call__(self, *args: Any) -> tuple[Any, Any]:
        """Return the value and the gradients."""
        return self.bind(*args)()


def inside(*contexts: Context) -> Context:
    """Return several contexts as one; the first is the outermost."""

    @contextmanager
    def together() -> Iterator[None]:
        with ExitStack() as stack:
            for context in contexts:
                stack.enter_context(context())
            yield

    return together


def bind_call(built: Function, args: tuple[Any, ...]) -> BoundCall:
    """Bind a call of a function or step that an engine has built."""
    return built.bind(*args) if isinstance(built, Bindable) else BoundCall(partial(built, *args))


class StepDevices(Protocol):
    """The part of an engine's devices that a step, and the code that times it, need."""

    @property
    def counter(self) -> ByteCounter:
        """Return the counter of a step's bytes."""

    @property
    def waits(self) -> Function | None:
        """Return the function that waits until a result is computed; None where a call returns only then."""


class StepEngine(Protocol):
    """The part of an engine that a step, and the code that times it, need."""

    @property
    def devices(self) -> StepDevices:
        """Return the devices that arrays lie on."""

    def observed(self, step: Function) -> Observations:
        """Return the compilations of a step so far."""

    def numpy(self, tree: Any) -> Any:
        """Return a container of the engine's arrays with NumPy arrays."""


class Step:
    """A step with its calls in the engine's form. A call returns when the result is computed.

    `built` is the engine's function, called with `params` before each example. A call returns the value and the
    gradients, as the engine's arrays.
    """

    def __init__(
        self, engine: StepEngine, built: Function, examples: Sequence[Example], params: tuple[Any, ...] = ()
    ) -> None:
        self.engine, self.built, self.examples, self.params = engine, built, examples, params
        self.before = engine.observed(built)
        self.live = engine.devices.counter.live()
        self._bound: dict[int, BoundCall] = {}

    def ready(self, *example: Any) -> BoundCall:
        """Bind a call of an example; its run waits for the result."""
        call, waits = bind_call(self.built, (*self.params, *example)), self.engine.devices.waits
        if waits is None:
            return call

        def run() -> Any:
            returned = call.run()
            waits(returned)
            return returned

        return replace(call, run=run)

    def bind(self, index: int) -> BoundCall:
        """Return the bound call of an example by index; it is bound once."""
        if index not in self._bound:
            self._bound[index] = self.ready(*self.examples[index])
        return self._bound[index]

    def __call__(self, *example: Any) -> tuple[Any, Any]:
        """Return the value and the gradients."""
        return self.ready(*example)()

    @contextmanager
    def within(self) -> Iterator[None]:
        """A context in which the `run` of every example's call may be called."""
        with ExitStack() as stack:
            for index in range(len(self.examples)):
                stack.enter_context(self.bind(index).within())
            yield

    def epoch(self) -> None:
        """Run every example once."""
        with self.within():
            self.run_each()

    def run_each(self) -> None:
        """Run every example once; to be called `within`."""
        for index in range(len(self.examples)):
            self.bind(index).run()

    def turns(self) -> Turns:
        """Return the turns of this step."""
        return self.built.turns(self) if isinstance(self.built, Bindable) else ALIKE

    @property
    def observed(self) -> Observations:
        """Return the engine's observations since this step was made."""
        return self.engine.observed(self.built).since(self.before)

    @property
    def compiles(self) -> int:
        """Return the number of compilations so far."""
        return len(self.observed.compilations)

    @property
    def compile_seconds(self) -> float:
        """Return the seconds of these compilations, as far as the engine tells them."""
        return math.fsum(made.seconds or 0.0 for made in self.observed.compilations)

    def computed(self, lengths: Sequence[int]) -> int:
        """Return the elements computed in an epoch of examples with these useful lengths; a mode that pads has more."""
        return sum(lengths)

    def executables(self) -> list[Any]:
        """Return the compiled graphs that are held now, where the engine shows them."""
        return []

    def close(self) -> None:
        """Release all compiled code."""
        self._bound.clear()
        del self.built


class GraphProgram(Protocol):
    """A graph that a compiler has captured, as a program: a file with `step` and `batches` that runs by itself.

    `word` is the mode that compiles it alone.
    """

    @property
    def word(self) -> str:
        """Return the word of the mode that compiles the graph in its file."""

    @property
    def ops(self) -> list[str]:
        """Return the name of each op with the user's line, as `cumsum (step.py:31)`."""

    @property
    def line(self) -> str:
        """Return the first line of the user's in it; "" where there is none."""

    @property
    def halves(self) -> Sequence[GraphProgram]:
        """Return both halves of its ops as programs; none where it cannot be cut."""

    @property
    def least(self) -> GraphProgram:
        """Return a program of one op on one number, which shows what any graph costs."""

    def text(self, file: str, title: str, said: str, *, exact: bool) -> str:
        """Return the file; with `exact` it holds the numbers of the step, if they are few."""

    def module(self, *, exact: bool) -> ModuleType:
        """Return the file as a module."""


@dataclass(frozen=True)
class StateReader:
    """A reader of the state after a call, by the names that messages use.

    `before` are the values at the same places before the first call.
    """

    before: Mapping[str, Any] = field(default_factory=dict)
    read: Callable[[], Mapping[str, Any]] = dict


class ValueStep(Bindable):
    """`step(*args) -> (result of run, ())`, without gradients."""

    def __init__(self, run: Function, within: Context = nullcontext) -> None:
        self.run, self.within = run, within

    def bind(self, *args: Any) -> BoundCall:
        """Bind a call of the step."""
        return BoundCall(partial(self.run, *args), lambda value: (value, ()), self.within)


class WholeStep(ValueStep):
    """`step(*call) -> (result of run, ())` for a function that trains; its other effects are read from the state."""

    def bind(self, *args: Any) -> BoundCall:
        """Bind a call of the step."""
        return BoundCall(partial(self.run, *args), lambda value: (() if value is None else value, ()), self.within)


class TrainingFunction:
    """A whole training step: a function that differentiates, and changes its state, by itself.

    `run(mode)` returns the function that the mode runs, and the context to call it in.
    """

    def __init__(self, run: Callable[[str], tuple[Function, Context]]) -> None:
        self.run = run

    def build(self, mode: str) -> WholeStep:
        """Return `step(*call) -> (result, ())` as a mode runs it."""
        return WholeStep(*self.run(mode))

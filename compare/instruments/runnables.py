"""What a process runs in an engine, a workload or a function of the user's, and what each call must give."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np
import optree

from compare.engines.base import Engine
from compare.engines.cases import signature
from compare.engines.state import Piece, Snapshot
from compare.engines.step import Step, TrainingFunction
from compare.errors import EffectsError, described
from compare.instruments import rounding
from compare.instruments.parity import TOLERANCES
from compare.instruments.rounding import Moves, difference, tree_error
from compare.instruments.time.rounds import ALIKE, Turns
from compare.records.record import Status
from compare.steps import now
from compare.workloads.base import Case

TOLERANCE = TOLERANCES["float32"]
SEEDS = (1, 2)
Build = Callable[[str, Case], Step]
"""Makes the step of an arm over a case."""
EMPTY: Mapping[int, Any] = MappingProxyType({})
Reference = Any
"""The value and the gradients that a call must give."""
NOTHING: Reference = (None, None)


class Runnable(ABC):
    """What is run in every arm.

    engine     what runs it
    lengths    the useful size of each call
    varies     whether the calls are a stream, rather than one that never changes
    second     what each call gives beside its value
    cut        how an arm counts whose first epoch was ended at its limit: what it took by then is a lower bound
    """

    engine: Engine
    lengths: Sequence[int]
    varies: bool
    second: str = "a gradient"
    cut: Status = "ok"

    @property
    def notes(self) -> dict[str, Any]:
        """What records of compilations say of the references."""
        return {}

    @property
    def written(self) -> Callable[..., Any] | None:
        """The function whose lines a user reads; None where nobody does."""
        return None

    @property
    @abstractmethod
    def expected(self) -> Mapping[int, Sequence[Reference]]:
        """For calls by their number, what each must give: every one of several references."""

    def moves(self, index: int, nudges: int) -> Moves:
        """What rounding alone does to what a call gives, by so many nudges; none where that is not measured."""
        return Moves()

    @abstractmethod
    def step(self, arm: str) -> Step:
        """The step of an arm, built and not yet called."""

    @abstractmethod
    def form(self, index: int) -> Any:
        """What an engine specialises on in a call."""

    def checked(self, arm: str) -> AbstractContextManager[None]:
        """Where an arm is built and first called, so that what it gives can be compared."""
        return nullcontext()

    def prepare(self) -> None:  # noqa: B027  (there may be nothing)
        """Find out what must be known before anything is timed."""

    def called(self, index: int) -> AbstractContextManager[None]:
        """Where a first call is made, so that it gives what is expected of it."""
        return nullcontext()

    def begin(self) -> None:  # noqa: B027  (what has no state has nothing to bring back)
        """Bring back the state of the start."""

    def fresh(self) -> AbstractContextManager[None]:
        """A look that begins with the state of the start, and leaves it."""
        return nullcontext()

    def turns(self, steps: Mapping[str, Step]) -> Turns:
        """What the rounds of some arms begin with."""
        return ALIKE

    def reason(self, error: Exception) -> str:
        """What an error of an arm says."""
        return described(error)

    def blames(self, arm: str) -> bool:
        """Whether an error in this arm is of what is run, and not of the arm."""
        return False


class WorkloadRunnable(Runnable):
    """A case of a workload, whose steps `build` makes; `expected` are results of our engines in float64, if any."""

    def __init__(
        self, engine: Engine, case: Case, build: Build, expected: Mapping[int, Sequence[Reference]] = EMPTY
    ) -> None:
        self.engine, self.case, self.build = engine, case, build
        self.lengths, self.varies = case.lengths, case.varies
        self._expected = expected

    @property
    def expected(self) -> Mapping[int, Sequence[Reference]]:
        """See the base."""
        return self._expected

    def step(self, arm: str) -> Step:
        """See the base."""
        return self.build(arm, self.case)

    def form(self, index: int) -> Any:
        """Structure, shapes and dtypes."""
        return signature(self.case.examples[index])

    def reason(self, error: Exception) -> str:
        """As the engine says it, in a line."""
        return self.engine.reason(error)

    def blames(self, arm: str) -> bool:
        """Where the gate has admitted all arms, an error is no result."""
        return not self.engine.costly


class FunctionRunnable(Runnable):
    """A function of the user's over calls of arrays of the framework; the references are eager, and eager in float64.

    A whole training step goes through the calls as through batches: what it gives is its value and the state after it,
    and each epoch begins with the state that there was at first. Its reference is eager alone: an optimizer has no copy
    in float64.

    Where eager is moved by rounding the step is ill-conditioned, and a mode may be further off
    (`compare.instruments.rounding`).

    A function that gives another result for another seed is random. Float64 draws other numbers, so that such a
    function is compared with eager alone, by the same seed, where a compiled one can repeat what eager draws. Gradients
    are those in the argument `argnum`, and without `checks` nothing is expected.
    """

    cut: Status = "unsupported"

    def __init__(
        self, engine: Engine, eager: str, name: str, function: Any, calls: Sequence[Any], argnum: int | None,
        *, checks: bool,
    ) -> None:  # fmt: skip
        self.engine, self.eager, self.name = engine, eager, name
        self.function, self.calls, self.argnum, self.checks = function, calls, argnum, checks
        self.lengths, self.varies = [_size(call) for call in calls], len(calls) > 1
        self.undoubled: str | None = None
        self._reached = tuple(engine.reached(function))
        self._begin = engine.snapshot(function, calls)
        self._moves: dict[int, list[Moves]] = {}

    @cached_property
    def training(self) -> TrainingFunction | None:
        """The function as a whole training step, where a call shows that it is one."""
        now(f"made call 1 in {self.eager}")
        with self.fresh():
            return self.engine.training(self.function, self.calls, self._begin.changed)

    def prepare(self) -> None:
        """See the base; what the function raises, a mode will."""
        try:
            _ = self.training
        except EffectsError:
            raise
        except Exception:  # noqa: BLE001  (told where a mode raises it)
            return

    @property
    def notes(self) -> dict[str, Any]:
        """Whether the function is random or trains, what float64 refuses, and how ill-conditioned it is."""
        told = self._told if self.checks else {}
        return {**told, "trains": self.training is not None, "conditioning": self._conditioning}

    @property
    def _conditioning(self) -> float:
        """How far rounding alone moves eager, which is measured where a mode is off; 0 where that tells nothing."""
        off = max((max(moves.sizes.largest) for moves in self._moves.get(rounding.NUDGES, ())), default=0.0)
        return off if off <= 1 else 0.0

    @property
    def _told(self) -> dict[str, Any]:
        gradients = self.engine.gradients_in(self._run)
        return {"random": self.random, "undoubled": self.undoubled, "gradients": gradients}

    @property
    def written(self) -> Callable[..., Any]:
        """What the user has written."""
        written: Callable[..., Any] = self.function
        return written

    def moves(self, index: int, nudges: int) -> Moves:
        """Eager in float64, where the function runs in it, and from nudged numbers, less eager."""
        if nudges not in self._moves:
            self._moves[nudges] = self._moved(nudges)
        return self._moves[nudges][index]

    def _moved(self, nudges: int) -> list[Moves]:
        moved = [[difference(result, eager) for result in exact] for eager, *exact in self.expected.values()]
        for seed in range(1, nudges + 1):
            for moves, (eager, *_), result in zip(moved, self.expected.values(), self._nudged(seed), strict=True):
                moves.append(difference(result, eager))
        return list(map(Moves, moved))

    def step(self, arm: str) -> Step:
        """See the base."""
        return Step(self.engine, self._built(arm), self.calls)

    def _built(self, arm: str) -> Callable[..., Any]:
        if self.training:
            return self.training.build(arm)
        return self.engine.build(arm, self.function, self.argnum)

    def checked(self, arm: str) -> AbstractContextManager[None]:
        """A compiled random function draws what eager draws. Whether it is random is found after eager has run."""
        draws = self.checks and arm != self.eager and self.random
        return self.engine.repeatable() if draws else nullcontext()

    def form(self, index: int) -> Any:
        """Structure, shapes and dtypes."""
        leaves, structure = optree.tree_flatten(self.calls[index], none_is_leaf=True)
        return structure, tuple((tuple(x.shape), str(x.dtype)) if _is_array(x) else id(x) for x in leaves)

    @contextmanager
    def called(self, index: int, seed: int = SEEDS[0]) -> Iterator[None]:
        """From the same seed and the same state, which is brought back; a training goes on in its own."""
        if not self.training:
            with self.fresh(seed):
                yield
            return
        if index == 0:
            self._begin.restore()
        self._reset(seed)
        yield

    def begin(self) -> None:
        """See the base."""
        self._begin.restore()
        self._reset(SEEDS[0])

    @contextmanager
    def fresh(self, seed: int = SEEDS[0]) -> Iterator[None]:
        """See the base."""
        self._begin.restore()
        self._reset(seed)
        try:
            with self.engine.making(self._begin.add):
                yield
        finally:
            self._begin.restore()
        if spent := self._begin.spent:
            raise EffectsError(
                f"{self.name} goes on with {' and '.join(spent)}, which nothing brings back, so that no two looks "
                "would meet the same; give what it takes from there as inputs, or make it anew in each call"
            )

    def turns(self, steps: Mapping[str, Step]) -> Turns:
        """With the state of now, as training goes on; with that of the start where that does not last for an epoch."""
        state = self.engine.snapshot(self.function, self.calls)
        try:
            changed = _changed(state, steps)
        except Exception:  # noqa: BLE001  (a schedule has come to its end, for one: the first epoch has run)
            state = self._begin
            changed = _changed(state, steps)
        arguments = [piece for piece in changed if piece.is_argument]
        others = [piece for piece in changed if not piece.is_argument]
        return Turns(state.back(others) if others else None, state.back(arguments) if arguments else None)

    @contextmanager
    def _under_way(self) -> Iterator[None]:
        """Inside, other epochs may run; the one that is under way goes on where it was."""
        before = self.engine.snapshot(self.function, self.calls)
        try:
            yield
        finally:
            before.restore()

    @contextmanager
    def _aside(self) -> Iterator[None]:
        """Inside, looks begin with the numbers of now."""
        begin, self._begin = self._begin, self.engine.snapshot(self.function, self.calls)
        try:
            yield
        finally:
            self._begin.restore()
            self._begin = begin

    def reason(self, error: Exception) -> str:
        """With the line of the user's file."""
        return described(error, self.name)

    def blames(self, arm: str) -> bool:
        """What eager cannot run is the user's to mend."""
        return arm == self.eager

    @cached_property
    def random(self) -> bool:
        """Whether another seed gives another result."""
        return any(tree_error(self._result(call, SEEDS[1]), ours) > 0 for call, ours in enumerate(self._eager))

    @property
    def draws(self) -> list[list[np.ndarray]]:
        """The random numbers that each call draws in eager from the seed of the references; none of other functions."""
        if not self.random:
            return []
        drawn = []
        for index, call in enumerate(self.calls):
            with self.called(index):
                drawn.append(self.engine.draws(self._run, call))
        return drawn

    @cached_property
    def expected(self) -> Mapping[int, Sequence[Reference]]:
        """Those of every call: eager, and in float64 where the function runs in it; none without `checks`."""
        if not self.checks:
            return {}
        if self.training:
            self.undoubled = "a training step changes its own state"
            with self._under_way():
                return {index: (result,) for index, result in enumerate(self._eager)}
        if self.random:
            return {index: (result,) for index, result in enumerate(self._eager)}
        try:
            with self.engine.doubles(self._reached), self._aside():
                exact = self._results(self.engine.doubled)
        except Exception as error:  # noqa: BLE001  (eager in float32 has run, so that the function is fine)
            self.undoubled = self.reason(error)
            return {index: (result,) for index, result in enumerate(self._eager)}
        return dict(enumerate(zip(self._eager, exact, strict=True)))

    def _nudged(self, seed: int) -> list[Reference]:
        """What eager gives from nudged numbers, call by call; nothing comparable where it raises."""
        try:
            if self.training:
                with self._under_way():
                    self._begin.restore()
                    self.training.nudge(seed)
                    with self._aside():
                        return self._results()
            with self.engine.nudges(self._reached, seed), self._aside():
                return self._results(lambda call: self.engine.nudged(call, seed))
        except Exception:  # noqa: BLE001  (from its own numbers eager has run, so that the function is fine)
            return [NOTHING] * len(self.calls)

    @cached_property
    def _run(self) -> Callable[..., Any]:
        return self._built(self.eager)

    @cached_property
    def _eager(self) -> list[Reference]:
        return self._results()

    def _results(self, made: Callable[[Any], Any] = lambda call: call) -> list[Reference]:
        return [self._result(index, SEEDS[0], made) for index in range(len(self.calls))]

    def _result(self, index: int, seed: int, made: Callable[[Any], Any] = lambda call: call) -> Reference:
        run = self._run
        now(f"made call {index + 1} in {self.eager}")
        with self.called(index, seed):
            result = self.engine.numpy(run(*made(self.calls[index])))
            return optree.tree_map(np.array, result) if self.training else result  # the next call changes what it holds

    def _reset(self, seed: int) -> None:
        """Whatever a function may draw from."""
        self.engine.reset(seed)
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002  (the generator that a user's function may use)


class ModelRunnable(FunctionRunnable):
    """A real model of the suite; one whose first epoch was ended at its limit tells what it took by then."""

    cut: Status = "ok"

    def blames(self, arm: str) -> bool:
        """What a model raises is its own result: it loses no other."""
        return False


def _changed(state: Snapshot, steps: Mapping[str, Step]) -> list[Piece]:
    """What an epoch of any of these changes that begins with the state; it is brought back."""
    changed: dict[int, Piece] = {}
    try:
        for step in steps.values():
            state.restore()
            step.epoch()
            changed |= {id(piece): piece for piece in state.changed()}
    finally:
        state.restore()
    return list(changed.values())


def _size(call: Any) -> int:
    """The elements of the arrays of a call."""
    leaves = optree.tree_leaves(call, none_is_leaf=True)
    return sum(prod(leaf.shape) for leaf in leaves if _is_array(leaf))


def _is_array(leaf: Any) -> bool:
    """Whether it has a shape and a dtype; a module of transformers' has a dtype alone."""
    return hasattr(leaf, "dtype") and hasattr(leaf, "shape")

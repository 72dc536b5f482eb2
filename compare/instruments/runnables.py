"""The things that a process runs in an engine, a workload or a user's function, with each call's expected result."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property, partial, reduce
from itertools import zip_longest
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np
import optree

from compare.engines.base import DRAWS, Engine
from compare.engines.cases import signature
from compare.engines.nudge import DOUBLE, FloatChange
from compare.engines.state import turns_of
from compare.engines.step import Context, StateReader, Step, TrainingFunction, Turns
from compare.errors import EffectsError, NoGradientsError, UnsupportedError, describe_error, place_of
from compare.instruments import judge
from compare.instruments.judge import MULTIPLE, Result, ResultLeaf, Standard, leaves_of, lowest
from compare.instruments.rounding import Moves, is_exact
from compare.records.record import Status
from compare.steps import now
from compare.workloads.base import Case

SEEDS = (1, 2)
Build = Callable[[str, Case], Step]
"""A function that makes the step of a mode for a case."""
EMPTY: Mapping[int, Any] = MappingProxyType({})
NOTHING: Result = (None, None)
UNLIKE = "eager gives another result when it is called again from the same state"


class Runnable(ABC):
    """Something that runs in every mode.

    engine     the engine that runs it
    lengths    the useful size of each call
    varies     whether the calls are a stream, rather than one that never changes
    cut        the status of a mode whose first epoch was ended at its limit; its time by then is a lower bound
    times_wrong  whether a mode that disagrees is timed all the same
    glances  whether the modes are timed a little before they are compared, for a user who waits for a figure
    """

    engine: Engine
    lengths: Sequence[int]
    varies: bool
    cut: Status = "ok"
    times_wrong: bool = False
    glances: bool = False

    @property
    def notes(self) -> dict[str, Any]:
        """Return the fields of records of compilations that are about the references."""
        return {}

    @property
    def written(self) -> Callable[..., Any] | None:
        """Return the function whose lines a user reads; None where there is none."""
        return None

    @property
    @abstractmethod
    def expected(self) -> Mapping[int, Standard]:
        """Return the expected result of each call, by index."""

    def moves(self, index: int, nudges: int) -> Moves:
        """Return the moves that rounding alone causes in a call's result; empty where that is not measured."""
        return Moves()

    def is_right_nearby(self, step: Step, mode: str, index: int) -> bool:
        """Return whether a mode that is off in a call is off there again, and right from inputs nearby."""
        return False

    def compares(self, index: int) -> bool:
        """Return whether a call has an expected result."""
        return index in self.expected

    def keep(self, mode: str, results: Mapping[int, Result]) -> None:  # noqa: B027  (there may be no use for it)
        """Receive the results of the first calls of a mode."""

    def results_of(self, mode: str, results: dict[int, Result]) -> Iterator[tuple[int, Result]]:
        """Yield the results of a mode to judge, from those of its first calls, which are dropped one by one."""
        for index in tuple(results):
            yield index, results.pop(index)

    @abstractmethod
    def step(self, mode: str) -> Step:
        """Build the step of a mode; it has not been called yet."""

    @abstractmethod
    def form(self, index: int) -> Any:
        """Return the key on which an engine specialises in a call."""

    def checked(self, mode: str) -> AbstractContextManager[None]:
        """Return the context in which a mode is built and first called, so that its results can be compared."""
        return nullcontext()

    def repeats(self, mode: str) -> bool:
        """Return whether a mode repeats eager's random draws there, which is other code than its user's."""
        return False

    def prepare(self) -> None:  # noqa: B027  (there may be nothing)
        """Find out the facts that must be known before anything is timed."""

    def called(self, index: int) -> AbstractContextManager[None]:
        """Return the context of a first call, in which it gives the expected result."""
        return nullcontext()

    def begin(self) -> None:  # noqa: B027  (a runnable without state restores nothing)
        """Restore the state of the start."""

    def fresh(self) -> AbstractContextManager[None]:
        """Return a context that begins and ends with the state of the start."""
        return nullcontext()

    def turns(self, steps: Mapping[str, Step]) -> Turns:
        """Return the turns for the rounds of some modes."""
        return Turns.of([step.turns() for step in steps.values()])

    def after(self) -> tuple[Any, ...]:
        """Return the state after a call as a tuple of one part; empty where there is no state."""
        return ()

    def taken(self, result: tuple[Any, Any]) -> Result:
        """Return a call's result with its state, as arrays that nothing changes any more."""
        arrays: Any = self.engine.numpy((*result, *self.after()))
        return tuple(optree.tree_map(_copy_leaf, arrays))

    def reason(self, error: Exception) -> str:
        """Return the message for a mode's error."""
        return describe_error(error)

    def blames(self, mode: str) -> bool:
        """Return whether an error in this mode is the fault of the runnable rather than of the mode."""
        return False


class WorkloadRunnable(Runnable):
    """A case of a workload, whose steps `build` makes; `expected` are float64 results of our engines, if any."""

    def __init__(self, engine: Engine, case: Case, build: Build, expected: Mapping[int, Standard] = EMPTY) -> None:
        self.engine, self.case, self.build = engine, case, build
        self.lengths, self.varies = case.lengths, case.varies
        self._expected = expected

    @property
    def expected(self) -> Mapping[int, Standard]:
        """Return the expected result of each call, by index."""
        return self._expected

    def step(self, mode: str) -> Step:
        """Build the step of a mode."""
        return self.build(mode, self.case)

    def form(self, index: int) -> Any:
        """Return the structure, shapes and dtypes of a call."""
        return signature(self.case.examples[index])

    def reason(self, error: Exception) -> str:
        """Return the engine's message for an error, in a line."""
        return self.engine.errors.reason(error)

    def blames(self, mode: str) -> bool:
        """Return True for a reference engine: its gate has admitted all modes, so that an error is no result."""
        return self.engine.is_reference


class FunctionRunnable(Runnable):
    """A user's function over calls with the framework's arrays; its references are eager, and eager in float64.

    A whole training step goes through the calls as through batches: its result is its value and the state after it,
    and each epoch begins with the state of the start.

    Where rounding moves eager's result, the step is ill-conditioned, and a mode may be further off
    (`compare.instruments.judge`). Where eager is further from float64 than rounding puts it, float64 computes something
    else, and tells nothing.

    A function whose result depends on the seed is random. In float64 it gets eager's random numbers, where the engine
    can give them; else it is compared with eager alone, by the same seed. Only shapes are compared of a function whose
    result differs for the same seed and state, and of a random one if compiled code cannot repeat eager's draws;
    `uncompared` says so. Gradients are in the argument `argnum`, if there are any or they are `needed`. Without
    `checks` no result is expected.
    """

    cut: Status = "unsupported"
    times_wrong = glances = True

    def __init__(
        self, engine: Engine, eager: str, name: str, function: Any, calls: Sequence[Any], argnum: int | None,
        *, checks: bool, needed: bool = True,
    ) -> None:  # fmt: skip
        self.engine, self.eager, self.name = engine, eager, name
        self.function, self.calls, self.checks = function, calls, checks
        self._argnum, self._needed, self.undifferentiated = argnum, needed, ""
        self.lengths, self.varies = [_size(call) for call in calls], len(calls) > 1
        self.undoubled: str | None = None
        self.uncompared: str | None = None
        self._begin = engine.state.snapshot(function, calls)
        self._moves: dict[int, list[Moves]] = {}
        self._nearby: dict[str, dict[int, list[bool]]] = {}
        self._first: Mapping[int, Result] = EMPTY

    @cached_property
    def training(self) -> TrainingFunction | None:
        """Return the function as a whole training step, where a call shows that it is one; else None."""
        return self._training_and_state[0]

    @cached_property
    def _training_and_state(self) -> tuple[TrainingFunction | None, StateReader]:
        """Return the training step, or None, and the reader of its state; makes a first call in eager."""
        engine, function, calls = self.engine, self.function, self.calls
        now(f"made call 1 in {self.eager}")
        with self.fresh():
            training = engine.state.training(function, calls, self._begin.changed)
            changed = self._begin.changed()
        return training, engine.state.reader(
            function, calls, changed, trains=training is not None
        )  # named by the places of the first values

    @property
    def state(self) -> StateReader:
        """Return the reader of the state after a call."""
        return self._training_and_state[1]

    def after(self) -> tuple[Any, ...]:
        """Return the state after a call as a tuple of one part; empty where there is no state."""
        state = dict(self.state.read())
        return (state,) if state else ()

    @cached_property
    def argnum(self) -> int | None:
        """Return the argument whose gradients a step takes; None for the value alone, also without a loss.

        `undifferentiated` says why there are no gradients.
        """
        if self._argnum is None or self._needed or self.training:
            return self._argnum
        try:
            with self.fresh():
                self.engine.build(self.eager, self.function, self._argnum)(*self.calls[0])
        except NoGradientsError as error:
            self.undifferentiated = str(error).partition(";")[0]
            return None
        return self._argnum

    def prepare(self) -> None:
        """Find out whether the function trains, and in what it has gradients; errors will come again in a mode."""
        try:
            _ = self.training, self.argnum
        except EffectsError:
            raise
        except Exception:  # noqa: BLE001  (told where a mode raises it)
            return

    @property
    def notes(self) -> dict[str, Any]:
        """Return whether the function is random or trains, what float64 refuses, and how ill-conditioned it is."""
        told = self._facts if self.checks else {}
        return {**told, "trains": self.training is not None, "conditioning": self._conditioning}

    @property
    def _conditioning(self) -> float:
        """Return how far rounding alone puts eager off: from float64, and from itself where a mode is off."""
        if not self.checks:
            return 0.0
        own = [off for reference in self.expected.values() for off in reference.own]
        moved = [off for moves in self._moves.get(judge.NUDGES, ()) for off in moves.sizes]
        return max((off for off in (*own, *moved) if off <= 1), default=0.0)

    @property
    def _facts(self) -> dict[str, Any]:
        dtype = next((each.dtype for each in self.expected.values()), "")
        told = {"random": self.random, "undoubled": self.undoubled, "uncompared": self.uncompared, "dtype": dtype}
        return {**told, "gradients": getattr(self._run, "gradients_in", ""), "undifferentiated": self.undifferentiated}

    @property
    def written(self) -> Callable[..., Any]:
        """Return the user's function."""
        written: Callable[..., Any] = self.function
        return written

    def compares(self, index: int) -> bool:
        """Return whether results are compared; finding the expected ones takes further calls."""
        return self.checks

    def keep(self, mode: str, results: Mapping[int, Result]) -> None:
        """Keep eager's results, with which all others are compared."""
        if mode == self.eager:
            self._first = results

    def results_of(self, mode: str, results: dict[int, Result]) -> Iterator[tuple[int, Result]]:
        """Yield the results of a mode to judge; for eager the results of calling it again."""
        if mode != self.eager:
            yield from super().results_of(mode, results)
            return
        with self._under_way() if self.training else nullcontext():
            for index in results:
                yield index, self._result(index, SEEDS[0])

    def moves(self, index: int, nudges: int) -> Moves:
        """Return the moves of eager's result by its own error and by nudged inputs.

        The moves are errors against float64, where that is there; the effect of nudges alone then has no part in them.
        """
        if nudges not in self._moves:
            self._moves[nudges] = self._move_references(list(self.expected.values()), nudges)
        return self._moves[nudges][index]

    def is_right_nearby(self, step: Step, mode: str, index: int) -> bool:
        """Return whether a mode that is off in a call is off there again, and right from inputs nearby."""
        rights: dict[int, list[bool]] = self._nearby.setdefault(mode, {})

        def is_right(seed: int) -> bool:
            if seed not in rights:
                with self.checked(mode):
                    rights[seed] = self._rights(step.built, seed)
            return rights[seed][index]

        return judge.right_nearby(is_right)

    def _rights(self, built: Callable[..., Any], seed: int) -> list[bool]:
        """Return for each call whether a mode is right from its own inputs (seed 0), or from nudged ones."""
        unit = judge.AWAY * judge.unit_of(self._dtype) if seed else None
        try:
            results, plain = self._results_from(seed, unit, built), self._results_from(seed, unit)
            wider = any(each.wider for each in self.expected.values())
            exact = self._results_from(seed, unit, exact=True) if wider else [None] * len(plain)
        except Exception:  # noqa: BLE001  (a mode that fails on nearby inputs tells nothing)
            return [False] * len(self.calls)
        references = [Standard(*pair, self._dtype) for pair in zip(plain, exact, strict=True)]
        pairs = enumerate(zip(references, results, strict=True))
        return [judge.judge_calls({k: each.less(result)}, {k: each}).fault is None for k, (each, result) in pairs]

    def _move_references(self, references: Sequence[Standard], nudges: int) -> list[Moves]:
        off = [[each.less_exact(each.plain, each.exact)] if each.wider and each.exact else [] for each in references]
        for seed in range(1, nudges + 1):
            plain = self._nudged(seed)
            exact = self._nudged(seed, exact=True) if any(each.wider for each in references) else plain
            for moves, reference, ours, wider in zip(off, references, plain, exact, strict=True):
                moves.append(reference.less_exact(ours, wider) if reference.wider else reference.less_plain(ours))
        return list(map(Moves, off))

    def step(self, mode: str) -> Step:
        """Build the step of a mode over the calls."""
        return Step(self.engine, self._built(mode), self.calls)

    def _built(self, mode: str) -> Callable[..., Any]:
        if self.training:
            return self.training.build(mode)
        return self.engine.compiler.owning(self.engine.build(mode, self.function, self.argnum))

    def checked(self, mode: str) -> AbstractContextManager[None]:
        """Return the context in which a mode repeats eager's random numbers, where it has to."""
        return self.engine.numbers.repeatable() if self.repeats(mode) else nullcontext()

    def repeats(self, mode: str) -> bool:
        """Return whether a mode compiles a random function. Whether it is random is found after eager has run."""
        return self.checks and mode != self.eager and self.random

    def form(self, index: int) -> Any:
        """Return the structure, shapes and dtypes of a call; other leaves count by identity."""
        leaves, structure = optree.tree_flatten(self.calls[index], none_is_leaf=True)
        return structure, tuple((tuple(x.shape), str(x.dtype)) if _is_array(x) else id(x) for x in leaves)

    @contextmanager
    def called(self, index: int, seed: int = SEEDS[0]) -> Iterator[None]:
        """A context with the seed and the start's state, restored at the end; a training goes on in its own state."""
        if not self.training:
            with self.fresh(seed):
                yield
            return
        if index == 0:
            self._begin.restore()
        self._reset(seed)
        yield

    def begin(self) -> None:
        """Restore the state of the start, and the seed."""
        self._begin.restore()
        self._reset(SEEDS[0])

    @contextmanager
    def fresh(self, seed: int = SEEDS[0]) -> Iterator[None]:
        """A context that begins and ends with the state of the start. Raises EffectsError if it cannot be restored."""
        self._begin.restore()
        self._reset(seed)
        try:
            with self.engine.state.making(self._begin.add):
                yield
        finally:
            self._begin.restore()
        if spent := self._begin.spent:
            raise EffectsError(
                f"{self.name} goes on with {' and '.join(spent)}, which nothing brings back, so that no two looks "
                "would meet the same; give what it takes from there as inputs, or make it anew in each call"
            )

    def turns(self, steps: Mapping[str, Step]) -> Turns:
        """Return turns with the state that an epoch leaves, as training goes on; schedules that end begin anew.

        An optimizer has no sums at the start, and code that is compiled for these would be compiled again in each
        block.
        """
        epochs = [step.epoch for step in steps.values()]
        try:
            epochs[0]()
            return turns_of(self.engine.state.snapshot(self.function, self.calls), epochs)
        except Exception:  # noqa: BLE001  (a schedule has come to its end, for one: the first epoch has run)
            self._begin.rewind()
        return turns_of(self.engine.state.snapshot(self.function, self.calls), epochs)

    @contextmanager
    def _under_way(self) -> Iterator[None]:
        """A context in which other epochs may run; at its end the present epoch goes on from its state."""
        before = self.engine.state.snapshot(self.function, self.calls)
        try:
            yield
        finally:
            before.restore()

    @contextmanager
    def _aside(self) -> Iterator[None]:
        """A context in which the start's state is the present one."""
        begin, self._begin = self._begin, self.engine.state.snapshot(self.function, self.calls)
        try:
            yield
        finally:
            self._begin.restore()
            self._begin = begin

    def reason(self, error: Exception) -> str:
        """Return the message for an error, with the line of the user's file."""
        if said := self.engine.errors.said(error):
            return said
        place = place_of(error, self.name)
        return self.engine.errors.summary(error) + (f" ({place})" if place else "")

    def blames(self, mode: str) -> bool:
        """Return whether the mode is eager: an error in eager is the user's to mend."""
        return mode == self.eager

    @cached_property
    def random(self) -> bool:
        """Return whether another seed gives another result, or a call draws by a seed of its own."""
        return any(self._is_random(index) for index in range(len(self.calls)))

    def _is_random(self, index: int) -> bool:
        generator, ours = self.engine.process.generator, self._eager[index]
        with self.called(index, SEEDS[1]):
            before, result = generator(), self.taken(self._run(*self.calls[index]))
            return generator() != before or _differs(result, ours)

    @property
    def draws(self) -> list[list[np.ndarray]]:
        """Return the random numbers that each call draws in eager by the references' seed; [] for other functions."""
        if not self.random:
            return []
        drawn = []
        for index, call in enumerate(self.calls):
            with self.called(index):
                drawn.append(self.engine.numbers.draws(self._run, call))
        return drawn

    @cached_property
    def expected(self) -> Mapping[int, Standard]:
        """Return the standard of every call: eager, and float64 where the function runs in it; none without `checks`.

        An epoch of a training that is under way goes on where it was.
        """
        if not self.checks:
            return {}
        with self._under_way() if self.training else nullcontext():
            return dict(enumerate(self._references()))

    def _references(self) -> list[Standard]:
        eager, dtype = self._eager, self._dtype
        alone = [Standard(result, None, dtype) for result in eager]
        self.uncompared = self._unlike(alone)
        if self.uncompared:
            return [replace(each, blind=True) for each in alone]
        references = [Standard(result, exact, dtype) for result, exact in zip(eager, self._exact(), strict=True)]
        if any(each.is_ill for each in references) and not self._rounds(alone, references):
            self.undoubled = "in float64 it computes something else: eager is further from that than rounding puts it"
            return [replace(each, apart=True) for each in references]
        return references

    def _unlike(self, references: Sequence[Standard]) -> str | None:
        """Return why eager cannot be compared with; None where it can.

        Either a mode cannot repeat its draws, or its results differ for the same seed, which a second call shows: what
        another seed changes may have another cause.
        """
        if not self.random:
            return None
        for index, (reference, again) in enumerate(zip(references, self._results(), strict=True)):
            row = judge.judge_calls({index: reference.less(again)}, {index: reference}, lambda *_: Moves())
            if row.fault:
                return f"{UNLIKE}: {row.fault}"
        return self.engine.draws_otherwise

    def _rounds(self, alone: Sequence[Standard], references: Sequence[Standard]) -> bool:
        """Return whether rounding explains eager's distance from float64: nudges then move it about as far."""
        for nudges in (1, judge.NUDGES, judge.MOST):
            moved = self._move_references(alone, nudges)
            if all(
                off <= max(each.tolerance, MULTIPLE * by)
                for each, moves in zip(references, moved, strict=True)
                for off, by in zip(each.own, moves.sizes, strict=True)
            ):
                return True
        return False

    @cached_property
    def _dtype(self) -> str:
        """Return the lowest dtype in which the first call computes in eager."""
        return self._lowest(self._eager[0])

    def _lowest(self, result: Result, made: Callable[[Any], Any] = lambda call: call) -> str:
        with self.called(0):
            seen = self.engine.numbers.dtypes(self._run, made(self.calls[0]))
        return lowest([*seen, *(np.asarray(leaf.array).dtype for leaf in leaves_of(result))])

    def _exact(self) -> list[Result | None]:
        """Return eager's float64 results, call by call; None each where it cannot run in float64, or already does."""
        nothing: list[Result | None] = [None] * len(self.calls)
        if self._dtype == "float64":
            return nothing
        with self.fresh():
            if self.engine.numbers.draws_inside(self.function, self.calls[0]):
                self.undoubled = DRAWS
                return nothing
        try:
            contexts = self._draw_contexts
            with self._otherwise(self.engine.numbers.meanwhile(self._held_objects, DOUBLE)):
                doubled = partial(self.engine.numbers.changed, change=DOUBLE)
                exact = self._results(doubled, within=contexts)
                if self._dtype in judge.UNITS and self._lowest(exact[0], doubled) in judge.UNITS:
                    self.undoubled = f"it casts to {self._dtype} by itself"
                    return nothing
                if self._dtype == "float32" and not _is_wide(exact[0]):
                    self.undoubled = "what it holds stays in float32"
                    return nothing
                return [*exact]
        except UnsupportedError as error:
            self.undoubled = str(error)
            return nothing
        except Exception as error:  # noqa: BLE001  (eager has run from its own inputs, so the function is fine)
            said = self.reason(error).removeprefix(f"{type(error).__name__}: ")
            self.undoubled = f"it does not run in that: {said}"
            return nothing

    @cached_property
    def _draw_contexts(self) -> Sequence[Context]:
        """Return the context of each call in which it repeats eager's draws. Raises UnsupportedError."""
        if not self.random:
            return [nullcontext] * len(self.calls)
        drawn: list[list[Any]] = [[] for _ in self.calls]
        with self._under_way() if self.training else nullcontext():
            self._results(within=[partial(self.engine.numbers.noting, each) for each in drawn])
        return [partial(self.engine.numbers.giving, each) for each in drawn]

    def _nudged(self, seed: int, *, exact: bool = False) -> list[Result]:
        """Return eager's results from nudged inputs, call by call; incomparable ones where it raises."""
        try:
            return self._results_from(seed, judge.UNITS.get(self._dtype, 0.0), exact=exact)
        except Exception:  # noqa: BLE001  (eager has run from its own inputs, so the function is fine)
            return [NOTHING] * len(self.calls)

    def _results_from(
        self, seed: int, unit: float | None, built: Callable[..., Any] | None = None, *, exact: bool = False
    ) -> list[Result]:
        """Return a mode's results from inputs nudged by a unit, or its own for None; in float64 if `exact`."""
        engine, held = self.engine, self._held_objects
        changes = [*([] if unit is None else [FloatChange(seed, unit)]), *([DOUBLE] if exact else [])]

        def apply_changes(call: Any) -> Any:
            return reduce(engine.numbers.changed, changes, call)

        with self._otherwise(*(engine.numbers.meanwhile(held, change) for change in changes)):
            return self._results(apply_changes, built, self._draw_contexts if exact else ())

    @contextmanager
    def _otherwise(self, *changes: AbstractContextManager[None]) -> Iterator[None]:
        """A context in which the state of the start has changed numbers, and looks begin with these."""
        with self._under_way() if self.training else nullcontext(), ExitStack() as stack:
            if self.training:
                self._begin.restore()
            for change in (*changes, self._aside()):
                stack.enter_context(change)
            yield

    @property
    def _held_objects(self) -> list[Any]:
        """Return all objects that function and calls hold."""
        return [piece.of for piece in self._begin.pieces if piece.of is not None]

    @cached_property
    def _run(self) -> Callable[..., Any]:
        return self._built(self.eager)

    @cached_property
    def _eager(self) -> list[Result]:
        return [self._first.get(index) or self._result(index, SEEDS[0]) for index in range(len(self.calls))]

    def _results(
        self,
        made: Callable[[Any], Any] = lambda call: call,
        built: Callable[..., Any] | None = None,
        within: Sequence[Context] = (),
    ) -> list[Result]:
        """Return the results of the calls in order, each call in its own context of `within`."""
        contexts = within or [nullcontext] * len(self.calls)
        return [self._result(index, SEEDS[0], made, built, contexts[index]) for index in range(len(self.calls))]

    def _result(
        self,
        index: int,
        seed: int,
        made: Callable[[Any], Any] = lambda call: call,
        built: Callable[..., Any] | None = None,
        within: Context = nullcontext,
    ) -> Result:
        run = built or self._run
        now(f"made call {index + 1} in {self.eager}")
        with self.called(index, seed), within():
            return self.taken(run(*made(self.calls[index])))

    def _reset(self, seed: int) -> None:
        """Reset every generator that a function may draw from."""
        self.engine.process.reset(seed)
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002  (the generator that a user's function may use)


def _copy_leaf(leaf: Any) -> Any:
    return leaf.copy() if isinstance(leaf, np.ndarray) else leaf


def _is_wide(result: Result) -> bool:
    """Return whether any float is in float64, or there is no float."""
    floats = [leaf.array for leaf in leaves_of(result) if not is_exact(leaf.array)]
    return not floats or any(np.asarray(array).dtype in (np.float64, np.complex128) for array in floats)


def _differs(result: Result, other: Result) -> bool:
    """Return whether any bit of two results differs."""
    return any(not _same(*pair) for pair in zip_longest(leaves_of(result), leaves_of(other)))


def _same(left: ResultLeaf | None, right: ResultLeaf | None) -> bool:
    if left is None or right is None:
        return False
    a, b = np.asarray(left.array), np.asarray(right.array)
    return a.shape == b.shape and a.tobytes() == b.tobytes()


class ModelRunnable(FunctionRunnable):
    """A real model of the suite; if its first epoch was ended at its limit, its time by then is reported."""

    cut: Status = "ok"
    times_wrong = glances = False

    def blames(self, mode: str) -> bool:
        """Return False: an error of a model is its own result, and loses no other."""
        return False


def _size(call: Any) -> int:
    """Return the number of elements in the arrays of a call; a ragged axis counts as 1."""
    leaves = optree.tree_leaves(call, none_is_leaf=True)
    return sum(prod(size or 1 for size in leaf.shape) for leaf in leaves if _is_array(leaf))


def _is_array(leaf: Any) -> bool:
    """Return whether a leaf has a shape and a dtype; modules of transformers have a dtype only."""
    return hasattr(leaf, "dtype") and hasattr(leaf, "shape")

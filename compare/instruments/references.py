"""The results that calls must give, and how far rounding may move them.

References are given (`References`), or they are of eager and of eager in float64 (`EagerReferences`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cached_property, partial, reduce
from itertools import zip_longest
from time import monotonic
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from compare.engines.base import Engine
from compare.engines.mode import user_name
from compare.engines.nudge import DOUBLE, DRAWS, FloatChange
from compare.engines.step import Context, Step
from compare.errors import UnsupportedError
from compare.instruments import judge, standard
from compare.instruments.rounding import Moves, is_exact
from compare.instruments.standard import MULTIPLE, Result, ResultLeaf, Standard, leaves_of, lowest
from compare.instruments.state import SEED, FunctionState
from compare.steps import now
from compare.workloads.base import Case

SEEDS = (SEED, 2)
EMPTY: Mapping[int, Any] = MappingProxyType({})
NOTHING: Result = (None, None)
LONGEST = 60
"""The seconds that nudges may take which ask whether rounding explains eager's distance from float64."""
UNLIKE = "eager gives another result when it is called again from the same state"


class Runs(Protocol):
    """What references need of the bench that runs their subject."""

    engine: Engine
    base: str
    case: Case
    undifferentiated: str

    def built(self, mode: str) -> Callable[..., Any]:
        """Build the function of a mode."""

    def checked(self, mode: str) -> AbstractContextManager[None]:
        """Return the context in which a mode can be compared."""

    def taken(self, result: tuple[Any, Any]) -> Result:
        """Return a call's result with its state, as arrays that nothing changes any more."""

    def reason(self, error: Exception) -> str:
        """Return the message for an error."""


class References:
    """Expected results by the index of the call; a call without one is not compared."""

    def __init__(self, expected: Mapping[int, Standard] = EMPTY) -> None:
        self._expected = expected

    @property
    def random(self) -> bool:
        """Return whether another seed gives another result."""
        return False

    @property
    def draws(self) -> list[list[np.ndarray]]:
        """Return the random numbers that each call draws in eager by the references' seed; [] for other functions."""
        return []

    @property
    def expected(self) -> Mapping[int, Standard]:
        """Return the expected result of each call, by index."""
        return self._expected

    @property
    def notes(self) -> dict[str, Any]:
        """Return the fields of records of compilations that are about the references."""
        return {}

    def compares(self, index: int) -> bool:
        """Return whether a call has an expected result."""
        return index in self.expected

    def keep(self, mode: str, results: Mapping[int, Result]) -> None:
        """Receive the results of the first calls of a mode."""

    def results_of(self, mode: str, results: dict[int, Result]) -> Iterator[tuple[int, Result]]:
        """Yield the results of a mode to judge, from those of its first calls, which are dropped one by one."""
        for index in tuple(results):
            yield index, results.pop(index)

    def moves(self, index: int, nudges: int) -> Moves:
        """Return the moves that rounding alone causes in a call's result; empty where that is not measured."""
        return Moves()

    def is_right_nearby(self, step: Step, mode: str, index: int) -> bool:
        """Return whether a mode that is off in a call is off there again, and right from inputs nearby."""
        return False


class EagerReferences(References):
    """The results of eager, and of eager in float64, for each call of a function.

    Where rounding moves eager's result, the step is ill-conditioned, and a mode may be further off
    (`compare.instruments.judge`). Where eager is further from float64 than rounding puts it, float64 computes something
    else, and tells nothing.

    A function whose result depends on the seed is random. In float64 it gets eager's random numbers, where the engine
    can give them; else it is compared with eager alone, by the same seed. Only shapes are compared of a function whose
    result differs for the same seed and state, and of a random one if compiled code cannot repeat eager's draws;
    `uncompared` says so. Without `checks` no result is expected.
    """

    def __init__(self, bench: Runs, state: FunctionState, *, checks: bool) -> None:
        self.bench, self.engine, self.checks = bench, bench.engine, checks
        self.function, self.calls = bench.case.loss, bench.case.examples
        self.state = state
        self.undoubled: str | None = None
        self.uncompared: str | None = None
        self._rounds_inside = False
        self._moves: dict[int, list[Moves]] = {}
        self._nearby: dict[str, dict[int, list[bool]]] = {}
        self._first: Mapping[int, Result] = EMPTY

    @property
    def notes(self) -> dict[str, Any]:
        """Return whether the function is random or trains, what float64 refuses, and how ill-conditioned it is."""
        told = self._facts if self.checks else {}
        return {**told, "trains": self.state.training is not None, "conditioning": self._conditioning}

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
        return {
            **told,
            "gradients": getattr(self._run, "gradients_in", ""),
            "undifferentiated": self.bench.undifferentiated,
        }

    def compares(self, index: int) -> bool:
        """Return whether results are compared; finding the expected ones takes further calls."""
        return self.checks

    def keep(self, mode: str, results: Mapping[int, Result]) -> None:
        """Keep eager's results, with which all others are compared."""
        if mode == self.bench.base:
            self._first = results

    def results_of(self, mode: str, results: dict[int, Result]) -> Iterator[tuple[int, Result]]:
        """Yield the results of a mode to judge; for eager the results of calling it again."""
        if mode != self.bench.base:
            yield from super().results_of(mode, results)
            return
        with self.state.under_way():
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
                with self.bench.checked(mode):
                    rights[seed] = self._rights(step.built, seed)
            return rights[seed][index]

        return judge.right_nearby(is_right)

    def _rights(self, built: Callable[..., Any], seed: int) -> list[bool]:
        """Return for each call whether a mode is right from its own inputs (seed 0), or from nudged ones."""
        unit = judge.AWAY * standard.unit_of(self._dtype) if seed else None
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

    @cached_property
    def random(self) -> bool:
        """Return whether another seed gives another result, or a call draws by a seed of its own.

        Without `checks` nobody has looked.
        """
        return self.checks and any(self._is_random(index) for index in range(len(self.calls)))

    def _is_random(self, index: int) -> bool:
        generator, ours = self.engine.process.generator, self._eager[index]
        with self.state.called(index, SEEDS[1]):
            before, result = generator(), self.bench.taken(self._run(*self.calls[index]))
            return generator() != before or _differs(result, ours)

    @property
    def draws(self) -> list[list[np.ndarray]]:
        """Return the random numbers that each call draws in eager by the references' seed; [] for other functions."""
        if not self.random:
            return []
        drawn = []
        for index, call in enumerate(self.calls):
            with self.state.called(index):
                drawn.append(self.engine.numbers.draws(self._run, call))
        return drawn

    @cached_property
    def expected(self) -> Mapping[int, Standard]:
        """Return the standard of every call: eager, and float64 where the function runs in it; none without `checks`.

        An epoch of a training that is under way goes on where it was.
        """
        if not self.checks:
            return {}
        with self.state.under_way():
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
        """Return whether rounding explains eager's distance from float64: nudges then move it about as far.

        Where nudged inputs do not, results inside are rounded anew too, from then on; but not in half precision, where
        a unit in the last place of an optimizer's state moves a step by any size, and would explain any distance.
        What would take longer than `LONGEST` seconds is not tried.
        """
        done, began = 0, monotonic()
        tried = [(nudges, False) for nudges in (1, judge.NUDGES, judge.MOST)]
        inside = [] if self._dtype in standard.UNITS else [(1, True), (judge.NUDGES, True)]
        for nudges, self._rounds_inside in (*tried, *inside):
            if (monotonic() - began) * nudges > LONGEST * done > 0:
                continue
            done += nudges
            moved = self._move_references(alone, nudges)
            if all(
                off <= max(each.tolerance, MULTIPLE * by)
                for each, moves in zip(references, moved, strict=True)
                for off, by in zip(each.own, moves.sizes, strict=True)
            ):
                return True
        self._rounds_inside = False
        return False

    @cached_property
    def _dtype(self) -> str:
        """Return the lowest dtype in which the first call computes in eager."""
        return self._lowest(self._eager[0])

    def _lowest(self, result: Result, made: Callable[[Any], Any] = lambda call: call) -> str:
        with self.state.called(0):
            seen = self.engine.ops.dtypes(self._run, made(self.calls[0]))
        return lowest([*seen, *(np.asarray(leaf.array).dtype for leaf in leaves_of(result))])

    def _exact(self) -> list[Result | None]:
        """Return eager's float64 results, call by call; None each where it cannot run in float64, or already does."""
        nothing: list[Result | None] = [None] * len(self.calls)
        if self._dtype == "float64":
            return nothing
        with self.state.fresh():
            if self.engine.numbers.draws_inside(self.function, self.calls[0]):
                self.undoubled = DRAWS
                return nothing
        try:
            contexts = self._draw_contexts
            with self.state.changed(self.engine.numbers.meanwhile(self.state.objects, DOUBLE)):
                doubled = partial(self.engine.numbers.changed, change=DOUBLE)
                exact = self._results(doubled, within=contexts)
                if self._dtype in standard.UNITS and self._lowest(exact[0], doubled) in standard.UNITS:
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
            said = self.bench.reason(error).removeprefix(f"{type(error).__name__}: ")
            self.undoubled = f"it does not run in that: {said}"
            return nothing

    @cached_property
    def _draw_contexts(self) -> Sequence[Context]:
        """Return the context of each call in which it repeats eager's draws. Raises UnsupportedError."""
        if not self.random:
            return [nullcontext] * len(self.calls)
        drawn: list[list[Any]] = [[] for _ in self.calls]
        with self.state.under_way():
            self._results(within=[partial(self.engine.numbers.noting, each) for each in drawn])
        return [partial(self.engine.numbers.giving, each) for each in drawn]

    def _nudged(self, seed: int, *, exact: bool = False) -> list[Result]:
        """Return eager's results from nudged inputs, call by call; incomparable ones where it raises.

        In its own dtype eager also rounds in another way inside, where nudged inputs do not tell of its rounding.
        """
        try:
            with self.engine.numbers.round_results(seed) if self._rounds_inside and not exact else nullcontext():
                return self._results_from(seed, standard.UNITS.get(self._dtype, 0.0), exact=exact)
        except Exception:  # noqa: BLE001  (eager has run from its own inputs, so the function is fine)
            return [NOTHING] * len(self.calls)

    def _results_from(
        self, seed: int, unit: float | None, built: Callable[..., Any] | None = None, *, exact: bool = False
    ) -> list[Result]:
        """Return a mode's results from inputs nudged by a unit, or its own for None; in float64 if `exact`."""
        engine, held = self.engine, self.state.objects
        changes = [*([] if unit is None else [FloatChange(seed, unit)]), *([DOUBLE] if exact else [])]

        def apply_changes(call: Any) -> Any:
            return reduce(engine.numbers.changed, changes, call)

        with self.state.changed(*(engine.numbers.meanwhile(held, change) for change in changes)):
            return self._results(apply_changes, built, self._draw_contexts if exact else ())

    @cached_property
    def _run(self) -> Callable[..., Any]:
        return self.bench.built(self.bench.base)

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
        now(f"made call {index + 1} in {user_name(self.bench.engine, self.bench.base)}")
        with self.state.called(index, seed), within():
            return self.bench.taken(run(*made(self.calls[index])))


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

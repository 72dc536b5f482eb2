"""The bench of one process: a subject that is open in an engine, its calls, and the steps of its modes.

A subject is a workload, a real model or a user's function. They differ in three things, which the bench holds: the
state that a call changes (`state`), the results that calls must give (`references`), and some facts by `kind`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from itertools import count
from math import prod
from typing import Any, Literal, Self

import numpy as np
import optree

from compare.engines.base import Engine
from compare.engines.cases import signature
from compare.engines.step import Step
from compare.errors import EffectsError, NoGradientsError, place_of
from compare.instruments.references import EMPTY, EagerReferences, References
from compare.instruments.rounds import TimedCall
from compare.instruments.standard import Result, Standard
from compare.instruments.state import FunctionState, SubjectState
from compare.records.record import Status
from compare.workloads.base import Case

Kind = Literal["workload", "model", "function"]
MOST_RUNS = 4
"""The most runs of a call to find one that compiles nothing."""
Build = Callable[[str, Case], Step]
"""A function that makes the step of a mode for a case."""


class Bench:
    """A case that is open in an engine, with the steps of its modes.

    engine      the engine that runs it
    case        the case; the calls of a model or of a user's function are whole, so that it has no parameters
    base        the mode that compiles nothing, with which the others are compared
    references  the results that calls must give
    state       the state that calls change
    kind        a wrong mode of a function is timed all the same, and its modes are timed a little before they are
                compared, for a user who waits for a figure. A mode of it that is ended at its limit in its first epoch
                is unsupported; of others the time by then is a lower bound.
    """

    def __init__(
        self, engine: Engine, case: Case, build: Build | None = None, expected: Mapping[int, Standard] = EMPTY
    ) -> None:
        self.engine, self.case, self.build = engine, case, build or engine.step
        self.base, self.name, self.kind = engine.mode_names[0], "", "workload"
        self.lengths: Sequence[int] = case.lengths
        self.varies = case.varies
        self.references, self.state = References(expected), SubjectState()
        self._needed, self.undifferentiated = True, ""

    @classmethod
    def of_function(
        cls, engine: Engine, base: str, name: str, function: Any, calls: Sequence[Any], argnum: int | None,
        *, checks: bool, needed: bool = True, kind: Kind = "function",
    ) -> Self:  # fmt: skip
        """Return the bench of a function over calls with the engine's arrays, whose references are eager.

        Gradients are in the argument `argnum`, if there are any or they are `needed`. Without `checks` no result is
        expected.
        """
        bench = cls(engine, Case(function, None, tuple(calls), tuple(map(call_size, calls)), argnum=argnum))
        bench.base, bench.name, bench.kind, bench._needed = base, name, kind, needed
        bench.state = state = FunctionState(engine, base, name, bench.case)
        bench.references = EagerReferences(bench, state, checks=checks)
        return bench

    @property
    def cut(self) -> Status:
        """Return the status of a mode whose first epoch was ended at its limit."""
        return "unsupported" if self.kind == "function" else "ok"

    @property
    def written(self) -> Callable[..., Any] | None:
        """Return the function whose lines a user reads; None for a workload."""
        return None if self.kind == "workload" else self.case.loss

    @cached_property
    def argnum(self) -> int | None:
        """Return the argument whose gradients a step takes; None for the value alone, also without a loss.

        `undifferentiated` says why there are no gradients.
        """
        argnum = self.case.argnum
        if argnum is None or self._needed or self.state.training:
            return argnum
        try:
            with self.state.fresh():
                self.engine.build(self.base, self.case.loss, argnum)(*self.case.examples[0])
        except NoGradientsError as error:
            self.undifferentiated = str(error).partition(";")[0]
            return None
        return argnum

    def prepare(self) -> None:
        """Find out whether the function trains, and in what it has gradients; errors will come again in a mode."""
        try:
            _ = self.state.training, self.argnum
        except EffectsError:
            raise
        except Exception:  # noqa: BLE001  (told where a mode raises it)
            return

    @property
    def own_mode(self) -> str:
        """Return the mode in which the whole step runs as its file compiles it; "" where there is none."""
        differentiates = self.argnum is not None and self.state.training is None
        return "" if differentiates else self.engine.compiler.own_mode(self.case.loss)

    def step(self, mode: str) -> Step:
        """Build the step of a mode over the calls; it has not been called yet."""
        if self.kind == "workload":
            return self.build(mode, self.case)
        return Step(self.engine, self.built(mode), self.case.examples)

    def built(self, mode: str) -> Callable[..., Any]:
        """Build the function of a mode, which returns the value and the gradients of a call."""
        if training := self.state.training:
            return training.build(mode)
        build = self.engine.build_over(self.case.examples)
        return self.engine.compiler.owning(build(mode, self.case.loss, self.argnum))

    def peaks(self, step: Step) -> Iterator[int | None]:
        """Yield the peak of each call in bytes, in training under way, and of a run that compiles nothing, if any does.

        An optimizer makes its sums in its first call. Code that is compiled for one without them is compiled again in
        the second, and a compiler takes as many bytes for a small step as for a large one.
        """
        numbers = count()

        def run(index: int) -> tuple[int | None, bool]:
            before = step.compiles
            with self.state.called(next(numbers)):
                peak = step.engine.devices.counter.peak(step.bind(index))
            return peak, step.compiles == before

        def run_on(index: int) -> tuple[int | None, bool]:
            try:
                return run(index)
            except Exception:  # noqa: BLE001  (a schedule has come to its end, for one: the first epoch has run)
                self.state.begin()
                if index:
                    run(0)
                return run(index)

        run(0)
        for index in range(len(step.examples)):
            for _ in range(MOST_RUNS):
                peak, is_settled = run_on(index)
                if is_settled:
                    break
            yield peak

    def form(self, index: int) -> Any:
        """Return the key on which an engine specialises in a call: structure, shapes and dtypes.

        Other leaves of a function's call count by identity.
        """
        if self.kind == "workload":
            return signature(self.case.examples[index])
        call: Any = self.case.examples[index]
        leaves, structure = optree.tree_flatten(call, none_is_leaf=True)
        return structure, tuple((tuple(x.shape), str(x.dtype)) if _is_array(x) else id(x) for x in leaves)

    def checked(self, mode: str) -> AbstractContextManager[None]:
        """Return the context in which a mode is built and first called, so that its results can be compared.

        A mode repeats eager's random numbers there, where it has to.
        """
        return self.engine.numbers.repeatable() if self.repeats(mode) else nullcontext()

    def repeats(self, mode: str) -> bool:
        """Return whether a mode compiles a random function, and so repeats eager's draws where it is compared.

        Whether it is random is found after eager has run.
        """
        return mode != self.base and self.references.random

    def taken(self, result: tuple[Any, Any]) -> Result:
        """Return a call's result with its state, as arrays that nothing changes any more."""
        arrays: Any = self.engine.numpy((*result, *self.state.after()))
        return tuple(optree.tree_map(_copy_leaf, arrays))

    def reason(self, error: Exception) -> str:
        """Return the message for a mode's error, of a function with the line of its file."""
        if self.kind == "workload":
            return self.engine.errors.reason(error)
        if said := self.engine.errors.said(error):
            return said
        place = place_of(error, self.name)
        return self.engine.errors.summary(error) + (f" ({place})" if place else "")

    def blames(self, mode: str) -> bool:
        """Return whether an error in this mode is the fault of the subject, and so is raised.

        An error in eager is the user's to mend. The gate has admitted all modes of a workload in a reference engine. An
        error of a model is its own result, and loses no other.
        """
        if self.kind == "workload":
            return self.engine.is_reference
        return self.kind == "function" and mode == self.base


def _copy_leaf(leaf: Any) -> Any:
    return leaf.copy() if isinstance(leaf, np.ndarray) else leaf


def call_size(call: Any) -> int:
    """Return the number of elements in the arrays of a call; a ragged axis counts as 1."""
    leaves = optree.tree_leaves(call, none_is_leaf=True)
    return sum(prod(size or 1 for size in leaf.shape) for leaf in leaves if _is_array(leaf))


def _is_array(leaf: Any) -> bool:
    """Return whether a leaf has a shape and a dtype; modules of transformers have a dtype only."""
    return hasattr(leaf, "dtype") and hasattr(leaf, "shape")


def steady_call(step: Step) -> TimedCall:
    """Return a steady call, for use inside `step.within`: the step on its one example, or an epoch of the stream."""
    runs = [step.bind(index).run for index in range(len(step.examples))]
    if len(runs) == 1:
        return runs[0]

    def epoch() -> None:
        for run in runs:
            run()

    return epoch

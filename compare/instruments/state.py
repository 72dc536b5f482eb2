"""The state that the calls of a subject change, and the contexts in which it is as at the start."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import cached_property
from typing import Any

import numpy as np

from compare.engines.base import Engine
from compare.engines.mode import user_name
from compare.engines.state import Snapshot, turns_of
from compare.engines.step import StateReader, Step, TrainingFunction, Turns
from compare.errors import EffectsError
from compare.steps import now
from compare.workloads.base import Case

SEED = 1
"""The seed of every first call."""


class SubjectState:
    """The state that calls change; that of a workload is empty."""

    @property
    def training(self) -> TrainingFunction | None:
        """Return the function as a whole training step; None where it is none."""
        return None

    @property
    def goes_on(self) -> bool:
        """Return whether a call begins with the state that the call before it left; here none leaves any."""
        return False

    @property
    def reader(self) -> StateReader:
        """Return the reader of the state after a call. Raises NotImplementedError where there is no state."""
        raise NotImplementedError

    def begin(self) -> None:
        """Restore the state of the start."""

    def fresh(self) -> AbstractContextManager[None]:
        """Return a context that begins and ends with the state of the start."""
        return nullcontext()

    def called(self, index: int) -> AbstractContextManager[None]:
        """Return the context of a first call, in which it gives the expected result."""
        return nullcontext()

    def after(self) -> tuple[Any, ...]:
        """Return the state after a call as a tuple of one part; empty where there is no state."""
        return ()

    def turns(self, steps: Mapping[str, Step]) -> Turns:
        """Return the turns for the rounds of some modes."""
        return Turns.of([step.turns() for step in steps.values()])


class FunctionState(SubjectState):
    """The state that a function and its calls hold, with that of the start.

    A whole training step goes through the calls as through batches: each epoch begins with the state of the start. So
    does a function that counts, since compiled code may be made again for each number. Any other call begins so.
    """

    def __init__(self, engine: Engine, base: str, name: str, case: Case) -> None:
        self.engine, self.base, self.name, self.case = engine, base, name, case
        self._begin = self._snapshot()

    def _snapshot(self) -> Snapshot:
        return self.engine.state.snapshot(self.case.loss, self.case.examples)

    @cached_property
    def training(self) -> TrainingFunction | None:
        """Return the function as a whole training step, where a call shows that it is one; else None."""
        return self._training_and_reader[0]

    @property
    def reader(self) -> StateReader:
        """Return the reader of the state after a call."""
        return self._training_and_reader[1]

    @property
    def goes_on(self) -> bool:
        """Return whether a call begins with the state that the call before it left."""
        return self._training_and_reader[2]

    @cached_property
    def _training_and_reader(self) -> tuple[TrainingFunction | None, StateReader, bool]:
        """Return the training step, or None, the reader of its state, and whether it goes on; makes a call in eager."""
        case, state = self.case, self.engine.state
        now(f"made call 1 in {user_name(self.engine, self.base)}")
        with self.fresh():
            training = state.training(case.loss, case.examples, self._begin.changed)
            changed = self._begin.changed()
            counts = any(piece.counts() for piece in changed)
        reader = state.reader(case.loss, case.examples, changed, trains=training is not None)
        goes_on = training is not None or counts
        return training, reader, goes_on  # named by the places of the first values

    @property
    def objects(self) -> list[Any]:
        """Return all objects that function and calls hold."""
        return [piece.of for piece in self._begin.pieces if piece.of is not None]

    def after(self) -> tuple[Any, ...]:
        """Return the state after a call as a tuple of one part; empty where there is no state."""
        state = dict(self.reader.read())
        return (state,) if state else ()

    def begin(self) -> None:
        """Restore the state of the start, and the seed."""
        self._begin.restore()
        self._reset(SEED)

    @contextmanager
    def called(self, index: int, seed: int = SEED) -> Iterator[None]:
        """A context with the seed and the start's state, restored at the end; what goes on keeps its own state."""
        if not self.goes_on:
            with self.fresh(seed):
                yield
            return
        if index == 0:
            self._begin.restore()
        self._reset(seed)
        yield

    @contextmanager
    def fresh(self, seed: int = SEED) -> Iterator[None]:
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
            return turns_of(self._snapshot(), epochs)
        except Exception:  # noqa: BLE001  (a schedule has come to its end, for one: the first epoch has run)
            self._begin.rewind()
        return turns_of(self._snapshot(), epochs)

    @contextmanager
    def under_way(self) -> Iterator[None]:
        """A context in which other epochs may run; at its end the present one goes on from its state."""
        if not self.goes_on:
            yield
            return
        before = self._snapshot()
        try:
            yield
        finally:
            before.restore()

    @contextmanager
    def changed(self, *changes: AbstractContextManager[None]) -> Iterator[None]:
        """A context in which the state of the start has changed numbers, and looks begin with these."""
        with self.under_way(), ExitStack() as stack:
            if self.goes_on:
                self._begin.restore()
            for change in (*changes, self._aside()):
                stack.enter_context(change)
            yield

    @contextmanager
    def _aside(self) -> Iterator[None]:
        """A context in which the start's state is the present one."""
        begin, self._begin = self._begin, self._snapshot()
        try:
            yield
        finally:
            self._begin.restore()
            self._begin = begin

    def _reset(self, seed: int) -> None:
        """Reset every generator that a function may draw from."""
        self.engine.process.reset(seed)
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002  (the generator that a user's function may use)

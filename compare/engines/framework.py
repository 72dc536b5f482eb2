"""The parts that adapters of frameworks share: steps of workloads, and the tools for debugging."""

from __future__ import annotations

import re
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from compare.engines.base import Engine
from compare.engines.cases import longest
from compare.engines.debugging import Attempt, ToolReport, Tools, TrainingUpdate, zero_gradient
from compare.engines.mode import PADDED
from compare.engines.process import limit_seconds
from compare.engines.step import Function, Step
from compare.errors import UnsupportedError, describe_error, without_folders
from compare.records.checks import Phase
from compare.workloads.base import Case
from compare.workloads.faults import SourceLine, Training


class WorkloadStep(Step):
    """A step of one mode for a case; the parameters are the first argument, before each example."""

    def __init__(self, engine: Engine, mode: str, case: Case) -> None:
        padded = mode.endswith(PADDED)
        own = mode.removesuffix(PADDED)
        loss = case.masked if padded else engine.loss(own, case)
        if loss is None:
            raise UnsupportedError(f"{mode}: the workload has no masked loss: padding would change its result")
        examples = longest(case) if padded else case.examples
        built = engine.build(own, loss, case.argnum)
        params = engine.arrays(case.params)
        super().__init__(engine, built, tuple(map(engine.arrays, examples)), (params,))
        self.longest = max(case.lengths) if padded else 0

    def computed(self, lengths: Sequence[int]) -> int:
        """Return the number of elements computed for examples of these lengths, with padding."""
        return self.longest * len(lengths) or sum(lengths)


class Framework(Engine):
    """An engine that is not ours."""

    def step(self, mode: str, case: Case) -> WorkloadStep:
        """Return the step of a mode; a mode with the suffix PADDED gets every example padded."""
        return WorkloadStep(self, mode, case)

    def debugger(self, mode: str, users: Callable[[str], bool]) -> FrameworkTools:
        """Return the tools that every framework has."""
        return FrameworkTools(self, mode, users)


LIMIT = 30.0
"""The time limit in seconds for what a tool does with a training."""
_FILE = re.compile(r'File "([^"]+)", line (\d+)')


class FrameworkTools(Tools):
    """The tools that every framework has: its errors, its check for NaN, gradients, and trainings.

    Ops are not counted: `ops` is 0 where a fault shows before any data ran, else 1. `users(file)` says whether a file
    is the user's.
    """

    def __init__(self, engine: Engine, mode: str, users: Callable[[str], bool]) -> None:
        self.engine, self.mode, self.users = engine, mode, users
        self.phase: Phase = "forward"

    def attempt(self, training: Training, *, checked: bool = False) -> Attempt:
        """Run the steps of a training, checked for NaN if asked; stops after LIMIT seconds."""
        training.reset()
        self.phase = "forward"
        watch = self.engine.errors.checked() if checked else nullcontext()
        # a framework may name the line in a warning
        with warnings.catch_warnings(record=True, action="always") as said, watch:
            params, losses, gradients = training.params, [], dict[str, Any]()
            try:
                with limit_seconds(LIMIT):
                    step = self._stepping(training, gradients)
                    for example in training.examples:
                        loss, params = step(params, *example)
                        losses.append(np.array(loss))
                    results = losses, {name: np.array(value) for name, value in self.engine.numpy(params).items()}
                    return Attempt((), results, gradients=gradients, step=step)
            except Exception as error:  # noqa: BLE001  (whatever a training raises is what is looked for)
                words = "\n".join(str(warning.message) for warning in said)
                return Attempt((), None, self.report(error, words))

    def step(self, training: Training) -> TrainingUpdate:
        """Return one training step; the loss is compiled in pieces where the engine has graph breaks."""
        return self._stepping(training, {})

    def _stepping(self, training: Training, first: dict[str, Any]) -> TrainingUpdate:
        """Return a training step that writes the gradients of its first call into `first`."""
        compute = self._computing(training.loss)

        def step(params: Any, *example: Any) -> tuple[Any, Any]:
            params, *arrays = self.engine.arrays((params, *example))
            loss, gradients = compute(params, *arrays)
            if not first:
                first.update(self.engine.numpy(gradients))
            self.phase = "update"
            return self.engine.numpy(loss), training.update(params, gradients)

        return step

    def _computing(self, loss: Function) -> Function:
        """Return the step of a loss; in the eager mode it sets `phase`, as the loss runs, and after it."""
        eager = self.engine.mode_names[0]

        def marking(*args: Any) -> Any:
            self.phase = "forward"
            value = loss(*args)
            self.phase = "backward"
            return value

        if self.mode == eager:
            return self.engine.build(eager, marking, 0)
        if pieces := self.engine.compiler.captured(self.mode, loss, whole=False):
            return self.engine.build(eager, pieces, 0)
        return self.engine.build(self.mode, loss, 0)

    def report(self, error: BaseException, said: str) -> ToolReport:
        """Return the report of an error, with the last user's line in its traceback, its text or the warnings."""
        when = self.phase
        if self.mode != self.engine.mode_names[0] and when != "update":
            when = "trace" if self.engine.errors.traced(error) else "forward"
        frames = [(frame.filename, frame.lineno or 0) for frame in traceback.extract_tb(error.__traceback__)]
        words = [(file, int(line)) for file, line in _FILE.findall(f"{error}\n{said}")]
        named = [place for place in [*words, *frames] if self.users(place[0])]
        place = SourceLine(Path(named[-1][0]).name, named[-1][1]) if named else None
        message = without_folders(" ".join(describe_error(error).split()))
        return ToolReport(when, message, int(when != "trace"), place)

    def reach(self, training: Training, faulty: Attempt) -> ToolReport | None:
        """Report a gradient that is all zero; None where there is none."""
        return zero_gradient(faulty.gradients, 1)

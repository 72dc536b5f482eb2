"""The question about a user's function, asked: the gate for each mode, then the times in several processes, in turn."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from compare.engines import heap, named
from compare.errors import FunctionError, InputsError, OverrunError, WorkerError
from compare.own.faults import checked
from compare.own.frameworks.asked import Asked, Calls, Function, arms_of
from compare.own.frameworks.measure import alone_beside_eager, in_mode, measured_here
from compare.own.frameworks.notes import Notes, reached
from compare.own.frameworks.result import Result
from compare.records.framework_steps import FrameworkAlone, FrameworkGate, FrameworkTime, GateMode, TimedMode
from compare.records.job import Job
from compare.records.record import Record
from compare.records.runs import Failure, error_of
from compare.run.processes import ask
from compare.run.progress import Reporter
from compare.run.worker import failure

GATE, TIMES, ALONE = "framework gate", "framework time", "framework alone"


def asked_of(framework: str, function: str, inputs: str, modes: Sequence[str], **options: Any) -> Asked:
    """The question. Raises InputsError for a mode that is none, and where the framework is not installed."""
    adapter = named(framework)
    if adapter.missing:
        raise InputsError(adapter.missing)
    return Asked(framework, function, inputs, arms_of(adapter, tuple(modes)), **options)


def in_workers(asked: Asked, processes: int, reporter: Reporter) -> Result:
    """The answer by fresh processes: for each compiled mode so many, of which the first meets an empty cache.

    A mode that is not right, or reached its limit, is not asked again. No processes are one that measures all. Raises
    InputsError and FunctionError for what is wrong with the user's file or function.
    """
    if not processes:
        return alone(asked, reporter)
    reporter.pace.total = max(1, len(asked.arms) - 1) * (1 + processes)
    with tempfile.TemporaryDirectory(prefix="graphduel-") as folder, reporter:
        workers = _Workers(asked, Path(folder), reporter)
        gated = workers.gate()
        right = [arm for arm, mode in gated.modes.items() if mode.status == "ok"]
        reporter.pace.total = reporter.pace.done + len(alone_beside_eager(asked.arms[0], right)) * processes
        found: list[Record] = []
        for process in range(processes):
            for arms in alone_beside_eager(asked.arms[0], right):
                record = workers.times(arms, process)
                found.append(record)
                right = [arm for arm in right if not _ended(record, arm)]
        lost = tuple(error for record in found if (error := error_of(record)))
    return Result(asked, gated, tuple(r for r in found if isinstance(r, FrameworkTime)), lost)


def alone(asked: Asked, reporter: Reporter) -> Result:
    """The answer by one fresh process."""
    reporter.pace.total = 1
    with tempfile.TemporaryDirectory(prefix="graphduel-") as folder, reporter:
        found = _Workers(asked, Path(folder), reporter).alone()
    return Result(asked, found.gate, tuple(found.times))


def here(asked: Asked, function: Function, calls: Calls) -> Result:
    """The answer by this process alone, for what no other process can import: no intervals, and no cold caches."""
    adapter = asked.started()
    found = measured_here(asked, function, [adapter.arrays(call) for call in calls])
    return Result(asked, found.gate, tuple(found.times))


@dataclass(frozen=True)
class _Workers:
    """Asks fresh processes, whose caches and notes lie in a folder."""

    asked: Asked
    folder: Path
    reporter: Reporter

    def alone(self) -> FrameworkAlone:
        """What one process finds of all modes."""
        found = self._ask(ALONE, self.asked.arms)
        assert isinstance(found, FrameworkAlone)  # noqa: S101  (what is no answer was raised)
        return found

    def gate(self) -> FrameworkGate:
        """What the gate says of all modes, each beside eager in a process of its own."""
        eager = self.asked.arms[0]
        modes: dict[str, GateMode] = {}
        gates: list[FrameworkGate] = []
        for arms in alone_beside_eager(eager, self.asked.arms):
            answer = self._ask(GATE, arms)
            if isinstance(answer, FrameworkGate):
                gates.append(answer)
                modes |= answer.modes
            elif len(arms) > 1:
                modes[arms[-1]] = self._lost(answer)
        answer = gates[0] if gates else self._ask(GATE, (eager,))
        if not isinstance(answer, FrameworkGate):
            raise FunctionError(f"{self.asked.function}: {self._lost(answer).reason}")
        modes = {**answer.modes, **modes}
        answer.modes = {arm: modes[arm] for arm in self.asked.arms}
        return answer

    def times(self, arms: Sequence[str], process: int) -> Record:
        """What these modes took; where a mode was ended at its limit, what it came to by then."""
        counting = heap.environment(self.folder) if self.asked.device == "cpu" else {}
        answer = self._ask(TIMES, arms, process, counting)
        if answer is not None:
            return answer
        calls, done = self.notes.read()
        return FrameworkTime(process, calls, {arms[-1]: TimedMode("limit", self._reached(), done)})

    @property
    def notes(self) -> Notes:
        """What the worker that was asked last has written of its first pass."""
        return Notes(str(self.folder / "notes"))

    def _lost(self, answer: Record | None) -> GateMode:
        """What became of a mode whose process gave no answer."""
        return GateMode("limit", self._reached()) if answer is None else GateMode("failed", error_of(answer))

    def _reached(self) -> str:
        calls, done = self.notes.read()
        return reached(len(done), calls, self.asked.limit)

    def _ask(
        self, kind: str, arms: Sequence[str], process: int | None = None, more: Mapping[str, str] = MappingProxyType({})
    ) -> Record | None:
        """What a worker answers; None where it was ended at its limit, and a failure where it gave no answer.

        Raises FunctionError where it gave none at the gate, and no mode has a part in it.
        """
        cache = self.folder / kind.replace(" ", "-") / arms[-1]
        job = Job(
            kind,
            size=arms[-1],  # what the label says
            process=process,
            seed=self.asked.seed,
            arms=tuple(arms),
            asked=replace(self.asked, notes=str(self.notes.path)).to_dict(),
            variables={**self.asked.adapter.environment(cache, self.asked.device), **more},
        )
        self.notes.path.unlink(missing_ok=True)
        self.reporter.start(job.label)
        try:
            answer: Record | None = ask(job, self.asked.limit, self.reporter.step)
        except WorkerError as error:
            if not self._is_of_mode(kind, arms, error.step):
                raise FunctionError(f"{self.asked.function}: {error}") from None
            overran = isinstance(error, OverrunError) and self.notes.path.exists()
            answer = None if overran else failure(job, str(error))
        self.reporter.finish("ended at its limit" if answer is None else error_of(answer))
        if answer is not None:
            self.reporter.cause(answer.ended)
        return answer if answer is None or isinstance(answer, Failure) else checked(answer, self.asked.function)

    def _is_of_mode(self, kind: str, arms: Sequence[str], step: str) -> bool:
        """Whether a compiled mode may be why there is no answer; the user's function itself runs eager first."""
        if kind == GATE:
            return arms[-1] != self.asked.arms[0] and step.endswith(in_mode(arms[-1]))
        return kind == TIMES


def _ended(record: Record, arm: str) -> bool:
    """Whether a mode need not be asked again."""
    return isinstance(record, FrameworkTime) and arm in record.modes and record.modes[arm].status != "ok"

"""C3 about a framework: every seeded fault, eager and compiled, looked for with what the framework itself offers."""

from __future__ import annotations

import re
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from compare.claims.c3_debugging import base, catalogue
from compare.claims.c3_debugging.base import Fault, SourceLine, Training
from compare.claims.c3_debugging.debugger import IMMUNE, off, row
from compare.claims.c3_debugging.tools import TRAINING, risen, same_results
from compare.claims.c3_debugging.tools import Attempt as Ended
from compare.engines import of_arm
from compare.engines.base import Engine, Function
from compare.engines.limit import within
from compare.errors import described, without_folders
from compare.records.debugging import EngineName, FaultRow, Faults, Phase
from compare.records.job import Job

LIMIT = 30.0
"""Seconds for what a tool does with a training."""
BEFORE_DATA: tuple[Phase, ...] = ("trace",)
_FILE = re.compile(r'File "([^"]+)", line (\d+)')


class OutsideReport(NamedTuple):
    """What a tool found without knowing the healthy training, and the user's line that it names."""

    when: Phase
    message: str
    place: SourceLine | None = None


class OutsideAttempt(NamedTuple):
    """Some training steps: losses and last parameters, the first gradients, or the report of their error."""

    results: tuple[Any, ...] | None
    gradients: Mapping[str, Any]
    step: Function | None
    error: OutsideReport | None = None


def measure(job: Job) -> Faults:
    """The record of claim C3 about an arm, beside its framework's eager one.

    Numbers are as a user of the framework has them: JAX has no float64 unless it is asked for.
    """
    arm = str(job.arm)
    framework = of_arm(arm)
    framework.start(0)
    found = Faults("C3", [])
    for fault in catalogue.corpus(framework.load):
        try:
            rows = [Debugger(framework, engine, name).examine(fault) for engine, name in engines(framework, arm)]
        except UnfitError as error:
            found.left_out[fault.name] = str(error)
        else:
            found.faults += rows
    return found


def engines(framework: Engine, arm: str) -> Iterator[tuple[EngineName, str]]:
    """Eager in the role of dynamic, and the arm in that of static."""
    yield "dynamic", framework.arms[0]
    yield "static", arm


class UnfitError(Exception):
    """The healthy training does not run in a framework, so that nothing can be said of the faulty one."""


class Debugger:
    """Tries a framework's tools on a fault, in the order in which somebody would."""

    def __init__(self, framework: Engine, engine: EngineName, arm: str) -> None:
        self.framework, self.engine, self.arm = framework, engine, arm

    def examine(self, fault: Fault) -> FaultRow:
        """What the debugger met, as `compare.claims.c3_debugging.debugger.examine` tells it of ours, but for two.

        ops_before  0 where the fault shows before any data ran, else 1: frameworks do not count their ops alike
        steps       the tools tried, and one more where none names the line; the bisection that follows is done eagerly
                    for both arms, so that it costs both the same, and is left out
        """
        with np.errstate(all="ignore"):
            healthy = self.attempt(fault.training(faulty=False))
            faulty = self.attempt(fault.training(faulty=True))
        if healthy.error is not None:
            raise UnfitError(f"{self.arm}: {healthy.error.message}")
        if same_results(Ended((), healthy.results), Ended((), faulty.results)):
            found = OutsideReport(IMMUNE, "the program does what is meant")
            return row(fault, self.engine, found, "", 0, ops_before=0, distance=0)
        tried, tool, report = self.first_report(fault, faulty)
        distance = off(report.place, fault.place) if report else None
        ops_before = int(report is not None and report.when not in BEFORE_DATA)
        return row(fault, self.engine, report, tool, tried + (distance != 0), ops_before=ops_before, distance=distance)

    def first_report(self, fault: Fault, faulty: OutsideAttempt) -> tuple[int, str, OutsideReport | None]:
        """How many tools were tried, the last of them, and what it reports."""
        training = fault.training(faulty=True)
        tools: dict[str, Callable[[], OutsideReport | None]] = {
            "run": lambda: faulty.error,
            "check": lambda: self.attempt(training, checked=True).error,
            "reach": lambda: unreached(faulty.gradients),
            "train": lambda: self.trained(training, faulty.step),
        }
        for tried, (name, tool) in enumerate(tools.items(), start=1):
            with np.errstate(all="ignore"):  # our own engines, and what a framework hands to NumPy
                report = tool()
            if report is not None:
                return tried, name, report
        return len(tools), "", None

    def attempt(self, training: Training, *, checked: bool = False) -> OutsideAttempt:
        """Run the steps of a training; `checked` where the framework stops at NaN and infinity."""
        training.reset()
        phases = Phases()
        watch = self.framework.checked() if checked else nullcontext()
        # a framework may say in a warning which line it was
        with warnings.catch_warnings(record=True, action="always") as said, watch:
            try:
                with within(LIMIT):
                    return self.stepped(training, phases)
            except Exception as error:  # noqa: BLE001  (whatever a training raises is what is looked for)
                return OutsideAttempt(
                    None, {}, None, self.report(error, phases, "\n".join(str(w.message) for w in said))
                )

    def stepped(self, training: Training, phases: Phases) -> OutsideAttempt:
        """The steps, and what they leave."""
        step = self.step(training, phases)
        params, losses = self.framework.arrays(training.params), []
        first: dict[str, Any] = {}
        for example in training.examples:
            loss, gradients = step(params, *self.framework.arrays(example))
            first = first or self.framework.numpy(gradients)
            phases.now = "update"
            params = training.update(params, gradients)
            losses.append(np.array(self.framework.numpy(loss)))
        return OutsideAttempt((losses, copied(self.framework.numpy(params))), first, step)

    def step(self, training: Training, phases: Phases) -> Function:
        """The loss and its gradients as the arm runs them; a loss in pieces where the framework has graph breaks."""
        eager = self.framework.arms[0]
        if self.arm == eager:
            return self.framework.build(eager, phases.marking(training.loss), 0)
        if pieces := self.framework.pieces(training.loss):
            return self.framework.build(eager, pieces, 0)
        return self.framework.build(self.arm, training.loss, 0)

    def report(self, error: BaseException, phases: Phases, said: str) -> OutsideReport:
        """The report that an error is, and the last of the user's lines that its traceback or its words name."""
        when = phases.now
        if self.arm != self.framework.arms[0] and when != "update":
            when = "trace" if self.framework.traced(error) else "forward"
        frames = [(frame.filename, frame.lineno or 0) for frame in traceback.extract_tb(error.__traceback__)]
        words = [(file, int(line)) for file, line in _FILE.findall(f"{error}\n{said}")]
        named = [place for place in [*words, *frames] if is_users(place[0])]
        place = SourceLine(Path(named[-1][0]).name, named[-1][1]) if named else None
        message = without_folders(" ".join(described(error).split()))
        return OutsideReport(when, message, place)

    def trained(self, training: Training, step: Function | None) -> OutsideReport | None:
        """Train for a while: does the loss fall?"""
        assert step is not None  # noqa: S101  (a training that raises was reported by the first tool)
        training.reset()
        params, losses = self.framework.arrays(training.params), []
        for example in islice(cycle(training.examples), TRAINING):
            loss, gradients = step(params, *self.framework.arrays(example))
            params = training.update(params, gradients)
            losses.append(float(self.framework.numpy(loss)))
        message = risen(losses, len(training.examples))
        return OutsideReport("step", message) if message else None


class Phases:
    """Which part of an eager step runs."""

    def __init__(self) -> None:
        self.now: Phase = "forward"

    def marking(self, loss: Function) -> Function:
        """The loss, and what comes after it is the backward pass."""

        def run(*args: Any) -> Any:
            self.now = "forward"
            value = loss(*args)
            self.now = "backward"
            return value

        return run


def is_users(file: str) -> bool:
    """Whether a file holds losses, and so is the user's here."""
    path = Path(file)
    return path == Path(base.__file__) or path.parent == Path(base.__file__).parent / "corpus"


def unreached(gradients: Mapping[str, Any]) -> OutsideReport | None:
    """Does every parameter get a gradient, and one that is not zero throughout?"""
    zero = [name for name, gradient in gradients.items() if not np.any(gradient)]
    return OutsideReport("backward", f"the gradient of {zero[0]} is zero") if zero else None


def copied(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays of one's own: a framework may share memory."""
    return {name: np.array(value) for name, value in tree.items()}

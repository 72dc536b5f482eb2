"""The measurement behind claim C3: every seeded fault in an engine, eager and compiled.

The debugger is a script: it tries one tool of the engine's after another, then bisects where the engine shows every
value; every step is counted. Numbers are as a user of the engine has them: JAX has no float64 unless it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from compare import engines, steps
from compare.engines.debugging import Attempt, Event, ToolReport, Tools, same, same_results
from compare.records.checks import EngineName, FaultRow, Faults, Phase
from compare.records.job import Job
from compare.workloads.faults.fault import Fault, Seeded, SourceLine, Training, corpus

IMMUNE: Phase = "cannot happen"
"""The phase of a fault in an engine in which the faulty training does what the healthy one does."""
LONGEST = 300
"""Characters of a message that are recorded."""


class UnfitError(Exception):
    """The healthy training does not run in an engine, so that nothing can be said of the faulty one."""


class Located(NamedTuple):
    """Where a bisection ended: the line, None where there is none to name, and the probes that it took."""

    place: SourceLine | None
    probes: int


def measure(job: Job) -> Faults:
    """The record of claim C3 about an arm, in the role of static, beside the eager one of its engine."""
    engine, arm = engines.compared(job.arm)
    engine.start(0)
    roles: dict[EngineName, str] = {"dynamic": engine.arms[0], "static": arm}
    record = Faults("C3", [])
    for fault in steps.each("examined", corpus(engine.library.load)):
        rows = []
        with fault.seeded(engine.library.edited) as seeded:
            for role, name in roles.items():
                try:
                    rows.append(examine(fault, seeded, role, engine.debugger(name, seeded.files.__contains__)))
                except UnfitError as error:
                    record.left_out[fault.name] = f"{name}: {error}"
                    break
            else:
                record.faults += rows
    return record


def examine(fault: Fault, seeded: Seeded, role: EngineName, tools: Tools) -> FaultRow:
    """What the debugger of an arm makes of one fault, as `compare.claims.c3_debugging.rule` judges it.

    detected    whether a tool that does not know the healthy training reports something
    when        the phase in which it does: trace, call (before any op), forward, backward, update, step (a training),
                or never
    ops_before  the ops that this tool ran before, 0 when nothing is detected; 1 for any number where an engine counts
                none
    names_line  whether the report names the line at fault; `distance` is how many lines it is off
    steps       tools tried; then, unless the line was named, one healthy run; where an engine shows every value,
                also the probes of a bisection against it, and one for each line between where that ends and the line
                at fault. In other engines both arms would bisect eagerly, at the same cost, which is left out

    An engine in which the faulty training does just what the healthy one does has nothing to look for: no step is
    needed. Raises UnfitError where the healthy training ends in an error.
    """
    training = seeded.training
    with np.errstate(all="ignore"):  # NumPy's own warnings name a line of the engine
        healthy = tools.attempt(fault.healthy)
        if healthy.report is not None:
            raise UnfitError(healthy.report.message)
        faulty = tools.attempt(training)
        if same_results(healthy, faulty):
            return row(fault, role, ToolReport(IMMUNE, "the program does what is meant", 0), "", 0, distance=0)
        tool, tried, report = _first_report(tools, training, faulty)
    distance = off(report.place if report else None, seeded.place)
    steps = tried
    if distance != 0:
        steps += 1
        if healthy.events:
            located = bisected(healthy.events, faulty, report)
            steps += located.probes + _reading(located, fault, seeded.place, faulty)
    return row(fault, role, report, tool, steps, distance=distance)


def _first_report(tools: Tools, training: Training, faulty: Attempt) -> tuple[str, int, ToolReport | None]:
    """The tool that reports first, how many were tried, and the report."""
    order: dict[str, Callable[[], ToolReport | None]] = {
        "run": lambda: faulty.report,
        "check": lambda: tools.attempt(training, checked=True).report,
        "reach": lambda: tools.reach(training, faulty),
        "train": lambda: tools.train(training, faulty),
    }
    for tried, (name, tool) in enumerate(order.items(), start=1):
        report = tool()
        if report is not None:
            return name, tried, report
    return "", len(order), None


def off(place: SourceLine | None, wanted: SourceLine) -> int | None:
    """How many lines a place is off; None when it is none, or in another file."""
    return None if place is None or place.file != wanted.file else abs(place.line - wanted.line)


def bisected(healthy: Sequence[Event], faulty: Attempt, report: ToolReport | None) -> Located:
    """The first value that differs from the healthy run's, by bisection; each probe compares one more half.

    The place is that of the op; of an error, where all values before it agree; and None where the first that differs
    is an input, or nothing does.
    """
    low, high, probes = 0, min(len(healthy), len(faulty.events)), 0
    while low < high:
        middle = (low + high + 1) // 2
        probes += 1
        if all(map(_agree, healthy[low:middle], faulty.events[low:middle])):
            low = middle
        else:
            high = middle - 1
    if low < len(faulty.events):
        return Located(SourceLine.parse(faulty.events[low].line), probes)
    return Located(report.place if report else None, probes)


def _agree(first: Event, second: Event) -> bool:
    return first.name == second.name and same(first.value, second.value)


def _reading(located: Located, fault: Fault, place: SourceLine, faulty: Attempt) -> int:
    """The lines still to be read; a wrong input is known when it is the first value that differs."""
    if located.place is None:
        return 0 if fault.is_in_data else len(faulty.events)
    distance = off(located.place, place)
    return len(faulty.events) if distance is None else distance


def row(
    fault: Fault, role: EngineName, report: ToolReport | None, tool: str, steps: int, *, distance: int | None
) -> FaultRow:
    """The row of a fault; its line is named where the report is 0 lines off."""
    return FaultRow(
        fault=fault.name,
        family=fault.family,
        engine=role,
        detected=report is not None,
        when=report.when if report else "never",
        tool=tool,
        ops_before=report.ops if report else 0,
        names_line=distance == 0,
        distance=distance,
        steps=steps,
        message=report.message[:LONGEST] if report else "",
    )

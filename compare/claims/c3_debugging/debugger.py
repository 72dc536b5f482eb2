"""The scripted debugger: it tries one tool after another, then bisects, and every step is counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from compare.claims.c3_debugging.base import Fault, SourceLine
from compare.claims.c3_debugging.tools import Attempt, Event, ToolReport, Tools, same, same_results
from compare.records.debugging import EngineName, FaultRow, Phase

IMMUNE: Phase = "cannot happen"
"""The phase of a fault in an engine in which the faulty training does what the healthy one does."""
LONGEST = 300
"""Characters of a message that are recorded."""


class Located(NamedTuple):
    """Where a bisection ended: the line, None where there is none to name, and the probes that it took."""

    place: SourceLine | None
    probes: int


def examine(fault: Fault, tools: Tools) -> FaultRow:
    """What one engine makes of one fault, as `compare.claims.c3_debugging.rule` judges it.

    detected    whether a tool that does not know the healthy training reports something
    when        the phase in which it does: trace, call (before any op), forward, backward, update, step (a training),
                or never
    ops_before  the ops that this tool ran before, 0 when nothing is detected
    names_line  whether the report names the line at fault; `distance` is how many lines it is off
    steps       tools tried; then, unless the line was named, one healthy run, the probes of a bisection against it,
                and one for each line between where that ends and the line at fault

    An engine in which the faulty training does just what the healthy one does has nothing to find: no step is needed.
    """
    healthy = tools.attempt(fault.training(faulty=False))
    if healthy.error is not None:
        raise healthy.error
    faulty = tools.attempt(fault.training(faulty=True))
    if same_results(healthy, faulty):
        fine = ToolReport(IMMUNE, "the program does what is meant", 0)
        return row(fault, tools.name, fine, "", 0, ops_before=0, distance=0)
    tool, tried, report = _first_report(fault, tools)
    distance = off(report.place if report else None, fault.place)
    steps = tried
    if distance != 0:
        found = bisected(healthy.events, faulty, report)
        steps += 1 + found.probes + _reading(found, fault, faulty)
    return row(fault, tools.name, report, tool, steps, ops_before=report.ops if report else 0, distance=distance)


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


def _first_report(fault: Fault, tools: Tools) -> tuple[str, int, ToolReport | None]:
    """The tool that reports first, how many were tried, and the report."""
    training = fault.training(faulty=True)
    order: tuple[Callable[..., ToolReport | None], ...] = (tools.run, tools.check, tools.reach, tools.train)
    for tried, tool in enumerate(order, start=1):
        with np.errstate(all="ignore"):  # NumPy's own warnings name a line of the engine
            report = tool(training)
        if report is not None:
            return tool.__name__, tried, report
    return "", len(order), None


def _reading(found: Located, fault: Fault, faulty: Attempt) -> int:
    """The lines still to be read; a wrong input has been found when it is the first value that differs."""
    if found.place is None:
        return 0 if fault.faulty_examples else len(faulty.events)
    distance = off(found.place, fault.place)
    return len(faulty.events) if distance is None else distance


class Reported(Protocol):
    """What a row takes of a report, of ours and of a framework's."""

    @property
    def when(self) -> Phase:
        """The phase in which something was reported."""

    @property
    def message(self) -> str:
        """What was reported."""


def row(
    fault: Fault,
    engine: EngineName,
    report: Reported | None,
    tool: str,
    steps: int,
    *,
    ops_before: int,
    distance: int | None,
) -> FaultRow:
    """The row of a fault; its line is named where the report is 0 lines off."""
    return FaultRow(
        fault=fault.name,
        family=fault.family,
        engine=engine,
        detected=report is not None,
        when=report.when if report else "never",
        tool=tool,
        ops_before=ops_before,
        names_line=distance == 0,
        distance=distance,
        steps=steps,
        message=report.message[:LONGEST] if report else "",
    )

"""C3: dynamic graphs are easier to debug. Each engine has its best tools.

Every seeded fault, a line of a small model made wrong, is looked for in an engine, eager and compiled. The debugger is
a script: it tries one tool of the engine's after another, then bisects where the engine shows every value; every step
is counted. Numbers are as a user of the engine has them: JAX has no float64 unless it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import NamedTuple

import numpy as np

from compare import engines, steps
from compare.claims.base import Claim, Effect, Finding, Label, Regime, not_measured
from compare.engines.debugging import Attempt, Event, ToolReport, Tools, same, same_results
from compare.records.checks import EngineName, FaultRow, Faults, Phase
from compare.records.job import Job
from compare.records.kinds import KINDS
from compare.records.record import Records, kind_of, records_of
from compare.stats import Interval, proportion_interval
from compare.words import text
from compare.workloads.faults.fault import Fault, SeededFault, SourceLine, Training, corpus

IMMUNE: Phase = "cannot happen"
"""The phase of a fault in an engine in which the faulty training does what the healthy one does."""
LONGEST = 300
"""Characters of a message that are recorded."""


class UnfitError(Exception):
    """The healthy training does not run in an engine, so that nothing can be said of the faulty one."""


class BisectionResult(NamedTuple):
    """Where a bisection ended: the line, None where there is none to name, and the probes that it took."""

    place: SourceLine | None
    probes: int


def measure(job: Job) -> Faults:
    """The record of claim C3 about an arm, in the role of static, beside the eager one of its engine."""
    engine, arm = engines.engine_of_arm(job.arm)
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


def examine(fault: Fault, seeded: SeededFault, role: EngineName, tools: Tools) -> FaultRow:
    """What the debugger of an arm makes of one fault, as the rule judges it.

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
            located = bisect_runs(healthy.events, faulty, report)
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


def bisect_runs(healthy: Sequence[Event], faulty: Attempt, report: ToolReport | None) -> BisectionResult:
    """The first value that differs from the healthy run's, by bisection; each probe compares one more half.

    The place is that of the op; of an error, where all values before it agree; and None where the first that differs
    is an input, or nothing does.
    """
    low, high, probes = 0, min(len(healthy), len(faulty.events)), 0
    while low < high:
        middle = (low + high + 1) // 2
        probes += 1
        pairs = zip(healthy[low:middle], faulty.events[low:middle], strict=True)
        if all(right.name == wrong.name and same(right.value, wrong.value) for right, wrong in pairs):
            low = middle
        else:
            high = middle - 1
    if low < len(faulty.events):
        return BisectionResult(SourceLine.parse(faulty.events[low].line), probes)
    return BisectionResult(report.place if report else None, probes)


def _reading(located: BisectionResult, fault: Fault, place: SourceLine, faulty: Attempt) -> int:
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


# The rule -----------------------------------------------------------------------------------------------------------


MIN_FAULTS = 30
"""Fewer seeded faults than this are anecdotes."""
EVEN = 0.50
"""With no difference between the engines, each finds half of the decided faults better."""

Score = tuple[bool, bool, int, int]


def find(records: Records) -> Finding:
    """A sign test over faults: in how many of those that differ is the dynamic engine better?"""
    faults = _faults(records)
    duels = _duels(faults)
    if not duels:
        return not_measured("seeded faults in both engines")
    share = _share(list(duels.values()))
    families = tuple(_family(f, duels) for f in sorted({family for family, _ in duels}))
    return Finding(
        "inconclusive" if len(duels) < MIN_FAULTS else _verdict(share, families),
        (
            _summary(duels),
            *_details(faults),
        ),
        None if share is None else Effect("decided faults that dynamic finds better", share.estimate, "share"),
        share,
        families,
    )


def _summary(duels: dict[tuple[str, str], int]) -> str:
    dynamic, static, even = ([*duels.values()].count(side) for side in (1, -1, 0))
    of = text.count_noun(len(duels), "fault")
    return f"of {of}, dynamic finds {dynamic} better, static finds {static} better, and {even} are equal"


def _faults(records: Records) -> list[FaultRow]:
    """Each fault in each engine once, measured last, since repeating one is no new evidence."""
    rows = (row for record in records_of(records, Faults) for row in record.faults)
    return list({(row.family, row.fault, row.engine): row for row in rows}.values())


def _duels(faults: list[FaultRow]) -> dict[tuple[str, str], int]:
    """For each fault that both engines met: 1 where dynamic is better, -1 where static is, 0 if even."""
    scores: dict[tuple[str, str], dict[str, Score]] = {}
    for fault in faults:
        scores.setdefault((fault.family, fault.fault), {})[fault.engine] = _score(fault)
    both = {place: s for place, s in scores.items() if {"dynamic", "static"} <= set(s)}
    return {p: (s["dynamic"] > s["static"]) - (s["dynamic"] < s["static"]) for p, s in both.items()}


def _score(fault: FaultRow) -> Score:
    """Better is larger: found at all, then the line named, then fewer steps, then earlier."""
    return fault.detected, fault.names_line, -fault.steps, -fault.ops_before


def _share(duels: list[int]) -> Interval | None:
    decided = [duel for duel in duels if duel]
    return proportion_interval(decided.count(1), len(decided)) if decided else None


def _verdict(share: Interval | None, families: tuple[Regime, ...]) -> Label:
    if {"supported", "refuted"} <= {family.verdict for family in families}:
        return "depends"
    return _label(share)


def _label(share: Interval | None) -> Label:
    if share is None or share.high < EVEN:
        return "refuted"
    return "supported" if share.low > EVEN else "inconclusive"


def _details(faults: list[FaultRow]) -> Iterator[str]:
    """What stands behind the duels, an engine at a time."""
    for engine in ("dynamic", "static"):
        rows = [fault for fault in faults if fault.engine == engine]
        steps = median(row.steps for row in rows)
        silent = sum(not row.detected for row in rows)
        named = sum(row.names_line for row in rows)
        before = sum(row.detected and row.ops_before == 0 for row in rows)
        yield (
            f"{engine}: of {text.count_noun(len(rows), 'fault')}, no tool finds {silent}, a tool names the line of "
            f"{named}, {before} end before any op runs or cannot happen; the median search takes {steps:g} steps"
        )


def _family(family: str, duels: dict[tuple[str, str], int]) -> Regime:
    share = _share([duel for (kind, _), duel in duels.items() if kind == family])
    return Regime(family, _label(share), share.estimate if share else None, share)


CLAIM = Claim(
    id="C3",
    title="Dynamic graphs are easier to debug",
    statement="In a dynamic graph an error appears at once, on the line that caused it. Values can be "
    "printed, and an ordinary debugger stops at the fault.",
    opposite="A static graph finds wrong shapes, dtypes and axes before any data runs. It can check every node "
    "for NaN without a change to the program, and it repeats a failing run exactly.",
    measured="Seeded faults (shape, dtype, NaN, wrong axis, wrong branch, ...). A scripted debugger searches for each "
    "fault in each engine, with the engine's best tools, which do not know the right program. Recorded are: whether a "
    "tool finds the fault, whether it names the user's line, how many ops ran before, and how many steps lead to the "
    "faulty value. A step is a tool tried, or a probe of a bisection against a healthy run. A fault that does no harm "
    "in an engine counts as found there at no cost. In a framework: eager and compiled, each with its own checks.",
    rule="A fault goes to the engine that finds it. If both find it, it goes to the one that names the line, then to "
    "the one that needs fewer steps, then to the one that runs fewer ops before. Faults with no difference are left "
    f"out. Supported if the 95% interval of dynamic's share lies above {EVEN:.0%}. Refuted if it lies below, or if no "
    "fault differs. Depends if one family of faults supports the claim and another refutes it. Otherwise inconclusive, "
    f"and with fewer than {MIN_FAULTS} faults.",
    find=find,
    reads=(Faults,),
    check=KINDS[kind_of(Faults)],
    literature=(
        "the authors of PyTorch say that an imperative style makes debugging easy (abstract, arXiv 1912.01703)",
        "the authors of TensorFlow Eager say that a graph hinders rapid prototyping (abstract, arXiv 1903.01855)",
    ),
    not_tested=(
        "people: only a study with programmers can show how many minutes they need to find a fault",
        "graphical debuggers and recorded traces of other frameworks",
        "debugging without a healthy version: then a person must take the steps to a silent fault",
        "how often people make each fault: every family has a few, and the verdict depends on the choice",
    ),
)

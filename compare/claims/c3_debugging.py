"""C3: dynamic graphs are easier to debug. Each engine is searched with its best tools.

A seeded fault is one line of a small model made wrong. A scripted debugger searches for each fault in an engine, eager
and compiled: it tries the engine's tools in turn, then bisects if the engine shows every value, and counts its steps.
Dtypes are the engine's defaults: JAX has no float64 unless it is asked for. First the measurement (`measure`,
`examine`), then the rule (`find`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import NamedTuple

import numpy as np

from compare import engines, steps, text
from compare.claims.base import Claim, Effect, Finding, Label, Regime, not_measured
from compare.engines.debugging import Attempt, Event, ToolReport, Tools, same, same_results
from compare.records.checks import EngineName, FaultRow, Faults, Phase
from compare.records.job import KINDS, Job
from compare.records.record import Records, kind_of, records_of
from compare.stats import Interval, proportion_interval
from compare.workloads.faults import Fault, SeededFault, SourceLine, Training, corpus

IMMUNE: Phase = "cannot happen"
"""The phase of a fault that does no harm in an engine: the faulty training gives the results of the healthy one."""
LONGEST = 300
"""The number of characters of a message that are recorded."""


class UnfitError(Exception):
    """Raised where the healthy training fails in an engine, so that the faulty one cannot be judged there."""


class BisectionResult(NamedTuple):
    """The result of a bisection: the source line it ended at, None if it names none, and the number of probes."""

    place: SourceLine | None
    probes: int


def measure(job: Job) -> Faults:
    """Measure claim C3 for a mode in the role of static, and the eager mode of its engine in the role of dynamic."""
    engine, mode = engines.engine_of_mode(job.mode)
    engine.start(0)
    roles: dict[EngineName, str] = {"dynamic": engine.mode_names[0], "static": mode}
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
    """Search for one fault with the tools of a mode, and return the row that the rule judges.

    detected    whether a tool that does not know the healthy training reports something
    when        the phase of that report: trace, call (before any op), forward, backward, update, step (a training),
                or never
    ops_before  the ops that the tool ran before its report; 0 if nothing is detected, 1 for any number in an engine
                that does not count ops
    names_line  whether the report names the line at fault; `distance` is how many lines it is off
    steps       the tools tried. Unless the line was named, also one healthy run; and where an engine shows every
                value, the probes of a bisection against that run and one for each line from its end to the line at
                fault. In other engines both modes would bisect eagerly at the same cost, which is left out

    If the faulty training gives the same results as the healthy one, the fault cannot happen in this engine, and takes
    no step. Raises UnfitError where the healthy training ends in an error.
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
    """Try the tools in order; returns the name of the first that reports, how many were tried, and its report."""
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
    """Return how many lines a place is off; None if there is no place, or if it is in another file."""
    return None if place is None or place.file != wanted.file else abs(place.line - wanted.line)


def bisect_runs(healthy: Sequence[Event], faulty: Attempt, report: ToolReport | None) -> BisectionResult:
    """Find by bisection the first value that differs from the healthy run; each probe compares one more half.

    The place is the line of the op with this value. If all values agree, it is the line of the error report. It is None
    if the first value that differs is an input, or if there is no report.
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
    """Count the lines left to read after a bisection: 0 for a fault in the data whose wrong input was found."""
    if located.place is None:
        return 0 if fault.is_in_data else len(faulty.events)
    distance = off(located.place, place)
    return len(faulty.events) if distance is None else distance


def row(
    fault: Fault, role: EngineName, report: ToolReport | None, tool: str, steps: int, *, distance: int | None
) -> FaultRow:
    """Make the row of a fault; its line counts as named if the report is 0 lines off."""
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
"""The share of decided faults that dynamic finds better if the engines do not differ."""

Score = tuple[bool, bool, int, int]


def find(records: Records) -> Finding:
    """Judge C3 by a sign test: the share of faults found better by dynamic, among faults that the engines differ on."""
    rows = (row for record in records_of(records, Faults) for row in record.faults)
    # the last measurement of each fault and engine, since a repetition is no new evidence
    faults = list({(row.family, row.fault, row.engine): row for row in rows}.values())
    duels = _duels(faults)
    if not duels:
        return not_measured("seeded faults in both engines")
    share = _share(list(duels.values()))
    shares = {
        family: _share([duel for (kind, _), duel in duels.items() if kind == family])
        for family in sorted({family for family, _ in duels})
    }
    families = tuple(Regime(f, _label(each), each.estimate if each else None, each) for f, each in shares.items())
    verdict = _label(share)
    if len(duels) < MIN_FAULTS:
        verdict = "inconclusive"
    elif {"supported", "refuted"} <= {family.verdict for family in families}:
        verdict = "depends"
    dynamic, static, even = ([*duels.values()].count(side) for side in (1, -1, 0))
    of = text.count_noun(len(duels), "fault")
    return Finding(
        verdict,
        (
            f"of {of}, dynamic finds {dynamic} better, static finds {static} better, and {even} are equal",
            *_details(faults),
        ),
        None if share is None else Effect("decided faults that dynamic finds better", share.estimate, "share"),
        share,
        families,
    )


def _duels(faults: list[FaultRow]) -> dict[tuple[str, str], int]:
    """Return for each fault measured in both engines: 1 if dynamic is better, -1 if static is better, 0 if even.

    A better score is larger: found at all, line named, fewer steps, fewer ops run before.
    """
    scores: dict[tuple[str, str], dict[str, Score]] = {}
    for fault in faults:
        score = fault.detected, fault.names_line, -fault.steps, -fault.ops_before
        scores.setdefault((fault.family, fault.fault), {})[fault.engine] = score
    both = {place: s for place, s in scores.items() if {"dynamic", "static"} <= set(s)}
    return {p: (s["dynamic"] > s["static"]) - (s["dynamic"] < s["static"]) for p, s in both.items()}


def _share(duels: list[int]) -> Interval | None:
    decided = [duel for duel in duels if duel]
    return proportion_interval(decided.count(1), len(decided)) if decided else None


def _label(share: Interval | None) -> Label:
    if share is None or share.high < EVEN:
        return "refuted"
    return "supported" if share.low > EVEN else "inconclusive"


def _details(faults: list[FaultRow]) -> Iterator[str]:
    """Yield one sentence for each engine: how many faults are found, named and found early, and the median steps."""
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

"""C3: dynamic graphs are easier to debug. Each engine has its best tools."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from compare.claims.base import Claim, Effect, Finding, Label, Regime, not_measured
from compare.records.checks import FaultRow, Faults
from compare.records.kinds import KINDS
from compare.records.record import Records, kind_of, of
from compare.stats import Interval, proportion_interval
from compare.words import text

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
    dynamic, static, even = (_won(duels, side) for side in (1, -1, 0))
    of = text.counted(len(duels), "fault")
    return f"of {of}, dynamic finds {dynamic} better, static finds {static} better, and {even} are equal"


def _faults(records: Records) -> list[FaultRow]:
    """Each fault in each engine once, measured last, since repeating one is no new evidence."""
    rows = (row for record in of(records, Faults) for row in record.faults)
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


def _won(duels: dict[tuple[str, str], int], side: int) -> int:
    return list(duels.values()).count(side)


def _details(faults: list[FaultRow]) -> Iterator[str]:
    """What stands behind the duels, an engine at a time."""
    for engine in ("dynamic", "static"):
        rows = [fault for fault in faults if fault.engine == engine]
        steps = median(row.steps for row in rows)
        silent = sum(not row.detected for row in rows)
        named = sum(row.names_line for row in rows)
        before = sum(row.detected and row.ops_before == 0 for row in rows)
        yield (
            f"{engine}: of {text.counted(len(rows), 'fault')}, no tool finds {silent}, a tool names the line of "
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

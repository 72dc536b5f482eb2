"""What a claim is, what its rule finds in records, and the verdict that comes of it.

Which tape the dynamic engine ran by, as its records tell: with loops in Python it is another, slower engine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal

from compare.records import kinds
from compare.records.record import Kind, Record, Records, Run
from compare.stats import LEAST, WIDEST, Interval
from compare.words import text
from compare.workloads.models import is_model

Label = Literal["supported", "refuted", "depends", "proxy only", "inconclusive", "not measured yet"]

Side = Literal["above", "below"]
"""A side of 1, or of one half for a share."""
INCONCLUSIVE: Final = "inconclusive"
NOT_MEASURED: Final = "not measured yet"
OPEN = (INCONCLUSIVE, NOT_MEASURED)
"""The labels of claims that nothing was settled about."""
SMALLEST_EFFECT = 0.05
"""The smallest effect of interest: ratios between 1/1.05 and 1.05 are a tie."""

NO_INTERVAL = f"an interval needs {LEAST} processes or more, and its ends lie at most {WIDEST:g} times apart"
"""Why there is none."""


@dataclass(frozen=True)
class Effect:
    """The one number that stands for a claim, with its unit."""

    name: str
    value: float
    unit: str


@dataclass(frozen=True)
class Regime:
    """The verdict where one condition holds: a phase of a run, a workload and size, a static shape policy.

    `arm` is the arm that was judged there, if it is one of several.
    """

    condition: str
    verdict: Label
    value: float | None = None
    interval: Interval | None = None
    arm: str = ""

    @property
    def name(self) -> str:
        """The condition with the arm: `rnn_text (small): steady state, static-exact`."""
        return f"{self.condition}, {self.arm}" if self.arm else self.condition


@dataclass(frozen=True)
class Citation:
    """A figure of the literature in words, its source, and the condition that it was measured under.

    `ratio` is the figure in the unit of the regime whose name holds `beside`. It agrees in sign where the interval of
    that regime lies on the same side of 1, and in size where that holds the figure as well; where nothing is
    comparable, `apart` says why.
    """

    figure: str
    source: str
    condition: str
    ratio: float = 1.0
    beside: str = ""
    apart: str = ""

    def __str__(self) -> str:
        return f"{self.figure} ({self.source}); measured on {self.condition}"

    def told(self, regimes: Sequence[Regime]) -> str:
        """The figure, and whether regimes of this run agree with it."""
        return f"{self}. {self._agrees(regimes)}"

    def _agrees(self, regimes: Sequence[Regime]) -> str:
        if self.apart:
            return f"This run measured something else: {self.apart}"
        near = next((regime for regime in regimes if self.beside in regime.name and regime.value is not None), None)
        if near is None or near.value is None:
            return f"This run did not measure the nearest condition: {self.beside}"
        spread = near.interval if near.interval and near.interval.bounded else None
        bounds = f" {text.interval(spread.low, spread.high)}" if spread else ""
        return f"This run {self._verb(near.value, spread)}: {text.ratio(near.value)}{bounds} in {near.name}"

    def _verb(self, value: float, spread: Interval | None) -> str:
        """By the interval where there is one; a count is exact, and so its own."""
        measured = spread or Interval(value, value, value)
        side = measured.side(SMALLEST_EFFECT)
        expected = "above" if self.ratio > 1 else "below"
        if side == expected:
            holds = measured.low <= self.ratio <= measured.high
            return "agrees in sign and in size" if holds else f"agrees in sign, not in size ({text.ratio(self.ratio)})"
        return "cannot decide" if side == "unclear" else "does not agree"


@dataclass(frozen=True)
class Finding:
    """What a rule concludes from records. Every ratio is static ÷ dynamic; `side` is where it speaks for the claim."""

    verdict: Label
    reasons: tuple[str, ...]
    effect: Effect | None = None
    interval: Interval | None = None
    regimes: tuple[Regime, ...] = ()
    side: Side = "above"


@dataclass(frozen=True)
class Verdict:
    """A finding about a claim, in the form that `verdicts.json` holds."""

    claim: Claim
    finding: Finding

    @property
    def reasons(self) -> tuple[str, ...]:
        """Those of the finding, and why some conditions have no verdict."""
        return (*self.finding.reasons, *_without_interval(self.finding))

    @property
    def literature(self) -> tuple[str, ...]:
        """Each figure of the literature, and whether the regimes of the finding agree with it."""
        figures, regimes = self.claim.literature, self.finding.regimes
        return tuple(figure.told(regimes) if isinstance(figure, Citation) else figure for figure in figures)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values only; an interval is `[low, high]`."""
        claim, finding = self.claim, self.finding
        best = strongest(finding)
        return {
            "claim": claim.id,
            "title": claim.title,
            "statement": claim.statement,
            "opposite": claim.opposite,
            "verdict": finding.verdict,
            "effect": finding.effect and asdict(finding.effect),
            "interval": finding.interval and finding.interval.bounds(),
            "regimes": [_regime(regime) for regime in finding.regimes],
            "strongest": {
                side: regime and _regime(regime) for side, regime in zip(("claim", "opposite"), best, strict=True)
            },
            "measured": claim.measured,
            "rule": claim.rule,
            "reasons": list(self.reasons),
            "literature": list(self.literature),
            "not_tested": list(claim.not_tested),
        }


@dataclass(frozen=True)
class Claim:
    """Something people say about graphs, its strongest opposite, and the rule that decides between them.

    `find` is the rule as a function and `rule` is the same in words, made from the same thresholds; it sees records of
    the kinds in `reads` alone, and of real models those of `reads_of_models` too. `check` is the kind that is made for
    this claim alone. `tape` says whether it rests on seconds and bytes of the dynamic engine alone, or on facts as
    well. Figures in `literature` that come from an abstract say so.
    """

    id: str
    title: str
    statement: str
    opposite: str
    measured: str
    rule: str
    find: Callable[[Records], Finding]
    reads: tuple[type[Record], ...]
    reads_of_models: tuple[type[Record], ...] = ()
    check: Kind | None = None
    tape: Literal["alone", "partly", "not"] = "not"
    literature: tuple[Citation | str, ...] = ()
    not_tested: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.check is not None:
            kinds.register(self.check)

    def judge(self, records: Records) -> Verdict:
        """The verdict that the rule computes from the lines of a results file, in any order."""
        return Verdict(self, self.find([record for record in records if self._sees(record)]))

    def _sees(self, record: Record) -> bool:
        of_model = isinstance(record, self.reads_of_models) and is_model(record.job.workload)
        return of_model or isinstance(record, self.reads)


def strongest(finding: Finding) -> tuple[Regime | None, Regime | None]:
    """Where the claim, and where its opposite, holds most: the regimes furthest out that support and that refute.

    A regime without a value stands where no other does, and None where none does.
    """

    def first(verdict: Label, sign: int) -> Regime | None:
        regimes = [regime for regime in finding.regimes if regime.verdict == verdict]
        return min(regimes, key=lambda r: (r.value is None, sign * (r.value or 0.0)), default=None)

    sign = 1 if finding.side == "below" else -1
    return first("supported", sign), first("refuted", -sign)


def not_measured(what: str) -> Finding:
    """The finding where there is no record to judge: no effect, no interval, never a guess."""
    return Finding(NOT_MEASURED, (f"there is no record of {what}",))


def beyond(interval: Interval | None, side: Side = "above") -> Label:
    """The label of a claim that a ratio lies on a side of 1: a tie, within the smallest effect, speaks against it."""
    if interval is None or not interval.bounded:
        return "inconclusive"
    claimed = interval if side == "above" else interval.inverse
    if claimed.low > 1 + SMALLEST_EFFECT:
        return "supported"
    return "refuted" if claimed.high < 1 + SMALLEST_EFFECT else "inconclusive"


def judge_ratio(condition: str, interval: Interval | None, arm: str = "", side: Side = "above") -> Regime:
    """The regime of a claim that a ratio lies on that side of 1; no interval where too few processes measured it."""
    bounded = interval if interval and interval.bounded else None
    return Regime(condition, beyond(interval, side), interval.estimate if interval else None, bounded, arm)


def combine(labels: Iterable[Label]) -> Label:
    """The one label of all conditions, depends where they differ, inconclusive where one cannot tell."""
    distinct = set(labels)
    if "depends" in distinct or {"supported", "refuted"} <= distinct:
        return "depends"
    return distinct.pop() if len(distinct) == 1 else "inconclusive"


def agreement(labels: Sequence[str]) -> str:
    """Whether labels of one condition agree: `the same`, `differ`, or `open` where one of them is."""
    settled = {label for label in labels if label not in OPEN}
    if len(settled) > 1:
        return "differ"
    return "open" if len(labels) < 2 or set(labels) & set(OPEN) else "the same"


def _without_interval(finding: Finding) -> Iterator[str]:
    """That some conditions could not be judged, where that is since too few processes measured them."""
    bare = sum(r.verdict == "inconclusive" and r.value is not None and r.interval is None for r in finding.regimes)
    if bare:
        yield f"{bare} of {len(finding.regimes)} regimes have no verdict: {NO_INTERVAL}"


def _regime(regime: Regime) -> dict[str, Any]:
    return {
        "name": regime.name,
        "verdict": regime.verdict,
        "value": regime.value,
        "interval": regime.interval and regime.interval.bounds(),
    }


OPTION = "--python-tape"
REMEDY = f"graphduel doctor shows how to get that one; {OPTION} judges by this tape"
_RAN = {"compiled": "compiled", "python": "in Python"}


def sentence(records: Records) -> str:
    """`The tape ran compiled.`, in how many records each where they differ, or that the records do not tell."""
    counts = _count_tapes(records)
    if not counts:
        return "These results do not say which tape ran."
    if len(counts) == 1:
        slow = ": ratios to the compiled tape would differ" if counts["python"] else ""
        return f"The tape ran {_RAN[next(iter(counts))]}{slow}."
    parts = (f"{_RAN[tape]} in {count:,} records" for tape, count in sorted(counts.items()))
    return f"The tape ran {' and '.join(parts)}: do not compare these times."


def notice_before_run(*, python_tape: bool) -> str:
    """What is said before a run whose tape is in Python: what will not be judged by it, and how to have the other."""
    if python_tape:
        return f"The tape runs in Python, which takes longer than the compiled one; {OPTION} judges by this tape."
    return (
        "The compiled tape is missing: C5, C6 and C7 will be measured and not settled, as the tape in Python takes "
        f"longer; {REMEDY}"
    )


def in_python(records: Records) -> str:
    """Where and that the tape ran in Python; empty if it did not."""
    counts = _count_tapes(records)
    share = "" if len(counts) == 1 else f" in {counts['python']:,} of {counts.total():,} records"
    return f"the tape ran in Python{share}" if counts["python"] else ""


def unsettle(where: str, finding: Finding) -> Finding:
    """The finding on a claim that rests on the tape's speed or memory, where it ran in Python: what was measured."""
    if finding.verdict == NOT_MEASURED:
        return finding
    reason = f"the compiled tape is missing: {where}, which takes longer, so that this settles nothing; {REMEDY}"
    regimes = tuple(replace(regime, verdict=INCONCLUSIVE) for regime in finding.regimes)
    return replace(finding, verdict=INCONCLUSIVE, reasons=(reason, *finding.reasons), regimes=regimes)


def warning(where: str) -> str:
    """What is added to the reasons of a claim that rests on it in part."""
    return f"{where}: the times of the dynamic engine are those of that tape, not of the compiled one"


def _count_tapes(records: Records) -> Counter[str]:
    """How many measurements each tape made; the starts of a run count where no measurement tells."""
    tapes = [(isinstance(r, Run), r.environment.tape) for r in records if r.environment and r.environment.tape]
    measured = Counter(tape for start, tape in tapes if not start)
    return Counter[str](measured or (tape for _, tape in tapes))

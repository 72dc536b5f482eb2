"""The classes of a claim: `Claim` with its rule, `Finding` of the rule in records, and `Verdict`, the two together.

The functions on ratios and labels follow. The last part says from records whether the dynamic engine ran its compiled
tape or the slower tape in Python, and what that does to a finding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal

from compare import text
from compare.records import job
from compare.records.record import Kind, Record, Records, Run
from compare.stats import LEAST, WIDEST, Interval
from compare.workloads.models import is_model

Label = Literal["supported", "refuted", "depends", "proxy only", "inconclusive", "not measured yet"]

Side = Literal["above", "below"]
"""The side of 1 on which a ratio lies; for a share, the side of one half."""
INCONCLUSIVE: Final = "inconclusive"
NOT_MEASURED: Final = "not measured yet"
OPEN = (INCONCLUSIVE, NOT_MEASURED)
"""The labels of claims that the records do not settle."""
SMALLEST_EFFECT = 0.05
"""The smallest effect of interest: ratios between 1/1.05 and 1.05 are a tie."""

NO_INTERVAL = f"an interval needs {LEAST} processes or more, and its ends lie at most {WIDEST:g} times apart"
"""The reason that is given where a ratio has no interval."""


@dataclass(frozen=True)
class Effect:
    """The one number that stands for a claim, with its unit."""

    name: str
    value: float
    unit: str


@dataclass(frozen=True)
class Regime:
    """The verdict under one condition, such as a phase of a run, a workload and size, or a static shape policy.

    `mode` is the mode that was judged under this condition, if there are several; otherwise it is empty.
    """

    condition: str
    verdict: Label
    value: float | None = None
    interval: Interval | None = None
    mode: str = ""

    @property
    def name(self) -> str:
        """The condition with the mode: `rnn_text (small): steady state, static-exact`."""
        return f"{self.condition}, {self.mode}" if self.mode else self.condition


@dataclass(frozen=True)
class Citation:
    """A figure of the literature in words, its source, and the condition under which it was measured.

    `ratio` is the figure as static ÷ dynamic, compared with the first regime whose name contains `beside`. A run agrees
    with the figure in sign if the interval of this regime lies on the same side of 1, and in size if the interval also
    contains `ratio`. Where no regime is comparable, `apart` says why.
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
        """Return the figure in words, followed by a sentence on whether the regimes of a run agree with it."""
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
        """Return the verb for a measured ratio, judged by its interval; a ratio without one is an exact count."""
        measured = spread or Interval(value, value, value)
        side = measured.side(SMALLEST_EFFECT)
        expected = "above" if self.ratio > 1 else "below"
        if side == expected:
            holds = measured.low <= self.ratio <= measured.high
            return "agrees in sign and in size" if holds else f"agrees in sign, not in size ({text.ratio(self.ratio)})"
        return "cannot decide" if side == "unclear" else "does not agree"


ON_THE_FLY = Citation(
    "on-the-fly batching in DyNet took a sentence from 193 to 16.9 ms",
    "arXiv 1705.07860",
    "one CPU, a model over sentences, compared with the same sentences one by one",
    apart="it compares engines within one way of batching; `python -m benchmarks.batched` compares the ways",
)
"""A figure that two claims cite."""


@dataclass(frozen=True)
class Finding:
    """The conclusion of a rule from records. Ratios are static ÷ dynamic; on `side` of 1 they support the claim."""

    verdict: Label
    reasons: tuple[str, ...]
    effect: Effect | None = None
    interval: Interval | None = None
    regimes: tuple[Regime, ...] = ()
    side: Side = "above"


@dataclass(frozen=True)
class Verdict:
    """A claim with the finding of its rule; `to_dict` gives the form in `verdicts.json`."""

    claim: Claim
    finding: Finding

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons of the finding, and a sentence on how many regimes have no verdict for lack of an interval."""
        reasons, regimes = self.finding.reasons, self.finding.regimes
        bare = sum(r.verdict == "inconclusive" and r.value is not None and r.interval is None for r in regimes)
        return (*reasons, f"{bare} of {len(regimes)} regimes have no verdict: {NO_INTERVAL}") if bare else reasons

    @property
    def literature(self) -> tuple[str, ...]:
        """The figures of the claim's literature in words, each with whether the regimes of the finding agree."""
        figures, regimes = self.claim.literature, self.finding.regimes
        return tuple(figure.told(regimes) if isinstance(figure, Citation) else figure for figure in figures)

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as plain JSON values; an interval is `[low, high]`."""
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
    """A statement about graphs, its strongest opposite, and the rule that decides between the two.

    `find` is the rule as a function, and `rule` is the same rule in words, made from the same thresholds. `find` gets
    only records of the types in `reads`; for real models also those in `reads_of_models`. `check` is the kind of
    record that is measured for this claim only. `tape` says how the claim rests on seconds and bytes of the dynamic
    engine: alone, partly, or not. A figure in `literature` that comes from an abstract says so.
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
            job.register(self.check)

    def judge(self, records: Records) -> Verdict:
        """Return the verdict of the rule on the records of a results file, in any order."""

        def reads(record: Record) -> bool:
            of_model = isinstance(record, self.reads_of_models) and is_model(record.job.workload)
            return of_model or isinstance(record, self.reads)

        return Verdict(self, self.find(list(filter(reads, records))))


def strongest(finding: Finding) -> tuple[Regime | None, Regime | None]:
    """Return the regime that supports the claim most strongly, and the regime that refutes it most strongly.

    A regime without a value is taken only if no regime with a value has this label. None stands where no regime has it.
    """

    def first(verdict: Label, sign: int) -> Regime | None:
        regimes = [regime for regime in finding.regimes if regime.verdict == verdict]
        return min(regimes, key=lambda r: (r.value is None, sign * (r.value or 0.0)), default=None)

    sign = 1 if finding.side == "below" else -1
    return first("supported", sign), first("refuted", -sign)


def not_measured(what: str) -> Finding:
    """Return the finding for a claim without any record to judge, with no effect and no interval."""
    return Finding(NOT_MEASURED, (f"there is no record of {what}",))


def beyond(interval: Interval | None, side: Side = "above") -> Label:
    """Return the label of the claim that a ratio lies on a side of 1.

    It is refuted by a tie as well, which is an interval within the smallest effect, and open without an interval.
    """
    if interval is None or not interval.bounded:
        return "inconclusive"
    claimed = interval if side == "above" else interval.inverse
    if claimed.low > 1 + SMALLEST_EFFECT:
        return "supported"
    return "refuted" if claimed.high < 1 + SMALLEST_EFFECT else "inconclusive"


def judge_ratio(condition: str, interval: Interval | None, mode: str = "", side: Side = "above") -> Regime:
    """Return the regime of the claim that a ratio lies on `side` of 1; an unbounded interval is left out of it."""
    bounded = interval if interval and interval.bounded else None
    return Regime(condition, beyond(interval, side), interval.estimate if interval else None, bounded, mode)


def combine(labels: Iterable[Label]) -> Label:
    """Return one label for several conditions: the label that all share, `depends` if some support and some refute."""
    distinct = set(labels)
    if "depends" in distinct or {"supported", "refuted"} <= distinct:
        return "depends"
    return distinct.pop() if len(distinct) == 1 else "inconclusive"


def agreement(labels: Sequence[str]) -> str:
    """Compare labels of one condition: `the same`, `differ`, or `open` if one of them is open or there is only one."""
    settled = {label for label in labels if label not in OPEN}
    if len(settled) > 1:
        return "differ"
    return "open" if len(labels) < 2 or set(labels) & set(OPEN) else "the same"


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
    """Return a sentence on the tape of a run: `The tape ran compiled.`, or the count of records for each tape."""
    counts = _count_tapes(records)
    if not counts:
        return "These results do not say which tape ran."
    if len(counts) == 1:
        slow = ": ratios to the compiled tape would differ" if counts["python"] else ""
        return f"The tape ran {_RAN[next(iter(counts))]}{slow}."
    parts = (f"{_RAN[tape]} in {count:,} records" for tape, count in sorted(counts.items()))
    return f"The tape ran {' and '.join(parts)}: do not compare these times."


def notice_before_run(*, python_tape: bool) -> str:
    """Return the notice before a run with the tape in Python: the claims it cannot settle, and how to compile it."""
    if python_tape:
        return f"The tape runs in Python, which takes longer than the compiled one; {OPTION} judges by this tape."
    return (
        "The compiled tape is missing: C5, C6 and C7 will be measured and not settled, as the tape in Python takes "
        f"longer; {REMEDY}"
    )


def in_python(records: Records) -> str:
    """Return in words that the tape ran in Python, and in how many records; empty if it never did."""
    counts = _count_tapes(records)
    share = "" if len(counts) == 1 else f" in {counts['python']:,} of {counts.total():,} records"
    return f"the tape ran in Python{share}" if counts["python"] else ""


def unsettle(where: str, finding: Finding) -> Finding:
    """Return the finding with every label inconclusive, because the tape ran in Python; `where` is put first."""
    if finding.verdict == NOT_MEASURED:
        return finding
    reason = f"the compiled tape is missing: {where}, which takes longer, so that this settles nothing; {REMEDY}"
    regimes = tuple(replace(regime, verdict=INCONCLUSIVE) for regime in finding.regimes)
    return replace(finding, verdict=INCONCLUSIVE, reasons=(reason, *finding.reasons), regimes=regimes)


def warning(where: str) -> str:
    """Return the reason that is added to a claim which rests on the tape in part, where the tape ran in Python."""
    return f"{where}: the times of the dynamic engine are those of that tape, not of the compiled one"


def _count_tapes(records: Records) -> Counter[str]:
    """Count the measurements by each tape; if no measurement names its tape, count the starts of runs instead."""
    tapes = [(isinstance(r, Run), r.environment.tape) for r in records if r.environment and r.environment.tape]
    measured = Counter(tape for start, tape in tapes if not start)
    return Counter[str](measured or (tape for _, tape in tapes))

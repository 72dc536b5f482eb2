"""The verdicts on the claims, ready to print."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from compare.claims.base import Finding, Label, Regime, Verdict, strongest
from compare.report import text
from compare.report.page import PageVerdict, Table
from compare.stats import Interval

# A word and a shape for each verdict, so that colour is never the only cue.
_MARKS = {
    "supported": ("✓", "yes"),
    "refuted": ("✗", "no"),
    "depends": ("◐", "mixed"),
    "proxy only": ("◇", "mixed"),
    "inconclusive": ("?", "open"),
    "not measured yet": ("○", "open"),
}
_COUNTED = {
    "supported": "supported",
    "refuted": "refuted",
    "depends": "true in some regimes only",
    "proxy only": "judged by proxies only",
    "inconclusive": "inconclusive",
    "not measured yet": "not measured yet",
}


def headline(verdicts: Sequence[PageVerdict]) -> str:
    """One sentence that counts the verdicts."""
    if not verdicts:
        return "No verdict was computed for this run."
    found = Counter(verdict.word for verdict in verdicts)
    parts = [f"{found[word]} {_COUNTED.get(word, word)}" for word in (*_MARKS, *sorted(found.keys() - _MARKS.keys()))]
    return f"Of {len(verdicts)} claims: {text.listed([part for part in parts if not part.startswith('0 ')])}."


def printed(judged: Verdict) -> PageVerdict:
    """A verdict as the page shows it."""
    claim, finding = judged.claim, judged.finding
    icon, tone = _MARKS[finding.verdict]
    unit = finding.effect.unit if finding.effect else ""
    return PageVerdict(
        claim=claim.id,
        title=claim.title,
        statement=claim.statement,
        opposite=claim.opposite,
        word=finding.verdict,
        icon=icon,
        tone=tone,
        effect=effect(finding),
        effect_name=finding.effect.name if finding.effect else "",
        why=finding.reasons[0] if finding.reasons else "",
        measured=claim.measured,
        rule=claim.rule,
        regimes=_regimes(finding.regimes, unit),
        strongest=tuple(_strongest(finding.regimes, unit)),
        reasons=judged.reasons,
        not_tested=claim.not_tested,
        literature=judged.literature,
    )


def effect(finding: Finding) -> str:
    """`1.31× [1.28, 1.34]`, in the unit of the effect; empty where nothing was measured."""
    found = finding.effect
    return _measure(found.value, finding.interval, found.unit, finding.verdict) if found else ""


def _measure(value: float | None, interval: Interval | None, unit: str, word: Label) -> str:
    """0.41× [0.40, 0.42]: a value, and its interval in the same unit if it has one.

    A count that is exact has none, and its verdict is not open.
    """
    if value is None:
        return ""
    shown = text.quantity(value, unit)
    if interval is None or not interval.known:
        return f"{shown} (no interval)" if interval or word == "inconclusive" else shown
    ends = text.quantity(interval.low, unit), text.quantity(interval.high, unit)
    bounds = text.interval(interval.low, interval.high)
    return f"{shown} {bounds if unit in text.RATIO_UNITS else '[' + ', '.join(ends) + ']'}"


def _regimes(regimes: Sequence[Regime], unit: str) -> Table | None:
    rows = tuple((r.name, _marked(r.verdict), _value(r, unit)) for r in regimes)
    return Table(("regime", "verdict", "value"), rows, "llr") if rows else None


def _value(regime: Regime, unit: str) -> str:
    return _measure(regime.value, regime.interval, unit, regime.verdict)


def _strongest(regimes: Sequence[Regime], unit: str) -> Iterator[tuple[str, str]]:
    sides = ("Where the claim is strongest", "Where its opposite is strongest")
    for words, found in zip(sides, strongest(regimes), strict=True):
        parts = (found.name, _value(found, unit)) if found else ()
        yield words, ": ".join(filter(None, parts)) or "in no regime that was measured"


def _marked(word: Label) -> str:
    return f"{_MARKS[word][0]}\N{NO-BREAK SPACE}{word}"

"""The verdicts on the claims, ready to print."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from compare.claims.base import Finding, Label, Regime, Verdict, strongest
from compare.page.blocks import Block, Bullets, Folded, Picture, Section, Table, Terms, VerdictMark
from compare.stats import Interval
from compare.words import text

# A word and a shape for each verdict, so that colour is never the only cue, and what is said of several.
_MARKS = {
    "supported": ("✓", "yes", "supported"),
    "refuted": ("✗", "no", "refuted"),
    "depends": ("◐", "mixed", "true under some conditions only"),
    "proxy only": ("◇", "mixed", "judged by proxies only"),
    "inconclusive": ("?", "open", "inconclusive"),
    "not measured yet": ("○", "open", "not measured yet"),
}
_RULE = "The claim, its opposite, the rule, what was not tested, and the literature"


def headline(verdicts: Sequence[Verdict]) -> str:
    """One sentence that counts the verdicts."""
    if not verdicts:
        return "No verdict was computed for this run."
    counts = Counter[str](verdict.finding.verdict for verdict in verdicts)
    parts = [f"{counts[word]} {said}" for word, (_, _, said) in _MARKS.items() if counts[word]]
    return f"Of {text.counted(len(verdicts), 'claim')}: {text.listed(parts)}."


def section(judged: Verdict, pictures: Sequence[Picture]) -> Section:
    """All that a run says about one claim, with the figures that show it."""
    claim, finding = judged.claim, judged.finding
    unit = finding.effect.unit if finding.effect else ""
    said = (
        ("The claim", claim.statement),
        ("Its opposite", claim.opposite),
        ("What is measured", claim.measured),
        ("The rule, fixed before the data", claim.rule),
    )
    lists = (("Not tested", claim.not_tested), ("Literature", judged.literature))
    rule = Terms(tuple((name, value) for name, value in said if value))
    several = (Terms(tuple(_strongest(finding, unit))), _regimes(finding.regimes, unit))
    blocks: tuple[Block | None, ...] = (
        mark(judged),
        *(() if _repeats(finding) else several),
        *pictures[:1],
        *folded(pictures[1:]),
        Bullets(judged.reasons, "Reasons") if judged.reasons else None,
        Folded(_RULE, (rule, *(Bullets(lines, name) for name, lines in lists if lines))),
    )
    return Section(f"{claim.id}: {claim.title}", tuple(filter(None, blocks)), f"claim-{anchor(claim.id)}")


def _repeats(finding: Finding) -> bool:
    """Whether the regimes say nothing that the effect has not said: of a function there is one, itself."""
    values = [regime.value for regime in finding.regimes]
    return len(values) < 2 and finding.effect is not None and values == [finding.effect.value]


def folded(pictures: Sequence[Picture]) -> Iterator[Folded]:
    """Each picture under its title: who wants to know more than the first one says opens it."""
    return (Folded(picture.title, (picture,)) for picture in pictures)


def anchor(id: str) -> str:
    """The name that links to a claim."""
    return "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in id).lower()


def mark(judged: Verdict) -> VerdictMark:
    """The verdict as a sign and a word, with its effect."""
    finding = judged.finding
    icon, tone, _ = _MARKS[finding.verdict]
    return VerdictMark(icon, finding.verdict, tone, effect(finding), finding.effect.name if finding.effect else "")


def marked(judged: Verdict | Regime) -> str:
    """`✓ supported`."""
    return _marked(judged.verdict if isinstance(judged, Regime) else judged.finding.verdict)


def measured(judged: Verdict) -> bool:
    """Whether the run holds anything about the claim."""
    return judged.finding.verdict != "not measured yet"


def effect(finding: Finding) -> str:
    """`0.76× [0.75, 0.78]`, static ÷ dynamic if it is a ratio; empty where nothing was measured."""
    shown = finding.effect
    return _measure(shown.value, finding.interval, shown.unit, finding.verdict) if shown else ""


def _measure(value: float | None, interval: Interval | None, unit: str, word: Label) -> str:
    """0.41× [0.40, 0.42]: a value, and its interval in the same unit if it has one.

    A count that is exact has none, and its verdict is not open.
    """
    if value is None:
        return ""
    shown = text.quantity(value, unit)
    if interval is None or not interval.bounded:
        return f"{shown} (no interval)" if interval or word == "inconclusive" else shown
    ends = text.quantity(interval.low, unit), text.quantity(interval.high, unit)
    bounds = text.interval(interval.low, interval.high)
    return f"{shown} {bounds if unit in text.RATIO_UNITS else '[' + ', '.join(ends) + ']'}"


def _regimes(regimes: Sequence[Regime], unit: str) -> Table | None:
    rows = tuple((r.name, _marked(r.verdict), value_of(r, unit)) for r in regimes)
    return Table(("regime", "verdict", "value"), rows, "llr", "Regimes") if rows else None


def value_of(regime: Regime, unit: str) -> str:
    """The value of a regime in the unit of its finding, with its interval."""
    return _measure(regime.value, regime.interval, unit, regime.verdict)


def _strongest(finding: Finding, unit: str) -> Iterator[tuple[str, str]]:
    sides = ("Where the claim is strongest", "Where its opposite is strongest")
    for words, regime in zip(sides, strongest(finding), strict=True):
        parts = (regime.name, value_of(regime, unit)) if regime else ()
        yield words, ": ".join(filter(None, parts)) or "in no regime that was measured"


def _marked(word: Label) -> str:
    return f"{_MARKS[word][0]}\N{NO-BREAK SPACE}{word}"

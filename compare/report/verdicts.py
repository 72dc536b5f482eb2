"""Verdicts as blocks of the page: as a row, as a section for each claim, and the answer that opens the page.

The answer gives advice that the run supports, and the claims as rows. The calculator is a section of its own. The last
part draws small SVG pictures in rows of a table: dots with intervals, an axis, and a dashed line at no difference. A
dot is the value of a claim in one regime (`draw_claim`), or the ratio of a run or machine (`draw_runs`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from compare import text
from compare.claims import regimes
from compare.claims.base import SMALLEST_EFFECT, Finding, Label, Regime, Verdict, strongest
from compare.claims.changes import JudgedRun
from compare.claims.regimes import CostPlace
from compare.records.record import Cell, Records, group_by
from compare.report import summary as model
from compare.report.blocks import (
    Block,
    Bullets,
    Calculator,
    ClaimRow,
    Claims,
    FoldedBlock,
    Picture,
    Section,
    Table,
    Terms,
    VerdictMark,
    section,
)
from compare.report.summary import Ratio, Summary
from compare.stats import Interval, geometric_mean
from graphs.errors import escape_html

# For each verdict an icon, so that colour is never the only cue, its tone, and its words in a count of verdicts.
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
    """Return a sentence that counts the verdicts."""
    if not verdicts:
        return "No verdict was computed for this run."
    counts = Counter[str](verdict.finding.verdict for verdict in verdicts)
    parts = [f"{counts[word]} {said}" for word, (_, _, said) in _MARKS.items() if counts[word]]
    return f"Of {text.count_noun(len(verdicts), 'claim')}: {text.join_words(parts)}."


def claim_section(judged: Verdict, pictures: Sequence[Picture]) -> Section:
    """Return the section on one claim: its verdict, regimes, figures, reasons, and the rule in a folded block."""
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
    rows = tuple((r.name, _mark_word(r.verdict), value_of(r, unit)) for r in finding.regimes)
    table = Table(("regime", "verdict", "value"), rows, "llr", "Regimes") if rows else None
    several = (Terms(tuple(_strongest(finding, unit))), table)
    # For one function the only regime has the value of the effect, so that it need not be shown again.
    values = [regime.value for regime in finding.regimes]
    repeats = len(values) < 2 and finding.effect is not None and values == [finding.effect.value]
    blocks: tuple[Block | None, ...] = (
        mark(judged),
        *(() if repeats else several),
        *pictures[:1],
        *fold_pictures(pictures[1:]),
        Bullets(judged.reasons, "Reasons") if judged.reasons else None,
        FoldedBlock(_RULE, (rule, *(Bullets(lines, name) for name, lines in lists if lines))),
    )
    return Section(f"{claim.id}: {claim.title}", tuple(filter(None, blocks)), f"claim-{anchor(claim.id)}")


def fold_pictures(pictures: Sequence[Picture]) -> Iterator[FoldedBlock]:
    """Return each picture in a folded block under its title, for readers who want more than the first picture."""
    return (FoldedBlock(picture.title, (picture,)) for picture in pictures)


def anchor(id: str) -> str:
    """Return the anchor of a claim."""
    return "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in id).lower()


def mark(judged: Verdict) -> VerdictMark:
    """Return the verdict as an icon and a word, with its effect."""
    finding = judged.finding
    icon, tone, _ = _MARKS[finding.verdict]
    return VerdictMark(icon, finding.verdict, tone, effect(finding), finding.effect.name if finding.effect else "")


def mark_label(judged: Verdict | Regime) -> str:
    """Return a verdict with its icon, as `✓ supported`."""
    return _mark_word(judged.verdict if isinstance(judged, Regime) else judged.finding.verdict)


def is_measured(judged: Verdict) -> bool:
    """Whether the run measured anything that the claim reads."""
    return judged.finding.verdict != "not measured yet"


def effect(finding: Finding) -> str:
    """Return the effect as `0.76× [0.75, 0.78]`, a ratio being static ÷ dynamic; "" if nothing was measured."""
    shown = finding.effect
    return _measure(shown.value, finding.interval, shown.unit, finding.verdict) if shown else ""


def _measure(value: float | None, interval: Interval | None, unit: str, word: Label) -> str:
    """Return a value with its interval in the same unit, as `0.41× [0.40, 0.42]`.

    `(no interval)` marks a value whose interval is missing; an exact count needs none.
    """
    if value is None:
        return ""
    shown = text.quantity(value, unit)
    if interval is None or not interval.bounded:
        return f"{shown} (no interval)" if interval or word == "inconclusive" else shown
    ends = text.quantity(interval.low, unit), text.quantity(interval.high, unit)
    bounds = text.interval(interval.low, interval.high)
    return f"{shown} {bounds if unit in text.RATIO_UNITS else '[' + ', '.join(ends) + ']'}"


def value_of(regime: Regime, unit: str) -> str:
    """Return the value of a regime with its interval, in the unit of its finding."""
    return _measure(regime.value, regime.interval, unit, regime.verdict)


def _strongest(finding: Finding, unit: str) -> Iterator[tuple[str, str]]:
    sides = ("Where the claim is strongest", "Where its opposite is strongest")
    for words, regime in zip(sides, strongest(finding), strict=True):
        parts = (regime.name, value_of(regime, unit)) if regime else ()
        yield words, ": ".join(filter(None, parts)) or "in no regime that was measured"


def _mark_word(word: Label) -> str:
    return f"{_MARKS[word][0]}\N{NO-BREAK SPACE}{word}"


NAME = "answer"
EXPLAINED = (
    "Every ratio on this page is static ÷ dynamic: 0.8× means that static takes 0.8 of what dynamic takes. "
    "Below 1× static is faster or smaller, above 1× dynamic is. Square brackets hold the 95% interval: the range that "
    "the noise of this run leaves open."
)
FLOAT = 4
"""The bytes of one element of the crossover map, float32."""
PAGE = 4096
"""The bytes of a page of memory."""
_RUNS = 10_000
"""The runs in the sentence on how many shapes compiling pays for."""
_WORDS = {"faster": "faster", "slower": "slower", "tie": "a tie", "cannot tell": "unclear"}
_CALCULATOR = (
    "The formula was fitted to the chains of equal ops that this run timed. Ops are those of the forward pass; the "
    "costs include the backward pass. Each new shape costs one compilation."
)


def answer(summary: Summary, judged: Sequence[Verdict], pictures: Sequence[Picture]) -> Section:
    """Return the section that opens the page: advice, claims, figures, and a sentence on speed."""
    first, *further = (*advice(summary.places), "")
    blocks: tuple[Block, ...] = (
        first,
        headline(judged),
        claims(judged),
        EXPLAINED,
        *further,
        *pictures,
        speed(summary.ratios, regimes.places(summary.records)),
    )
    return Section("The answer", tuple(filter(None, blocks)), NAME)


def advice(places: Sequence[CostPlace]) -> Iterator[str]:
    """Yield sentences on when to compile, as far as the crossover map shows it; none if it does not."""
    reach = _reach(places)
    if reach is None:
        return
    inside = [place for place in places if place.at.elements <= reach]
    paid = max(place.pays_after or 1 for place in inside)
    low, mean, high = _spread(inside)
    arrays = f"hold up to {text.size(reach * FLOAT)} each" if reach * FLOAT >= PAGE else "are tiny"
    yield (
        f"Compile a step that runs more than {paid:,} times for each shape of its inputs, if its arrays "
        f"{arrays}: once compiled, it is {_speedup(mean)} faster than dynamic ({_speedup(high)} to "
        f"{_speedup(low)})."
    )
    yield (
        f"If the step runs {_RUNS:,} times, compiling pays with up to "
        f"{text.count_noun(max(1, _RUNS // paid), 'shape')}."
    )
    yield from _beyond([place for place in places if place.at.elements > reach])


def _reach(places: Sequence[CostPlace]) -> int | None:
    """Return the largest tensor size up to which static is faster at every place of the map; None without one."""
    reach = None
    for size in sorted({place.at.elements for place in places}):
        if any(place.steady.side(SMALLEST_EFFECT) != "below" for place in places if place.at.elements == size):
            break
        reach = size
    return reach


def _beyond(places: Sequence[CostPlace]) -> Iterator[str]:
    if places:
        largest = max(place.at.elements for place in places)
        groups = group_by([place for place in places if place.at.elements == largest], lambda place: place.at.ops)
        kinds = {ops: map(_ratio, _spread(of)) for ops, of in groups.items()}
        said = [f"{mean} ({low} to {high}) for {ops} ops" for ops, (low, mean, high) in kinds.items()]
        size = text.size(largest * FLOAT)
        yield f"With larger arrays the op decides: at {size} static ÷ dynamic is {text.join_words(said)}."


def _spread(places: Sequence[CostPlace]) -> tuple[float, float, float]:
    """Return the least, the geometric mean and the largest of static ÷ dynamic."""
    ratios = [place.steady.estimate for place in places]
    return min(ratios), geometric_mean(ratios), max(ratios)


def _ratio(value: float) -> str:
    return text.ratio(float(f"{value:.2g}"))


def _speedup(ratio: float) -> str:
    """Return how many times faster static is, for a ratio of times."""
    return _ratio(1 / ratio)


def speed(ratios: Sequence[Ratio], where: Mapping[Cell, regimes.StepCounts]) -> str:
    """Return a sentence that counts in how many cells the best static mode is faster, ties or is slower.

    Cells with realistic steps are counted first, then all cells.
    """
    best: dict[Cell, Ratio] = {}
    for ratio in sorted(ratios, key=lambda ratio: ratio.interval.estimate):
        best.setdefault(ratio.cell, ratio)
    if not best:
        return "No time of dynamic and of static once warm can be compared in this run."
    large = regimes.by_size(best.values(), where).get(regimes.REALISTIC, [])
    of_large = (
        f"over {text.count_noun(len(large), 'cell')} with {regimes.REALISTIC}: {_count_wins(large)}; " if large else ""
    )
    of_all = f"over {text.count_noun(len(best), 'cell')} (workload and size): {_count_wins(best.values())}"
    return f"Once warm, static with its fastest shape policy is, compared with dynamic, {of_large}{of_all}."


def _count_wins(ratios: Iterable[Ratio]) -> str:
    counts = Counter(ratio.words for ratio in ratios)
    return text.join_words([f"{said} in {counts[words]}" for words, said in _WORDS.items() if counts[words]])


def claims(judged: Sequence[Verdict]) -> Claims:
    """Return the claims as rows of a table."""
    return Claims(tuple(map(_row, judged)))


def _row(judged: Verdict) -> ClaimRow:
    finding = judged.finding
    svg, words = draw_claim(judged.claim.id, finding)
    claim, reason = judged.claim, "".join(finding.reasons[:1])
    why = f"{text.begin_sentence(reason).rstrip('.')}." if reason else ""
    place = anchor(claim.id) if is_measured(judged) else ""
    return ClaimRow(claim.id, claim.title, place, mark(judged), why, svg, words)


def calculator(summary: Summary) -> Section | None:
    """Return the section with the calculator, by the cost models of this run; None without a crossover map."""
    models = model.fit_cost_models(summary.places)
    if not models:
        return None
    errors = (
        f"For {fit.ops} ops it gives static ÷ dynamic of this run's own cells within a factor of {fit.error:.3g} in "
        f"the median cell and {fit.worst:.3g} in the worst."
        for fit in models
    )
    rows = tuple(
        (fit.ops, engine, *(text.seconds(value) for value in (*line, *build)), *[""] * (2 - len(build)))
        for fit in models
        for engine, line, build in (("dynamic", fit.dynamic, ()), ("static", fit.static, fit.build))
    )
    coefficients = Table(("ops", "engine", "a", "b", "c", "d", "e"), rows, "llrrrrr", "The coefficients of this run")
    return section("Calculator", _CALCULATOR, f"{model.FORMULA}.", *errors, Calculator(tuple(models)), coefficients)


# Verdicts on a terminal ----------------------------------------------------------------------------------------------


WIDE = 120
"""A terminal narrower than this gets tables with fewer columns."""


def verdict_table(verdicts: Iterable[Verdict]) -> None:
    """Print the verdict on each claim with effect and 95% interval; the name of the effect only if there is room."""
    columns = ["", "claim", "verdict", "effect, 95% interval", "of what"]
    marks = [(verdict.claim, mark(verdict)) for verdict in verdicts]
    rows = [[claim.id, claim.title, mark.word, mark.effect, mark.of] for claim, mark in marks]
    if text.console().width < WIDE:
        columns, rows = columns[:4], [row[:4] for row in rows]
    text.show_table(columns, rows, whole=columns[2:4])


def narrow_table(records: Records) -> None:
    """Print static ÷ dynamic in steady state for each cell, for a run with too few cells to judge claims."""
    columns = ("cell", "mode", "steady state, static ÷ dynamic", "")
    ratios = model.summarise(records).ratios
    rows = [(ratio.cell.title, ratio.mode, text.estimate(ratio.interval), ratio.words) for ratio in ratios]
    if rows:
        text.show_table(columns, rows, whole=columns)


# Pictures in rows of a table ------------------------------------------------------------------------------------------


_WIDTH, _HEIGHT, _EDGE = 160, 42, 6
_LABELS = 46
"""The width of the axis labels on the right, in which `1/1.15×` fits."""
_MOST = 40
_WIDEST = 16.0
"""The largest ratio that the scale shows on each side of a tie; values beyond are drawn at the edge."""
_LEAST_REACH = 1.1
_SIDES = {"above": "no", "below": "yes", "tie": "open", "unclear": "open"}
_TONES = {"supported": "yes", "refuted": "no", "depends": "mixed", "proxy only": "mixed"}


@dataclass(frozen=True)
class _Scale:
    """The values at the bottom, on the dashed line and at the top; ratios have a log scale, shares a linear one."""

    low: float
    middle: float
    high: float
    unit: str = "ratio"

    @classmethod
    def of_ratios(cls, reach: float) -> _Scale:
        return cls(1 / reach, 1.0, reach)

    def height(self, value: float) -> float:
        """Return the distance of a value from the top, in pixels; values beyond the scale are at the edge."""
        bottom, here, top = map(self._place, (self.low, min(max(value, self.low), self.high), self.high))
        return round(_HEIGHT - _EDGE - (here - bottom) / (top - bottom) * (_HEIGHT - 2 * _EDGE), 1)

    def _place(self, value: float) -> float:
        return value if self.unit == "share" else math.log(value)

    def _label(self, value: float) -> str:
        """Return the label of a value; a ratio below 1 is written as `1/16×`, which is short."""
        below = self.unit == "ratio" and value < 1
        return f"1/{text.ratio(1 / value)}" if below else text.quantity(value, self.unit)

    def axis(self) -> Iterator[str]:
        """Yield the SVG of the dashed line, and of the labels of the three values."""
        middle = self.height(self.middle)
        yield f'<line class="tie" x1="0" x2="{_WIDTH}" y1="{middle}" y2="{middle}"/>'
        for value in (self.low, self.middle, self.high):
            at = self.height(value) + 3
            yield f'<text x="{_WIDTH + 3}" y="{at:g}">{self._label(value)}</text>'


_SHARES = _Scale(0.0, 0.5, 1.0, "share")


@dataclass(frozen=True)
class _Dot:
    """A value with its interval, its colour class, and the text of its tooltip."""

    value: float
    interval: Interval | None
    tone: str
    words: str

    def marks(self, x: float, scale: _Scale) -> str:
        bar = ""
        if self.interval is not None and self.interval.bounded and self.interval.high > self.interval.low:
            top, bottom = scale.height(self.interval.high), scale.height(self.interval.low)
            bar = f'<line class="{self.tone}" x1="{x}" x2="{x}" y1="{top}" y2="{bottom}"/>'
        dot = f'<circle class="{self.tone}" cx="{x}" cy="{scale.height(self.value)}" r="2.2"/>'
        return f"<g><title>{escape_html(self.words)}</title>{bar}{dot}</g>"


def draw_claim(claim: str, finding: Finding) -> tuple[str, str]:
    """Draw the regimes of a claim; returns the SVG and its text, both "" if no regime has a value."""
    valued = [regime for regime in finding.regimes if regime.value is not None][:_MOST]
    if finding.effect is None or not valued:
        return "", ""
    unit = finding.effect.unit
    scale = _Scale.of_ratios(_WIDEST) if unit in text.RATIO_UNITS else _SHARES
    dots = sorted((_of_regime(regime, unit) for regime in valued), key=lambda dot: dot.value)
    low, high = (text.quantity(dot.value, unit) for dot in (dots[0], dots[-1]))
    zero = "50%" if scale is _SHARES else "1×, no difference"
    words = f"{claim}: {text.count_noun(len(valued), 'regime')}, from {low} to {high}; the line is at {zero}"
    return _svg(words, dots, scale), words


def _of_regime(regime: Regime, unit: str) -> _Dot:
    value = regime.value or 0.0
    tone = _TONES.get(regime.verdict, "open")
    return _Dot(value, regime.interval, tone, f"{regime.name}: {text.quantity(value, unit)}")


@dataclass(frozen=True)
class RunPoint:
    """The ratio of one run: to the first run on its machine, or to the base of its cell."""

    run: str
    ratio: Interval

    @property
    def far(self) -> float:
        """The distance of the ratio from 1, up or down, on a log scale."""
        return abs(math.log(self.ratio.estimate))


def run_points(runs: Sequence[JudgedRun], ratios: Sequence[Interval | None]) -> list[RunPoint | None]:
    """Return a point for the ratio of each run; None for a run without one."""
    return [RunPoint(run.name, ratio) if ratio else None for run, ratio in zip(runs, ratios, strict=True)]


def draw_runs(label: str, points: Sequence[RunPoint | None]) -> tuple[str, str]:
    """Draw the ratio of each run, with a gap for None; returns the SVG and its text.

    The scale reaches to the farthest dot, and at least 10% each way.
    """
    words = ", ".join(text.ratio(point.ratio.estimate) if point else "not measured" for point in points)
    reach = max([_LEAST_REACH, *(math.exp(point.far) for point in points if point)])
    dots = [_run_dot(point) if point else None for point in points]
    return _svg(f"{label}: {words}", dots, _Scale.of_ratios(reach)), words


def _run_dot(point: RunPoint) -> _Dot:
    said = f"{point.run}: {text.ratio(point.ratio.estimate)}"
    return _Dot(point.ratio.estimate, point.ratio, _SIDES[point.ratio.side(SMALLEST_EFFECT)], said)


def _svg(label: str, dots: Sequence[_Dot | None], scale: _Scale) -> str:
    """Return the SVG of dots from left to right, with a gap for None."""
    step = (_WIDTH - 2 * _EDGE) / max(len(dots), 1)
    marks = (dot.marks(round(_EDGE + (place + 0.5) * step, 1), scale) for place, dot in enumerate(dots) if dot)
    box = f"0 0 {_WIDTH + _LABELS} {_HEIGHT}"
    head = f'<svg class="spark" role="img" aria-label="{escape_html(label)}" viewBox="{box}">'
    return f"{head}{''.join(scale.axis())}{''.join(marks)}</svg>"

"""Small SVG pictures in rows of a table: dots with intervals, an axis, and a dashed line at no difference.

A dot is the value of a claim in one regime (`draw_claim`), or the ratio of a run or machine (`over`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compare.claims.base import SMALLEST_EFFECT, Finding, Regime
from compare.claims.changes import JudgedRun
from compare.stats import Interval
from compare.words import text
from graphs.plain import escape_html

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


def points(runs: Sequence[JudgedRun], ratios: Sequence[Interval | None]) -> list[RunPoint | None]:
    """Return a point for the ratio of each run; None for a run without one."""
    return [RunPoint(run.name, ratio) if ratio else None for run, ratio in zip(runs, ratios, strict=True)]


def over(label: str, points: Sequence[RunPoint | None]) -> tuple[str, str]:
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

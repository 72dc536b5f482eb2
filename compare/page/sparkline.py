"""Small pictures in a row of a table: dots with their intervals, an axis, and the line of no difference.

A dot is a claim's effect in a regime, or a value's ratio to that of the first run.
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
"""What the axis takes on the right: `1/1.15×` fits."""
_MOST = 40
_WIDEST = 16.0
"""The ratio that the scale shows on each side of a tie; what lies beyond stands at the edge."""
_LEAST_REACH = 1.1
_SIDES = {"above": "no", "below": "yes", "tie": "open", "unclear": "open"}
_TONES = {"supported": "yes", "refuted": "no", "depends": "mixed", "proxy only": "mixed"}


@dataclass(frozen=True)
class _Scale:
    """The values at the bottom, on the dashed line and on top. Ratios lie on a log scale, shares on a linear one."""

    low: float
    middle: float
    high: float
    unit: str = "ratio"

    @classmethod
    def of_ratios(cls, reach: float) -> _Scale:
        return cls(1 / reach, 1.0, reach)

    def height(self, value: float) -> float:
        """Where a value stands, from the top; at the edge where it lies beyond."""
        bottom, here, top = map(self._place, (self.low, min(max(value, self.low), self.high), self.high))
        return round(_HEIGHT - _EDGE - (here - bottom) / (top - bottom) * (_HEIGHT - 2 * _EDGE), 1)

    def _place(self, value: float) -> float:
        return value if self.unit == "share" else math.log(value)

    def _label(self, value: float) -> str:
        """`1/16×` for what is below a tie: a short label at a small size."""
        below = self.unit == "ratio" and value < 1
        return f"1/{text.ratio(1 / value)}" if below else text.quantity(value, self.unit)

    def axis(self) -> Iterator[str]:
        """The dashed line, and the three values that say what a height means."""
        middle = self.height(self.middle)
        yield f'<line class="tie" x1="0" x2="{_WIDTH}" y1="{middle}" y2="{middle}"/>'
        for value in (self.low, self.middle, self.high):
            at = self.height(value) + 3
            yield f'<text x="{_WIDTH + 3}" y="{at:g}">{self._label(value)}</text>'


_SHARES = _Scale(0.0, 0.5, 1.0, "share")


@dataclass(frozen=True)
class _Dot:
    """A value with its interval, the class of its colour, and what it says when a reader points at it."""

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
    """The SVG and its words; both empty where no regime has a value."""
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
    """A run's value as a ratio: to that of the first run on its machine, or to the base of its cell."""

    run: str
    ratio: Interval

    @property
    def far(self) -> float:
        """How far it is from 1, up or down, on a log scale."""
        return abs(math.log(self.ratio.estimate))


def points(runs: Sequence[JudgedRun], ratios: Sequence[Interval | None]) -> list[RunPoint | None]:
    """A point for the ratio of each run that has one."""
    return [RunPoint(run.name, ratio) if ratio else None for run, ratio in zip(runs, ratios, strict=True)]


def over(label: str, points: Sequence[RunPoint | None]) -> tuple[str, str]:
    """The SVG of a ratio in each run, None where one has it not, and its words.

    The scale reaches as far as the farthest dot, and by 10% each way at least.
    """
    words = ", ".join(text.ratio(point.ratio.estimate) if point else "not measured" for point in points)
    reach = max([_LEAST_REACH, *(math.exp(point.far) for point in points if point)])
    dots = [_run_dot(point) if point else None for point in points]
    return _svg(f"{label}: {words}", dots, _Scale.of_ratios(reach)), words


def _run_dot(point: RunPoint) -> _Dot:
    said = f"{point.run}: {text.ratio(point.ratio.estimate)}"
    return _Dot(point.ratio.estimate, point.ratio, _SIDES[point.ratio.side(SMALLEST_EFFECT)], said)


def _svg(label: str, dots: Sequence[_Dot | None], scale: _Scale) -> str:
    """The dots from left to right, a gap for None."""
    step = (_WIDTH - 2 * _EDGE) / max(len(dots), 1)
    marks = (dot.marks(round(_EDGE + (place + 0.5) * step, 1), scale) for place, dot in enumerate(dots) if dot)
    box = f"0 0 {_WIDTH + _LABELS} {_HEIGHT}"
    head = f'<svg class="spark" role="img" aria-label="{escape_html(label)}" viewBox="{box}">'
    return f"{head}{''.join(scale.axis())}{''.join(marks)}</svg>"

"""Small pictures in a row of a table: dots with their intervals, and the line of no difference.

A dot is a claim's effect in a regime, or a value's ratio to that of the first run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from compare.claims.base import SMALLEST_EFFECT, Finding, Regime
from compare.stats import Interval
from compare.words import text

_WIDTH, _HEIGHT, _EDGE = 160, 34, 4
_MOST = 40
_WIDEST = 4.0  # doublings that the scale shows on each side of a tie; what lies beyond stands at the edge
_LEAST_REACH = math.log(1.1)
_SIDES = {"above": "no", "below": "yes", "tie": "open", "unclear": "open"}
_TONES = {"supported": "yes", "refuted": "no", "depends": "mixed", "proxy only": "mixed"}


def drawn(claim: str, finding: Finding) -> tuple[str, str]:
    """The SVG and its words; both empty where no regime has a value."""
    valued = [regime for regime in finding.regimes if regime.value is not None][:_MOST]
    if finding.effect is None or not valued:
        return "", ""
    ratio = finding.effect.unit in text.RATIO_UNITS
    ordered = sorted(valued, key=lambda regime: regime.value or 0.0)
    low, high = (text.quantity(regime.value or 0.0, finding.effect.unit) for regime in (ordered[0], ordered[-1]))
    words = f"{claim}: {text.counted(len(valued), 'regime')}, from {low} to {high}; the line is at {_zero(ratio)}"
    marks = "".join(_marks(ordered, ratio))
    head = f'<svg class="spark" role="img" aria-label="{escape(words)}" viewBox="0 0 {_WIDTH} {_HEIGHT}">'
    return f"{head}<title>{escape(words)}</title>{marks}</svg>", words


def _zero(ratio: bool) -> str:
    return "1×, no difference" if ratio else "50%"


def _marks(regimes: Sequence[Regime], ratio: bool) -> Iterator[str]:
    middle = _height(1.0 if ratio else 0.5, ratio)
    yield f'<line class="tie" x1="0" x2="{_WIDTH}" y1="{middle}" y2="{middle}"/>'
    step = (_WIDTH - 2 * _EDGE) / len(regimes)
    for place, regime in enumerate(regimes):
        x, tone = round(_EDGE + (place + 0.5) * step, 1), _TONES.get(regime.verdict, "open")
        if regime.interval is not None and regime.interval.known:
            top, bottom = _height(regime.interval.high, ratio), _height(regime.interval.low, ratio)
            yield f'<line class="{tone}" x1="{x}" x2="{x}" y1="{top}" y2="{bottom}"/>'
        yield f'<circle class="{tone}" cx="{x}" cy="{_height(regime.value or 0.0, ratio)}" r="2"/>'


def _height(value: float, ratio: bool) -> float:
    """Where a value stands: ratios on a log scale around 1, shares from 0 to 1 upwards."""
    if ratio:
        doublings = math.log2(value) if value > 0 else -_WIDEST
        share = (max(-_WIDEST, min(_WIDEST, doublings)) + _WIDEST) / (2 * _WIDEST)
    else:
        share = max(0.0, min(1.0, value))
    return round(_HEIGHT - _EDGE - share * (_HEIGHT - 2 * _EDGE), 1)


@dataclass(frozen=True)
class RunPoint:
    """A run's value divided by that of the first run on its machine."""

    run: str
    ratio: Interval

    @property
    def far(self) -> float:
        """How far it is from 1, up or down, on a log scale."""
        return abs(math.log(self.ratio.estimate))


def over_runs(label: str, points: Sequence[RunPoint | None]) -> tuple[str, str]:
    """The SVG of a value over runs, None where a run has it not, and its words.

    The scale reaches as far as the farthest dot, and by 10% each way at least.
    """
    words = ", ".join(text.ratio(point.ratio.estimate) if point else "not measured" for point in points)
    reach = max([_LEAST_REACH, *(point.far for point in points if point)])
    step = (_WIDTH - 2 * _EDGE) / max(len(points), 1)
    marks = "".join(
        _run_mark(round(_EDGE + (place + 0.5) * step, 1), point, reach) for place, point in enumerate(points) if point
    )
    middle = _log_height(1.0, reach)
    tie = f'<line class="tie" x1="0" x2="{_WIDTH}" y1="{middle}" y2="{middle}"/>'
    said = escape(f"{label}, each run divided by the first: {words}")
    head = f'<svg class="spark" role="img" aria-label="{said}" viewBox="0 0 {_WIDTH} {_HEIGHT}">'
    return f"{head}{tie}{marks}</svg>", words


def _run_mark(x: float, point: RunPoint, reach: float) -> str:
    ratio = point.ratio
    tone = _SIDES[ratio.side(SMALLEST_EFFECT)]
    bar = ""
    if ratio.known and ratio.high > ratio.low:
        top, bottom = _log_height(ratio.high, reach), _log_height(ratio.low, reach)
        bar = f'<line class="{tone}" x1="{x}" x2="{x}" y1="{top}" y2="{bottom}"/>'
    said = escape(f"{point.run}: {text.ratio(ratio.estimate)}")
    dot = f'<circle class="{tone}" cx="{x}" cy="{_log_height(ratio.estimate, reach)}" r="2.5"/>'
    return f"<g><title>{said}</title>{bar}{dot}</g>"


def _log_height(ratio: float, reach: float) -> float:
    share = (max(-1.0, min(1.0, math.log(ratio) / reach)) + 1) / 2
    return round(_HEIGHT - _EDGE - share * (_HEIGHT - 2 * _EDGE), 1)

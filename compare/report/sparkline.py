"""A claim's effect in each regime as a small picture: a dot with its interval, and the line of no difference."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape

from compare.claims.base import Finding, Regime
from compare.report import text

_WIDTH, _HEIGHT, _EDGE = 160, 34, 4
_MOST = 40
_WIDEST = 4.0  # doublings that the scale shows on each side of a tie; what lies beyond stands at the edge
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

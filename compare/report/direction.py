"""One direction for every ratio on the page: static ÷ dynamic, below 1 where static is faster or smaller.

Rules compute what suits them, and `verdicts.json` keeps it; what is shown is turned here.
"""

from __future__ import annotations

from dataclasses import replace

from compare.claims.base import Finding, Regime
from compare.report import text

EXPLAINED = (
    "Every ratio on this page is static ÷ dynamic: 0.8× means that static takes 0.8 of what dynamic takes. "
    "Below 1× static is faster or smaller, above 1× dynamic is. Square brackets hold the 95% interval: the range that "
    "the noise of this run leaves open."
)
_OTHER, _SHOWN = "dynamic / static", "static ÷ dynamic"


def shown(finding: Finding) -> Finding:
    """The finding with its ratios as static ÷ dynamic, and so named."""
    effect = finding.effect
    if effect is None or effect.unit not in text.RATIO_UNITS:
        return finding
    if _OTHER not in effect.name:
        return replace(finding, effect=replace(effect, name=effect.name.replace("static / dynamic", _SHOWN)))
    return replace(
        finding,
        effect=replace(effect, name=effect.name.replace(_OTHER, _SHOWN), value=1 / effect.value),
        interval=finding.interval and finding.interval.inverse,
        regimes=tuple(map(_turned, finding.regimes)),
    )


def _turned(regime: Regime) -> Regime:
    value = 1 / regime.value if regime.value else regime.value
    return replace(regime, value=value, interval=regime.interval and regime.interval.inverse)

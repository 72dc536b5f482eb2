"""Figures of the literature: each with its source, under which condition it was measured, and whether a run agrees.

A figure is set beside the regime of a run whose condition comes nearest. It agrees in sign where the run's interval
lies on the same side of 1, and in size where that holds the figure as well. Where nothing in a run measures the same,
that is said, with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from compare.stats import Interval
from compare.words import text

SMALLEST = 0.05
"""As in `compare.claims.base`, which reads this module: ratios nearer to 1 are a tie."""


class Comparable(Protocol):
    """A regime: its name, and the ratio found there."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def value(self) -> float | None: ...  # noqa: D102
    @property
    def interval(self) -> Interval | None: ...  # noqa: D102


@dataclass(frozen=True)
class Cited:
    """A figure in words, its source, and its condition.

    `ratio` is the figure in the unit of the regime whose name holds `beside`; where nothing is comparable, `apart` says
    why.
    """

    figure: str
    source: str
    condition: str
    ratio: float = 1.0
    beside: str = ""
    apart: str = ""

    def __str__(self) -> str:
        return f"{self.figure} ({self.source}); measured on {self.condition}"

    def told(self, regimes: Sequence[Comparable]) -> str:
        """The figure, and whether regimes of this run agree with it."""
        return f"{self}. {self._agrees(regimes)}"

    def _agrees(self, regimes: Sequence[Comparable]) -> str:
        if self.apart:
            return f"This run measured something else: {self.apart}"
        near = next((regime for regime in regimes if self.beside in regime.name and regime.value is not None), None)
        if near is None or near.value is None:
            return f"This run did not measure the nearest condition: {self.beside}"
        spread = near.interval if near.interval and near.interval.known else None
        bounds = f" {text.interval(spread.low, spread.high)}" if spread else ""
        return f"This run {self._verb(near.value, spread)}: {text.ratio(near.value)}{bounds} in {near.name}"

    def _verb(self, value: float, spread: Interval | None) -> str:
        """By the interval where there is one; a count is exact, and so its own."""
        measured = spread or Interval(value, value, value)
        side = measured.side(SMALLEST)
        expected = "above" if self.ratio > 1 else "below"
        if side == expected:
            holds = measured.low <= self.ratio <= measured.high
            return "agrees in sign and in size" if holds else f"agrees in sign, not in size ({text.ratio(self.ratio)})"
        return "cannot decide" if side == "unclear" else "does not agree"


def told(literature: Sequence[Cited | str], regimes: Sequence[Comparable]) -> tuple[str, ...]:
    """Each figure beside what a run has found; what is no figure, as it is."""
    return tuple(figure.told(regimes) if isinstance(figure, Cited) else figure for figure in literature)

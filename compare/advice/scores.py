"""How good predictions are beside trivial ones: hits where there is a winner, by regime, and whether odds hold.

A prediction names the side of the smaller time and states a probability of it. It is judged where the measured times
differ by more than `DECIDED`; the Brier score (Monthly Weather Review 78, 1950) judges the stated probabilities on all
rows: the mean square of what a probability is off from what happened, 0 at best, 0.25 for who always says one half.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any, Protocol

from compare.records.record import grouped
from compare.stats import proportion_interval

DECIDED = 1.15
"""Times that differ by no more than this factor have no winner to speak of."""
STATED = (0.5, 0.75, 0.95, 1.0)
"""The ends of the groups in which stated probabilities are compared with what happened."""


class Forecast(Protocol):
    """A prediction beside what was measured: ratios are compiled ÷ eager, `ops` those on the tape of a step."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def predicted(self) -> float: ...  # noqa: D102
    @property
    def ratio(self) -> float: ...  # noqa: D102
    @property
    def confidence(self) -> float: ...  # noqa: D102
    @property
    def ops(self) -> int: ...  # noqa: D102


def scores(rows: Sequence[Forecast], arms: tuple[str, str]) -> dict[str, Any]:
    """Hits among the rows that have a winner, in all and by regime, of the trivial predictors too; the Brier score."""
    decided = [row for row in rows if max(row.ratio, 1 / row.ratio) > DECIDED]
    groups = grouped(decided, regime)
    return {
        "beyond": DECIDED,
        **_hits(decided, _sided),
        "predictors": _trivial(decided, arms),
        "regimes": {name: _hits(group, _sided) for name, group in groups.items()},
        "brier": fmean((probability(row) - (row.ratio < 1)) ** 2 for row in rows) if rows else None,
        "brier_of_one_half": 0.25,
        "stated": _stated(rows),
    }


def regime(row: Forecast) -> str:
    """What a row's name says after its slash: the size of a workload, the size and depth of a program."""
    return row.name.partition("/")[2]


def probability(row: Forecast) -> float:
    """The stated probability that the compiled arm is faster."""
    return row.confidence if row.predicted < 1 else 1 - row.confidence


def _sided(row: Forecast) -> bool:
    return (row.predicted < 1) == (row.ratio < 1)


def _hits(rows: Sequence[Forecast], right: Callable[[Forecast], bool]) -> dict[str, Any]:
    hits = sum(map(right, rows))
    rate = proportion_interval(hits, len(rows)) if rows else None
    return {"of": len(rows), "hits": hits, "rate": rate and rate.estimate, "interval": rate and rate.bounds()}


def _trivial(rows: Sequence[Forecast], arms: tuple[str, str]) -> dict[str, int]:
    """What those hit who look at nothing, or at the number of ops alone, by the best bound in hindsight."""
    eager, compiled = arms
    wins = sum(row.ratio < 1 for row in rows)
    bounds = {row.ops for row in rows}
    above = {n: sum((row.ops > n) == (row.ratio < 1) for row in rows) for n in bounds}
    best = max(sorted(above), key=above.__getitem__, default=0)
    return {
        f"always {compiled}": wins,
        f"always {eager}": len(rows) - wins,
        f"{compiled} above {best} ops": above.get(best, 0),
    }


def _stated(rows: Sequence[Forecast]) -> list[dict[str, float]]:
    """For each group of stated probabilities: how many, their mean, and the share that came true."""
    groups = []
    for low, high in pairwise(STATED):
        group = [row for row in rows if low <= row.confidence and (row.confidence < high or high == 1)]
        if group:
            stated, happened = fmean(row.confidence for row in group), fmean(map(_sided, group))
            groups.append({"rows": len(group), "stated": stated, "happened": happened})
    return groups

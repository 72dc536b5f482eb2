"""Parts as shares of a step, each with its interval, from the records of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from statistics import median
from typing import NamedTuple

from compare.instruments.parts.programs import ENGINES, UNEXPLAINED
from compare.records.breakdowns import Parts
from compare.records.record import Cell, Records, grouped, of
from compare.stats import Interval, geometric_mean, sum_interval

LARGEST_UNEXPLAINED = 0.05
"""Parts that leave more of a step than this unexplained do not add up."""


class Parted(NamedTuple):
    """The step of one engine in one cell: its seconds, and each part as a share of them."""

    cell: Cell
    engine: str
    seconds: float
    shares: Mapping[str, Interval]

    @property
    def adds_up(self) -> bool:
        """Whether the parts sum to the wall time within 5%."""
        return abs(self.shares[UNEXPLAINED].estimate) <= LARGEST_UNEXPLAINED

    @property
    def note(self) -> str | None:
        """A sentence where they do not; None where all is well."""
        if self.adds_up:
            return None
        share = self.shares[UNEXPLAINED]
        return (
            f"{self.cell.title}, {self.engine}: {share.estimate:.1%} of a step is unexplained "
            f"{spread(share)}, more than {LARGEST_UNEXPLAINED:.0%}"
        )


def spread(share: Interval) -> str:
    """`[1.2%, 3.4%]`, if there is an interval."""
    return f"[{share.low:.1%}, {share.high:.1%}]" if share.known else "(no interval)"


def parted(records: Records) -> list[Parted]:
    """Both engines of each cell among the `parts` records, in their order; none of a version with other programs."""
    groups = grouped((record for record in of(records, Parts) if _has_programs(record)), lambda record: record.cell)
    return [_parted(cell, engine, group) for cell, group in groups.items() for engine in ENGINES]


def stages(records: Records, cell: Cell) -> dict[str, float]:
    """The median seconds of the stages of compilation in a cell, and what they leave of the whole."""
    once = [stages for r in of(records, Parts) if r.cell == cell for stages in r.once]
    seconds = {name: median(o[name] for o in once) for name in ("tracing", "passes", "planning")}
    return {**seconds, UNEXPLAINED: median(o["whole"] for o in once) - sum(seconds.values())}


def _has_programs(record: Parts) -> bool:
    return all(
        record.engines.get(engine, {}).keys() >= {"step", *chain.from_iterable(parts.values())}
        for engine, parts in ENGINES.items()
    )


def _parted(cell: Cell, engine: str, group: Sequence[Parts]) -> Parted:
    blocks = [record.engines[engine] for record in group]
    steps = [of["step"] for of in blocks]
    shares = {
        part: sum_interval([(weight, [of[name] for of in blocks]) for name, weight in weights.items()], steps)
        for part, weights in ENGINES[engine].items()
    }
    return Parted(cell, engine, geometric_mean(s for step in steps for s in step), shares)

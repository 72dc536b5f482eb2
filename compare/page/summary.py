"""What figures and tables share: ratios to dynamic, and what each arm costs in time and memory."""

from collections.abc import Iterable
from dataclasses import dataclass

from compare.claims import crossover
from compare.claims.base import SMALLEST_EFFECT
from compare.claims.c4_shapes import length_table
from compare.claims.c5_memory.rule import held
from compare.claims.crossover import Course, course
from compare.claims.evidence import SIZES, Evidence, cells, steady
from compare.records.cells import Call, Memory, MemoryArm, Time
from compare.records.record import Cell, Records
from compare.stats import Interval

_SIDES = {"below": "faster", "above": "slower", "tie": "tie", "unclear": "cannot tell"}


@dataclass(frozen=True)
class Ratio:
    """Steady-state seconds a call of `arm` over those of `base`, with a 95% interval."""

    cell: Cell
    arm: str
    interval: Interval
    base: str

    @property
    def words(self) -> str:
        """What the interval says of the arm, by the smallest effect of interest of the claims."""
        return _SIDES[self.interval.side(SMALLEST_EFFECT)]


@dataclass(frozen=True)
class Summary:
    """The records of a run with what follows from those whose outputs and gradients were right.

    `streams` are first epochs, `cold` those of processes that found no compiled code on the disk, where there is such.
    """

    records: Records
    memory: dict[tuple[Cell, str], MemoryArm]
    ratios: tuple[Ratio, ...]
    courses: dict[tuple[Cell, str], Course]
    streams: dict[tuple[Cell, str], list[Call]]
    cold: dict[tuple[Cell, str], list[Call]]
    strategies: tuple[Evidence, ...]
    places: tuple[crossover.CostPlace, ...]
    times: tuple[crossover.Point, ...]
    sizes: tuple[crossover.Point, ...]


def summarise(records: Records) -> Summary:
    """Everything that more than one part of the report needs, computed once."""
    timed = [(cell, arm) for cell in cells(records, Time) for arm in cell.means(steady)]
    ratios = (
        Ratio(cell.cell, arm, ratio, cell.base)
        for cell, arm in timed
        if arm != cell.base and (ratio := cell.ratio(arm, cell.base, steady)) is not None
    )
    held_by = [(cell, arm) for cell in cells(records, Memory) for arm in cell.arms]
    return Summary(
        records,
        {(cell.cell, arm): cell.of(arm)[-1] for cell, arm in held_by},
        tuple(ratios),
        courses={(cell.cell, arm): course(cell, arm) for cell, arm in timed},
        streams=_streams(timed),
        cold=_streams([(cell.start, arm) for cell, arm in timed if cell.cold and cell.start.of(arm)]),
        strategies=tuple(length_table.tables(records)),
        places=tuple(crossover.places(records)),
        times=tuple(crossover.times(records)),
        sizes=tuple(crossover.sizes(records, held)),
    )


def _streams(timed: Iterable[tuple[Evidence, str]]) -> dict[tuple[Cell, str], list[Call]]:
    """The first epoch of each arm in the first process, where its inputs vary."""
    return {(cell.cell, arm): stream for cell, arm in timed if (stream := cell.of(arm)[0].stream)}


def largest(cells: Iterable[Cell]) -> list[Cell]:
    """For each workload, in the order met, the largest of its sizes: a figure has room for one."""
    best: dict[str, Cell] = {}
    for cell in cells:
        before = best.setdefault(cell.workload, cell)
        best[cell.workload] = max(before, cell, key=size_order)
    return list(best.values())


def size_order(cell: Cell) -> tuple[str, int, str]:
    """Sorts cells by workload and rising size; sizes of other names come first."""
    return cell.workload, SIZES.index(cell.size) if cell.size in SIZES else -1, cell.size

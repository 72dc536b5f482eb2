"""What figures and tables share: ratios to dynamic, and what each arm costs in time and memory.

What a step costs in each engine, fitted to the crossover map of a run: a line in ops and in floats times ops.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compare.claims import c4_shapes, crossover
from compare.claims.base import SMALLEST_EFFECT
from compare.claims.c5_memory import bytes_held
from compare.claims.crossover import CostPlace, Course, course
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
        strategies=tuple(c4_shapes.tables(records)),
        places=tuple(crossover.places(records)),
        times=tuple(crossover.times(records)),
        sizes=tuple(crossover.sizes(records, bytes_held)),
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


FORMULA = "seconds of a step = a + ops × (b + c × floats an op); seconds of a compilation = d + e × ops"


@dataclass(frozen=True)
class CostModel:
    """One kind of op: the coefficients a, b, c of both engines, d and e of a compilation, and how far off they are.

    An error is that of static ÷ dynamic, as a factor: 1.2 means 20% too much or too little.
    """

    ops: str
    dynamic: tuple[float, ...]
    static: tuple[float, ...]
    build: tuple[float, ...]
    error: float
    worst: float


def fit_cost_models(places: Sequence[CostPlace]) -> list[CostModel]:
    """A model for each kind of op that has more places than a line has coefficients."""
    kinds = dict.fromkeys(place.at.ops for place in places)
    groups = ([place for place in places if place.at.ops == ops] for ops in kinds)
    return [_fit(group) for group in groups if len(group) > len(_terms(group)[0])]


def _terms(places: Sequence[CostPlace]) -> NDArray[np.float64]:
    return np.array([[1.0, place.at.depth, place.at.depth * place.at.elements] for place in places])


def _fit(places: Sequence[CostPlace]) -> CostModel:
    terms = _terms(places)
    dynamic = _line(terms, [place.dynamic.steady for place in places])
    static = _line(terms, [place.static.steady for place in places])
    build = _line(terms[:, :2], [place.static.build for place in places])
    ratios = (terms @ static) / (terms @ dynamic)
    errors = [
        max(predicted / measured, measured / predicted)
        for predicted, measured in zip(ratios, (p.static.steady / p.dynamic.steady for p in places), strict=True)
    ]
    worst = float(max(errors))
    return CostModel(
        places[0].at.ops, _plain(dynamic), _plain(static), _plain(build), float(statistics.median(errors)), worst
    )


def _plain(line: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(map(float, line))


def _line(terms: NDArray[np.float64], seconds: Sequence[float]) -> NDArray[np.float64]:
    """The coefficients, none below zero, that lie nearest in proportion: what takes less than nothing is left out."""
    measured = np.array(seconds) > 0  # a build that no clock saw says nothing
    if not measured.any():
        return np.zeros(terms.shape[1])
    terms, seconds = terms[measured], [value for value in seconds if value > 0]
    scaled = terms / np.array(seconds)[:, None]
    kept = list(range(terms.shape[1]))
    while True:
        coefficients, *_ = np.linalg.lstsq(scaled[:, kept], np.ones(len(seconds)), rcond=None)
        if (coefficients >= 0).all() or len(kept) == 1:
            line = np.zeros(terms.shape[1])
            line[kept] = np.maximum(coefficients, 0)
            return line
        kept.pop(int(np.argmin(coefficients)))

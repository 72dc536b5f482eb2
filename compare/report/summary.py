"""The data that figures and tables share: ratios to dynamic, and the costs of each mode in time and memory.

The last part fits a cost model to the crossover map: seconds of a step as a linear function of ops and of floats × ops.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compare.claims import c4_shapes, regimes
from compare.claims.base import SMALLEST_EFFECT
from compare.claims.c5_memory import bytes_held
from compare.claims.evidence import SIZES, Evidence, cells, steady
from compare.claims.regimes import CostPlace, Course, course
from compare.records.cells import Call, Memory, MemoryRow, Time
from compare.records.record import Cell, Records
from compare.stats import Interval

_SIDES = {"below": "faster", "above": "slower", "tie": "tie", "unclear": "cannot tell"}


@dataclass(frozen=True)
class Ratio:
    """The ratio of the steady seconds of `mode` to those of `base` in a cell, with its 95% interval."""

    cell: Cell
    mode: str
    interval: Interval
    base: str

    @property
    def words(self) -> str:
        """The side of the interval in words: faster, slower, tie or cannot tell, by the claims' smallest effect."""
        return _SIDES[self.interval.side(SMALLEST_EFFECT)]


@dataclass(frozen=True)
class Summary:
    """The records of a run, and values computed from modes whose outputs and gradients were right.

    `streams` are first epochs by cell and mode. `cold` are the first epochs of processes that found no compiled code on
    the disk, for engines that keep such code. `every` has the records on all numbers of threads.
    """

    records: Records
    memory: dict[tuple[Cell, str], MemoryRow]
    ratios: tuple[Ratio, ...]
    courses: dict[tuple[Cell, str], Course]
    streams: dict[tuple[Cell, str], list[Call]]
    cold: dict[tuple[Cell, str], list[Call]]
    strategies: tuple[Evidence, ...]
    places: tuple[regimes.CostPlace, ...]
    times: tuple[regimes.Point, ...]
    sizes: tuple[regimes.Point, ...]
    every: Records = ()


def summarise(records: Records, every: Records = ()) -> Summary:
    """Compute the values that more than one part of the report needs."""
    timed = [(cell, mode) for cell in cells(records, Time) for mode in cell.means(steady)]
    ratios = (
        Ratio(cell.cell, mode, ratio, cell.base)
        for cell, mode in timed
        if mode != cell.base and (ratio := cell.ratio(mode, cell.base, steady)) is not None
    )
    held_by = [(cell, mode) for cell in cells(records, Memory) for mode in cell.modes]
    return Summary(
        records,
        {(cell.cell, mode): cell.of(mode)[-1] for cell, mode in held_by},
        tuple(ratios),
        courses={(cell.cell, mode): course(cell, mode) for cell, mode in timed},
        streams=_streams(timed),
        cold=_streams([(cell.start, mode) for cell, mode in timed if cell.cold and cell.start.of(mode)]),
        strategies=tuple(c4_shapes.tables(records)),
        places=tuple(regimes.cost_places(records)),
        times=tuple(regimes.map_times(records)),
        sizes=tuple(regimes.map_sizes(records, bytes_held)),
        every=every or records,
    )


def _streams(timed: Iterable[tuple[Evidence, str]]) -> dict[tuple[Cell, str], list[Call]]:
    """Return the first epoch of each mode in the first process, for cells whose inputs vary."""
    return {(cell.cell, mode): stream for cell, mode in timed if (stream := cell.of(mode)[0].stream)}


def largest(cells: Iterable[Cell]) -> list[Cell]:
    """Return the largest size of each workload, in order, as a figure has room for one size only."""
    best: dict[str, Cell] = {}
    for cell in cells:
        before = best.setdefault(cell.workload, cell)
        best[cell.workload] = max(before, cell, key=size_order)
    return list(best.values())


def size_order(cell: Cell) -> tuple[str, int, str]:
    """Return a sort key for cells by workload and rising size; sizes with other names come first."""
    return cell.workload, SIZES.index(cell.size) if cell.size in SIZES else -1, cell.size


FORMULA = "seconds of a step = a + ops × (b + c × floats an op); seconds of a compilation = d + e × ops"


@dataclass(frozen=True)
class CostModel:
    """The cost model of one kind of op: coefficients a, b, c of each engine, d and e of a compilation, and errors.

    `error` is the median, and `worst` the largest, error of static ÷ dynamic as a factor: 1.2 is 20% too much or too
    little.
    """

    ops: str
    dynamic: tuple[float, ...]
    static: tuple[float, ...]
    build: tuple[float, ...]
    error: float
    worst: float


def fit_cost_models(places: Sequence[CostPlace]) -> list[CostModel]:
    """Fit a model for each kind of op that has more places than the model has coefficients."""
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
    """Fit coefficients to seconds by least squares of relative errors; negative ones are dropped and set to 0."""
    measured = np.array(seconds) > 0  # a build of 0 seconds was not measured
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

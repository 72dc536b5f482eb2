"""What a step costs in each engine, fitted to the crossover map of a run: a line in ops and in floats times ops."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compare.claims.crossover import CostPlace

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


def fitted(places: Sequence[CostPlace]) -> list[CostModel]:
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

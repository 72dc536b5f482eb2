"""What ops are worth in a framework on this machine: coefficients of the terms of a step, fitted to probes.

The seconds of a step are taken for a sum of terms, each a count with a price that is not negative.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import log
from pathlib import Path
from statistics import fmean
from typing import Any

from compare.advice import fitting
from compare.errors import CompareError
from compare.records import machines
from compare.records.framework_work import Timed
from compare.records.work import Work

VERSION = 2
LEAST_SPREAD = 0.1
"""Of the logarithm of a ratio: what even a perfect model does not know of a machine."""

Terms = Callable[[Work], Sequence[float]]
Prices = tuple[float, ...]


def eager_terms(work: Work) -> Sequence[float]:
    """A call, each op by its sort, and the bytes and flops of all."""
    return 1, work.others + work.reads, work.views, work.products, work.moved, work.flops


def compiled_terms(work: Work) -> Sequence[float]:
    """A call, each kernel that fusing leaves, what fused kernels make, flops, and each value that ends a graph."""
    return 1, work.products, work.stretches, work.elements, work.flops, work.reads


def first_terms(work: Work) -> Sequence[float]:
    """A compilation, each op that it looks at, each kernel that it makes, and each graph more."""
    return 1, work.ops, work.products + work.stretches, work.reads


@dataclass(frozen=True)
class Row:
    """A probe: what it does, and what it took."""

    work: Work
    timed: Timed


@dataclass(frozen=True)
class CountedCosts:
    """The prices of the terms of a step in two arms of a framework, eager and compiled, in seconds.

    `spread` is the standard deviation of the logarithm of compiled ÷ eager, predicted over measured, of probes that the
    fit had not seen.
    """

    arms: tuple[str, str]
    version: str
    machine: Mapping[str, Any]
    eager: Prices
    compiled: Prices
    first: Prices
    spread: float

    def priced(self, work: Work) -> Timed:
        """What a step should take."""
        pairs = ((self.eager, eager_terms), (self.compiled, compiled_terms), (self.first, first_terms))
        return Timed(*(_sum(prices, terms(work)) for prices, terms in pairs))


def fitted(arms: tuple[str, str], version: str, machine: Mapping[str, Any], rows: Sequence[Row]) -> CountedCosts:
    """The costs that fit the probes best."""
    missed = [log(_ratio(_fit([*rows[:i], *rows[i + 1 :]]), row.work) / _measured(row)) for i, row in enumerate(rows)]
    spread = max(LEAST_SPREAD, fmean(one * one for one in missed) ** 0.5)
    first = fitting.prices([(first_terms(row.work), row.timed.first) for row in rows])
    return CountedCosts(arms, version, machine, *_fit(rows), first, spread)


def _fit(rows: Sequence[Row]) -> tuple[Prices, Prices]:
    return (
        fitting.prices([(eager_terms(row.work), row.timed.eager) for row in rows]),
        fitting.prices([(compiled_terms(row.work), row.timed.compiled) for row in rows]),
    )


def _ratio(fit: tuple[Prices, Prices], work: Work) -> float:
    return _sum(fit[1], compiled_terms(work)) / _sum(fit[0], eager_terms(work))


def _measured(row: Row) -> float:
    return row.timed.compiled / row.timed.eager


def _sum(prices: Prices, terms: Sequence[float]) -> float:
    return sum(price * term for price, term in zip(prices, terms, strict=True))


def save(costs: CountedCosts, path: Path) -> None:
    """Write them."""
    from compare.records.results import write_json

    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {"schema": VERSION, **asdict(costs)})


def load(path: Path, version: str, here: Mapping[str, Any]) -> CountedCosts:
    """The costs of this machine and version. Raises CompareError for those of others, and for what are none."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        written_by = values.pop("schema")
        prices = {name: tuple(map(float, values[name])) for name in ("eager", "compiled", "first")}
        costs = CountedCosts(**{**values, **prices, "arms": tuple(values["arms"])})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CompareError(f"{path} is not a calibration of a framework ({error})") from error
    if written_by != VERSION:
        raise CompareError(f"{path} is a calibration by another version of graphduel")
    unlike = machines.differences({**costs.machine, "framework": costs.version}, {**here, "framework": version})
    if unlike:
        raise CompareError(f"{path} was calibrated elsewhere or with other code ({', '.join(unlike)})")
    return costs

"""The table of strategies for inputs of varying length, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import geometric_mean

from compare.claims.evidence import Evidence, first_run, steady
from compare.page.blocks import Table
from compare.records.record import DYNAMIC
from compare.records.sweeps import StrategyArm
from compare.words import text

_SHARES = (0.5, 0.95, 0.99)


def ordered(tables: Sequence[Evidence]) -> list[str]:
    """Every strategy that any table has: dynamic first, then one example at a time before batches."""
    batched = {name: m.batching != "one by one" for cell in tables for p in cell.processes for name, m in p.items()}
    return sorted(batched, key=lambda name: (not name.startswith(DYNAMIC), batched[name], name))


def table(tables: Sequence[Evidence]) -> Table | None:
    """A row for each cell and strategy."""
    return Table.of("lllll" + "r" * 11, [row for cell in tables for row in rows(cell)])


def rows(cell: Evidence) -> Iterator[dict[str, str]]:
    """A row for each strategy, by its headers.

    Hits are the calls of the first epoch that found their graph, computed the elements for each one asked for, useful
    its inverse. Percentiles are of how long an example waits for its call once warm.
    """
    return (_row(cell, name, cell.of(name)) for name in ordered([cell]))


def computed(measured: Sequence[StrategyArm]) -> float:
    """Elements computed for each one asked for: more than 1 where a strategy pads."""
    return measured[0].computed / measured[0].useful


def percentile(latencies: Sequence[float], examples: Sequence[int], share: float) -> float:
    """The latency that this share of the examples do not exceed; those of a group all wait for its call."""
    ranked = sorted(zip(latencies, examples, strict=True))
    passed = 0
    for latency, count in ranked:
        passed += count
        if passed >= share * sum(examples):
            return latency
    return ranked[-1][0]


def _row(cell: Evidence, name: str, measured: Sequence[StrategyArm]) -> dict[str, str]:
    first = measured[0]
    calls = first.stream
    examples = [call.examples for call in calls]
    hits = sum(not call.compiled for call in calls) / len(calls)
    p50, p95, p99 = (geometric_mean(percentile(m.latency, examples, share) for m in measured) for share in _SHARES)
    return {
        "lengths": cell.name,
        "strategy": name,
        "compiled for": first.compilation,
        "padding": first.padding,
        "batching": first.batching,
        "compiles": f"{first.compiles:,}",
        "hits": text.quantity(hits, "share") if first.compiles else "",
        "computed": f"{computed(measured):.2f}",
        "useful": text.quantity(1 / computed(measured), "share"),
        "first call": text.seconds(geometric_mean(m.stream[0].seconds for m in measured)),
        "first epoch": text.seconds(cell.mean(name, first_run) or 0.0),
        "p50": text.seconds(p50),
        "p95": text.seconds(p95),
        "p99": text.seconds(p99),
        "an example": text.seconds(cell.mean(name, steady) or 0.0),
        "held": text.size(max(m.held for m in measured)),
    }

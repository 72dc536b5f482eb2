"""The table of strategies for inputs of varying length: the best of each engine, one by one and in batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from compare.claims.base import Regime, judged
from compare.claims.evidence import Evidence, Read, canonical, first_run, steady
from compare.instruments.lengths.schema import Lengths, StrategyArm
from compare.records.record import Records, of

ALONE = "one by one"
PHASES: tuple[tuple[str, Read], ...] = (("first epoch", first_run), ("steady state", steady))
CONTESTS: tuple[tuple[str, Callable[[str], bool]], ...] = (
    (ALONE, lambda batching: batching == ALONE),
    ("in batches", lambda batching: batching != ALONE),
)


def tables(records: Records) -> list[Evidence]:
    """One for each model, distribution of lengths and size, with the strategies that every process found right."""
    groups: dict[tuple[str, str], list[Mapping[str, StrategyArm]]] = {}
    for record in sorted(of(records, Lengths), key=canonical):
        groups.setdefault((f"{record.workload} on {record.lengths}", record.size), []).append(record.arms)
    return [Evidence(*place, tuple(_right(arms))) for place, arms in sorted(groups.items())]


def costs(cell: Evidence, comparisons: int = 1) -> list[Regime]:
    """What the best static strategy takes of the time of the best dynamic one, where both can: in each way and phase.

    A claim that static pays is judged by the strongest of each side.
    """
    found = []
    for how, counts in CONTESTS:
        for phase, read in PHASES:
            top, bottom = (best(cell, engine, counts, read) for engine in ("static", "dynamic"))
            if top and bottom:
                name = f"{cell.name}: {phase}, {how}, {top} / {bottom}"
                found.append(judged(name, cell.ratio(top, bottom, read, comparisons)))
    return found


def best(cell: Evidence, engine: str, counts: Callable[[str], bool], read: Read) -> str | None:
    """The strategy of an engine that takes least, among those batched in this way."""
    means = {
        name: mean
        for name, batching in _batching(cell).items()
        if name.partition(",")[0] == engine and counts(batching)
        if (mean := cell.mean(name, read)) is not None
    }
    return min(means, key=lambda name: (means[name], name)) if means else None


def told(cell: Evidence) -> str:
    """Which strategy is fastest of all, and what each compiles, computes and holds."""
    means = {name: mean for name in _batching(cell) if (mean := cell.mean(name, steady)) is not None}
    if not means:
        return f"{cell.name}: no strategy was right"
    first = min(means, key=lambda name: (means[name], name))
    lost = max(means, key=lambda name: (_computed(cell, name), name))
    most = max(means, key=lambda name: (_most(cell, name, "held"), name))
    return (
        f"{cell.name}: fastest once warm is {first}, {means[first] * 1e3:.3g} ms an example; most padding has {lost}, "
        f"{_computed(cell, lost):.2f} elements computed for each one asked for; the most plans are held by {most}, "
        f"{_most(cell, most, 'held'):,} bytes after {_most(cell, most, 'compiles')} compiles"
    )


def refused(records: Records) -> tuple[str, ...]:
    """One sentence for each strategy that has no times, with the reason."""
    return tuple(
        sorted(
            {
                f"{r.workload} on {r.lengths} ({r.size}), {name}: {arm.status}, {arm.reason}"
                for r in of(records, Lengths)
                for name, arm in r.arms.items()
                if arm.status != "ok"
            }
        )
    )


def _computed(cell: Evidence, name: str) -> float:
    return max(float(measured.computed / measured.useful) for measured in cell.of(name))


def _most(cell: Evidence, name: str, field: str) -> int:
    return max(int(getattr(measured, field)) for measured in cell.of(name))


def _batching(cell: Evidence) -> dict[str, str]:
    return {name: measured.batching for process in cell.processes for name, measured in process.items()}


def _right(arms: Sequence[Mapping[str, StrategyArm]]) -> list[Mapping[str, StrategyArm]]:
    """Without the strategies that some process did not find right."""
    wrong = {name for process in arms for name, measured in process.items() if measured.status != "ok"}
    return [{name: m for name, m in process.items() if name not in wrong} for process in arms]

"""The table of strategies for inputs of varying length: the best of each engine, one by one and in batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from compare.claims.base import Regime, judged
from compare.claims.evidence import Evidence, Read, canonical, first_run, steady
from compare.records.cells import Lengths, StrategyArm, admitted
from compare.records.record import Records, grouped, of
from compare.words import text

ALONE = "one by one"
PHASES: tuple[tuple[str, Read], ...] = (("first epoch", first_run), ("steady state", steady))
CONTESTS: tuple[tuple[str, Callable[[str], bool]], ...] = (
    (ALONE, lambda batching: batching == ALONE),
    ("in batches", lambda batching: batching != ALONE),
)


def tables(records: Records) -> list[Evidence]:
    """One for each model, distribution of lengths and size, with the strategies that every process found right."""
    ordered = sorted(of(records, Lengths), key=canonical)
    groups = grouped(ordered, lambda record: (f"{record.workload} on {record.lengths}", record.size))
    return [Evidence(*place, tuple(_right(group))) for place, group in sorted(groups.items())]


def costs(cell: Evidence, comparisons: int = 1) -> list[Regime]:
    """The time of the best static strategy ÷ that of the best dynamic one, in each way and phase that both have.

    A claim that static pays is judged by the strongest of each side.
    """
    regimes = []
    for how, counts in CONTESTS:
        for phase, read in PHASES:
            top, bottom = (best(cell, engine, counts, read) for engine in ("static", "dynamic"))
            if top and bottom:
                name = f"{cell.name}: {phase}, {how}, {top} ÷ {bottom}"
                regimes.append(judged(name, cell.ratio(top, bottom, read, comparisons)))
    return regimes


def best(cell: Evidence, engine: str, counts: Callable[[str], bool], read: Read) -> str | None:
    """The strategy of an engine that takes least, among those batched in this way."""
    batching = _batching(cell).items()
    return cell.least(read, [name for name, how in batching if name.partition(",")[0] == engine and counts(how)])


def reason(cell: Evidence) -> str:
    """Which strategy is fastest of all, and what each compiles, computes and holds."""
    means, first = cell.means(steady), cell.least(steady, cell.arms)
    if first is None:
        return f"{cell.name}: no strategy was right"
    lost = max(means, key=lambda name: (padding(cell, name), name))
    fullest = max(means, key=lambda name: (most(cell, name, "held"), name))
    return (
        f"{cell.name}: {first} is fastest once warm ({text.seconds(means[first])} an example); {lost} pads most "
        f"({padding(cell, lost):.2f} elements computed for each element of the input); {fullest} holds most plans "
        f"({most(cell, fullest, 'held'):,} bytes after {text.counted(most(cell, fullest, 'compiles'), 'compile')})"
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


def padding(cell: Evidence, arm: str) -> float:
    """Elements computed for each one asked for; 1 means that nothing is padded."""
    return max(float(measured.computed / measured.useful) for measured in cell.of(arm))


def most(cell: Evidence, arm: str, field: str) -> int:
    """The largest of a count over the processes."""
    return max(int(getattr(measured, field)) for measured in cell.of(arm))


def _batching(cell: Evidence) -> dict[str, str]:
    return {name: measured.batching for process in cell.processes for name, measured in process.items()}


def _right(processes: Sequence[Lengths]) -> list[Mapping[str, StrategyArm]]:
    """Without the strategies that some process did not find right."""
    right = admitted(processes).arms
    return [{name: process.arms[name] for name in process.arms if name in right} for process in processes]

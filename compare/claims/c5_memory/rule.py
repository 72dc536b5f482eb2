"""C5: a dynamic graph holds less memory, because a static one keeps its whole structure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from compare.claims import crossover
from compare.claims.base import (
    SMALLEST_EFFECT,
    Claim,
    Effect,
    Finding,
    Label,
    Regime,
    combine,
    not_measured,
)
from compare.claims.evidence import DYNAMIC, Evidence, cells, left_out
from compare.instruments.crossover.schema import CrossoverMemory
from compare.instruments.memory.schema import Memory, MemoryArm
from compare.instruments.parity.schema import Parity
from compare.records.record import Records, grouped
from compare.report import text
from compare.stats import Interval, geometric_mean_interval

MIN_WORKLOADS = 3
"""Fewer workloads than this say nothing about graphs in general."""
STRUCTURE_SHARE = 0.05
"""The claim's reason holds where the structure is at least this share of what static holds."""
MORE, LESS = 1 + SMALLEST_EFFECT, 1 / (1 + SMALLEST_EFFECT)


def find(records: Records) -> Finding:
    """Compares the bytes held on each workload, then asks whether the structure is why."""
    measured = cells(records, Memory)
    if not measured:
        return not_measured("memory")
    left = left_out(records, Memory)
    contests = [contest for cell in measured if (contest := _contest(cell))]
    if len({cell.workload for cell, _, _ in contests}) < MIN_WORKLOADS:
        few = f"both engines were measured on fewer than {MIN_WORKLOADS} workloads"
        return Finding("inconclusive", (few, *left))
    mean = geometric_mean_interval(_by_workload(contests))
    ratios = [ratio for _, _, ratio in contests]
    amount, because = _amount(ratios, mean), _because(contests)
    return Finding(
        # a wrong reason spoils a right amount; it does not rescue a wrong one
        combine((amount, *(one.verdict for one in because))) if amount == "supported" else amount,
        (
            _counts(ratios),
            *(one.name for one in because),
            *_caches(contests),
            *crossover.size_reasons(crossover.sizes(records, held)),
            *left,
        ),
        Effect("bytes held, static / dynamic, geometric mean over workloads", mean.estimate, "ratio"),
        mean,
        (Regime("amount held", amount, mean.estimate, mean), *because, *map(_regime, contests)),
    )


def held(measured: MemoryArm) -> Sequence[float]:
    """Bytes an engine holds for one step: the peak of its data, structure, plan and caches.

    Parameters are left out: both engines are handed the same arrays.
    """
    return (measured.peak + _classes(measured, "structure", "plan", "caches"),)


Contest = tuple[Evidence, str, float]
"""A cell, the static arm that holds least there, and static / dynamic."""


def _contest(cell: Evidence) -> Contest | None:
    arm, dynamic = cell.least(held), cell.of(DYNAMIC)
    return (cell, arm, _most(cell.of(arm)) / _most(dynamic)) if arm and dynamic else None


def _most(measured: Sequence[MemoryArm]) -> float:
    # the counts of several processes are the same but for their peaks, and a peak is what must fit
    return max(held(one)[0] for one in measured)


def _classes(measured: MemoryArm, *names: str) -> float:
    return float(sum(measured.classes.get(name, 0) for name in names))


def _by_workload(contests: list[Contest]) -> list[list[float]]:
    groups = grouped(contests, lambda contest: contest[0].workload)
    return [[ratio for *_, ratio in group] for group in groups.values()]


def _amount(ratios: list[float], mean: Interval) -> Label:
    if max(ratios) <= MORE:
        return "refuted"
    if min(ratios) < LESS:
        return "depends"
    return "supported" if mean.low > 1 and mean.estimate > MORE else "inconclusive"


def _because(contests: list[Contest]) -> list[Regime]:
    """Whether the structure is why; nothing where an engine does not tell how large it is."""
    if not _classified(contests):
        return []
    share = median(_share(contest, "structure") for contest in contests)
    verdict: Label = "supported" if share >= STRUCTURE_SHARE else "refuted"
    return [Regime(f"the reason: the structure is {share:.1%} of what static holds, in the median", verdict)]


def _caches(contests: list[Contest]) -> list[str]:
    if not _classified(contests):
        return []
    cell, arm, _ = largest = max(contests, key=lambda contest: _share(contest, "caches"))
    return [f"the caches of other shapes are at most {_share(largest, 'caches'):.1%} of it ({cell.name}, {arm})"]


def _classified(contests: list[Contest]) -> bool:
    return all(measured.classes for cell, arm, _ in contests for measured in cell.of(arm))


def _share(contest: Contest, name: str) -> float:
    cell, arm, _ = contest
    return max(_classes(measured, name) / held(measured)[0] for measured in cell.of(arm))


def _regime(contest: Contest) -> Regime:
    cell, arm, ratio = contest
    # counts are exact, so a cell has a value and no interval
    return Regime(cell.name, "supported" if ratio > MORE else "refuted", ratio, arm=arm)


def _counts(ratios: list[float]) -> str:
    more, less = sum(ratio > MORE for ratio in ratios), sum(ratio < LESS for ratio in ratios)
    equal = len(ratios) - more - less
    return (
        f"static holds more in {more} of {text.counted(len(ratios), 'cell')}, less in {less}, equally much in {equal}"
    )


CLAIM = Claim(
    id="C5",
    title="Dynamic graphs use less memory",
    statement="A dynamic graph uses less memory, since a static graph stores its whole structure up front "
    "while a dynamic one holds only what the current run needs.",
    opposite="A graph known as a whole is what makes memory planning possible: buffers are shared, "
    "reordered, fused and reused in place, and a plan costs a few kilobytes. It is the tape that holds "
    "memory blindly.",
    measured="Bytes held for one training step in steady state: the peak that NumPy's allocations reach "
    "above the baseline, with the graph's structure, its plan and the caches of compiled shapes added, for "
    "each workload and size; static by whichever arm holds least there. A map over tensor size and depth shows the "
    "same for chains of ops; it is reported, not judged.",
    rule=f"More or less means by more than {SMALLEST_EFFECT:.0%}. Refuted if static holds more in no cell. "
    "Depends if it holds more in some and less in others. Supported if it holds more in some and less in "
    "none, the 95% interval of the geometric mean (bootstrap over workloads, then sizes) lies above 1 and "
    f"the mean above {MORE}; but depends if the structure is under {STRUCTURE_SHARE:.0%} of what static "
    "holds in the median, for then the reason is wrong. Inconclusive otherwise, or under "
    f"{MIN_WORKLOADS} workloads.",
    find=find,
    reads=(Memory, CrossoverMemory, Parity),
    tape="alone",
    literature=(
        "MXNet's memory planning roughly halves training memory",
        "sharing one arena takes up to 10.5x less memory on inference (abstract, arXiv 2001.03288)",
        "OLLA's planning of lifetimes and locations takes one third less (abstract, arXiv 2210.12924)",
        "online allocators waste up to 43% (abstract, arXiv 2507.16274)",
    ),
    not_tested=(
        "memory on accelerators and under the caching allocators of other frameworks",
        "recomputation under a memory budget in either engine",
        "models whose data outgrow main memory",
    ),
)

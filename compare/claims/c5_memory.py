"""C5: a dynamic graph holds less memory, because a static one keeps its whole structure.

The rule (`find`) compares the bytes held for one step in each regime of size, then asks whether structure is the cause.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import starmap
from statistics import median

from compare import text
from compare.claims import regimes
from compare.claims.base import (
    SMALLEST_EFFECT,
    Citation,
    Claim,
    Finding,
    Label,
    Regime,
    combine,
    not_measured,
)
from compare.claims.evidence import Evidence, cells, exclusion_sentences
from compare.claims.regimes import CellContest
from compare.records.cells import CrossoverMemory, Memory, MemoryRow, Parity
from compare.records.record import Records
from compare.stats import Interval

STRUCTURE_SHARE = 0.05
"""The reason that the claim gives holds if the structure is at least this share of the bytes that static holds."""
MORE, LESS = 1 + SMALLEST_EFFECT, 1 / (1 + SMALLEST_EFFECT)


def find(records: Records) -> Finding:
    """Judge C5: compare the bytes held in each regime of size, then whether the structure is the cause."""
    measured = cells(records, Memory)
    if not measured:
        return not_measured("memory")
    left = exclusion_sentences(records, Memory)
    contests = [contest for cell in measured if (contest := _contest(cell))]
    if few := regimes.too_few(contests):
        return Finding("inconclusive", (few, *left))
    where = regimes.places(records)
    sizes = regimes.by_size(contests, where)
    amounts = {name: _amount(name, group) for name, group in sizes.items() if not regimes.too_few(group)}
    amount, why_open = regimes.settle_label(combine(regime.verdict for regime in amounts.values()), amounts)
    because = _because(contests)
    groups = {**regimes.by_depth(contests, where), **regimes.by_kind(contests)}
    effect, mean = regimes.headline("bytes held", sizes.get(regimes.REALISTIC, []))
    return Finding(
        # the reason counts only if static holds more: a right reason does not make up for a wrong amount
        combine((amount, *(regime.verdict for regime in because))) if amount == "supported" else amount,
        (
            *why_open,
            _counts(contests),
            *(f"{name}: {_counts(group)}" for name, group in sizes.items()),
            *(regime.name for regime in because),
            *_caches(contests),
            *regimes.size_reasons(regimes.map_sizes(records, bytes_held)),
            *left,
        ),
        effect,
        mean,
        (*amounts.values(), *because, *starmap(_amount, groups.items()), *(contest.regime for contest in contests)),
    )


def bytes_held(measured: MemoryRow) -> Sequence[float]:
    """Return the bytes that an engine holds for one step: the peak of its data, plus structure, plan and caches.

    Parameters are left out: both engines are given the same arrays.
    """
    return (measured.peak + _classes(measured, "structure", "plan", "caches"),)


def _contest(cell: Evidence) -> CellContest | None:
    """Return bytes of the static mode that holds least ÷ bytes of dynamic; None if one of them was not measured."""
    mode, dynamic = cell.least(bytes_held), cell.of(cell.base)
    if not mode or not dynamic:
        return None
    ratio = _most(cell.of(mode)) / _most(dynamic)
    return CellContest(cell, Regime(cell.name, "supported" if ratio > MORE else "refuted", ratio, mode=mode))


def _most(measured: Sequence[MemoryRow]) -> float:
    # the processes count the same but for their peaks, and the largest peak must fit into memory
    return max(bytes_held(process)[0] for process in measured)


def _classes(measured: MemoryRow, *names: str) -> float:
    return float(sum(measured.classes.get(name, 0) for name in names))


def _amount(name: str, contests: Sequence[CellContest]) -> Regime:
    """Judge in one regime whether static holds more bytes than dynamic."""
    return regimes.overall_regime(f"{name}: bytes held", contests, _more)


def _more(contests: Sequence[CellContest], mean: Interval) -> Label:
    ratios = [contest.ratio for contest in contests]
    if max(ratios) <= MORE:
        return "refuted"
    if min(ratios) < LESS:
        return "depends"
    return "supported" if mean.low > 1 and mean.estimate > MORE else "inconclusive"


def _because(contests: list[CellContest]) -> list[Regime]:
    """Judge whether the structure is the cause; an empty list if an engine does not report its structure's size."""
    if not _has_classes(contests):
        return []
    share = median(_share(contest, "structure") for contest in contests)
    verdict: Label = "supported" if share >= STRUCTURE_SHARE else "refuted"
    return [Regime(f"the reason: in the median cell, the structure is {share:.1%} of what static holds", verdict)]


def _caches(contests: list[CellContest]) -> list[str]:
    if not _has_classes(contests):
        return []
    cell, regime = largest = max(contests, key=lambda contest: _share(contest, "caches"))
    share = f"{_share(largest, 'caches'):.1%} of what static holds ({cell.name}, {regime.mode})"
    return [f"caches of other shapes are at most {share}"]


def _has_classes(contests: list[CellContest]) -> bool:
    return all(measured.classes for cell, regime in contests for measured in cell.of(regime.mode))


def _share(contest: CellContest, name: str) -> float:
    cell, regime = contest
    return max(_classes(measured, name) / bytes_held(measured)[0] for measured in cell.of(regime.mode))


def _counts(contests: list[CellContest]) -> str:
    more, less = (sum(beyond(contest.ratio) for contest in contests) for beyond in (MORE.__lt__, LESS.__gt__))
    of, equal = text.count_noun(len(contests), "case"), len(contests) - more - less
    return f"static holds more in {more} of {of}, less in {less}, and as much as dynamic in {equal}"


CLAIM = Claim(
    id="C5",
    title="Dynamic graphs use less memory",
    statement="A dynamic graph uses less memory. A static graph stores its whole structure before the first run, "
    "and a dynamic graph holds only what the current run needs.",
    opposite="Only a graph that is known as a whole can plan its memory: it shares, reorders, fuses and reuses "
    "buffers, and the plan costs a few kilobytes. A tape holds memory without a plan.",
    measured="Bytes held for one training step in steady state, for each workload and size: the peak of NumPy's "
    "allocations above the baseline, plus the graph's structure, its plan and the caches of compiled shapes. Of "
    "the static shape policies, the one that holds least stands for static. Cells are grouped by the bytes that a "
    "step of the dynamic engine reaches, which are counted. The headline is the mean of steps of 1 MiB and more. "
    "A map over tensor size and depth shows the same for chains of ops. The map is shown and not judged.",
    rule=f"More and less mean a difference of more than {SMALLEST_EFFECT:.0%}. There are three regimes of size: steps "
    "under 64 KiB, to 1 MiB, and more. If static never holds more than dynamic in a regime, the regime refutes the "
    "claim. It depends if static holds more in some cells and less in others. It supports the claim if static holds "
    "more in some and less in none, the 95% interval of the geometric mean (bootstrap over workloads, then sizes) lies "
    f"above 1, and its mean lies above {MORE}. Otherwise it is inconclusive. The claim gets the verdict that all "
    "three regimes give, and depends where they give different ones. Supported and refuted need all three "
    f"regimes, measured on at least {regimes.MIN_WORKLOADS} workloads each. The claim names the structure as the "
    f"cause: if the structure is under {STRUCTURE_SHARE:.0%} of what static holds in the median cell, supported "
    "becomes depends.",
    find=find,
    reads=(Memory, CrossoverMemory, Parity),
    tape="alone",
    literature=(
        Citation(
            "MXNet's memory planning roughly halves training memory",
            "MXNet documentation",
            "training, compared with the same graph without planning",
            ratio=0.5,
            beside=f"{regimes.REALISTIC}: bytes",
        ),
        Citation(
            "one shared arena takes up to 10.5 times less memory",
            "abstract, arXiv 2001.03288",
            "inference on small devices, compared with a buffer for each value",
            apart="a step here trains, and keeps the values that backward reads",
        ),
        Citation(
            "OLLA plans lifetimes and locations, and takes one third less",
            "abstract, arXiv 2210.12924",
            "training, compared with the order of a framework",
            ratio=2 / 3,
            beside=f"{regimes.REALISTIC}: bytes",
        ),
        Citation(
            "online allocators waste up to 43%",
            "abstract, arXiv 2507.16274",
            "training of large models on GPUs",
            apart="it counts the bytes that are requested, without the waste of an allocator",
        ),
    ),
    not_tested=(
        "memory on accelerators and under the caching allocators of other frameworks",
        "recomputation under a memory budget in either engine",
        "models whose data outgrow main memory",
    ),
)

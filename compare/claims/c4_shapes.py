"""C4: a dynamic graph takes inputs of any size; a static one pads or recompiles, and that costs time.

First the table of strategies for inputs of varying length, where the best strategies of the engines are compared, one
by one and in batches. Then the rule (`find`), on the workloads and on this table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from compare import text
from compare.claims import regimes
from compare.claims.base import (
    ON_THE_FLY,
    SMALLEST_EFFECT,
    Citation,
    Claim,
    Effect,
    Finding,
    Regime,
    beyond,
    combine,
    judge_ratio,
    not_measured,
)
from compare.claims.evidence import Evidence, Read, canonical, cells, exclusion_sentences, first_run, steady, unsteady
from compare.records.cells import Lengths, Memory, Parity, StrategyRow, Time, admit_modes
from compare.records.record import Cell, Records, group_by, records_of
from compare.workloads import models

ALONE = "one by one"
PHASES: tuple[tuple[str, Read], ...] = (("first epoch", first_run), ("steady state", steady))
CONTESTS: tuple[tuple[str, Callable[[str], bool]], ...] = (
    (ALONE, lambda batching: batching == ALONE),
    ("in batches", lambda batching: batching != ALONE),
)


def tables(records: Records) -> list[Evidence]:
    """Return the evidence of each model, distribution of lengths and size, with strategies right in every process."""
    ordered = sorted(records_of(records, Lengths), key=canonical)
    groups = group_by(ordered, lambda record: (f"{record.workload} on {record.lengths}", record.size))
    evidence = []
    for place, group in sorted(groups.items()):
        right = admit_modes(group).modes
        rows = ({name: row for name, row in process.modes.items() if name in right} for process in group)
        evidence.append(Evidence(*place, tuple(rows)))
    return evidence


def costs(cell: Evidence, comparisons: int = 1) -> list[Regime]:
    """Return best static strategy ÷ best dynamic strategy in time, for each way of batching and each phase.

    Each engine is judged by its strongest strategy. A way or phase that one engine lacks is left out.
    """
    contested = []
    for how, counts in CONTESTS:
        for phase, read in PHASES:
            top, bottom = (best(cell, engine, counts, read) for engine in ("static", "dynamic"))
            if top and bottom:
                name = f"{cell.name}: {phase}, {how}, {top} ÷ {bottom}"
                contested.append(judge_ratio(name, cell.ratio(top, bottom, read, comparisons)))
    return contested


def best(cell: Evidence, engine: str, counts: Callable[[str], bool], read: Read) -> str | None:
    """Return the fastest strategy of an engine among those whose way of batching `counts` accepts."""
    batching = {name: measured.batching for process in cell.processes for name, measured in process.items()}
    return cell.least(read, [n for n, how in batching.items() if n.partition(",")[0] == engine and counts(how)])


def reason(cell: Evidence) -> str:
    """Return a sentence that names the fastest strategy, the one that pads most, and the one that holds most plans."""
    means, first = cell.means(steady), cell.least(steady, cell.modes)
    if first is None:
        return f"{cell.name}: no strategy was right"
    lost = max(means, key=lambda name: (padding(cell, name), name))
    fullest = max(means, key=lambda name: (most(cell, name, "held"), name))
    return (
        f"{cell.name}: {first} is fastest once warm ({text.seconds(means[first])} an example); {lost} pads most "
        f"({padding(cell, lost):.2f} elements computed for each element of the input); {fullest} holds most plans "
        f"({most(cell, fullest, 'held'):,} bytes after {text.count_noun(most(cell, fullest, 'compiles'), 'compile')})"
    )


def refusal_sentences(records: Records) -> tuple[str, ...]:
    """Return one sentence for each strategy that was not timed, with the reason."""
    return tuple(
        sorted(
            {
                f"{r.workload} on {r.lengths} ({r.size}), {name}: {mode.status}, {mode.reason}"
                for r in records_of(records, Lengths)
                for name, mode in r.modes.items()
                if mode.status != "ok"
            }
        )
    )


def padding(cell: Evidence, mode: str) -> float:
    """Return elements computed ÷ elements of the input, the largest over processes; 1 means no padding."""
    return max(float(measured.computed / measured.useful) for measured in cell.of(mode))


def most(cell: Evidence, mode: str, field: str) -> int:
    """Return the largest value of a count, such as `compiles`, over the processes of a mode."""
    return max(int(getattr(measured, field)) for measured in cell.of(mode))


def _right(processes: Sequence[Lengths]) -> list[Mapping[str, StrategyRow]]:
    """Return the modes of each process without the strategies that some process did not find right."""
    right = admit_modes(processes).modes
    return [{name: process.modes[name] for name in process.modes if name in right} for process in processes]


KIND = "sequences of varying length"
"""The kind of the workloads whose inputs vary in length only."""
# The rule -----------------------------------------------------------------------------------------------------------


MIN_LENGTHS = 5
"""A stream with fewer lengths than this does not vary."""
PERCENTILES = (50, 95, 99)


class LengthCosts(NamedTuple):
    """The cost of varying lengths for static: its best mode on each workload, its best strategies, then every mode.

    `shown` is the cost in the headline: the first epoch of the cell with the largest steps. It is None where these
    steps are known to be smaller than `regimes.TINY` bytes.
    """

    best: list[Regime]
    strategies: list[Regime]
    each: list[Regime]
    shown: Regime | None


def find(records: Records) -> Finding:
    """Judge C4 by two facts from counts, and by the costs of varying lengths in the first epoch and in steady state."""
    varying = [cell for cell in cells(records, Time) if cell.of(cell.base) and _varies(cell)]
    by_lengths = tables(records)
    if not varying and not by_lengths:
        return not_measured("time on a workload of varying length")
    of_kind = [record for record in records if regimes.kind_of(record.job.workload or "") == KIND]
    left = (*unsteady([*varying, *by_lengths]), *exclusion_sentences(of_kind, Time), *refusal_sentences(records))
    if too_few := [cell.name for cell in varying if _lengths(cell) < MIN_LENGTHS]:
        few = f"{', '.join(too_few)}: the stream has fewer than {MIN_LENGTHS} lengths"
        return Finding("inconclusive", (few, *left))
    takes, fixed = [_takes_any(cell) for cell in varying], [_dims_fixed(cell) for cell in varying]
    best, strategies, each, shown = _costs(varying, by_lengths, regimes.places(records))
    counts = (*map(_counts, varying), *chain.from_iterable(map(_latency, varying)))
    fails = any(regime.verdict == "refuted" for regime in takes)
    effect = None
    if shown and shown.value is not None:
        effect = Effect(shown.name if " ÷ " in shown.name else f"{shown.name} ÷ dynamic", shown.value, "ratio")
    return Finding(
        "refuted" if fails else combine(regime.verdict for regime in (*takes, *fixed, *best, *strategies)),
        (*_best_costs(best), *map(reason, by_lengths), *counts, *left),
        effect,
        shown.interval if shown else None,
        (*takes, *fixed, *best, *strategies, *_real(varying), *(regime for regime in each if regime not in best)),
    )


def _varies(cell: Evidence) -> bool:
    """Whether the inputs vary in length only: by the kind of a workload, or by `varies` of a real model."""
    if models.is_model(cell.workload):
        return models.MODELS[cell.workload].varies == "length" and _lengths(cell) >= MIN_LENGTHS
    return regimes.kind_of(cell.workload) == KIND


def _real(varying: list[Evidence]) -> Iterator[Regime]:
    """Yield for each phase the cost of varying lengths over all real models; nothing if none was measured."""
    for phase, read in PHASES if (real := [cell for cell in varying if models.is_model(cell.workload)]) else ():
        costs = (regimes.CellContest(cell, regimes.cost(cell, phase, read, len(real))) for cell in real)
        contests = [contest for contest in costs if contest.regime.value is not None]
        yield regimes.overall_regime(f"{phase}, {regimes.REAL}", contests, lambda _, mean: beyond(mean))


def _costs(varying: list[Evidence], tables: list[Evidence], where: Mapping[Cell, regimes.StepCounts]) -> LengthCosts:
    """Compute all costs; their intervals are widened for the number of costs on which the verdict rests."""
    count = len(PHASES) * (len(varying) + len(CONTESTS) * len(tables))
    best = {cell.cell: [regimes.cost(cell, *phase, count) for phase in PHASES] for cell in varying}
    strategies = [cost for table in tables for cost in costs(table, count)]
    return LengthCosts(
        list(chain.from_iterable(best.values())),
        strategies,
        [regimes.cost(cell, *phase, count, mode) for cell in varying for mode in cell.static_modes for phase in PHASES],
        _largest_step_cost(best, where) if best else next(iter([*strategies][-len(PHASES) :]), None),
    )


def _largest_step_cost(best: Mapping[Cell, list[Regime]], where: Mapping[Cell, regimes.StepCounts]) -> Regime | None:
    """Return the first-epoch cost of the cell with the largest steps; None if these are known to be tiny."""
    largest = max(reversed([*best]), key=lambda cell: where[cell].bytes if cell in where else 0)  # the last, if unknown
    tiny = largest in where and where[largest].bytes < regimes.TINY
    return None if tiny else best[largest][0]


def _takes_any(cell: Evidence) -> Regime:
    takes = most(cell, cell.base, "compiles") == 0 and padding(cell, cell.base) == 1
    name = f"{cell.name}: dynamic takes every length unpadded"
    return Regime(name, "supported" if takes else "refuted", padding(cell, cell.base))


def _dims_fixed(cell: Evidence) -> Regime:
    """Judge the fact that static pads or recompiles: false if one static mode needs one compile and no padding.

    A mode that did not reach the end of the stream leaves it inconclusive.
    """
    name = f"{cell.name}: static pads or compiles again"
    free = [mode for mode in cell.static_modes if most(cell, mode, "compiles") <= 1 and padding(cell, mode) == 1]
    if any(measured.whole for mode in free for measured in cell.of(mode)):
        return Regime(name, "refuted")
    return Regime(name, "inconclusive" if free or not cell.static_modes else "supported")


def _best_costs(best: list[Regime]) -> Iterator[str]:
    """Yield a sentence with static ÷ dynamic in each phase, by the fastest static mode, then the same by cell."""
    costs = [cost for cost in best if cost.value is not None]
    ranges = [_range(phase, [cost for cost in costs if f": {phase}" in cost.name]) for phase, _ in PHASES]
    if costs:
        yield f"static ÷ dynamic in time, with the fastest shape policy: {' and '.join(filter(None, ranges))}"
        yield f"the same by cell: {'; '.join(f'{text.ratio(cost.value or 0.0)} in {cost.name}' for cost in costs)}"


def _range(phase: str, costs: list[Regime]) -> str:
    """Return the range of the costs of a phase, as `in the first epoch 1.3× to 3.4×`; empty without costs."""
    values = sorted(cost.value or 0.0 for cost in costs)
    shown = [text.ratio(float(f"{value:.2g}")) for value in values]
    where = f"in the {phase}" if phase == "first epoch" else f"in {phase}"
    return f"{where} {' to '.join(dict.fromkeys((shown[0], shown[-1])))}" if shown else ""


def _lengths(cell: Evidence) -> int:
    return len({call.length for m in cell.of(cell.base) for call in m.stream or ()})


def _counts(cell: Evidence) -> str:
    modes = (cell.base, *cell.static_modes)
    shown = (f"{mode} {most(cell, mode, 'compiles')} and {padding(cell, mode):.2f}" for mode in modes)
    return f"{cell.name}: compiles, and elements computed for each element of the input: {', '.join(shown)}"


def _latency(cell: Evidence) -> list[str]:
    base = _percentiles(cell, cell.base)
    lines = []
    for mode in cell.static_modes:
        ratios = _percentiles(cell, mode) / base
        shown = ", ".join(f"p{p} {text.ratio(ratio)}" for p, ratio in zip(PERCENTILES, ratios, strict=True))
        lines.append(f"{cell.name}: latency in the first epoch, {mode} ÷ dynamic: {shown}")
    return lines


def _percentiles(cell: Evidence, mode: str) -> npt.NDArray[np.float64]:
    seconds = [call.seconds for measured in cell.of(mode) for call in measured.stream]
    return np.asarray(np.percentile(seconds, PERCENTILES))


CLAIM = Claim(
    id="C4",
    title="Dynamic graphs take inputs of varying size without padding",
    statement="A dynamic graph takes every input at its own size. The dimensions of a static graph are "
    "fixed, so it must pad or be compiled again, and that costs time.",
    opposite="A static graph compiles once, for symbolic or bucketed dimensions. Within an epoch this has paid for "
    "itself. From then on it is faster at every length than a tape, which starts again for each example.",
    measured="A stream of real lengths, one example at a time, under every static shape policy: compiles, "
    "elements computed for each element of the input, the time of the whole first epoch, latency percentiles in "
    "it, and the time of an example in steady state. Then a table of strategies, which combine padding, batching and "
    "compilation: each on a model with a loop over the length and on one without, on the lengths of source lines, "
    "sentences and syntax trees, and on uniform lengths. Losses and gradients must be equal before anything is timed. "
    "Real models whose inputs vary are judged as the workloads are.",
    rule="Two facts come from counts: dynamic takes every length with no compile and no padding, and every static "
    "mode pads or compiles more than once. Two costs come from times, in the first epoch and in steady state, each of "
    "the static mode that is best there. The table gives the same two costs for each model and distribution: the best "
    "static strategy against the best dynamic strategy, one by one and in batches. There is a cost if the 95% interval "
    f"of static ÷ dynamic lies above {1 + SMALLEST_EFFECT}, and none if it lies below. Refuted if the first fact fails."
    " Supported if both facts and all costs hold. Depends if some hold and some do not. Inconclusive if an interval "
    f"contains {1 + SMALLEST_EFFECT}, or the stream has fewer than {MIN_LENGTHS} lengths. All intervals together hold "
    "with 95% (Bonferroni).",
    find=find,
    reads=(Time, Memory, Lengths, Parity),
    tape="partly",
    literature=(
        Citation(
            "padding is up to 50% of tokens, 89% for GLUE-CoLA at length 128",
            "abstract, arXiv 2107.02027",
            "text for language models, padded to a fixed length",
            apart="lines go one by one here; the reasons show how much each mode pads",
        ),
        Citation(
            "compiled dynamic shapes ran 3.54x as fast as PyTorch",
            "abstract, BladeDISC, 10.1145/3617327",
            "models of varying shapes, compared with PyTorch op by op",
            ratio=1 / 3.54,
            beside="steady state, static-symbolic",
        ),
        ON_THE_FLY,
        Citation(
            "TensorFlow Fold batches varying structures, more than 10x faster",
            "arXiv 1702.02181",
            "a CPU, trees, compared with the same trees one by one",
            apart="it compares engines within one way of batching; `python -m benchmarks.batched` compares the ways",
        ),
    ),
    not_tested=(
        "batches sorted by length, batches of other sizes, and packing several examples into one row",
        "buckets chosen before the lengths are known: the optimal buckets here know all lengths of the stream",
        "lengths that come in another order, or change while a model is in use",
        "two axes that vary at once, as in images",
    ),
)

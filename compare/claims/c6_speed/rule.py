"""C6: dynamic graphs may be slower on some tasks."""

from __future__ import annotations

from math import ceil

from compare.claims import crossover
from compare.claims.base import (
    NO_INTERVAL,
    SMALLEST_EFFECT,
    Claim,
    Effect,
    Finding,
    Label,
    Regime,
    judged,
    not_measured,
)
from compare.claims.break_even import break_even, course
from compare.claims.evidence import DYNAMIC, Evidence, Read, cells, first_run, left_out, steady, unsteady
from compare.instruments.crossover.schema import Crossover
from compare.instruments.parity.schema import Parity
from compare.instruments.time.schema import Time
from compare.records.record import Records, grouped
from compare.report import text
from compare.stats import Interval, geometric_mean_interval

CONTROL = "big_matmul"
"""One large matmul: the kernel is all there is, so the engines must tie on it."""
TIE = 0.10
"""The control ties when its interval lies between 1/1.1 and 1.1."""
MIN_WORKLOADS = 3
"""Fewer workloads than this, the control not counted, are not "some tasks"."""

Contest = tuple[Evidence, Regime]


def find(records: Records) -> Finding:
    """Slower somewhere in steady state? And does it stay so when a function runs only once?"""
    measured = cells(records, Time)
    if not measured:
        return not_measured("time")
    tasks = [cell for cell in measured if cell.workload != CONTROL]
    control, tie = _control([cell for cell in measured if cell.workload == CONTROL])
    left = (*unsteady(measured), *left_out(records, Time))
    often = _contests(tasks, "steady state", steady)
    once = _contests(tasks, "one-off run", first_run)
    if len({cell.workload for cell, _ in often}) < MIN_WORKLOADS:
        few = f"both engines were measured on fewer than {MIN_WORKLOADS} workloads beside the control"
        return Finding("inconclusive", (few, tie, *left))
    heads = _phase("steady state", often), _phase("one-off run", once)
    return Finding(
        "inconclusive" if control == "refuted" else _verdict(often, once),
        (
            _counts("steady state", often),
            _counts("one-off run", once),
            tie,
            *crossover.time_reasons(crossover.times(records)),
            *map(_break_even, tasks),
            *left,
        ),
        Effect("seconds in steady state, dynamic / static, geometric mean", heads[0].value or 1.0, "ratio"),
        heads[0].interval,
        (*heads, *(regime for _, regime in (*often, *once))),
    )


def _contests(tasks: list[Evidence], phase: str, read: Read) -> list[Contest]:
    """Dynamic against the static arm that is fastest there: the strongest form of the claim.

    The intervals of a phase hold their truths all at once with 95%.
    """
    found = []
    for cell in tasks:
        arm = cell.least(read)
        interval = cell.ratio(DYNAMIC, arm, read, comparisons=len(tasks)) if arm else None
        if interval:
            found.append((cell, judged(f"{cell.name}: {phase}", interval, f"against {arm}")))
    return found


def _phase(name: str, contests: list[Contest]) -> Regime:
    if not contests:
        return Regime(name, "inconclusive")
    groups = grouped(contests, lambda contest: contest[0].workload).values()
    ratios = [[regime.value or 1.0 for _, regime in group] for group in groups]
    mean = geometric_mean_interval(ratios) if len(ratios) > 1 else None
    verdict = _somewhere([regime for _, regime in contests])
    return Regime(name, verdict, mean.estimate if mean else None, mean)


def _counts(phase: str, contests: list[Contest]) -> str:
    slower = sum(regime.verdict == "supported" for _, regime in contests)
    faster = sum(_faster(regime) for _, regime in contests)
    return f"{phase}: dynamic is slower in {slower} of {text.counted(len(contests), 'cell')}, faster in {faster}"


def _faster(regime: Regime) -> bool:
    return regime.interval is not None and regime.interval.side(SMALLEST_EFFECT) == "below"


def _somewhere(regimes: list[Regime]) -> Label:
    """Slower in some and faster in none, slower in some and faster in others, or slower in none."""
    slower = any(regime.verdict == "supported" for regime in regimes)
    faster = any(map(_faster, regimes))
    if slower:
        return "depends" if faster else "supported"
    return "refuted" if all(regime.verdict == "refuted" for regime in regimes) else "inconclusive"


def _verdict(often: list[Contest], once: list[Contest]) -> Label:
    found = _somewhere([regime for _, regime in (*often, *once)])
    # slower somewhere is shown by one phase; slower nowhere needs both
    return "inconclusive" if found == "refuted" and not once else found


def _control(found: list[Evidence]) -> tuple[Label, str]:
    """Whether the control ties: supported, refuted, or not known, with the reason."""
    contests = _contests(found[-1:], "steady state", steady)
    if contests and contests[0][1].interval is None:
        return "inconclusive", f"flagged: the control {CONTROL} has no interval, so no tie was shown: {NO_INTERVAL}"
    interval = contests[0][1].interval if contests else None
    if interval is None:
        return "inconclusive", f"flagged: the control {CONTROL} was not measured, so no tie was shown"
    shown = f"{found[-1].name}: {_text(interval)}"
    side = interval.side(TIE)
    if side == "tie":
        return "supported", f"the control ties within {TIE:.0%}: {shown}"
    if side == "unclear":
        return "inconclusive", f"flagged: the control is too noisy to show a tie: {shown}"
    return "refuted", f"flagged: the control does not tie, so no ratio here can be trusted: {shown}"


def _break_even(cell: Evidence) -> str:
    """After how many runs static has earned back its later start."""
    arm = cell.least(steady)
    if arm is None or not cell.of(DYNAMIC):
        return f"{cell.name}: no break-even, only one engine was measured"
    ratio = cell.ratio(arm, DYNAMIC, steady)
    even = break_even(course(cell, arm), course(cell, DYNAMIC), ratio) if ratio else None
    if even is None or even.runs is None:
        return f"{cell.name}: no break-even, {arm} is not shown to be faster in steady state"
    when = even.verdict if even.verdict == "at once" else f"after {ceil(even.runs):,} runs"
    return f"{cell.name}: {arm} pays back {when}"


def _text(interval: Interval) -> str:
    return f"{interval.estimate:.3f} [{interval.low:.3f}, {interval.high:.3f}]"


CLAIM = Claim(
    id="C6",
    title="Dynamic graphs may be slower on some tasks",
    statement="Recording every operation on every run costs time that a graph built once does not pay, so "
    "dynamic graphs are slower on some tasks.",
    opposite="Kernels are nearly all of the time, and building a graph is paid before the first result: "
    "dynamic graphs are slower nowhere that matters, and faster in one-off runs and for changing "
    "structures.",
    measured="Seconds a training step takes on every workload, dynamic / static with the static arm that "
    "is fastest there: in steady state, and in one run from nothing (build and first call, or the whole "
    "first epoch). Blocks are paired within a process. The intervals of a phase are widened by Bonferroni for "
    "the number of cells, so that all of them hold at once with 95%. Where the sign changes is shown by a map over "
    "tensor size and depth, for chains of elementwise ops and of matrix products; it is reported, not judged.",
    rule=f"A cell is slower if the 95% interval of dynamic / static lies above {1 + SMALLEST_EFFECT}, not "
    f"slower if below, and faster if below 1/{1 + SMALLEST_EFFECT}. Over all cells, in steady state and in "
    "one-off runs: supported if some are slower and none faster, depends if some are slower and others "
    "faster, refuted if each is shown to be not slower, inconclusive otherwise. The control "
    f"{CONTROL} must tie within {TIE:.0%}: inconclusive if it does not, flagged if that is not known. Its size was "
    "raised once, after a first run had shown 5% of cache effects at smaller ones. "
    f"Inconclusive under {MIN_WORKLOADS} other workloads.",
    find=find,
    reads=(Time, Crossover, Parity),
    tape="alone",
    figures=("compare.claims.c6_speed.figure",),
    literature=(
        "torch.compile: 2.27x inference and 1.41x training on an A100 (abstract, PyTorch 2, ASPLOS 2024)",
        "NNabla, one library in both modes: 21.1 s static, 28.7 s dynamic (its tutorial)",
        "TensorFlow rnn_ptb, eager / graph: 938/971 and 2433/2585 examples/s (tensorflow/contrib/eager)",
        "on-the-fly batching in DyNet took a sentence from 193 to 16.9 ms on a CPU (arXiv 1705.07860)",
    ),
    not_tested=(
        "accelerators, where dispatch overlaps with the kernels",
        "more than one thread",
        "code generators below NumPy's kernels",
    ),
)

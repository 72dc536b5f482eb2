"""C6: dynamic graphs may be slower on some tasks.

The rule (`find`) compares seconds in steady state and in a one-off run, cell by cell, if the engines tie on a control.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from math import ceil

from compare import text
from compare.claims import regimes
from compare.claims.base import (
    NO_INTERVAL,
    ON_THE_FLY,
    SMALLEST_EFFECT,
    Citation,
    Claim,
    Finding,
    Label,
    Regime,
    Side,
    not_measured,
)
from compare.claims.evidence import Evidence, Read, cells, exclusion_sentences, first_run, steady, unsteady
from compare.claims.regimes import CellContest, break_even, course
from compare.records.cells import Crossover, Memory, Parity, Time
from compare.records.record import Cell, Records
from compare.stats import Interval

CONTROL = "big_matmul"
"""The workload with one large matmul: its kernel takes nearly all of the time, so the engines must tie on it."""
TIE = 0.10
"""The control ties when its interval lies between 1/1.1 and 1.1."""

_SLOWER: Side = "below"
"""Dynamic is slower where static ÷ dynamic lies below 1."""


def find(records: Records) -> Finding:
    """Judge C6: whether dynamic is slower in some cells, in steady state and in a one-off run."""
    measured = cells(records, Time)
    if not measured:
        return not_measured("time")
    tasks = [cell for cell in measured if cell.workload != CONTROL]
    control, tie = _control([cell for cell in measured if cell.workload == CONTROL])
    left = (*unsteady(measured), *exclusion_sentences(records, Time))
    often = _contests(tasks, "steady state", steady)
    once = _contests(tasks, "one-off run", first_run)
    if few := regimes.too_few(often, " beside the control"):
        return Finding("inconclusive", (few, tie, *left))
    where = regimes.places(records)
    sizes = regimes.by_size(often, where)
    label = _somewhere([*often, *once])
    if label == "refuted" and not once:
        label = "inconclusive"  # one phase shows that dynamic is slower somewhere; slower nowhere needs both
    label, why_open = regimes.settle_label(label, sizes)
    effect, mean = regimes.headline("seconds in steady state", sizes.get(regimes.REALISTIC, []))
    return Finding(
        "inconclusive" if control == "refuted" else label,
        (
            *why_open,
            _counts("steady state", often),
            *(_counts(f"steady state, {name}", group) for name, group in regimes.by_threads(often).items()),
            *(_counts(f"steady state, {name}", group) for name, group in sizes.items()),
            _counts("one-off run", once),
            tie,
            *regimes.time_reasons(regimes.map_times(records)),
            *map(_break_even, tasks),
            *left,
        ),
        effect,
        mean,
        (*_groups("steady state", often, where), *_groups("one-off run", once, where),
         *(regime for _, regime in (*often, *once))),
        _SLOWER,
    )  # fmt: skip


def _groups(phase: str, contests: list[CellContest], where: Mapping[Cell, regimes.StepCounts]) -> Iterator[Regime]:
    """Yield the regime of a phase over all cells, then for several threads, each size, each depth and each kind."""
    yield regimes.overall_regime(phase, contests, _somewhere)
    grouping = (
        regimes.by_threads(contests),
        regimes.by_size(contests, where),
        regimes.by_depth(contests, where),
        regimes.by_kind(contests),
    )
    for name, group in chain.from_iterable(groups.items() for groups in grouping):
        yield regimes.overall_regime(f"{phase}, {name}", group, _somewhere)


def _contests(tasks: list[Evidence], phase: str, read: Read) -> list[CellContest]:
    """Return static ÷ dynamic of each cell in a phase, where both were timed; all intervals together hold with 95%."""
    contests = (CellContest(cell, regimes.cost(cell, phase, read, len(tasks), side=_SLOWER)) for cell in tasks)
    return [contest for contest in contests if contest.regime.value is not None]


def _counts(phase: str, contests: list[CellContest]) -> str:
    slower = sum(regime.verdict == "supported" for _, regime in contests)
    faster = sum(_faster(regime) for _, regime in contests)
    of = text.count_noun(len(contests), "case")
    return f"{phase}: dynamic is slower than static in {slower} of {of}, faster in {faster}"


def _faster(regime: Regime) -> bool:
    return regime.interval is not None and regime.interval.side(SMALLEST_EFFECT) == "above"


def _somewhere(contests: Sequence[CellContest], _: Interval | None = None) -> Label:
    """Label some cells: supported if dynamic is slower in some and can be faster in none, refuted if slower in none.

    It depends if dynamic is slower in some and faster in others. A cell whose interval is so wide that dynamic may be
    faster there leaves the label inconclusive, so that noise settles nothing.
    """
    shown = [regime for _, regime in contests]
    slower = any(regime.verdict == "supported" for regime in shown)
    if slower and any(map(_faster, shown)):
        return "depends"
    if slower:
        open_ = any(each.interval is None or each.interval.high > 1 + SMALLEST_EFFECT for each in shown)
        return "inconclusive" if open_ else "supported"
    return "refuted" if all(regime.verdict == "refuted" for regime in shown) else "inconclusive"


def _control(controls: list[Evidence]) -> tuple[Label, str]:
    """Judge whether the engines tie on the control; returns supported, refuted or inconclusive, and the reason."""
    contests = _contests(controls[-1:], "steady state", steady)
    if contests and contests[0][1].interval is None:
        return "inconclusive", f"warning: the control {CONTROL} has no interval, so no tie was shown: {NO_INTERVAL}"
    interval = contests[0][1].interval if contests else None
    if interval is None:
        return "inconclusive", f"warning: the control {CONTROL} was not measured, so no tie was shown"
    spread = f"{interval.estimate:.3f} [{interval.low:.3f}, {interval.high:.3f}]"
    shown = f"{controls[-1].name}: {spread}"
    side = interval.side(TIE)
    if side == "tie":
        return "supported", f"in the control both engines take equal time, within {TIE:.0%}: {shown}"
    if side == "unclear":
        return "inconclusive", f"warning: the control is too noisy to show a tie: {shown}"
    return "refuted", f"warning: the control does not tie, so no ratio here can be trusted: {shown}"


def _break_even(cell: Evidence) -> str:
    """Return a sentence on the number of runs after which the best static mode has paid for its compiling."""
    mode = cell.least(steady)
    if mode is None or not cell.of(cell.base):
        return f"{cell.name}: no break-even, because only one engine was measured"
    ratio = cell.ratio(mode, cell.base, steady)
    even = break_even(course(cell, mode), course(cell, cell.base), ratio) if ratio else None
    if even is None or even.runs is None:
        return f"{cell.name}: no break-even, because {mode} was not shown to be faster in steady state"
    when = even.verdict if even.verdict == "at once" else f"after {text.count_noun(ceil(even.runs), 'run')}"
    return f"{cell.name}: compiling {mode} has paid for itself {when}"


CLAIM = Claim(
    id="C6",
    title="Dynamic graphs may be slower on some tasks",
    statement="A dynamic graph records every operation on every run. This costs time that a graph built once does not "
    "cost, so dynamic graphs are slower on some tasks.",
    opposite="Kernels take nearly all of the time, and a static graph costs its build before the first result. "
    "Dynamic graphs are never slower where it matters, and they are faster in one-off runs and for changing "
    "structures.",
    measured="Seconds of a training step on every workload, static ÷ dynamic, with the static mode that "
    "is fastest there: in steady state, and in one run from nothing (build and first call, or the whole "
    "first epoch). Blocks are paired within a process. The intervals of a phase are widened (Bonferroni), so that all "
    "of its cells hold together with 95%. A map over tensor size and depth shows where the sign changes, for chains of "
    "elementwise ops and of matrix products. The map is shown and not judged.",
    rule=f"Dynamic is slower in a cell if the 95% interval of static ÷ dynamic lies below 1/{1 + SMALLEST_EFFECT}, not "
    f"slower if it lies above that, and faster if it lies above {1 + SMALLEST_EFFECT}. All cells count, in steady "
    "state and in one-off runs. Supported if dynamic is slower in some cells and can be faster in none. Depends if it "
    "is slower in some and faster in others. Refuted if every cell shows that it is not slower. Otherwise "
    "inconclusive. Supported and refuted need times in each regime of size: steps under 64 KiB, to 1 MiB, and more, by "
    "the bytes that a step of the dynamic engine reaches. The headline is the mean of steps of 1 MiB and more. On the "
    f"control {CONTROL} both engines must take equal time, within {TIE:.0%}: inconclusive if they do not, with a "
    "warning if that is not known. The size of the control was raised once, after a first run had shown 5% of cache "
    f"effects at smaller sizes. Inconclusive with fewer than {regimes.MIN_WORKLOADS} other workloads.",
    find=find,
    reads=(Time, Memory, Crossover, Parity),
    tape="alone",
    literature=(
        Citation(
            "torch.compile: 2.27x inference and 1.41x training",
            "abstract, PyTorch 2, ASPLOS 2024",
            "an A100 and over 180 real models, with other kernels than eager has",
            ratio=1 / 1.41,
            beside=f"steady state, {regimes.REALISTIC}",
        ),
        Citation(
            "NNabla, one library in both modes: 21.1 s static, 28.7 s dynamic",
            "its tutorial",
            "a deep convolutional network over digits of 8 by 8, batches of 16",
            ratio=21.1 / 28.7,
            beside="steady state, networks over batches",
        ),
        Citation(
            "TensorFlow rnn_ptb, eager / graph: 938/971 and 2433/2585 examples/s",
            "tensorflow/contrib/eager",
            "its own benchmark of a language model over made-up data, in two settings",
            ratio=2433 / 2585,
            beside="steady state, sequences of varying length",
        ),
        ON_THE_FLY,
    ),
    not_tested=(
        "accelerators, where dispatch overlaps with the kernels",
        "more than one thread",
        "code generators below NumPy's kernels",
        "deployment: a graph can leave Python as ONNX, a tape cannot; docs/onnx.md has onnxruntime's time beside ours",
    ),
)

"""The ladder from the dynamic to the static engine: each rung adds one thing, so that every difference has a cause.

From `tape`, the dynamic engine as it is, one rung leads to `pool`, and one to `replay`: the same kernels in a fixed
graph, without recording. From there each rung adds passes or the arena. A waterfall (`compare.report.figures.parts`)
shows all rungs of a cell together.

The clock is that of the thread, since time that other processes take of the core belongs to no rung. The last rung,
`threads`, is a job of its own, with all cores and wall time: native code on several cores beside native code on one.
"""

from __future__ import annotations

import gc
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import optree

import dynamic
from compare import engines, workloads
from compare.engines import cases
from compare.engines.graphduel import steps
from compare.engines.graphduel.adapter import DYNAMIC
from compare.engines.graphduel.steps import CompiledStep, GraphStep
from compare.errors import describe_error
from compare.instruments import parity
from compare.instruments.bench import steady_call
from compare.instruments.judge import judge_calls
from compare.instruments.memory import numpy_memory, warm_peak
from compare.instruments.parity import ExpectedResult
from compare.instruments.rounding import Moves
from compare.instruments.rounds import own_rounds, paired_rounds
from compare.instruments.standard import Standard, lowest
from compare.records import cells as schema
from compare.records.job import Job
from compare.stats import geometric_mean
from compare.workloads.base import Case
from static.native import pool
from static.passes import pipeline

TAPE, REPLAY, NATIVE, THREADS = "tape", "replay", "native", "threads"
CACHES = 0.8
"""The least that each of several cores may take of its share of one core's seconds: more cache speeds them up."""
_RESTRUCTURED = pipeline.SIMPLIFY + pipeline.RESTRUCTURE + pipeline.SIMPLIFY


class RungDefinition(NamedTuple):
    """A rung: the rung that it is compared with, the feature that it adds, and the builder of its step from a case.

    A block of calls runs in the context `within`, which is entered before the clock starts.
    """

    base: str | None
    adds: str
    build: Callable[[Case], GraphStep]
    within: Callable[[], AbstractContextManager[Any]] = nullcontext


def _tape(case: Case) -> GraphStep:
    return steps.build(DYNAMIC, case)


def _compiled_builder(passes: Sequence[pipeline.Pass], arena: bool) -> Callable[[Case], GraphStep]:
    return lambda case: CompiledStep(case, passes=passes, arena=arena)


RUNGS: Mapping[str, RungDefinition] = {
    TAPE: RungDefinition(None, "the dynamic engine as it is", _tape),
    "pool": RungDefinition(TAPE, "memory of earlier results reused", _tape, dynamic.pool),
    REPLAY: RungDefinition(
        TAPE, "the same kernels, but nothing is recorded", _compiled_builder(pipeline.REPLAY, False)
    ),
    "simplify": RungDefinition(
        REPLAY, "folding, common subexpressions, algebra", _compiled_builder(pipeline.SIMPLIFY, False)
    ),
    "plan": RungDefinition(
        "simplify", "an arena that results are written into", _compiled_builder(pipeline.SIMPLIFY, True)
    ),
    "restructure": RungDefinition(
        "plan", "products and sums in another order, steps batched", _compiled_builder(_RESTRUCTURED, True)
    ),
    "fuse": RungDefinition(
        "restructure",
        "elementwise groups in blocks",
        _compiled_builder(_RESTRUCTURED + pipeline.FUSE + pipeline.CLEAN, True),
    ),
    "contract": RungDefinition(
        "fuse", "sums of products as products: all passes", _compiled_builder(pipeline.DEFAULT, True)
    ),
    NATIVE: RungDefinition("contract", "machine code for this graph: other kernels too", steps.native),
}
ON_CORES: Mapping[str, RungDefinition] = {
    NATIVE: RUNGS[NATIVE],
    THREADS: RungDefinition(NATIVE, "long kernels shared by all cores, by the clock on the wall", steps.threaded_step),
}
LADDER: Mapping[str, RungDefinition] = {**RUNGS, **ON_CORES}
"""All rungs, from the tape to the last, of both jobs."""
SAME_KERNELS = ("pool", REPLAY)
"""The rungs that call exactly the kernels that the tape calls."""


WARM_CALLS = 2
"""The calls before each block: a pool learns a step's need in the first, and meets it after the second."""


def measure(job: Job) -> schema.Ladder:
    """Return the ladder record of one process, over the example of median length."""
    return measure_rungs(job, _case(job))


def measure_threads(job: Job) -> schema.Threads:
    """Return the record of the last rung of one process, over the example of median length."""
    return measure_on_cores(job, _case(job))


def _case(job: Job) -> Case:
    case = cases.alone(workloads.load(job.source).case(str(job.size)))
    gc.freeze()  # keeps the harness's objects out of each collection below
    return case


def measure_rungs(job: Job, case: Case, rungs: Mapping[str, RungDefinition] = RUNGS) -> schema.Ladder:
    """Time, side by side, every rung that the case can be built on and whose result equals the tape's."""
    rows, climbed = _climb_all(rungs, case)
    within = {name: partial(_inside, rungs[name], step) for name, step in climbed.items()}
    calls = {name: steady_call(step) for name, step in climbed.items()}
    rounds, off_core = own_rounds(calls, job.budget, job.random(), within=within, warm=WARM_CALLS)
    for name, settled in rounds.settled().items():
        rows[name].steady, rows[name].blocks = settled
    same, counted = parity.same_graph(case)
    return schema.Ladder(
        **job.head,
        rungs=rows,
        same_graph=same,
        unequal=unequal(rows, same),
        traced=counted.get("static"),
        off_core=off_core,
    )


def measure_on_cores(job: Job, case: Case) -> schema.Threads:
    """Time native code on one core and on all cores side by side, where both can be built."""
    rows, climbed = _climb_all(ON_CORES, case)
    if len(climbed) == len(rows):
        calls = {name: steady_call(step) for name, step in climbed.items()}
        rounds = paired_rounds(calls, job.budget, job.random(), time.perf_counter_ns, warm=WARM_CALLS)
        for name, settled in rounds.settled().items():
            rows[name].steady, rows[name].blocks = settled
    cores = pool.count("all")
    if rows[THREADS].blocks and not is_possible(rows[THREADS].blocks, rows[NATIVE].blocks, cores):
        rows[THREADS].status, rows[THREADS].blocks = "unsupported", []
        rows[THREADS].reason = f"{cores} cores seemed to be more than {cores} times as fast as one: others used them"
    return schema.Threads(**job.head, cores=cores, rungs=rows)


def is_possible(shared: Sequence[float], alone: Sequence[float], cores: int) -> bool:
    """Return whether so many cores can be that fast, given the seconds of one; more cache may help them a little."""
    ratio = geometric_mean([top / bottom for top, bottom in zip(shared, alone, strict=True)])
    return ratio * cores > CACHES


def _climb_all(rungs: Mapping[str, RungDefinition], case: Case) -> tuple[dict[str, schema.Rung], dict[str, GraphStep]]:
    """Return the rows of all rungs without times, and the steps whose results agree with the first rung's."""
    rows: dict[str, schema.Rung] = {}
    climbed: dict[str, GraphStep] = {}
    expected: Any = None
    for name, rung in rungs.items():
        rows[name], step, result = _climb(rung, case)
        expected = result if expected is None else expected
        if step is not None and (off := difference(result, expected, ExpectedResult(case, 0, expected, expected))):
            rows[name].status, rows[name].reason = "disagree", off
        elif step is not None:
            climbed[name] = step
    return rows, climbed


@contextmanager
def _inside(rung: RungDefinition, step: GraphStep) -> Iterator[None]:
    """A context for a block of a rung."""
    with rung.within(), step.within():
        yield


def _climb(rung: RungDefinition, case: Case) -> tuple[schema.Rung, GraphStep | None, Any]:
    """Return the row of a rung without times, its step and its result; after an error no step."""
    try:
        with numpy_memory(), rung.within():
            step = rung.build(case)
            result, peak = warm_peak(step)
        with rung.within():
            # How often each kernel is called in a step, by its graph or by a recorded run.
            graphs = [executable.graph for executable in step.executables()]
            graph = graphs[0] if graphs else dynamic.record(step.function, case.params, *case.examples[0])
            kernels = dict(sorted(graph.op_counts().items()))
    except Exception as error:  # noqa: BLE001  (whatever a rung raises is what its row says)
        refused = engines.find_engine(engines.OWN).errors.refuses(error)
        return schema.Rung("unsupported" if refused else "failed", describe_error(error), rung.base), None, None
    plans = [executable.plan for executable in step.executables()]
    arena = (plans[0].peak, plans[0].lower_bound) if plans and plans[0].peak else (0, 0)
    row = schema.Rung("ok", None, rung.base, step.compile_seconds, peak, kernels, *arena)
    return row, step, result


def difference(result: Any, expected: Any, example: ExpectedResult | None = None) -> str | None:
    """Return a message on how far a rung's result is off from the tape's; None if they agree.

    With an `example`, arrays that rounding alone moves may be further off.
    """
    if example:
        result, expected = (parity.split_state(example.case, each) for each in (result, expected))
    tape = Standard(expected, None, lowest(np.asarray(leaf).dtype for leaf in optree.tree_leaves(expected)))
    row = judge_calls(
        {0: tape.less(result)}, {0: tape}, lambda _, nudges: example.moves(nudges) if example else Moves()
    )
    return row.fault and f"off from the tape's result: {row.fault}"


def unequal(rows: Mapping[str, schema.Rung], same_graph: bool | None) -> dict[str, dict[str, int]]:
    """Return the kernels of which a rung that must call the tape's kernels calls more or fewer, with the difference.

    A graph with branches or loops (`same_graph` is None) is exempt, as a tape has only the path that was taken.
    """
    differing = {}
    for name in SAME_KERNELS:
        if name in rows and rows[name].kernels and (name != REPLAY or same_graph is not None):
            differing[name] = differences(rows[TAPE].kernels, rows[name].kernels)
    return {name: difference for name, difference in differing.items() if difference}


def differences(expected: Mapping[str, int], actual: Mapping[str, int]) -> dict[str, int]:
    """Return how many more calls (negative: fewer) of each kernel there are than expected."""
    more = Counter(actual)
    more.subtract(expected)
    return {name: count for name, count in sorted(more.items()) if count}

"""C8: a static structure stays fixed for the whole training; a dynamic one can change at run time.

Each training with an edit runs eager and compiled, in any engine, step by step. The loss and gradients of a step are
timed. NumPy updates the parameters, so that an edit finds the same parameters in every engine. All losses must equal
those of our tape. Each training starts with nothing compiled in memory; a graph that two edits share may be in an
engine's cache on the disk.

The rule judges how often an engine had to rebuild, and the time of the first step after an edit, in steady steps of
that engine. An edit after which the losses of the engines do not agree is left out.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from math import fsum
from statistics import fmean, median
from typing import Any, NamedTuple

import numpy as np

from compare import engines, steps, text
from compare.claims.base import Citation, Claim, Effect, Finding, Regime, combine, not_measured
from compare.claims.evidence import Evidence, cells, steady
from compare.engines import Engine, session, try_block
from compare.errors import UnsupportedError
from compare.records.cells import Call, Parity, Time
from compare.records.checks import EditCost, EditRow, Edits, Way
from compare.records.job import KINDS, Job
from compare.records.record import Records, kind_of, records_of
from compare.stats import geometric_mean_interval
from compare.workloads import models, structures
from compare.workloads.structures import STEPS, Edit, Version
from graphs import tree

RATE = np.float32(0.1)
REPEATS = 5
"""How often each training is repeated, in turn with the others; costs are medians over these."""
BUDGET = 5.0
"""The seconds after which trainings on an edit are not repeated, where compiling is costly."""
LIMIT = 60.0
"""The limit in seconds for one training."""
TOLERANCE = 1e-3
"""The largest relative difference of losses: float32, after two dozen steps, in another order of additions."""


class TrainingRun(NamedTuple):
    """One training: the loss, seconds and structure of each step, the number of rebuilds, and seconds of compiling."""

    losses: tuple[float, ...]
    seconds: tuple[float, ...]
    structures: tuple[Hashable, ...]
    rebuilds: int
    compile_seconds: float


def measure(job: Job) -> Edits:
    """Measure claim C8 for a mode in the role of static, and the eager mode of its engine in the role of dynamic."""
    engine, mode = engines.engine_of_mode(job.mode)
    session(mode)
    theirs = engine.library.load(structures.__name__).EDITS
    gc.freeze()  # so that collections during a step do not scan the objects that exist now
    pairs = zip(steps.each("trained through", structures.EDITS), theirs, strict=True)
    return Edits("C8", [measure_edit(engine, mode, edit, reference(ours)) for ours, edit in pairs])


def reference(edit: Edit) -> tuple[float, ...]:
    """Return the losses of our tape on an edit, which all other modes must match."""
    engine = engines.find_engine(engines.OWN)
    return train(engine, engine.mode_names[0], edit.plain).losses


def measure_edit(engine: Engine, mode: str, edit: Edit, expected: Sequence[float]) -> EditRow:
    """Measure the cost of an edit in both modes, trained several times in turn; once if compiling is costly."""
    eager, start = engine.mode_names[0], time.perf_counter()
    tapes, graphs, refused = list[TrainingRun](), dict[Way, list[TrainingRun]](), dict[str, str]()
    for turn in range(REPEATS):
        if turn and engine.compiles_slowly and time.perf_counter() - start > BUDGET:
            break
        try:
            tapes.append(train(engine, eager, edit.plain))
        except UnsupportedError as error:
            return EditRow(edit.name, {}, {}, agree=False, refused={"dynamic": str(error)})
        for way, version in ways(edit).items():
            if way in refused or (turn and engine.compiles_slowly):
                continue
            try:
                run = train(engine, mode, version)
            except UnsupportedError as error:
                refused[way] = str(error)
            else:
                graphs.setdefault(way, []).append(run)
        start = start if turn else time.perf_counter()
    row = compare_trainings(edit.name, tapes, graphs, expected)
    row.refused = refused
    return row


def ways(edit: Edit) -> dict[Way, Version]:
    """Return the versions of an edit for static: retraced after the edit, and foreseen in the graph if it can be."""
    return {"retraced": edit.plain, **({"foreseen": edit.foreseen} if edit.foreseen else {})}


def train(engine: Engine, mode: str, version: Version) -> TrainingRun:
    """Train a version by a mode from the first step to the last, with nothing compiled before. Raises UnsupportedError.

    The compilations of the first step do not count as rebuilds.
    """
    engine.compiler.forget()
    params, loss, first = version.init(), float("inf"), 0
    losses, times, structures = list[float](), list[float](), list[Hashable]()
    with try_block(engine, LIMIT):
        varies = version.dims
        compute = engine.compiler.varying(mode, version.loss, varies) if varies else engine.build(mode, version.loss, 0)
        for number in range(STEPS):
            params = version.change(number, params)
            example = (*version.batch(number), *version.options(number, loss))
            structures.append(structure_of(params, example))
            call = engine.arrays((params, *example))
            start = time.perf_counter()
            result = compute(*call)
            engine.wait(result)
            times.append(time.perf_counter() - start)
            value, gradients = engine.numpy(result)
            params = tree.tree_map(lambda leaf, gradient: leaf - gradient * RATE, params, gradients)
            loss = float(value)
            losses.append(loss)
            first = first or len(engine.observed(compute).compilations)
        made = engine.observed(compute).compilations
    seconds = fsum(compilation.seconds or 0.0 for compilation in made)
    return TrainingRun(tuple(losses), tuple(times), tuple(structures), len(made) - first, seconds)


def compare_trainings(
    name: str, tapes: Sequence[TrainingRun], graphs: Mapping[Way, Sequence[TrainingRun]], expected: Sequence[float]
) -> EditRow:
    """Make the row of an edit from its trainings: the cost in each engine, and whether all losses are as expected.

    Static stands with its foreseen version if it has one. `steps` is the time of a step with a new structure, in steady
    steps of that structure: a median over repeated trainings, then a mean over structures. `ways` has every version
    that static trained.
    """
    structures = tapes[0].structures  # of the plain version: a foreseen edit changes no structure
    by_way: dict[str, EditCost] = {way: costs(trainings, structures, way) for way, trainings in graphs.items()}
    engines = {"dynamic": costs(tapes, structures)}
    if by_way:
        engines["static"] = by_way.get("foreseen") or by_way["retraced"]
    difference = max(apart(expected, trainings[0].losses) for trainings in (tapes, *graphs.values()))
    return EditRow(name, engines, by_way, bool(by_way) and difference <= TOLERANCE, difference)


def costs(trainings: Sequence[TrainingRun], structures: Sequence[Hashable], way: Way | None = None) -> EditCost:
    """Return the rebuilds, the steps that an edit costs, and the seconds of a whole training, as medians."""
    each = [new_structures(training.seconds, structures) for training in trainings]
    return EditCost(
        rebuild=trainings[0].rebuilds,
        steps=fmean(median(of_structure) for of_structure in zip(*each, strict=True)),
        seconds=median(sum(training.seconds) for training in trainings),
        compile_seconds=median(training.compile_seconds for training in trainings),
        edits=len(each[0]),
        way=way,
    )


def new_structures(times: Sequence[float], structures: Sequence[Hashable]) -> list[float]:
    """Return for each new structure, in order, the time of its first step ÷ the median of later steps with it.

    The structure of the very first step is left out, since no edit led to it. For a structure that comes only once, the
    divisor is the median of all steps that repeat any structure.
    """
    first: dict[Hashable, float] = {}
    later: dict[Hashable, list[float]] = {}
    for structure, seconds in zip(structures, times, strict=True):
        if structure in first:
            later.setdefault(structure, []).append(seconds)
        else:
            first[structure] = seconds
    repeated = [seconds for group in later.values() for seconds in group]
    return [seconds / median(later.get(structure, repeated)) for structure, seconds in list(first.items())[1:]]


def apart(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the largest relative difference of two loss curves."""
    return max(abs(a - b) / max(abs(a), abs(b), 1e-3) for a, b in zip(first, second, strict=True))


def structure_of(params: Any, example: Sequence[Any]) -> Hashable:
    """Return a key of a step's structure: the shapes of parameters and data, and the values of the options."""
    shapes = [np.shape(leaf) for leaf in (*tree.leaves(params), *example[:2])]
    return str((shapes, [np.asarray(option).tolist() for option in example[2:]]))


# The rule -----------------------------------------------------------------------------------------------------------


MIN_EDITS = 4
"""The fewest kinds of edit that the verdict needs."""
FREE = 2.0
"""An edit that costs at most this many steady steps is as good as free."""
OF_MODEL = ": the structure of each call"
"""The end of the name of an edit that stands for a real model whose structure changes by itself."""
EDIT_COST = 5.0
"""A rebuild counts where the step after an edit costs static at least this many times the steps of dynamic."""


def find(records: Records) -> Finding:
    """Judge C8: an edit supports it if dynamic takes it for free and static must rebuild, at `EDIT_COST` or more."""
    rows = [*(row for record in records_of(records, Edits) for row in record.edits), *_of_models(records)]
    edits = sorted((row for row in rows if row.agree), key=lambda row: row.edit)
    if not rows:
        return not_measured("structure edits during training")
    if len(edits) < MIN_EDITS:
        return Finding(
            "inconclusive", (f"only {text.count_noun(len(edits), 'edit')} measured, and {MIN_EDITS} are needed",)
        )
    regimes = tuple(map(_regime, edits))
    cost = geometric_mean_interval([[regime.value or 0.0] for regime in regimes])
    rebuilt = sum(edit.engines["static"].rebuild > 0 for edit in edits)
    real = [regime for regime in regimes if regime.condition.endswith(OF_MODEL)]
    if real:
        mean = geometric_mean_interval([[regime.value or 1.0] for regime in real])
        over = Regime(
            "real models", combine(regime.verdict for regime in real), mean.estimate, mean if mean.bounded else None
        )
        regimes = (over, *regimes)
    return Finding(
        combine(regime.verdict for regime in regimes),
        (f"static had to rebuild its graph after {rebuilt} of {text.count_noun(len(edits), 'edit')}", *_details(rows)),
        Effect("steady steps that an edit costs, static ÷ dynamic", cost.estimate, "ratio"),
        cost,
        regimes,
    )


def _of_models(records: Records) -> Iterator[EditRow]:
    """Yield one edit for each real model whose structure varies: the calls of its stream with a new structure.

    These are the calls after the first that had a new structure or new shapes, or at which some mode compiled; a change
    that depends on values shows only by the latter. The cost is the median of these calls in steady steps of the mode.
    The compiled mode with the smallest cost stands for static.
    """
    for cell in cells(records, Time):
        if models.is_model(cell.workload) and models.MODELS[cell.workload].varies == "structure":
            costs = {mode: cost for mode in cell.modes if (cost := _new_structures(cell, mode))}
            compiled = [mode for mode in costs if mode != cell.base]
            if cell.base in costs and compiled:
                best = min(compiled, key=lambda mode: costs[mode].steps)
                engines = {"dynamic": costs[cell.base], "static": costs[best]}
                yield EditRow(f"{cell.workload}{OF_MODEL}", engines, {}, agree=True)


def _new_structures(cell: Evidence, mode: str) -> EditCost | None:
    """Return the cost of new structures for a mode; None if it was not timed, or if no process had a new structure."""
    step, met, wholes = cell.mean(mode, steady), list[Call](), list[float]()
    for process in cell.start.processes:
        streams = [measured.stream or [] for measured in process.values() if measured.whole]
        places = {i for stream in streams for i, call in enumerate(stream) if i and (call.new or call.compiled)}
        own = (process[mode].stream or []) if mode in process and process[mode].whole else []
        met += [own[place] for place in sorted(places) if place < len(own)]
        wholes.append(fsum(call.seconds for call in own))
    if step is None or not met:
        return None
    built = sum(call.compiled for call in met)
    return EditCost(built, median(call.seconds for call in met) / step, median(wholes), 0.0, len(met))


def _details(rows: list[EditRow]) -> Iterator[str]:
    """Yield sentences on foreseen edits and their cost if retraced, on edits left out, and on refused versions."""
    foreseen = [row for row in rows if {"foreseen", "retraced"} <= {*row.ways}]
    if foreseen:
        names = ", ".join(sorted(row.edit for row in foreseen))
        again = median(row.ways["retraced"].steps for row in foreseen)
        yield (
            f"the graph holds these edits as a branch, a mask or a symbolic size: {names}; with a new trace for each "
            f"edit they would cost {text.number(again)} steps (median)"
        )
    apart = sorted(row.edit for row in rows if "static" in row.engines and not row.agree)
    if apart:
        yield f"left out, because the losses of the engines differ: {', '.join(apart)}"
    yield from sorted(f"{row.edit}, {way}: not run, {reason}" for row in rows for way, reason in row.refused.items())


def _regime(edit: EditRow) -> Regime:
    dynamic, static = edit.engines["dynamic"], edit.engines["static"]
    cost = static.steps / dynamic.steps
    changes = dynamic.rebuild == 0 and dynamic.steps <= FREE
    fixed = static.rebuild > 0 and cost >= EDIT_COST
    return Regime(edit.edit, "supported" if changes and fixed else "refuted", cost)


CLAIM = Claim(
    id="C8",
    title="A static structure stays fixed in training, a dynamic one can change",
    statement="The structure of a static graph is fixed for the whole training. A dynamic graph is built "
    "anew in every step, so layers can be dropped, added or skipped while it trains.",
    opposite="A static graph can hold a structure that varies, as a branch or a mask. A new structure costs one "
    "compile, which is cached. Over a whole training this cost disappears.",
    measured="Edits of the structure during training, in each engine: a layer dropped, a layer added, stochastic "
    "depth, early exit. Recorded are: whether the engine had to rebuild, and the time of the first step after the "
    "edit, in steady steps of that engine. Static holds a foreseeable edit as a branch, a mask or a symbolic size; "
    "any other edit needs a new trace. Losses must be equal. "
    "A real model whose structure differs from call to call is one more edit: its calls that met a new structure.",
    rule=f"An edit supports the claim if dynamic takes it without a rebuild, within {FREE:g} steady steps, "
    f"and static rebuilds and pays at least {EDIT_COST:g} times as many steps. Otherwise the edit refutes it. "
    "The claim gets the verdict that all edits give, and depends where they give different ones. Inconclusive with "
    f"fewer than {MIN_EDITS} kinds of edit.",
    find=find,
    reads=(Edits,),
    reads_of_models=(Time, Parity),
    check=KINDS[kind_of(Edits)],
    tape="partly",
    literature=(
        Citation(
            "TensorFlow Fold runs a new structure for each example, more than 10 times faster",
            "arXiv 1702.02181",
            "a CPU, trees, compared with the same trees one by one",
            apart="it edits structures between steps, and not between examples",
        ),
        Citation(
            "control flow inside the graph can be differentiated",
            "abstract, arXiv 1805.01772",
            "TensorFlow, as a fact without a figure",
            apart="C1 judges this, with programs that differentiate control flow",
        ),
    ),
    not_tested=(
        "a structure that training searches or learns",
        "the cost, in all other steps, of a branch or a mask for an edit that never comes",
        "edits that change the shapes of parameters while an optimiser holds state for them",
    ),
)

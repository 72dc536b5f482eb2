"""The measurement behind claim C8: each edited training, eager and compiled, in any engine, step by step.

What is timed of a step are the loss and its gradients. The descent is NumPy's, so that an edit finds the same
parameters in every engine, and the losses of our tape are what all others must be. Each training starts with nothing
compiled in memory; a graph that two edits share may be in an engine's cache on the disk.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Hashable, Mapping, Sequence
from math import fsum
from statistics import fmean, median
from typing import Any, NamedTuple

import numpy as np

from compare import engines, steps
from compare.engines import Engine
from compare.engines.session import session, tried
from compare.errors import UnsupportedError
from compare.records.checks import EditCost, EditRow, Edits, Way
from compare.records.job import Job
from compare.workloads import structures
from compare.workloads.structures import STEPS, Edit, Version
from graphs import tree

RATE = np.float32(0.1)
REPEATS = 5
"""Trainings of each kind, in turn; costs are medians over them."""
BUDGET = 5.0
"""Seconds after which the eager arm is not trained again on an edit, where compiling is costly."""
LIMIT = 60.0
"""Seconds that one training may take."""
TOLERANCE = 1e-3
"""How far losses may be apart, relative: float32, two dozen steps on, in another order of additions."""


class TrainingRun(NamedTuple):
    """One training: the loss and seconds of each step, which structure it had, and how often a graph was rebuilt."""

    losses: tuple[float, ...]
    seconds: tuple[float, ...]
    structures: tuple[Hashable, ...]
    rebuilds: int
    compile_seconds: float


def measure(job: Job) -> Edits:
    """The record of claim C8 for an arm, which stands for static, and the eager arm of its engine for dynamic."""
    engine, arm = engines.compared(job.arm)
    session(arm)
    theirs = engine.library.load(structures.__name__).EDITS
    gc.freeze()  # what is loaded now is not walked by each collection during a step
    pairs = zip(steps.each("trained through", structures.EDITS), theirs, strict=True)
    return Edits("C8", [measured(engine, arm, edit, reference(ours)) for ours, edit in pairs])


def reference(edit: Edit) -> tuple[float, ...]:
    """The losses of our tape on an edit of ours."""
    engine = engines.named(engines.OWN)
    return trained(engine, engine.arms[0], edit.plain).losses


def measured(engine: Engine, arm: str, edit: Edit, expected: Sequence[float]) -> EditRow:
    """What an edit costs both arms, each trained several times and in turn; compiled once where that is costly."""
    eager, start = engine.arms[0], time.perf_counter()
    tapes, graphs, refused = list[TrainingRun](), dict[Way, list[TrainingRun]](), dict[str, str]()
    for turn in range(REPEATS):
        if turn and engine.compiles_slowly and time.perf_counter() - start > BUDGET:
            break
        try:
            tapes.append(trained(engine, eager, edit.plain))
        except UnsupportedError as error:
            return EditRow(edit.name, {}, {}, agree=False, refused={"dynamic": str(error)})
        for way, version in ways(edit).items():
            if way in refused or (turn and engine.compiles_slowly):
                continue
            try:
                run = trained(engine, arm, version)
            except UnsupportedError as error:
                refused[way] = str(error)
            else:
                graphs.setdefault(way, []).append(run)
        start = start if turn else time.perf_counter()
    row = compared(edit.name, tapes, graphs, expected)
    row.refused = refused
    return row


def ways(edit: Edit) -> dict[Way, Version]:
    """Every way for static to learn of an edit."""
    return {"retraced": edit.plain, **({"foreseen": edit.foreseen} if edit.foreseen else {})}


def trained(engine: Engine, arm: str, version: Version) -> TrainingRun:
    """A whole training by an arm, which starts with nothing compiled. Raises UnsupportedError.

    What the first step has made is no rebuild.
    """
    engine.compiler.forget()
    params, loss, first = version.init(), float("inf"), 0
    losses, times, structures = list[float](), list[float](), list[Hashable]()
    with tried(engine, LIMIT):
        varies = version.dims
        compute = engine.compiler.varying(arm, version.loss, varies) if varies else engine.build(arm, version.loss, 0)
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


def compared(
    name: str, tapes: Sequence[TrainingRun], graphs: Mapping[Way, Sequence[TrainingRun]], expected: Sequence[float]
) -> EditRow:
    """What trainings tell of an edit, static as it foresees it where it does; whether all have the expected losses.

    `steps` is the time of a step with a new structure, in steady steps of that structure: a median over repeated
    trainings, and a mean over the structures. `ways` has every way that static has taken.
    """
    structures = tapes[0].structures  # those of the plain version: a graph that foresees an edit has one for all
    by_way: dict[str, EditCost] = {way: costs(trainings, structures, way) for way, trainings in graphs.items()}
    engines = {"dynamic": costs(tapes, structures)}
    if by_way:
        engines["static"] = by_way.get("foreseen") or by_way["retraced"]
    difference = max(apart(expected, trainings[0].losses) for trainings in (tapes, *graphs.values()))
    return EditRow(name, engines, by_way, bool(by_way) and difference <= TOLERANCE, difference)


def costs(trainings: Sequence[TrainingRun], structures: Sequence[Hashable], way: Way | None = None) -> EditCost:
    """The rebuilds, the steps that an edit costs, and the seconds of a whole training: medians over trainings."""
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
    """For each structure in the order met, the time of its first step over that of later steps with it.

    That of the very first step does not count: it was no edit. A structure that comes once is measured by the median
    of all steps whose structure had come before.
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
    """The largest relative difference of two loss curves."""
    return max(abs(a - b) / max(abs(a), abs(b), 1e-3) for a, b in zip(first, second, strict=True))


def structure_of(params: Any, example: Sequence[Any]) -> Hashable:
    """What a step's structure depends on: the shapes of what it is given, and the values of what is no data."""
    shapes = [np.shape(leaf) for leaf in (*tree.leaves(params), *example[:2])]
    return str((shapes, [np.asarray(option).tolist() for option in example[2:]]))

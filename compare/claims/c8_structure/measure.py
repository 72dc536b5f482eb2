"""The measurement behind claim C8: each edited training in each engine, step by step."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from statistics import fmean, median
from typing import Any, NamedTuple

import numpy as np

import dynamic
import static
from compare import steps
from compare.claims.c8_structure.base import STEPS, Edit, Version
from compare.claims.c8_structure.catalogue import edits
from compare.records.job import Job
from compare.records.structure import EditCost, EditRow, Edits, Way
from graphs import tree

RATE = np.float32(0.1)
REPEATS = 5
"""Trainings of each kind, in turn; costs are medians over them."""
TOLERANCE = 1e-3
"""How far losses may be apart, relative: float32, two dozen steps on, in another order of additions."""

TrainingStep = Callable[..., tuple[float, Any, Any]]
"""`step(params, *example)`: the seconds it took, the loss, and the parameters after it."""
Graphs = Callable[[], tuple[int, float]]
"""How many graphs have been made so far, and in how many seconds."""


class TrainingRun(NamedTuple):
    """One training: the loss and seconds of each step, which structure it had, and how often a graph was rebuilt."""

    losses: tuple[float, ...]
    seconds: tuple[float, ...]
    structures: tuple[Hashable, ...]
    rebuilds: int
    compile_seconds: float


def measure(_job: Job) -> Edits:
    """The record of claim C8: one entry for each edit."""
    gc.freeze()  # what is loaded now is not walked by each collection during a step
    return Edits("C8", [measured(edit) for edit in steps.each("trained through", edits())])


def measured(edit: Edit) -> EditRow:
    """What an edit costs each engine, each trained several times and in turn."""
    versions, tapes = ways(edit), list[TrainingRun]()
    graphs = {way: list[TrainingRun]() for way in versions}
    for _ in range(REPEATS):
        tapes.append(trained_dynamic(edit.plain))
        for way, version in versions.items():
            graphs[way].append(trained_static(version))
    return compared(edit.name, tapes, graphs, tapes[0].losses)


def ways(edit: Edit) -> dict[Way, Version]:
    """Every way for static to learn of an edit."""
    return {"retraced": edit.plain, **({"foreseen": edit.foreseen} if edit.foreseen else {})}


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


def trained_dynamic(version: Version) -> TrainingRun:
    """Train on a tape; there is nothing to rebuild."""
    return training(version, _timed(_descending(dynamic.value_and_grad(version.loss))), lambda: (0, 0.0))


def trained_static(version: Version) -> TrainingRun:
    """Train with graphs that are compiled when a structure is new."""
    step = static.jit(_descending(static.value_and_grad(version.loss)), limit=None, **version.jit)
    return training(version, _timed(step), lambda: (step.stats.compiles, step.stats.compile_seconds))


def costs(trainings: Sequence[TrainingRun], structures: Sequence[Hashable], way: Way | None = None) -> EditCost:
    """The rebuilds, the steps that an edit costs, and the seconds of a whole training: medians over trainings."""
    each = [new_structures(training.seconds, structures) for training in trainings]
    return EditCost(
        rebuild=trainings[0].rebuilds,
        steps=fmean(median(found) for found in zip(*each, strict=True)),
        seconds=median(sum(training.seconds) for training in trainings),
        compile_seconds=median(training.compile_seconds for training in trainings),
        edits=len(each[0]),
        way=way,
    )


def new_structures(times: Sequence[float], structures: Sequence[Hashable]) -> list[float]:
    """For each structure in the order met, the time of its first step over that of later steps with it.

    That of the very first step does not count: it was no edit. A structure that comes once is measured by the median
    of all steps whose structure was known.
    """
    first: dict[Hashable, float] = {}
    later: dict[Hashable, list[float]] = {}
    for structure, seconds in zip(structures, times, strict=True):
        if structure in first:
            later.setdefault(structure, []).append(seconds)
        else:
            first[structure] = seconds
    known = [seconds for group in later.values() for seconds in group]
    return [seconds / median(later.get(structure, known)) for structure, seconds in list(first.items())[1:]]


def apart(first: Sequence[float], second: Sequence[float]) -> float:
    """The largest relative difference of two loss curves."""
    return max(abs(a - b) / max(abs(a), abs(b), 1e-3) for a, b in zip(first, second, strict=True))


def training(version: Version, step: TrainingStep, graphs: Graphs) -> TrainingRun:
    """A whole training. What the first step has made is no rebuild."""
    params, loss = version.init(), float("inf")
    losses, times, structures, first = list[float](), list[float](), list[Hashable](), 0
    for number in range(STEPS):
        params = version.change(number, params)
        example = (*version.batch(number), *version.options(number, loss))
        structures.append(structure_of(params, example))
        seconds, value, params = step(params, *example)
        times.append(seconds)
        loss = float(value)
        losses.append(loss)
        first = first or graphs()[0]
    made, compiling = graphs()
    return TrainingRun(tuple(losses), tuple(times), tuple(structures), made - first, compiling)


def structure_of(params: Any, example: Sequence[Any]) -> Hashable:
    """What a step's structure depends on: the shapes of what it is given, and the values of what is no data."""
    shapes = [np.shape(leaf) for leaf in (*tree.leaves(params), *example[:2])]
    return str((shapes, [np.asarray(option).tolist() for option in example[2:]]))


def descended(params: Any, gradients: Any) -> Any:
    """The parameters after a step down the gradients."""
    return tree.tree_map(lambda value, gradient: value - gradient * RATE, params, gradients)


def _descending(gradients_of: Callable[..., tuple[Any, Any]]) -> Callable[..., tuple[Any, Any]]:
    def step(params: Any, *example: Any) -> tuple[Any, Any]:
        loss, gradients = gradients_of(params, *example)
        return loss, descended(params, gradients)

    return step


def _timed(step: Callable[..., tuple[Any, Any]]) -> TrainingStep:
    def timed(params: Any, *example: Any) -> tuple[float, Any, Any]:
        start = time.perf_counter()
        loss, after = step(params, *example)
        return time.perf_counter() - start, loss, after

    return timed

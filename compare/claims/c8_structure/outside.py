"""The measurement behind claim C8, of a framework: the same edited trainings, eager and compiled.

What is timed of a step are the loss and its gradients. The descent is NumPy's, so that an edit finds the parameters as
it does in our own engines, and our own losses are what a framework's must be. Each training starts with nothing
compiled in memory; a graph that two edits share may be in the framework's cache on the disk.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from math import fsum
from typing import Any

from compare.claims.c8_structure import catalogue
from compare.claims.c8_structure.base import Edit, Version
from compare.claims.c8_structure.measure import (
    REPEATS,
    TrainingRun,
    compared,
    descended,
    trained_dynamic,
    training,
    ways,
)
from compare.engines import Engine
from compare.engines.session import session, tried
from compare.errors import UnsupportedError
from compare.records.job import Job
from compare.records.structure import EditRow, Edits, Way

BUDGET = 5.0
"""Seconds after which eager is not trained again on an edit."""
LIMIT = 60.0
"""Seconds that one training may take."""


def measure(job: Job) -> Edits:
    """The record of claim C8 for an arm of a framework, which stands for static, and its eager arm for dynamic."""
    arm = str(job.arm)
    framework = session(arm)
    theirs = framework.load(catalogue.__name__).edits()
    gc.freeze()  # what is loaded now is not walked by each collection during a step
    pairs = zip(catalogue.edits(), theirs, strict=True)
    return Edits("C8", [measured(framework, arm, edit, trained_dynamic(ours.plain).losses) for ours, edit in pairs])


def measured(framework: Engine, arm: str, edit: Edit, expected: Sequence[float]) -> EditRow:
    """What an edit costs both arms: eager trained several times, compiled once in each way, for that takes long."""
    graphs, refused = dict[Way, Sequence[TrainingRun]](), dict[str, str]()
    try:
        tapes = repeated(lambda: trained(framework, framework.arms[0], edit.plain))
    except UnsupportedError as error:
        return EditRow(edit.name, {}, {}, agree=False, refused={"dynamic": str(error)})
    for way, version in ways(edit).items():
        try:
            graphs[way] = [trained(framework, arm, version)]
        except UnsupportedError as error:
            refused[way] = str(error)
    row = compared(edit.name, tapes, graphs, expected)
    row.refused = refused
    return row


def repeated(train: Callable[[], TrainingRun]) -> list[TrainingRun]:
    """As many trainings as the budget allows: one at least, and no more than our own engines have."""
    start, found = time.perf_counter(), [train()]
    while len(found) < REPEATS and time.perf_counter() - start < BUDGET:
        found.append(train())
    return found


def trained(framework: Engine, arm: str, version: Version) -> TrainingRun:
    """A whole training by an arm, which starts with nothing compiled. Raises UnsupportedError."""
    framework.forget()
    with tried(framework, LIMIT):
        compute = framework.build(arm, version.loss, 0)

        def step(params: Any, *example: Any) -> tuple[float, Any, Any]:
            given = framework.arrays((params, *example))
            start = time.perf_counter()
            result = compute(*given)
            framework.wait(result)
            seconds = time.perf_counter() - start
            loss, gradients = framework.numpy(result)
            return seconds, loss, descended(params, gradients)

        def graphs() -> tuple[int, float]:
            made = framework.observed(compute).compilations
            return len(made), fsum(one.seconds or 0.0 for one in made)

        return training(version, step, graphs)

"""The measurement behind claim C7: from an edit of a model to its first result, in each engine.

The session is alive: Python, NumPy and both engines are loaded and warm, and the data are at hand. What is timed is
what follows the edit: Python reads the changed source, a static graph is traced and compiled, and the first loss and
gradients are computed.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import dynamic
import static
from compare.claims.c7_prototyping.edits import EDITS, SourceEdit, length, loaded
from compare.engines import cases
from compare.instruments.time.rounds import collected, orders
from compare.records.job import Job
from compare.records.prototyping import ModelCost, Prototypes, TaskRow
from compare.workloads import Case

REPEATS = 3
"""Of each edit in each engine, after one that does not count."""


def measure(_job: Job) -> Prototypes:
    """The record of claim C7: one entry for each edit."""
    gc.freeze()  # what is loaded now is not walked by each collection below
    return Prototypes("C7", [measured(edit) for edit in EDITS])


def measured(edit: SourceEdit) -> TaskRow:
    """The seconds from an edit to the first result, and how long the model is as each engine takes it."""
    case, source = edit.case(), edit.source()
    seconds: dict[str, list[float]] = {name: [] for name in ENGINES}
    order = orders(tuple(ENGINES), Random(edit.workload))
    for _ in range(REPEATS + 1):
        for name in next(order):
            with collected():
                seconds[name].append(edit_to_result(source, case, ENGINES[name]))
    models: dict[str, Any] = {"dynamic": edit.module.loss, "static": getattr(edit.module, "static_loss", None)}
    costs = {name: ModelCost(seconds[name][1:], **length(models[name] or edit.module.loss)) for name in ENGINES}
    return TaskRow(edit.workload, f"{edit.old} -> {edit.new}", costs)


First = Callable[[Case], object]


def edit_to_result(source: str, case: Case, first: First) -> float:
    """The seconds until the changed model has given its first loss and gradients."""
    start = time.perf_counter()
    first(loaded(source, case))
    return time.perf_counter() - start


def _dynamic(case: Case) -> object:
    return dynamic.value_and_grad(case.loss)(case.params, *case.examples[0])


def _static(case: Case) -> object:
    step = static.value_and_grad(cases.traced(case))
    return static.compile(step, case.params, *case.examples[0])(case.params, *case.examples[0])


ENGINES: Mapping[str, First] = {"dynamic": _dynamic, "static": _static}

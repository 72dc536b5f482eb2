"""The measurement behind claim C7: from an edit of a model to its first result, eager and compiled, in any engine.

The session is alive: the engine has run the model before the edit, op by op, and has compiled another one. What is
timed is what follows the edit: Python reads the changed source, a graph is traced and compiled, and the first loss
and gradients are computed. An engine that keeps what it has compiled on the disk makes each edit once. Ours make it
several times, of which the first does not count.
"""

from __future__ import annotations

import gc
import time
from dataclasses import replace
from random import Random
from types import ModuleType
from typing import Any

from compare import engines, workloads
from compare.engines import Engine
from compare.engines.session import session, tried
from compare.errors import UnsupportedError
from compare.instruments.time.rounds import collected, orders
from compare.records.checks import ModelCost, Prototypes, TaskRow
from compare.records.job import Job
from compare.workloads import Case
from compare.workloads.edits import EDITS, SourceEdit, length

REPEATS = 3
"""Of each edit in each of our engines, after one that does not count."""
LIMIT = 60.0
"""Seconds for a first result."""


def measure(job: Job) -> Prototypes:
    """The record of claim C7 for an arm, which stands for static, and the eager arm of its engine for dynamic."""
    engine, arm = engines.compared(job.arm)
    session(arm)
    gc.freeze()  # what is loaded now is not walked by each collection below
    return Prototypes("C7", [measured(engine, arm, edit) for edit in EDITS])


def measured(engine: Engine, arm: str, edit: SourceEdit) -> TaskRow:
    """The seconds from an edit to the first result, and how long the model is as each arm takes it."""
    row = TaskRow(edit.workload, f"{edit.old} -> {edit.new}", {})
    case, source = before(engine, edit), edit.source()
    call, arms = arguments(engine, case), {"dynamic": engine.arms[0], "static": arm}
    repeats = 1 if engine.compiles_slowly else 1 + REPEATS
    seconds: dict[str, list[float]] = {role: [] for role in arms}
    order = orders(tuple(arms), Random(edit.workload))
    for _ in range(repeats):
        for role in next(order) if repeats > 1 else arms:
            if role in row.refused:
                continue
            try:
                run(engine, engine.arms[0], case.loss, call)
                with collected():
                    seconds[role].append(edit_to_result(engine, arms[role], edit, source, case, call))
            except UnsupportedError as error:
                row.refused[role] = str(error)
    for role, name in arms.items():
        if role not in row.refused:
            model = getattr(edit.module, engine.loss(name, case).__name__)
            row.engines[role] = ModelCost(seconds[role][-REPEATS:], **length(model))
    return row


def edit_to_result(engine: Engine, arm: str, edit: SourceEdit, source: str, case: Case, call: tuple[Any, ...]) -> float:
    """The seconds until the changed model has given its first loss and gradients. Raises UnsupportedError."""
    start = time.perf_counter()
    with engine.library.edited(edit.module.__name__, source) as module:
        run(engine, arm, engine.loss(arm, changed(case, module)), call)
        return time.perf_counter() - start


def changed(case: Case, module: ModuleType) -> Case:
    """The case with the losses of another module by the same names."""
    losses = {name: getattr(case, name) for name in ("loss", "static_loss", "scanned")}
    return replace(case, **{name: loss and getattr(module, loss.__name__) for name, loss in losses.items()})


def run(engine: Engine, arm: str, loss: Any, call: tuple[Any, ...]) -> None:
    """The loss and its gradients, by an arm. Raises UnsupportedError."""
    with tried(engine, LIMIT):
        engine.wait(engine.build(arm, loss, 0)(*call))


def before(engine: Engine, edit: SourceEdit) -> Case:
    """The case of a workload as it was before the edit, over the engine."""
    return engine.library.workload(workloads.source(edit.workload)).case("small")


def arguments(engine: Engine, case: Case) -> tuple[Any, ...]:
    """What the model is run on: its parameters and its first example."""
    call: tuple[Any, ...] = engine.arrays((case.params, *case.examples[0]))
    return call

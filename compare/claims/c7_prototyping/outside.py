"""The measurement behind claim C7, of a framework: from an edit of a model to its first result, eager and compiled.

The session is alive: the framework has run the model before the edit, op by op, and has compiled another one. Each edit
is made once, for a compiler finds on the disk what it has compiled before.
"""

from __future__ import annotations

import gc
import time
from typing import Any

from compare import workloads
from compare.claims.c7_prototyping.edits import EDITS, SourceEdit, length
from compare.engines import Engine
from compare.engines.session import session, tried
from compare.errors import UnsupportedError
from compare.instruments.time.rounds import collected
from compare.records.job import Job
from compare.records.prototyping import ModelCost, Prototypes, TaskRow
from compare.workloads import Case

LIMIT = 60.0
"""Seconds for a first result."""


def measure(job: Job) -> Prototypes:
    """The record of claim C7 for an arm of a framework, which stands for static, and its eager arm for dynamic."""
    arm = str(job.arm)
    framework = session(arm)
    gc.freeze()  # what is loaded now is not walked by each collection below
    return Prototypes("C7", [measured(framework, arm, edit) for edit in EDITS])


def measured(framework: Engine, arm: str, edit: SourceEdit) -> TaskRow:
    """The seconds from an edit to the first result, and how long the model is as each arm takes it."""
    eager, row = framework.arms[0], TaskRow(edit.workload, f"{edit.old} -> {edit.new}", {})
    case, source = loaded(framework, edit), edit.source()
    given = arguments(framework, case)
    for role, one in (("dynamic", eager), ("static", arm)):
        loss = framework.loss(one, case).__name__
        try:
            run(framework, eager, framework.loss(eager, case), given)
            with collected():
                seconds = edit_to_result(framework, one, edit, source, loss, given)
        except UnsupportedError as error:
            row.refused[role] = str(error)
        else:
            row.engines[role] = ModelCost([seconds], **length(getattr(edit.module, loss)))
    return row


def edit_to_result(
    framework: Engine, arm: str, edit: SourceEdit, source: str, loss: str, given: tuple[Any, ...]
) -> float:
    """The seconds until the changed model has given its first loss and gradients. Raises UnsupportedError."""
    start = time.perf_counter()
    with framework.edited(edit.module.__name__, source) as module:
        run(framework, arm, getattr(module, loss), given)
        return time.perf_counter() - start


def run(framework: Engine, arm: str, loss: Any, given: tuple[Any, ...]) -> None:
    """The loss and its gradients, by an arm. Raises UnsupportedError."""
    with tried(framework, LIMIT):
        framework.wait(framework.build(arm, loss, 0)(*given))


def loaded(framework: Engine, edit: SourceEdit) -> Case:
    """The case of a workload as it was before the edit, over the framework."""
    return framework.workload(workloads.source(edit.workload)).case("small")


def arguments(framework: Engine, case: Case) -> tuple[Any, ...]:
    """What the model is run on: its parameters and its first example."""
    given: tuple[Any, ...] = framework.arrays((case.params, *case.examples[0]))
    return given

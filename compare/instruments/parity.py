"""The parity gate: no arm is timed until its outputs and gradients are right.

Every arm is compared with the dynamic engine and with a float64 reference, which is the dynamic engine on
parameters and float inputs cast to float64. It agrees where the error of no array (`compare.instruments.rounding`) is
above TOLERANCES[dtype], or above what rounding alone does to that array of the dynamic engine's, several times.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import optree

import dynamic
import graphs
import static
from compare import engines, steps, workloads
from compare.engines import cases
from compare.engines.graphduel import functions
from compare.engines.limit import within
from compare.engines.step import Step
from compare.errors import described
from compare.instruments import rounding, thin
from compare.instruments.rounding import Difference, Moves, Result, judged
from compare.records.cells import Parity, ParityArm
from compare.records.job import Job
from compare.records.record import DYNAMIC, Status
from compare.workloads.base import Case
from graphs.errors import GraphError

TOLERANCES = {"float16": 2e-2, "float32": 1e-4, "float64": 1e-9}
MOST_EXAMPLES = 8


@dataclass(frozen=True)
class Expected:
    """What an example of a case must give: the reference's loss and gradients, and the dynamic engine's."""

    case: Case
    example: int
    reference: Result
    dynamic: Result
    _moves: dict[int, Moves] = field(default_factory=dict)

    def moves(self, nudges: int) -> Moves:
        """What rounding alone does to what the dynamic engine gives, by so many nudges.

        That in float64 is no part of it: a fault of the dynamic engine would excuse itself.
        """
        if nudges not in self._moves:
            moved = (rounding.difference(self._nudged(seed), self.dynamic) for seed in range(1, nudges + 1))
            self._moves[nudges] = Moves(list(moved))
        return self._moves[nudges]

    def _nudged(self, seed: int) -> Result:
        arguments = self.case.params, self.case.examples[self.example]
        params, example = engines.named(engines.OWN).nudged(arguments, seed)
        return _dynamic(self.case, self.example, params, example)


def measure(job: Job) -> Parity:
    """The parity record of one workload at one size."""
    workload = workloads.load(job.source)
    return check(job, thin.case_of(job, workload), thin.arms_of(job, workload))


def check(
    job: Job,
    case: Case,
    names: Sequence[str],
    most: int = MOST_EXAMPLES,
    limit: float | None = None,
    references: Sequence[Expected] | None = None,
) -> Parity:
    """How each arm compares on `most` examples, whether all that ran agree, and whether tape and graph are the same.

    An arm that takes longer than `limit` seconds is refused. `references` come from another engine.
    """
    tolerance = tolerance_of(case)
    expected = expectations(case, most) if references is None else references
    rows = {arm: check_arm(arm, case, expected, tolerance, limit) for arm in steps.each("checked", names)}
    same, calls = same_graph(case)
    agree = all(row.status in ("ok", "unsupported") for row in rows.values())
    return Parity(**job.head, agree=agree, arms=rows, same_graph=same, kernel_calls=calls)


def check_arm(
    arm: str, case: Case, expected: Sequence[Expected], tolerance: float, limit: float | None = None
) -> ParityArm:
    """One arm against both references, over the examples expected. A refusal is a result, with its reason."""
    try:
        with within(limit) if limit else nullcontext():
            step = engines.step(arm, case)
            row = check_step(step, expected, tolerance)
            step.close()
    except Exception as error:  # noqa: BLE001  (whatever an arm raises is what the gate reports)
        return ParityArm(status_of(arm, error), described(error), None, None, tolerance)
    return row


def status_of(arm: str, error: Exception) -> Status:
    """What an error says of an arm: that it does not do this, or that it is broken."""
    return "unsupported" if engines.refuses(arm, error) else "failed"


def tolerance_of(case: Case) -> float:
    """How far results of a case may be off, by the least precise dtype that goes in."""
    return TOLERANCES[_dtype(case)]


def check_step(step: Step, expected: Sequence[Expected], tolerance: float) -> ParityArm:
    """A step against both references, over the examples expected."""
    differences = {place: _differences(step, each, tolerance) for place, each in enumerate(expected)}
    row = judged(differences, tolerance, lambda place, nudges: expected[place].moves(nudges))
    status: Status = "disagree" if row.fault else "ok"
    return ParityArm(status, row.fault or row.warning, _finite(row.output), _finite(row.gradient), row.allowed)


def expectations(case: Case, most: int = MOST_EXAMPLES) -> list[Expected]:
    """The float64 reference and the dynamic result, for examples from the shortest to the longest."""
    eager = engines.step(DYNAMIC, case)
    chosen = thin.sample(case.lengths, most)
    return [Expected(case, index, exact(case, index), eager(*case.examples[index])) for index in chosen]


def exact(case: Case, index: int = 0) -> Result:
    """The loss and the gradients of an example in float64, by the dynamic engine."""
    return _dynamic(case, index, *engines.named(engines.OWN).doubled((case.params, case.examples[index])))


def _dynamic(case: Case, index: int, params: Any, example: Any) -> Result:
    """What the dynamic engine gives for an example of a case in other numbers."""
    other = replace(case, params=params, examples=(example,), lengths=(case.lengths[index],))
    return engines.step(DYNAMIC, other)(*example)


def same_graph(case: Case) -> tuple[bool | None, dict[str, dict[str, int]]]:
    """Whether the tape of a run and the unoptimised static graph are isomorphic, and the kernels of each.

    None where the function cannot be traced, and where its graph holds branches or loops: a tape has but the path
    that was taken. Then there is nothing to compare.
    """
    rewritten, example = case.static_loss or case.loss, case.examples[0]
    tape = dynamic.record(functions.transformed(dynamic, rewritten, case.argnum), case.params, *example)
    calls = {"dynamic": _counts(tape)}
    try:
        traced = static.trace(functions.transformed(static, cases.traced(case), case.argnum), case.params, *example)
    except GraphError:
        return None, calls
    calls["static"] = _counts(traced)
    if len(list(traced.nested())) > 1:
        return None, calls
    return bool(graphs.isomorphic(tape, traced)) and calls["dynamic"] == calls["static"], calls


def _counts(graph: Any) -> dict[str, int]:
    return dict(sorted(Counter(graph.op_counts()).items()))


def _differences(step: Step, expected: Expected, tolerance: float) -> list[Difference]:
    result = step(*step.examples[expected.example])
    return rounding.differences(result, (expected.reference, expected.dynamic), tolerance)


def _finite(error: float) -> float | None:
    """JSON has no infinity; an error without a size is null."""
    return error if math.isfinite(error) else None


def _dtype(case: Case) -> str:
    """The least precise float dtype of what goes in."""
    arguments: Any = (case.params, case.examples)
    dtypes = [leaf.dtype for leaf in optree.tree_leaves(arguments) if hasattr(leaf, "dtype")]
    names = {dtype.name for dtype in dtypes} & TOLERANCES.keys()
    return max(names, key=TOLERANCES.__getitem__, default="float32")

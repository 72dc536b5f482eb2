"""The parity gate: no arm is timed until its outputs and gradients are right.

Every arm is compared with the dynamic engine and with a float64 reference, which is the dynamic engine on
parameters and float inputs cast to float64. The error of an array is its largest difference, scaled:

    error = max|a - b| / max(max|b|, SMALL * max|B|)      agrees when error <= TOLERANCES[dtype]

where `b` is the expected array and `B` all arrays expected with it (all gradients): one that is zero but for
rounding must not be compared with that rounding.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
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
from compare.instruments import thin
from compare.records.cells import Parity, ParityArm
from compare.records.job import Job
from compare.records.record import DYNAMIC, Status
from compare.workloads.base import Case
from graphs.errors import GraphError

TOLERANCES = {"float16": 2e-2, "float32": 1e-4, "float64": 1e-9}
SMALL = 1e-2
MOST_EXAMPLES = 8

Result = tuple[Any, Any]


class Expected(NamedTuple):
    """What an example must give: the reference's loss and gradients, and the dynamic engine's."""

    example: int
    reference: Result
    dynamic: Result


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
    tolerance: float | None = None,
) -> Parity:
    """How each arm compares on `most` examples, whether all that ran agree, and whether tape and graph are the same.

    An arm that takes longer than `limit` seconds is refused. `references` come from another engine, with a `tolerance`.
    """
    tolerance = tolerance_of(case) if tolerance is None else tolerance
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
    errors = [_errors(step, e) for e in expected]
    output, gradient = (max(column) for column in zip(*errors, strict=True))
    if max(output, gradient) <= tolerance:
        return ParityArm("ok", None, output, gradient, tolerance)
    what, worst = ("the output", output) if output > tolerance else ("a gradient", gradient)
    reason = f"{what} is off by {worst:.3g}, allowed {tolerance:g}"
    return ParityArm("disagree", reason, _finite(output), _finite(gradient), tolerance)


def expectations(case: Case, most: int = MOST_EXAMPLES) -> list[Expected]:
    """The float64 reference and the dynamic result, for examples from the shortest to the longest."""
    eager = engines.step(DYNAMIC, case)
    chosen = thin.sample(case.lengths, most)
    return [Expected(index, exact(case, index), eager(*case.examples[index])) for index in chosen]


def exact(case: Case, index: int = 0) -> Result:
    """The loss and the gradients of an example in float64, by the dynamic engine."""
    params, example = engines.named(engines.OWN).doubled((case.params, case.examples[index]))
    doubled = replace(case, params=params, examples=(example,), lengths=(case.lengths[index],))
    return engines.step(DYNAMIC, doubled)(*example)


def tree_error(actual: Any, expected: Any) -> float:
    """The largest scaled error over two containers of arrays; infinity where structure or shapes differ."""
    actual_leaves, actual_tree = optree.tree_flatten(actual)
    leaves, tree = optree.tree_flatten(expected)
    if actual_tree != tree:
        return math.inf
    floor = SMALL * max((_largest(leaf) for leaf in leaves), default=0.0)
    return max((scaled_error(a, b, floor) for a, b in zip(actual_leaves, leaves, strict=True)), default=0.0)


def scaled_error(actual: Any, expected: Any, floor: float = 0.0) -> float:
    """`max|a - b| / max(max|b|, floor)`; infinity where shapes or the places of NaN and infinity differ."""
    a, b = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
    finite = np.isfinite(b)
    if a.shape != b.shape or not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return math.inf
    if not np.all(np.isfinite(a[finite])):
        return math.inf
    difference = _largest(a[finite] - b[finite])
    scale = max(_largest(b), floor)
    return difference / scale if scale > 0 else (0.0 if difference == 0 else math.inf)


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


def _errors(step: Step, expected: Expected) -> tuple[float, float]:
    loss, gradients = step(*step.examples[expected.example])
    references = (expected.reference, expected.dynamic)
    return (
        max(tree_error(loss, reference[0]) for reference in references),
        max(tree_error(gradients, reference[1]) for reference in references),
    )


def _finite(error: float) -> float | None:
    """JSON has no infinity; an error without a size is null."""
    return error if math.isfinite(error) else None


def _largest(array: Any) -> float:
    return float(np.max(np.abs(array), where=np.isfinite(array), initial=0.0))


def _dtype(case: Case) -> str:
    """The least precise float dtype of what goes in."""
    arguments: Any = (case.params, case.examples)
    dtypes = [leaf.dtype for leaf in optree.tree_leaves(arguments) if hasattr(leaf, "dtype")]
    names = {dtype.name for dtype in dtypes} & TOLERANCES.keys()
    return max(names, key=TOLERANCES.__getitem__, default="float32")

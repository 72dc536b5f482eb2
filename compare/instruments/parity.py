"""The parity gate: no mode is timed until its outputs and gradients are right.

Every mode is compared with the dynamic engine and with a float64 reference, which is the dynamic engine on parameters
and float inputs cast to float64. It agrees where no array's error (`compare.instruments.rounding`) is above the
tolerance of the lowest dtype, or above several times the move that rounding alone causes in the dynamic engine
(`compare.instruments.judge`).

The last part gives instruments the case and the modes of a job, whole or as a thin look: a few examples of the stream,
and those modes that hold few graphs. A quick run uses it for times and counts of sizes beyond its own. The fastest
mode, or the one that holds least, hardly ever keeps a graph for each length, and such modes take most of the time to
compile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import isfinite
from typing import Any

import numpy as np
import optree

import dynamic
import graphs
import static
from compare import engines, steps, workloads
from compare.engines import cases
from compare.engines.graphduel.steps import PARTS, transform_step
from compare.engines.nudge import DOUBLE, FloatChange
from compare.engines.process import limit_seconds
from compare.engines.step import Step
from compare.errors import describe_error
from compare.instruments.judge import AWAY, Again, CallJudgement, judge_calls, right_nearby
from compare.instruments.rounding import Moves
from compare.instruments.standard import TOLERANCES, Result, Standard, lowest, unit_of
from compare.records.cells import Parity, ParityRow
from compare.records.job import Job
from compare.records.record import DYNAMIC, Status
from compare.workloads.base import Case, Workload

MOST_EXAMPLES = 8


@dataclass(frozen=True)
class ExpectedResult:
    """The expected result of an example: `exact` of the float64 reference, and `dynamic` of the dynamic engine.

    A `foreign` reference was computed by another engine, elsewhere.
    """

    case: Case
    example: int
    exact: Result
    dynamic: Result
    foreign: bool = False
    _moves: dict[int, Moves] = field(default_factory=dict)

    @cached_property
    def reference(self) -> Standard:
        """Return the standard of both results; the dynamic engine is judged as well."""
        return self._standard(self.dynamic, self.exact)

    def _standard(self, dynamic: Result, exact: Result) -> Standard:
        return Standard(
            split_state(self.case, dynamic), split_state(self.case, exact), lowest_of(self.case), judged=True
        )

    def moves(self, nudges: int) -> Moves:
        """Return the moves that rounding alone causes in the dynamic engine's result, by so many nudges.

        The float64 result has no part in them: a fault of the dynamic engine would excuse itself.
        """
        if nudges not in self._moves:
            self._moves[nudges] = Moves([self.reference.less_plain(self._nudged(k + 1)) for k in range(nudges)])
        return self._moves[nudges]

    def _nudged(self, seed: int) -> Result:
        arguments = self._arguments(seed)
        with engines.find_engine(engines.OWN).numbers.round_results(seed):
            return split_state(self.case, _mode_result(DYNAMIC, self.case, self.example, *arguments))

    def _arguments(self, seed: int, unit: float = 0.0) -> tuple[Any, Any]:
        arguments = self.case.params, self.case.examples[self.example]
        params, example = engines.find_engine(engines.OWN).numbers.changed(arguments, FloatChange(seed, unit))
        return params, example

    def is_right_nearby(self, mode: str) -> bool:
        """Return whether a mode that is off is off again from its own inputs, and right from inputs nearby."""
        return not self.foreign and right_nearby(partial(self._is_right, mode))

    def _is_right(self, mode: str, seed: int) -> bool:
        """Return whether a mode is right from its own inputs (seed 0) or from nudged ones."""
        unit = AWAY * unit_of(lowest_of(self.case))
        numbers = self._arguments(seed, unit) if seed else (self.case.params, self.case.examples[self.example])
        wide, own = exact(self.case, self.example, *numbers), _mode_result(DYNAMIC, self.case, self.example, *numbers)
        reference = self._standard(own, wide)
        result = split_state(self.case, _mode_result(mode, self.case, self.example, *numbers))
        return judge_calls({0: reference.less(result)}, {0: reference}).fault is None


def measure(job: Job) -> Parity:
    """Return the parity record of one workload at one size."""
    workload = workloads.load(job.source)
    return check(job, case_of(job, workload), modes_of(job, workload))


def check(
    job: Job,
    case: Case,
    names: Sequence[str],
    most: int = MOST_EXAMPLES,
    limit: float | None = None,
    references: Sequence[ExpectedResult] | None = None,
) -> Parity:
    """Compare each mode on `most` examples; record whether all agree, and whether tape and graph are the same.

    A mode that takes longer than `limit` seconds is refused. `references` come from another engine.
    """
    expected = expectations(case, most) if references is None else references
    rows = {mode: check_mode(mode, case, expected, limit) for mode in steps.each("checked", names)}
    same, calls = same_graph(case)
    agree = all(row.status in ("ok", "unsupported") for row in rows.values())
    return Parity(**job.head, agree=agree, modes=rows, same_graph=same, kernel_calls=calls)


def check_mode(mode: str, case: Case, expected: Sequence[ExpectedResult], limit: float | None = None) -> ParityRow:
    """Return the row of one mode over the expected examples. A refusal is a result, with its reason."""
    try:
        with limit_seconds(limit) if limit else nullcontext():
            step = engines.step(mode, case)
            row = check_step(step, expected, lambda place: expected[place].is_right_nearby(mode))
            step.close()
    except Exception as error:  # noqa: BLE001  (whatever a mode raises is what the gate reports)
        return ParityRow(status_of(mode, error), describe_error(error), None, None, TOLERANCES[lowest_of(case)])
    return row


def status_of(mode: str, error: Exception) -> Status:
    """Return "unsupported" for an error that is the engine's refusal, and "failed" for a fault."""
    return "unsupported" if engines.refuses(mode, error) else "failed"


def check_step(step: Step, expected: Sequence[ExpectedResult], nearby: Again = lambda _: False) -> ParityRow:
    """Return the row of a step over the expected examples."""
    references = {place: each.reference for place, each in enumerate(expected)}
    results = {k: split_state(each.case, step(*step.examples[each.example])) for k, each in enumerate(expected)}
    calls = {k: each.less(results.pop(k)) for k, each in references.items()}
    return parity_mode(judge_calls(calls, references, lambda place, nudges: expected[place].moves(nudges), nearby))


def parity_mode(row: CallJudgement) -> ParityRow:
    """Return the row of a judgement; errors that are infinite become None, as JSON has no infinity."""
    output, gradient, state = (error if error is not None and isfinite(error) else None for error in row.errors)
    status: Status = "disagree" if row.fault else "ok"
    coarsest = max(row.coarse, key=row.coarse.__getitem__, default=None)
    fault = row.fault or row.warning
    return ParityRow(status, fault, output, gradient, row.allowed, state, row.unseen, coarsest, len(row.coarse))


def expectations(case: Case, most: int = MOST_EXAMPLES) -> list[ExpectedResult]:
    """Return the float64 and the dynamic result for examples from the shortest to the longest."""
    eager = engines.step(DYNAMIC, case)
    chosen = sample(case.lengths, most)
    return [ExpectedResult(case, index, exact(case, index), eager(*case.examples[index])) for index in chosen]


def exact(case: Case, index: int = 0, params: Any = None, example: Any = None) -> Result:
    """Return loss and gradients of an example in float64, by the dynamic engine; `params` and `example` replace it."""
    own = engines.find_engine(engines.OWN)
    numbers = (case.params, case.examples[index]) if example is None else (params, example)
    with own.numbers.meanwhile((), DOUBLE):
        return _mode_result(DYNAMIC, case, index, *own.numbers.changed(numbers, DOUBLE))


def _mode_result(mode: str, case: Case, index: int, params: Any, example: Any) -> Result:
    """Return a mode's result for an example of a case, with other parameters and inputs."""
    other = replace(case, params=params, examples=(example,), lengths=(case.lengths[index],))
    return engines.step(mode, other)(*example)


def split_state(case: Case, result: Result) -> Result:
    """Return a result with the state as a third part, by the names of messages, where it is of a training step."""
    parts = getattr(case.loss, PARTS, None)
    return parts(result) if parts else result


def same_graph(case: Case) -> tuple[bool | None, dict[str, dict[str, int]]]:
    """Return whether a run's tape and the unoptimised static graph are isomorphic, and the kernel calls of each.

    The first is None where they cannot be compared: the function cannot be traced, its result cannot be in a graph,
    such as text, or its graph has branches or loops, as a tape has only the path that was taken.
    """
    example = case.examples[0]
    try:
        step = transform_step(dynamic, case.static_loss or case.loss, case.argnum)
        tape = dynamic.record(step, case.params, *example)
    except graphs.DTypeError:
        return None, {}
    calls = {"dynamic": _counts(tape)}
    try:
        traced = static.trace(transform_step(static, cases.traceable_loss(case), case.argnum), case.params, *example)
    except Exception:  # noqa: BLE001  (the row of the mode that is traced says why)
        return None, calls
    calls["static"] = _counts(traced)
    if len(list(traced.nested())) > 1:
        return None, calls
    return bool(graphs.isomorphic(tape, traced)) and calls["dynamic"] == calls["static"], calls


def _counts(graph: Any) -> dict[str, int]:
    return dict(sorted(Counter(graph.op_counts()).items()))


def lowest_of(case: Case) -> str:
    """Return the least precise float dtype of the parameters and inputs."""
    arguments: Any = (case.params, case.examples)
    return lowest(leaf.dtype for leaf in optree.tree_leaves(arguments) if hasattr(leaf, "dtype"))


# The case and the modes of a job --------------------------------------------------------------------------------------


def case_of(job: Job, workload: Workload) -> Case:
    """Return the case of a job; with `job.thin`, its stream is cut to so many examples, short to long."""
    case = workload.case(str(job.size))
    if not job.thin:
        return case
    kept = sample(case.lengths, job.thin)
    return replace(case, examples=tuple(case.examples[i] for i in kept), lengths=tuple(case.lengths[i] for i in kept))


def modes_of(job: Job, workload: Workload) -> tuple[str, ...]:
    """Return the modes of a job, or of its workload; a thin job leaves out modes with a graph per shape."""
    few = tuple(mode for mode in workload.modes if not engines.of_mode(mode).traits(mode).keeps_each)
    return job.modes or (few if job.thin and len(few) > 1 else workload.modes)


def sample(lengths: Sequence[int], most: int) -> list[int]:
    """Return at most `most` indices, in stream order, spread from the shortest example to the longest."""
    ranked = sorted(range(len(lengths)), key=lengths.__getitem__)
    places = np.linspace(0, len(ranked) - 1, min(most, len(ranked)))
    return sorted({ranked[round(place)] for place in places})

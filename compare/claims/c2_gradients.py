"""C2: the tape of recorded operations gives right gradients, as every op is checked against finite differences.

The sweep takes every differentiable op of an engine, on every sample, in float64. The eager mode and a mode that
compiles are checked against central differences and against our tape. Our tape itself is checked against differences
to second order, in every choice of inputs. First the measurement (`measure`, `Sweep`, `SampledCall`), then the rule
(`find`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr
from functools import partial
from io import StringIO
from typing import Any, NamedTuple

import numpy as np

from compare import engines, steps
from compare.claims.base import Claim, Effect, Finding, Label, Regime, not_measured
from compare.engines import Engine
from compare.engines.process import limit_seconds
from compare.engines.step import Function
from compare.records.cells import Parity, ParityRow
from compare.records.checks import Gradients
from compare.records.job import KINDS, Job
from compare.records.record import Records, kind_of, records_of
from compare.stats import Interval, proportion_interval
from graphs import tree
from graphs.testing import Sample, check_grads, samples

ORDER = 2
"""The order of derivatives that is checked in engines that differentiate to any order: gradients of gradients."""
SAME_RULES = 1e-12
"""The tolerance between our engines: they run the same rules in float64, and differ by the order of additions."""
OTHER_RULES = 1e-9
"""The tolerance between a framework's gradient and ours: other rules and other kernels, both in float64."""
STEP = float(np.finfo(np.float64).eps ** (1 / 3))
"""The step of a central difference, the same as in `graphs.testing.check_grads`; `SLOPE` has its tolerances."""
SLOPE = 1e-5, 1e-7
LIMIT = 60.0
"""The limit in seconds for one compiled op."""
OPERATORS: dict[str, Function] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "negative": operator.neg,
    "positive": operator.pos,
    "pow": operator.pow,
    "remainder": operator.mod,
    "matmul": operator.matmul,
}
"""The ops that every framework has as Python's operators."""


class GradientCheck(NamedTuple):
    """A check of a mode: its name, and a function `run` that raises AssertionError where a gradient is wrong."""

    name: str
    mode: str
    run: Callable[[], None]


class GradientOutcome(NamedTuple):
    """The outcome of a check: "passed", "refused" if the engine cannot do this call, or an error message."""

    name: str
    result: str


_FINE = ("passed", "refused")


def measure(job: Job) -> Gradients:
    """Sweep all ops of a mode, and return the record: the number of checks, how many passed, and the failures, by op.

    A call that a framework refuses is not a check; `by_op` counts such calls apart.
    """
    engine, _ = engines.engine_of_mode(job.mode)
    engine.start(0, doubles=True)
    sweep = Sweep(job.mode)
    with redirect_stderr(StringIO()):  # compilers warn, and some ops print their arguments
        outcomes = {name: sweep.outcomes(name) for name in steps.each("checked", sweep.ops())}
    failures = [f"{name}: {result}" for of_op in outcomes.values() for name, result in of_op if result not in _FINE]
    by_op = {}
    for name, of_op in outcomes.items():
        results = [result for _, result in of_op]
        refused = results.count("refused")
        by_op[name] = {"checks": len(results) - refused, "passed": results.count("passed"), "refused": refused}
    total = sum(counts["checks"] for counts in by_op.values())
    return Gradients("C2", total, total - len(failures), failures, by_op)


def differentiable() -> list[str]:
    """Return the sorted names of all ops that are differentiable in some input, without control-flow ops."""
    import graphs.ops  # noqa: F401  (importing the library fills the registry)
    from graphs.op import registered_ops

    return sorted(name for name, op in registered_ops().items() if op.differentiable and op.family != "control")


class Sweep:
    """The checks of all ops of an engine, in its eager mode and in `mode`; the default is our own engine."""

    def __init__(self, mode: str | None = None) -> None:
        self.engine, self.mode = engines.engine_of_mode(mode)
        self.functions = {**OPERATORS, **self.engine.functions()}

    def ops(self) -> list[str]:
        """Return the names of the differentiable ops for which the engine has a function."""
        return sorted(set(self.functions) & set(differentiable()))

    def outcomes(self, op: str) -> list[GradientOutcome]:
        """Run the checks of an op; once a call is refused in the eager mode, its other checks are skipped."""
        outcomes, compiled = list[GradientOutcome](), False
        for call in self.calls(op):
            for check in self.checks(call, compile=not compiled):
                outcomes.append(self.outcome(check))
                if outcomes[-1].result == "refused" and check.mode == self.engine.mode_names[0]:
                    break
            else:
                compiled = self.engine.compiles_slowly
        return outcomes

    def outcome(self, check: GradientCheck) -> GradientOutcome:
        """Run one check. A crash counts as "refused", except in the reference engine, where it is a failure."""
        try:
            check.run()
        except Exception as error:  # noqa: BLE001  (a crash is an outcome, not the end of the sweep)
            if not isinstance(error, AssertionError) and not self.engine.is_reference:
                return GradientOutcome(check.name, "refused")
            return GradientOutcome(check.name, " ".join(str(error).split()) or type(error).__name__)
        return GradientOutcome(check.name, "passed")

    def checks(self, call: SampledCall, *, compile: bool = True) -> Iterator[GradientCheck]:
        """Yield the checks of one call: each mode against differences and against our tape.

        A mode without derivatives of its own is checked against differences only if it is eager, in all inputs.
        """
        eager = self.engine.mode_names[0]
        if not self.engine.is_reference:
            yield GradientCheck(f"{call}: {eager} against graphduel", eager, call.against_ours)
        for mode in dict.fromkeys((eager, self.mode)):
            if self.engine.traits(mode).derivatives or (mode == eager and call.inputs == call.sample.differentiable):
                check = partial(call.against_differences, mode)
                yield GradientCheck(f"{call}: {mode} against finite differences", mode, check)
        if compile and self.mode != eager:
            check = partial(call.against_ours, self.mode)
            yield GradientCheck(f"{call}: {self.mode} against graphduel", self.mode, check)

    def calls(self, op: str) -> Iterator[SampledCall]:
        """Yield a call for each sample of an op with a float result, and for each choice of inputs.

        Where compiling is costly, only the first sample has every choice; the others are differentiated in all inputs.
        """
        floats = [sample for sample in samples(op) if sample(*sample.arrays).dtype.kind == "f"]
        for sample in floats:
            every = sample is floats[0] or not self.engine.compiles_slowly
            for inputs in sample.patterns() if every else [sample.differentiable]:
                yield SampledCall(self.engine, self.functions, sample, inputs)


class SampledCall:
    """A sample as a call of an engine's function, differentiated in the inputs with the indices `inputs`."""

    def __init__(self, engine: Engine, functions: dict[str, Function], sample: Sample, inputs: tuple[int, ...]) -> None:
        self.engine, self.sample, self.inputs = engine, sample, inputs
        self.total, named, options = functions["sum"], functions[sample.op.name], dict(sample.attrs)
        self.function: Function = lambda *args: named(*args, **options)
        self.point = [sample.arrays[i] for i in inputs]

    def __str__(self) -> str:
        return f"{self.sample} in {', '.join(f'input {i}' for i in self.inputs)}"

    def loss(self, function: Function) -> Function:
        """Return a scalar loss: the weighted sum of the function's result, as a function of the chosen inputs only."""
        leaves, structure = tree.flatten(self.sample.args)
        at = [i for i, leaf in enumerate(leaves) if isinstance(leaf, np.ndarray)]
        fixed = self.engine.arrays([np.array(leaf) if i in at else leaf for i, leaf in enumerate(leaves)])
        shape = self.sample(*self.sample.arrays).shape
        each = np.cos(np.arange(np.prod(shape))).reshape(shape)  # a different weight for each element
        weights = self.engine.arrays([np.asarray(each, np.float64)])[0]

        def loss(values: list[Any]) -> Any:
            filled = list(fixed)
            for i, value in zip(self.inputs, values, strict=True):
                filled[at[i]] = value
            return self.total(function(*tree.unflatten(structure, filled)) * weights)

        return loss

    def run(self, step: Function, point: list[Any]) -> tuple[Any, list[Any]]:
        """Run a step at a point; returns the value and the list of gradients as NumPy arrays."""
        value, gradients = self.engine.numpy(step(self.engine.arrays([np.array(x) for x in point])))
        return value, list(gradients)

    def against_ours(self, mode: str | None = None) -> None:
        """Compare gradients, compiled by `mode` or eager by default, with our tape's. Raises AssertionError.

        Our tape shares no code with a framework.
        """
        if mode is None:
            step = self.engine.build(self.engine.mode_names[0], self.loss(self.function), 0)
        else:
            step, _ = self.engine.compiler.whole(mode, self.function, self.loss)
        with limit_seconds(LIMIT):
            _, gradients = self.run(step, self.point)
        ours = engines.find_engine(engines.OWN)
        taped = SampledCall(ours, ours.functions(), self.sample, self.inputs)
        _, expected = taped.run(ours.build(ours.mode_names[0], taped.loss(taped.function), 0), self.point)
        tolerance = SAME_RULES if self.engine.is_reference else OTHER_RULES
        for i, theirs, wanted in zip(self.inputs, gradients, expected, strict=True):
            message = f"the gradient of input {i}"
            np.testing.assert_allclose(theirs, wanted, rtol=tolerance, atol=tolerance, err_msg=message)

    def against_differences(self, mode: str) -> None:
        """Compare gradients with central differences, to second order where the engine can. Raises AssertionError."""
        if module := self.engine.traits(mode).derivatives:
            check_grads(self.sample, self.sample.arrays, ORDER, argnums=self.inputs, engine=module)
            return
        loss = self.loss(self.function)
        _, gradients = self.run(self.engine.build(mode, loss, 0), self.point)
        value = self.engine.build(mode, loss, None)
        random = np.random.default_rng(0)
        for i, x in enumerate(self.point):
            direction = random.standard_normal(x.shape)
            direction /= max(float(np.linalg.norm(direction)), np.finfo(np.float64).tiny)
            step = STEP * max(1.0, float(np.max(np.abs(x), initial=0.0)))
            ends = [self.run(value, self.moved(i, sign * step * direction))[0] for sign in (1, -1)]
            slope = float(np.sum(gradients[i] * direction))
            np.testing.assert_allclose(slope, (ends[0] - ends[1]) / (2 * step), *SLOPE)

    def moved(self, i: int, by: Any) -> list[Any]:
        """Return the point with input `i` moved by an array."""
        return [x + by if j == i else x for j, x in enumerate(self.point)]


# The rule -----------------------------------------------------------------------------------------------------------


MIN_OPS = 40
"""Fewer ops than this are not an op library."""
MIN_WORKLOADS = 3
"""The fewest workloads whose gradients must have been compared with float64, besides single ops."""
MIN_PASS_RATE = 0.98
"""The lower bound of the pass rate must be above this; 189 checks are the fewest that can reach it."""
NAMED = 10
"""How many failures a verdict lists by name."""


def find(records: Records) -> Finding:
    """Judge C2: supported if every check passes and there are enough of them, refuted if one fails."""
    none = Gradients("C2", 0, 0, [], {})
    # of several records the worst, as a repetition is no new evidence
    sweep = min(records_of(records, Gradients), key=lambda r: (r.passed - r.checks, r.checks, repr(r)), default=none)
    models = _models(records)
    checks, passed = sweep.checks, sweep.passed
    total, good = checks + len(models), passed + sum(models.values())
    if total == 0:
        return not_measured("gradient checks")
    rate = proportion_interval(good, total)
    lacking = _lacking(len(sweep.by_op), models, rate)
    failures = [*sweep.failures, *sorted(name for name, agrees in models.items() if not agrees)]
    named = [f"fails: {failure}" for failure in failures[:NAMED]]
    if len(failures) > NAMED:
        named.append(f"and {len(failures) - NAMED} more failures")
    both = ("single ops", passed, checks), ("whole workloads", sum(models.values()), len(models))
    parts = [part for part in both if part[-1]]
    counts = f"{good:,} of {total:,} checks pass"
    if len(parts) > 1:
        counts += ": " + ", ".join(f"{right:,} of {made:,} of {name}" for name, right, made in parts)
    verdict: Label = "inconclusive" if lacking else "supported"
    return Finding(
        verdict if good == total else "refuted",
        (counts, *(lacking if good == total else named)),
        Effect("gradient checks that pass", rate.estimate, "share"),
        rate,
        tuple(_regime(*part) for part in parts),
    )


def _models(records: Records) -> dict[str, bool]:
    """Return for each workload and size whether the tape's gradients agree with the float64 reference."""
    agreeing: dict[str, bool] = {}
    for record in records_of(records, Parity):
        mode = record.modes.get(record.base)
        if mode and mode.status in ("ok", "disagree"):
            name = record.cell.title
            agreeing[name] = agreeing.get(name, True) and _agrees(mode)
    return agreeing


def _agrees(mode: ParityRow) -> bool:
    # a mode that disagrees only in its outputs has right gradients
    return mode.status == "ok" or (mode.gradient_error is not None and mode.gradient_error <= mode.tolerance)


def _lacking(ops: int, models: dict[str, bool], rate: Interval) -> tuple[str, ...]:
    workloads = len({name.split(" (")[0] for name in models})
    tests = (
        (ops >= MIN_OPS, f"{ops} ops were checked, {MIN_OPS} are needed"),
        (workloads >= MIN_WORKLOADS, f"{workloads} workloads were checked, {MIN_WORKLOADS} are needed"),
        (rate.low > MIN_PASS_RATE, f"the pass rate may be {rate.low:.3f}; above {MIN_PASS_RATE} is needed"),
    )
    return tuple(reason for met, reason in tests if not met)


def _regime(name: str, passed: int, checks: int) -> Regime:
    rate = proportion_interval(passed, checks)
    return Regime(name, "supported" if passed == checks else "refuted", rate.estimate, rate)


CLAIM = Claim(
    id="C2",
    title="Recorded operations give right gradients",
    statement="An engine that records the operations on tensors, and walks the record backwards, gives right "
    "gradients for any Python program.",
    opposite="A tape is wrong in special cases: broadcasting, views, ties, mixed requires_grad, higher order. "
    "Only a graph that is known as a whole can be differentiated safely.",
    measured="Every differentiable op, on every registered sample and every choice of inputs that require gradients. "
    "Tape and static graph are compared with central finite differences in float64, to second order, and with each "
    "other. Then the tape's gradients of every workload are compared with a float64 reference. In a framework, each op "
    "that it has a function for is compared with differences and with the tape, to first order.",
    rule=f"Refuted if any check fails. Supported if all checks pass, on at least {MIN_OPS} ops and "
    f"{MIN_WORKLOADS} workloads, and the lower end of Wilson's 95% interval of the pass rate is above "
    f"{MIN_PASS_RATE}. Otherwise inconclusive.",
    find=find,
    reads=(Gradients, Parity),
    check=KINDS[kind_of(Gradients)],
    literature=("HIPS autograd checks its 117 gradient rules along random directions to second order (its source)",),
    not_tested=(
        "gradients in float16: rounding alone makes them differ from the reference",
        "an engine that shares no rule with these two",
        "programs that change recorded tensors in place",
    ),
)

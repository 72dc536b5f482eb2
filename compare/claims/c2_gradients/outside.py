"""C2 about a framework: the gradient of each op among its functions, eager and compiled, in float64."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr
from functools import partial
from io import StringIO
from typing import Any, NamedTuple

import numpy as np

import dynamic
from compare.claims.c2_gradients.measure import differentiable, weighted, weights_of
from compare.engines import of_arm
from compare.engines.base import Engine, Function
from compare.engines.limit import within
from compare.records.gradients import Gradients
from compare.records.job import Job
from graphs import tree
from graphs.testing import Sample, samples

TOLERANCE = 1e-9
"""Between a gradient of a framework's and ours: other rules and other kernels, both in float64."""
STEP = float(np.finfo(np.float64).eps ** (1 / 3))
"""Of a central difference, as `graphs.testing.check_grads` has it, and so are the tolerances."""
SLOPE = 1e-5, 1e-7
LIMIT = 60.0
"""Seconds for one compiled op."""


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


class GradientOutcome(NamedTuple):
    """A check: "passed", "refused" where the framework does not do this call, or what went wrong."""

    name: str
    result: str


def measure(job: Job) -> Gradients:
    """The gradients record about an arm. What a framework refuses is no check: `by_op` counts it beside them."""
    arm = str(job.arm)
    framework = of_arm(arm)
    framework.start(0, doubles=True)
    functions = {**framework.functions(), **OPERATORS}
    with redirect_stderr(StringIO()):  # compilers warn
        names = sorted(set(functions) & set(differentiable()))
        outcomes = {name: list(checks(framework, arm, functions, name)) for name in names}
    failures = [f"{name}: {result}" for found in outcomes.values() for name, result in found if result not in _FINE]
    by_op = {name: counted(found) for name, found in outcomes.items()}
    total = sum(counts["checks"] for counts in by_op.values())
    return Gradients("C2", total, total - len(failures), failures, by_op)


_FINE = ("passed", "refused")


def counted(outcomes: Sequence[GradientOutcome]) -> dict[str, int]:
    """The checks of an op, those that passed, and the calls that the framework refuses."""
    results = [result for _, result in outcomes]
    refused = results.count("refused")
    return {"checks": len(results) - refused, "passed": results.count("passed"), "refused": refused}


def checks(framework: Engine, arm: str, functions: dict[str, Function], op: str) -> Iterator[GradientOutcome]:
    """Eager against ours, and in all inputs at once against differences.

    Compiled, the first call that eager takes: a compilation may take seconds.
    """
    eager, compiled = framework.arms[0], arm == framework.arms[0]
    for call in called(framework, functions, op):
        first = outcome(f"{call}: {eager} against graphduel", partial(call.against_ours, call.function))
        yield first
        if first.result == "refused":
            continue
        if call.inputs == call.sample.differentiable:
            yield outcome(f"{call}: {eager} against finite differences", call.against_differences)
        if not compiled:
            compiled = True
            made = framework.compiled(arm, call.function)
            yield outcome(f"{call}: {arm} against graphduel", partial(call.against_ours, made))


def called(framework: Engine, functions: dict[str, Function], op: str) -> Iterator[SampledCall]:
    """Each sample of an op that gives floats, in all its inputs; the first in each choice of inputs."""
    floats = [sample for sample in samples(op) if sample(*sample.arrays).dtype.kind == "f"]
    for sample in floats:
        choices = sample.patterns() if sample is floats[0] else [sample.differentiable]
        yield from (SampledCall(framework, functions, sample, inputs) for inputs in choices)


class SampledCall:
    """A sample as a call of the framework's function, and its gradients in some of the inputs."""

    def __init__(
        self, framework: Engine, functions: dict[str, Function], sample: Sample, inputs: tuple[int, ...]
    ) -> None:
        self.framework, self.sample, self.inputs = framework, sample, inputs
        self.total, named, options = functions["sum"], functions[sample.op.name], dict(sample.attrs)
        self.function: Function = lambda *args: named(*args, **options)
        self.point = [sample.arrays[i] for i in inputs]

    def __str__(self) -> str:
        return f"{self.sample} in {', '.join(f'input {i}' for i in self.inputs)}"

    def run(self, function: Function, point: list[Any], argnum: int | None = 0) -> tuple[Any, list[Any]]:
        """The weighted sum of what a version of the function gives, and its gradients, as arrays of NumPy."""
        leaves, structure = tree.flatten(self.sample.args)
        at = [i for i, leaf in enumerate(leaves) if isinstance(leaf, np.ndarray)]
        fixed = self.framework.arrays([np.array(leaf) if i in at else leaf for i, leaf in enumerate(leaves)])
        weights = self.framework.arrays([weights_of(self.sample(*self.sample.arrays).shape)])[0]

        def loss(values: list[Any]) -> Any:
            filled = list(fixed)
            for i, value in zip(self.inputs, values, strict=True):
                filled[at[i]] = value
            return self.total(function(*tree.unflatten(structure, filled)) * weights)

        step = self.framework.build(self.framework.arms[0], loss, argnum)
        value, found = self.framework.numpy(step(self.framework.arrays([np.array(x) for x in point])))
        return value, list(found)

    def against_ours(self, function: Function) -> None:
        """Raises AssertionError where a gradient is not the tape's, which shares no code with the framework."""
        with within(LIMIT):
            _, found = self.run(function, self.point)
        _, wanted = dynamic.value_and_grad(weighted(self.sample, self.inputs))(self.point)
        for i, theirs, ours in zip(self.inputs, found, wanted, strict=True):
            message = f"the gradient of input {i}"
            np.testing.assert_allclose(theirs, ours, rtol=TOLERANCE, atol=TOLERANCE, err_msg=message)

    def against_differences(self) -> None:
        """Raises AssertionError where the slope along a direction is not the central difference of the function."""
        _, found = self.run(self.function, self.point)
        random = np.random.default_rng(0)
        for i, x in enumerate(self.point):
            direction = random.standard_normal(x.shape)
            direction /= max(float(np.linalg.norm(direction)), np.finfo(np.float64).tiny)
            step = STEP * max(1.0, float(np.max(np.abs(x), initial=0.0)))
            ends = [self.run(self.function, self.moved(i, sign * step * direction), None)[0] for sign in (1, -1)]
            slope = float(np.sum(found[i] * direction))
            np.testing.assert_allclose(slope, (ends[0] - ends[1]) / (2 * step), *SLOPE)

    def moved(self, i: int, by: Any) -> list[Any]:
        """The point with one input moved."""
        return [x + by if j == i else x for j, x in enumerate(self.point)]


def outcome(name: str, check: Function) -> GradientOutcome:
    """How a check came out."""
    try:
        check()
    except AssertionError as error:
        return GradientOutcome(name, " ".join(str(error).split()))
    except Exception:  # noqa: BLE001  (a call that a framework does not know is no wrong gradient)
        return GradientOutcome(name, "refused")
    return GradientOutcome(name, "passed")

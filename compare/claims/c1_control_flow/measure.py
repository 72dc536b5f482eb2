"""The measurement behind claim C1: every program of the corpus, as Python and as a fixed graph, in both engines."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from random import Random
from statistics import median
from typing import Any, Literal, NamedTuple

import numpy as np

import dynamic
import graphs
import static
from compare import steps
from compare.claims.c1_control_flow.corpus import programs, tokens
from compare.claims.c1_control_flow.corpus.program import Arguments, Array, Function, Program
from compare.errors import described
from compare.instruments.parity.measure import TOLERANCES, tree_error
from compare.instruments.time.measure import steady_blocks
from compare.records.control_flow import ProgramRow, Programs
from compare.records.job import Budget, Job
from graphs.errors import ControlFlowError, VerificationError
from graphs.testing import check_grads

TOLERANCE = TOLERANCES["float64"]
BUDGET = Budget(rounds=7, least=3, seconds=0.1, block_seconds=0.002)
"""For each program; what is judged is whether it runs, and its time is only reported."""

INPUTS = 20
"""Arguments that a program is traced and converted for, at least: its own, and others near them."""

Results = list[tuple[Any, Any]]


class Tried(NamedTuple):
    """How a function fared in an engine on all inputs: `right`, `wrong`, `refused` or `failed`, and why."""

    status: Literal["right", "wrong", "refused", "failed"]
    reason: str | None = None


def measure(_job: Job) -> Programs:
    """The record of claim C1: one entry for each program."""
    gc.freeze()  # what is loaded now is not walked by each collection between blocks
    return Programs("C1", [measured(program) for program in steps.each("ran", programs())])


def measured(program: Program) -> ProgramRow:
    """What a program does in the dynamic engine as it is, and what it takes in the static one.

    `trace` and `convert` say how its plain version fares under `static.jit`, which compiles again for another
    structure, on its inputs and on others near them. Seconds are those of a call for the value and the gradient, a mean
    over the inputs and a median over blocks.
    """
    try:
        expected = reference(program, program.inputs)
    except Exception as error:  # noqa: BLE001  (whatever a program raises is its result)
        unknown = Tried("failed", "there is nothing to compare with")
        return found(program, Tried("failed", described(error)), unknown, unknown)
    in_dynamic = tried(lambda: check_dynamic(program, expected))
    more = further(program)
    traced = Static(program, program.plain, program.inputs)
    as_it_is = rewritten = traced.fares(expected, more)
    converted = Static(program, program.plain, program.inputs, convert=True)
    as_converted = converted.fares(expected, more)
    by_hand = traced
    if as_it_is.status != "right" and program.graph is not None:
        by_hand = Static(program, program.graph, program.graph_inputs or program.inputs)
        rewritten = by_hand.fares(expected)
    usable = by_hand if rewritten.status == "right" else None
    row = found(program, in_dynamic, as_it_is, rewritten, usable and usable.function)
    row.inputs = len(program.inputs) + len(more)
    row.convert, row.convert_reason = as_converted
    if usable is not None:
        row.compiles, row.compile_seconds = usable.compiled
    if as_converted.status == "right":
        row.convert_compiles, row.convert_compile_seconds = converted.compiled
    arms = {"static": usable, "converted": converted if as_converted.status == "right" else None}
    each = seconds(program, {name: arm for name, arm in arms.items() if arm is not None})
    row.dynamic_seconds, row.static_seconds = each["dynamic"], each.get("static")
    row.convert_seconds = each.get("converted")
    return row


def found(
    program: Program, in_dynamic: Tried, as_it_is: Tried, rewritten: Tried, taken: Function | None = None
) -> ProgramRow:
    """Which of the two can run it, in which form, and how much was rewritten in the version that static takes."""
    return ProgramRow(
        program=program.name,
        family=program.family,
        dynamic=in_dynamic.status == "right",
        static=verdict(as_it_is, rewritten),
        reason=in_dynamic.reason or program.cannot or rewritten.reason,
        trace=as_it_is.status,
        trace_reason=as_it_is.reason,
        tokens=len(tokens.tokens(program.plain)),
        graph_tokens=len(tokens.tokens(taken)) if taken else None,
        edit=tokens.share(program.plain, taken) if taken else None,
        compiles=None,
        compile_seconds=None,
        dynamic_seconds=None,
        static_seconds=None,
    )


def verdict(as_it_is: Tried, rewritten: Tried) -> Literal["unchanged", "rewritten", "refused"]:
    """What static takes: the program unchanged, a rewriting, or it is refused."""
    if as_it_is.status == "right":
        return "unchanged"
    return "rewritten" if rewritten.status == "right" else "refused"


def reference(program: Program, inputs: Sequence[Arguments]) -> Results:
    """The value and the gradient for each of these inputs, by the tape; `check_dynamic` says whether they are right."""
    return calls(program, dynamic.value_and_grad(weighted(program.plain)), inputs)


def further(program: Program) -> list[Arguments]:
    """Arguments near the inputs, for which plain Python gives finite numbers: with the inputs at least INPUTS."""
    usable = (args for args in islice(program.nearby(), 4 * INPUTS) if _finite(program, args))
    return list(islice(usable, INPUTS - len(program.inputs)))


def _finite(program: Program, args: Arguments) -> bool:
    try:
        results = reference(program, [args])
    except Exception:  # noqa: BLE001  (what is compared is a result)
        return False
    return all(np.isfinite(leaf).all() for leaf in graphs.tree.leaves(results))


def check_dynamic(program: Program, expected: Results) -> None:
    """Raises AssertionError where a value is not that of a run on arrays, or a gradient not that of differences."""
    loss = weighted(program.plain)
    plain = [(value, None) for value in calls(program, loss, program.inputs)]
    check_equal([(value, None) for value, _ in expected], plain)
    for index, (point, *rest) in enumerate(program.inputs):
        check_grads(partial(at, program, index, rest), (point,), engine=dynamic)


def at(program: Program, index: int, rest: Sequence[Any], point: Any) -> Any:
    """The program at a point near one of its inputs, after the calls that come before that one."""
    calls(program, program.plain, program.inputs[:index])
    return program.plain(point, *rest)


class Static:
    """One version of a program, compiled when it is called; `convert` says whether its control flow is converted.

    `compiled` are the compilations for its inputs and their seconds, known once it has been tried.
    """

    def __init__(
        self, program: Program, function: Function, inputs: Sequence[Arguments], *, convert: bool = False
    ) -> None:
        self.program, self.function, self.inputs = program, function, inputs
        step = static.value_and_grad(weighted(function))
        self.jitted = static.jit(step, limit=None, convert=True) if convert else static.jit(step, limit=None)
        self.compiled = 0, 0.0

    def __call__(self) -> Results:
        """All inputs, one after the other."""
        return calls(self.program, self.jitted, self.inputs)

    def fares(self, expected: Results, more: Sequence[Arguments] = ()) -> Tried:
        """How it fares on its inputs, also on a second round without compiling, and then on more of them."""
        return tried(lambda: self.check(expected, more))

    def check(self, expected: Results, more: Sequence[Arguments] = ()) -> None:
        """Raises AssertionError where a value or a gradient is wrong."""
        for _ in range(2):
            check_equal(self(), expected)
        self.compiled = self.jitted.stats.compiles, self.jitted.stats.compile_seconds
        if more:
            every = [*self.inputs, *more]
            check_equal(calls(self.program, self.jitted, every), reference(self.program, every))


def calls(program: Program, function: Callable[..., Any], inputs: Sequence[Arguments]) -> list[Any]:
    """What a function returns for each of these inputs, in order, nothing kept from before."""
    if program.reset is not None:
        program.reset()
    return [function(*args) for args in inputs]


def check_equal(found: Results, expected: Results) -> None:
    """Raises AssertionError naming the first input whose value or gradient is off."""
    for index, (result, wanted) in enumerate(zip(found, expected, strict=True)):
        error = max(tree_error(*pair) for pair in zip(result, wanted, strict=True))
        if error > TOLERANCE:
            raise AssertionError(f"input {index}: off by {error:.3g}, allowed {TOLERANCE:g}")


def tried(check: Callable[[], None]) -> Tried:
    """How a check ended. That control flow is refused, and that a result is wrong, are distinguished from a crash."""
    try:
        check()
    except ControlFlowError as error:
        return Tried("refused", str(error))
    except VerificationError as error:  # an AssertionError, and yet no wrong result
        return Tried("failed", described(error))
    except AssertionError as error:
        return Tried("wrong", str(error))
    except Exception as error:  # noqa: BLE001  (whatever a program raises is its result)
        return Tried("failed", described(error))
    return Tried("right")


def seconds(program: Program, versions: Mapping[str, Static]) -> dict[str, float]:
    """Seconds a call in the dynamic engine and in each of these versions, in steady state."""
    taped = dynamic.value_and_grad(weighted(program.plain))
    arms: dict[str, Callable[[], object]] = {"dynamic": lambda: calls(program, taped, program.inputs), **versions}
    blocks, _ = steady_blocks(arms, BUDGET, Random(program.name))
    return {name: median(times) / len(program.inputs) for name, times in blocks.items()}


def weighted(function: Function) -> Function:
    """The function as a scalar one, in which each element of each floating result has a weight of its own."""

    def loss(*args: Any) -> Array:
        leaves = [leaf for leaf in graphs.tree.leaves(function(*args)) if leaf.dtype.kind == "f"]
        weights = [np.cos(np.arange(np.prod(leaf.shape))).reshape(leaf.shape) for leaf in leaves]
        return sum(graphs.sum(leaf * weight) for leaf, weight in zip(leaves, weights, strict=True))

    return loss

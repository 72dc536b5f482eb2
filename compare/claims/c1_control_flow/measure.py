"""The measurement behind claim C1: every program of the corpus, as Python and as a fixed graph, in both engines."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from statistics import median
from typing import Any, Literal, NamedTuple

import numpy as np

import dynamic
import graphs
import static
from compare.claims.c1_control_flow.corpus import programs, tokens
from compare.claims.c1_control_flow.corpus.program import Arguments, Array, Function, Program
from compare.claims.c1_control_flow.schema import ProgramRow, Programs
from compare.errors import described
from compare.instruments.parity.measure import TOLERANCES, tree_error
from compare.instruments.time.measure import steady_blocks
from compare.run.job import Budget
from graphs.errors import ControlFlowError, VerificationError
from graphs.testing import check_grads

TOLERANCE = TOLERANCES["float64"]
BUDGET = Budget(rounds=7, least=3, seconds=0.1, block_seconds=0.002)
"""For each program; what is judged is whether it runs, and its time is only reported."""

Results = list[tuple[Any, Any]]


class Tried(NamedTuple):
    """How a function fared in an engine on all inputs: `right`, `wrong`, `refused` or `failed`, and why."""

    status: Literal["right", "wrong", "refused", "failed"]
    reason: str | None = None


def measure() -> Programs:
    """The record of claim C1: one entry for each program."""
    gc.freeze()  # what is loaded now is not walked by each collection between blocks
    return Programs("C1", [measured(program) for program in programs()])


def measured(program: Program) -> ProgramRow:
    """What a program does in the dynamic engine as it is, and what it takes in the static one.

    `trace` says how its plain version fares under `static.jit`, which compiles again for another structure. Seconds
    are those of a call for the value and the gradient, a mean over the inputs and a median over blocks.
    """
    try:
        expected = reference(program)
    except Exception as error:  # noqa: BLE001  (whatever a program raises is its result)
        unknown = Tried("failed", "there is nothing to compare with")
        return found(program, Tried("failed", described(error)), unknown, unknown)
    in_dynamic = tried(lambda: check_dynamic(program, expected))
    arm = Static(program, program.plain, program.inputs)
    as_it_is = rewritten = tried(lambda: arm.check(expected))
    if as_it_is.status != "right" and program.graph is not None:
        arm = Static(program, program.graph, program.graph_inputs or program.inputs)
        rewritten = tried(lambda: arm.check(expected))
    usable = arm if rewritten.status == "right" else None
    row = found(program, in_dynamic, as_it_is, rewritten, usable and usable.function)
    if usable is not None:
        row.compiles, row.compile_seconds = usable.jitted.stats.compiles, usable.jitted.stats.compile_seconds
    row.dynamic_seconds, row.static_seconds = seconds(program, usable)
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


def reference(program: Program) -> Results:
    """The value and the gradient for each input, by the tape; `check_dynamic` says whether they are right."""
    return calls(program, dynamic.value_and_grad(weighted(program.plain)), program.inputs)


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
    """One version of a program, compiled when it is called."""

    def __init__(self, program: Program, function: Function, inputs: Sequence[Arguments]) -> None:
        self.program, self.function, self.inputs = program, function, inputs
        self.jitted = static.jit(static.value_and_grad(weighted(function)), limit=None)

    def __call__(self) -> Results:
        """All inputs, one after the other."""
        return calls(self.program, self.jitted, self.inputs)

    def check(self, expected: Results) -> None:
        """Raises AssertionError where a value or a gradient is wrong, also on a second round without compiling."""
        for _ in range(2):
            check_equal(self(), expected)


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


def seconds(program: Program, arm: Static | None) -> tuple[float, float | None]:
    """Seconds a call in each engine that runs it, in steady state."""
    taped = dynamic.value_and_grad(weighted(program.plain))
    arms: dict[str, Callable[[], object]] = {"dynamic": lambda: calls(program, taped, program.inputs)}
    if arm is not None:
        arms["static"] = arm
    blocks, _ = steady_blocks(arms, BUDGET, Random(program.name))
    each = {name: median(times) / len(program.inputs) for name, times in blocks.items()}
    return each["dynamic"], each.get("static")


def weighted(function: Function) -> Function:
    """The function as a scalar one, in which each element of each floating result has a weight of its own."""

    def loss(*args: Any) -> Array:
        leaves = [leaf for leaf in graphs.tree.leaves(function(*args)) if leaf.dtype.kind == "f"]
        weights = [np.cos(np.arange(np.prod(leaf.shape))).reshape(leaf.shape) for leaf in leaves]
        return sum(graphs.sum(leaf * weight) for leaf, weight in zip(leaves, weights, strict=True))

    return loss

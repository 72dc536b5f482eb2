"""The measurement behind claim C1: every program of the corpus in an engine, as Python and as a fixed graph.

The eager arm is given each program as it is. An arm that compiles is given it whole, as it is and then rewritten in the
engine's own control flow. A mode that converts Python's control flow, where an engine has one, is given it as it is.
"""

from __future__ import annotations

import ast
import gc
import inspect
import re
import textwrap
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from math import fsum
from random import Random
from statistics import median
from typing import Any, Literal, NamedTuple

import numpy as np
import optree

import dynamic
from compare import engines, steps
from compare.engines import Engine
from compare.engines.limit import LimitError, limit_seconds
from compare.engines.step import Compilation, Observations
from compare.errors import describe_error, without_folders
from compare.instruments.judge import TOLERANCES
from compare.instruments.rounding import tree_error
from compare.instruments.time.rounds import paired_rounds
from compare.records.checks import ProgramRow, Programs
from compare.records.job import Budget, Job
from compare.workloads.programs import programs, tokens
from compare.workloads.programs.program import Arguments, Function, Program
from graphs import tree
from graphs.testing import check_grads

TOLERANCE = TOLERANCES["float64"]
BUDGET = Budget(rounds=7, least=3, seconds=0.1, block_seconds=0.002)
"""For each program; what is judged is whether it runs, and its time is only reported."""
LIMIT = 20.0
"""Seconds for a version of a program, all inputs twice: a compiler may take minutes."""
LONGEST = 500
"""Characters of a reason that are recorded."""
INPUTS = 20
"""Arguments that a program is given where a compilation is cheap, at least: its own, and others near them."""
_QUOTED = re.compile(r"^ +(\w+Error: .*)$", re.MULTILINE)

Results = list[tuple[Any, Any]]


class ProgramOutcome(NamedTuple):
    """How a version of a program fared on all inputs, and why."""

    status: Literal["right", "wrong", "refused", "failed"]
    reason: str | None = None

    @property
    def is_right(self) -> bool:
        """Whether it ran, and every value and gradient is right."""
        return self.status == "right"


def measure(job: Job) -> Programs:
    """The record of claim C1 about an arm, beside the eager one of its engine: one entry for each program."""
    engine, arm = engines.engine_of_arm(job.arm)
    engine.start(0, doubles=True)
    ours = steps.each("ran", programs())
    forms = zip(
        ours,
        programs(engine.library.load),
        programs(partial(engine.library.load, control=True)),
        sample_mask(),
        strict=True,
    )
    gc.freeze()  # what is loaded now is not walked by each collection between blocks
    return Programs("C1", [ProgramTrial(engine, arm, *form).row() for form in forms])


def sample_mask() -> list[bool]:
    """Of each program whether it is the first of its family: those for which kernels are compiled in any case."""
    families = [program.family for program in programs()]
    return [family not in families[:i] for i, family in enumerate(families)]


class ProgramTrial:
    """A program in an engine: ours, the same over the engine's functions, and over its own control flow."""

    def __init__(
        self, engine: Engine, arm: str, ours: Program, theirs: Program, rewriting: Program, sampled: bool
    ) -> None:
        self.engine, self.arm, self.ours, self.theirs, self.rewriting = engine, arm, ours, theirs, rewriting
        self.sampled = sampled
        self.weighted = partial(weight_outputs, engine)

    def row(self) -> ProgramRow:
        """What the program does in the eager arm as it is, and what the other arm takes.

        Seconds are those of a call for the value and the gradient, a mean over the inputs and a median over blocks;
        where a compilation is costly, nothing is timed but the first calls, and no further inputs are given.
        """
        self.engine.compiler.forget()  # pieces that are compiled already would run where the whole is asked for
        try:
            expected = reference(self.ours, self.ours.inputs)
        except Exception as error:  # noqa: BLE001  (whatever a program raises is its result)
            unknown = ProgramOutcome("failed", "there is nothing to compare with")
            return entry(self.ours, ProgramOutcome("failed", describe_error(error)), unknown, unknown)
        eager = self.op_by_op(self.theirs, self.theirs.plain, self.ours.inputs)
        in_eager = self.checked(eager, expected)
        more = [] if self.engine.compiles_slowly else further(self.ours)
        version, as_it_is = self.compiled(self.theirs, self.theirs.plain, self.ours.inputs, expected, more)
        rewritten = as_it_is
        function, idiom = self.ours.plain, None
        if not as_it_is.is_right and self.ours.graph and self.rewriting.graph:
            function, idiom = self.ours.graph, self.idiom(self.ours.graph)
            inputs = self.ours.graph_inputs or self.ours.inputs
            version, rewritten = self.compiled(self.rewriting, self.rewriting.graph, inputs, expected)
        row = entry(self.ours, in_eager, as_it_is, rewritten, function if rewritten.is_right else None)
        row.inputs, row.idiom = len(self.ours.inputs) + len(more), idiom
        row.kernels = self.sampled if self.engine.compiler.captured(self.arm, self.theirs.plain) else None
        row.breaks, row.pieces = self.broken(expected) if not as_it_is.is_right else (None, None)
        timed = {"dynamic": eager}
        if rewritten.is_right:
            row.compiles, row.compile_seconds = len(version.compilations) or None, version.compile_seconds
            timed["static"] = version
        converted = self.converted(row, expected, more)
        if converted is not None:
            timed["converted"] = converted
        if not self.engine.compiles_slowly:
            each = seconds(self.ours, timed)
            row.dynamic_seconds, row.static_seconds = each["dynamic"], each.get("static")
            row.convert_seconds = each.get("converted")
        return row

    def op_by_op(self, program: Program, function: Function, inputs: Sequence[Arguments]) -> ProgramVersion:
        """A version of the program in the eager arm."""
        step = self.engine.build(self.engine.arms[0], self.weighted(function), 0)
        return ProgramVersion(self.engine, program, step, function, inputs)

    def checked(self, eager: ProgramVersion, expected: Results) -> ProgramOutcome:
        """How the eager arm fares; where it is what others are compared with, also against arrays and differences."""
        outcome = eager.fares(expected)
        if outcome.is_right and self.engine.is_reference:
            try:
                check_reference(self.ours, expected)
            except Exception as error:  # noqa: BLE001  (whatever a program raises is its result)
                return ProgramOutcome("wrong", error_line(error))
        return outcome

    def compiled(
        self,
        program: Program,
        function: Function,
        inputs: Sequence[Arguments],
        expected: Results,
        more: Sequence[Arguments] = (),
    ) -> tuple[ProgramVersion, ProgramOutcome]:
        """A version of the program, compiled, and how it fares.

        Where kernels take a stage of their own, that stage is reached for a sample of what comes so far.
        """
        graph = self.engine.compiler.captured(self.arm, function)
        if graph is not None:
            version = self.op_by_op(program, graph, inputs)
            outcome = version.fares(expected, more)
            if not self.sampled or not outcome.is_right:
                return version, outcome
        whole = self.engine.compiler.whole(self.arm, function, self.weighted)
        version = ProgramVersion(self.engine, program, *whole, inputs)
        return version, version.fares(expected, more)

    def converted(self, row: ProgramRow, expected: Results, more: Sequence[Arguments]) -> ProgramVersion | None:
        """The program in the mode that converts it, where it is right in one; the row tells of it."""
        arm = next((arm for arm in self.engine.arms if self.engine.mode(arm).converts), self.arm)
        if arm == self.arm:
            return None
        whole = self.engine.compiler.whole(arm, self.theirs.plain, self.weighted)
        version = ProgramVersion(self.engine, self.theirs, *whole, self.ours.inputs)
        outcome = version.fares(expected, more)
        row.convert, row.convert_reason = outcome
        if not outcome.is_right:
            return None
        row.convert_compiles, row.convert_compile_seconds = len(version.compilations), version.compile_seconds
        return version

    def idiom(self, function: Function) -> str | None:
        """What the engine calls the control flow that a rewriting is written in; None where it needs no such op."""
        names = dict.fromkeys(
            self.engine.idioms[name] for name in functions_used(function) if name in self.engine.idioms
        )
        return ", ".join(names) or None

    def broken(self, expected: Results) -> tuple[int | None, Any]:
        """The graph breaks of the program as it is, and how it fares with them; None where an engine has none."""
        self.engine.compiler.forget()  # a framework counts no break of what it has compiled before
        pieces = self.engine.compiler.captured(self.arm, self.theirs.plain, whole=False)
        if pieces is None:
            return None, None
        version = self.op_by_op(self.theirs, pieces, self.ours.inputs)
        outcome = version.fares(expected)
        return sum(version.observed.breaks.values()), outcome.status


class ProgramVersion:
    """One version of a program: a step for its value and gradient, and what the engine is asked of to tell of it.

    `compilations` are those for its inputs, known once it has fared.
    """

    def __init__(
        self, engine: Engine, program: Program, step: Function, watched: Function, inputs: Sequence[Arguments]
    ) -> None:
        self.engine, self.program, self.step, self.watched, self.inputs = engine, program, step, watched, inputs
        self.before, self.first_seconds = engine.observed(watched), 0.0
        self.compilations: Sequence[Compilation] = ()

    def __call__(self) -> Results:
        """All inputs, one after the other."""
        return self.on(self.inputs)

    def on(self, inputs: Sequence[Arguments]) -> Results:
        """These inputs, one after the other."""
        return calls(self.program, self._call, inputs)

    def _call(self, *args: Any) -> Any:
        return self.engine.numpy(self.step(*self.engine.arrays(args)))

    @property
    def observed(self) -> Observations:
        """What the engine tells of this version."""
        return self.engine.observed(self.watched).since(self.before)

    @property
    def compile_seconds(self) -> float:
        """Of the first calls, where compiling is costly, since not every engine says what compiling took."""
        if self.engine.compiles_slowly:
            return self.first_seconds
        return fsum(compilation.seconds or 0.0 for compilation in self.compilations)

    def fares(self, expected: Results, more: Sequence[Arguments] = ()) -> ProgramOutcome:
        """How it fares on its inputs, also on a second round, and then on more of them, within the time limit."""
        try:
            with warnings.catch_warnings(action="ignore"), limit_seconds(LIMIT):  # compilers warn of much
                wrong = self._off(expected, more)
        except LimitError as error:
            return ProgramOutcome("failed", f"time limit: {error}")
        except Exception as error:  # noqa: BLE001  (whatever a program raises is its result)
            return ProgramOutcome("refused" if self.engine.errors.refuses(error) else "failed", error_line(error))
        return ProgramOutcome("wrong", wrong) if wrong else ProgramOutcome("right")

    def _off(self, expected: Results, more: Sequence[Arguments]) -> str:
        started = time.perf_counter()
        first = self()
        self.first_seconds = time.perf_counter() - started
        wrong = off(first, expected) or off(self(), expected)
        self.compilations = self.observed.compilations
        if more and not wrong:
            every = [*self.inputs, *more]
            wrong = off(self.on(every), reference(self.program, every))
        return wrong


def entry(
    program: Program,
    in_eager: ProgramOutcome,
    as_it_is: ProgramOutcome,
    rewritten: ProgramOutcome,
    function: Function | None = None,
) -> ProgramRow:
    """Which of the two arms runs it, in which form, and how much was rewritten in the function that static takes."""
    how: Literal["unchanged", "rewritten", "refused"] = "rewritten" if rewritten.is_right else "refused"
    return ProgramRow(
        program=program.name,
        family=program.family,
        dynamic=in_eager.is_right,
        static="unchanged" if as_it_is.is_right else how,
        reason=in_eager.reason or program.cannot or rewritten.reason,
        trace=as_it_is.status,
        trace_reason=as_it_is.reason,
        tokens=len(tokens.tokens(program.plain)),
        graph_tokens=len(tokens.tokens(function)) if function else None,
        edit=tokens.share(program.plain, function) if function else None,
        compiles=None,
        compile_seconds=None,
        dynamic_seconds=None,
        static_seconds=None,
    )


def reference(program: Program, inputs: Sequence[Arguments]) -> Results:
    """The value and the gradient for each of these inputs, by our tape, which `check_reference` checks."""
    engine = engines.find_engine(engines.OWN)
    return calls(program, engine.build(engine.arms[0], weight_outputs(engine, program.plain), 0), inputs)


def check_reference(program: Program, expected: Results) -> None:
    """Raises AssertionError where a value is not that of a run on arrays, or a gradient not that of differences."""
    loss = weight_outputs(engines.find_engine(engines.OWN), program.plain)
    plain = [(value, None) for value in calls(program, loss, program.inputs)]
    if wrong := off([(value, None) for value, _ in expected], plain):
        raise AssertionError(wrong)
    for index, (point, *rest) in enumerate(program.inputs):
        check_grads(partial(at, program, index, rest), (point,), engine=dynamic)


def at(program: Program, index: int, rest: Sequence[Any], point: Any) -> Any:
    """The program at a point near one of its inputs, after the calls that come before that one."""
    calls(program, program.plain, program.inputs[:index])
    return program.plain(point, *rest)


def further(program: Program) -> list[Arguments]:
    """Arguments near the inputs, for which plain Python gives finite numbers: with the inputs at least INPUTS."""
    usable = (args for args in islice(program.nearby(), 4 * INPUTS) if _finite(program, args))
    return list(islice(usable, INPUTS - len(program.inputs)))


def _finite(program: Program, args: Arguments) -> bool:
    try:
        results = reference(program, [args])
    except Exception:  # noqa: BLE001  (what is compared is a result)
        return False
    return all(np.isfinite(leaf).all() for leaf in tree.leaves(results))


def calls(program: Program, function: Callable[..., Any], inputs: Sequence[Arguments]) -> list[Any]:
    """What a function returns for each of these inputs, in order, nothing kept from before."""
    if program.reset is not None:
        program.reset()
    return [function(*args) for args in inputs]


def off(results: Results, expected: Results) -> str:
    """The first input whose value or gradient is off, and by how much; empty where none is."""
    for index, (result, wanted) in enumerate(zip(results, expected, strict=True)):
        error = max(tree_error(*pair) for pair in zip(result, wanted, strict=True))
        if error > TOLERANCE:
            return f"input {index}: off by {error:.3g}, allowed {TOLERANCE:g}"
    return ""


def seconds(program: Program, versions: Mapping[str, ProgramVersion]) -> dict[str, float]:
    """Seconds a call in each of these versions, in steady state."""
    blocks = paired_rounds(dict(versions), BUDGET, Random(program.name)).steady()
    return {name: median(times) / len(program.inputs) for name, times in blocks.items()}


def weight_outputs(engine: Engine, function: Function) -> Function:
    """The function as a scalar one, in which each element of each floating result has a weight of its own."""
    total = engine.functions()["sum"]

    def loss(*args: Any) -> Any:
        leaves = [leaf for leaf in optree.tree_leaves(function(*args)) if "float" in str(leaf.dtype)]
        weights = [np.cos(np.arange(np.prod(tuple(leaf.shape)))).reshape(tuple(leaf.shape)) for leaf in leaves]
        terms = [total(leaf * weight) for leaf, weight in zip(leaves, engine.arrays(weights), strict=True)]
        return sum(terms)

    return loss


def functions_used(function: Function) -> list[str]:
    """The functions of `graphs` that a function calls, in the order in which they are written."""
    source = ast.parse(textwrap.dedent(inspect.getsource(function)))
    return [
        node.attr
        for node in ast.walk(source)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "graphs"
    ]


def error_line(error: BaseException) -> str:
    """An error on one line: that which its words end with, where they quote a traceback of the user's code."""
    quoted = _QUOTED.findall(str(error))
    return without_folders(" ".join((quoted[-1] if quoted else describe_error(error)).split()))[:LONGEST]

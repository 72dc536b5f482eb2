"""The programs of the corpus with control flow, each run in one engine: what works, what is refused, and its times.

The eager mode runs each program unchanged. A mode that compiles is given the whole program, first unchanged and then
rewritten in the engine's own control flow. A mode that converts Python's control flow, if the engine has one, is given
the unchanged program. Read `measure`, then `ProgramTrial` (one program in an engine) and `ProgramVersion` (one
version of it).
"""

from __future__ import annotations

import ast
import gc
import inspect
import re
import textwrap
import time
import warnings
from collections.abc import Callable, Sequence
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
from compare.engines.process import LimitError, limit_seconds
from compare.engines.step import Compilation, Observations
from compare.errors import describe_error, without_folders
from compare.instruments.rounding import tree_error
from compare.instruments.rounds import paired_rounds
from compare.instruments.standard import TOLERANCES
from compare.records.checks import ProgramRow, Programs
from compare.records.job import Budget, Job
from compare.workloads import edits
from compare.workloads.programs import Arguments, Function, Program, programs
from graphs import tree
from graphs.testing import check_grads

TOLERANCE = TOLERANCES["float64"]
BUDGET = Budget(rounds=7, least=3, seconds=0.1, block_seconds=0.002, width=0.1)
"""The budget of timing one program. It is small: the verdict rests on whether a program runs, not on its time."""
LIMIT = 20.0
"""The limit in seconds for one version of a program, on all inputs twice: a compiler may take minutes."""
LONGEST = 500
"""The number of characters of a reason that are recorded."""
INPUTS = 20
"""The number of inputs on which a program is tried where compiling is cheap: its own, then others near them."""
_QUOTED = re.compile(r"^ +(\w+Error: .*)$", re.MULTILINE)

Results = list[tuple[Any, Any]]


class ProgramOutcome(NamedTuple):
    """The outcome of one version of a program on all inputs, with the reason if it is not right."""

    status: Literal["right", "wrong", "refused", "failed"]
    reason: str | None = None

    @property
    def is_right(self) -> bool:
        """Whether the version ran, with every value and gradient right."""
        return self.status == "right"


def measure(job: Job) -> Programs:
    """Measure claim C1 for a mode beside the eager mode of its engine; the record has one row for each program."""
    engine, mode = engines.engine_of_mode(job.mode)
    engine.start(0, doubles=True)
    theirs, rewritten = programs(engine.library.load), programs(partial(engine.library.load, control=True))
    forms = zip(steps.each("ran", programs()), theirs, rewritten, sample_mask(), strict=True)
    gc.freeze()  # so that collections between blocks do not scan the objects that exist now
    return Programs("C1", [ProgramTrial(engine, mode, *form).row() for form in forms])


def sample_mask() -> list[bool]:
    """Return for each program whether it is the first of its family; kernels are always compiled for these."""
    families = [program.family for program in programs()]
    return [family not in families[:i] for i, family in enumerate(families)]


class ProgramTrial:
    """One program in an engine, in three forms: over our functions, over the engine's, and over its control flow."""

    def __init__(
        self, engine: Engine, mode: str, ours: Program, theirs: Program, rewriting: Program, sampled: bool
    ) -> None:
        self.engine, self.mode, self.ours, self.theirs, self.rewriting = engine, mode, ours, theirs, rewriting
        self.sampled = sampled
        self.weighted = partial(weight_outputs, engine)

    def row(self) -> ProgramRow:
        """Measure the program in both modes and return its row: how it fares in each form, and its times.

        Seconds are those of one call for value and gradient: the mean over inputs, then the median over blocks. Where
        compiling is costly, only first calls are timed, and the program is tried on its own inputs alone.
        """
        self.engine.compiler.forget()  # otherwise compiled pieces would run where a whole graph is asked for
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
        row.kernels = self.sampled if self.engine.compiler.captured(self.mode, self.theirs.plain) else None
        row.breaks, row.pieces = self.broken(expected) if not as_it_is.is_right else (None, None)
        timed = {"dynamic": eager}
        if rewritten.is_right:
            row.compiles, row.compile_seconds = len(version.compilations) or None, version.compile_seconds
            timed["static"] = version
        converted = self.converted(row, expected, more)
        if converted is not None:
            timed["converted"] = converted
        if not self.engine.compiles_slowly:
            blocks = paired_rounds(dict(timed), BUDGET, Random(self.ours.name)).steady()
            each = {name: median(times) / len(self.ours.inputs) for name, times in blocks.items()}
            row.dynamic_seconds, row.static_seconds = each["dynamic"], each.get("static")
            row.convert_seconds = each.get("converted")
        return row

    def op_by_op(self, program: Program, function: Function, inputs: Sequence[Arguments]) -> ProgramVersion:
        """Build the version of the program that runs op by op in the eager mode."""
        step = self.engine.build(self.engine.mode_names[0], self.weighted(function), 0)
        return ProgramVersion(self.engine, program, step, function, inputs)

    def checked(self, eager: ProgramVersion, expected: Results) -> ProgramOutcome:
        """Return the outcome of the eager mode; the reference engine is also checked against arrays and differences."""
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
        """Compile the program, and return this version with its outcome.

        Where an engine captures a graph before it compiles kernels, every program is captured and run; kernels are then
        compiled only for sampled programs that are right.
        """
        graph = self.engine.compiler.captured(self.mode, function)
        if graph is not None:
            version = self.op_by_op(program, graph, inputs)
            outcome = version.fares(expected, more)
            if not self.sampled or not outcome.is_right:
                return version, outcome
        whole = self.engine.compiler.whole(self.mode, function, self.weighted)
        version = ProgramVersion(self.engine, program, *whole, inputs)
        return version, version.fares(expected, more)

    def converted(self, row: ProgramRow, expected: Results, more: Sequence[Arguments]) -> ProgramVersion | None:
        """Run the program in the engine's mode that converts control flow, and write the outcome into the row.

        Returns the version if it is right; None if it is not, or if the engine has no such mode beside this mode.
        """
        mode = next((mode for mode in self.engine.mode_names if self.engine.traits(mode).converts), self.mode)
        if mode == self.mode:
            return None
        whole = self.engine.compiler.whole(mode, self.theirs.plain, self.weighted)
        version = ProgramVersion(self.engine, self.theirs, *whole, self.ours.inputs)
        outcome = version.fares(expected, more)
        row.convert, row.convert_reason = outcome
        if not outcome.is_right:
            return None
        row.convert_compiles, row.convert_compile_seconds = len(version.compilations), version.compile_seconds
        return version

    def idiom(self, function: Function) -> str | None:
        """Return the engine's names for the control-flow ops that a rewriting uses; None if it uses no such op."""
        source = ast.parse(textwrap.dedent(inspect.getsource(function)))
        used = [
            node.attr
            for node in ast.walk(source)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "graphs"
        ]
        names = dict.fromkeys(self.engine.idioms[name] for name in used if name in self.engine.idioms)
        return ", ".join(names) or None

    def broken(self, expected: Results) -> tuple[int | None, Any]:
        """Return the graph breaks of the unchanged program and its status; both None for engines without breaks."""
        self.engine.compiler.forget()  # a framework does not count the breaks of code that is compiled already
        pieces = self.engine.compiler.captured(self.mode, self.theirs.plain, whole=False)
        if pieces is None:
            return None, None
        version = self.op_by_op(self.theirs, pieces, self.ours.inputs)
        outcome = version.fares(expected)
        return sum(version.observed.breaks.values()), outcome.status


class ProgramVersion:
    """One version of a program: a step for value and gradient, and the function whose compilations are observed.

    `compilations` are those for the inputs of the version; they are empty until `fares` has run.
    """

    def __init__(
        self, engine: Engine, program: Program, step: Function, watched: Function, inputs: Sequence[Arguments]
    ) -> None:
        self.engine, self.program, self.step, self.watched, self.inputs = engine, program, step, watched, inputs
        self.before, self.first_seconds = engine.observed(watched), 0.0
        self.compilations: Sequence[Compilation] = ()

    def __call__(self) -> Results:
        """Run the version on all its inputs, in order."""
        return self.on(self.inputs)

    def on(self, inputs: Sequence[Arguments]) -> Results:
        """Run the version on these inputs, in order."""
        return calls(self.program, lambda *args: self.engine.numpy(self.step(*self.engine.arrays(args))), inputs)

    @property
    def observed(self) -> Observations:
        """The engine's observations of this version, such as compilations and graph breaks, since it was made."""
        return self.engine.observed(self.watched).since(self.before)

    @property
    def compile_seconds(self) -> float:
        """The seconds of compiling; where that is costly, of the first calls, as some engines report no such time."""
        if self.engine.compiles_slowly:
            return self.first_seconds
        return fsum(compilation.seconds or 0.0 for compilation in self.compilations)

    def fares(self, expected: Results, more: Sequence[Arguments] = ()) -> ProgramOutcome:
        """Run the version twice on its inputs, then on `more`, within the time limit, and return the outcome."""
        try:
            with warnings.catch_warnings(action="ignore"), limit_seconds(LIMIT):  # compilers give many warnings
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
    """Return the row of a program from its outcomes; `function` is the form that static runs, for token counts."""
    how: Literal["unchanged", "rewritten", "refused"] = "rewritten" if rewritten.is_right else "refused"
    return ProgramRow(
        program=program.name,
        family=program.family,
        dynamic=in_eager.is_right,
        static="unchanged" if as_it_is.is_right else how,
        reason=in_eager.reason or program.cannot or rewritten.reason,
        trace=as_it_is.status,
        trace_reason=as_it_is.reason,
        tokens=len(edits.tokens(program.plain)),
        graph_tokens=len(edits.tokens(function)) if function else None,
        edit=edits.share(program.plain, function) if function else None,
        compiles=None,
        compile_seconds=None,
        dynamic_seconds=None,
        static_seconds=None,
    )


def reference(program: Program, inputs: Sequence[Arguments]) -> Results:
    """Return value and gradient for each input, computed by our tape; `check_reference` checks the tape itself."""
    engine = engines.find_engine(engines.OWN)
    return calls(program, engine.build(engine.mode_names[0], weight_outputs(engine, program.plain), 0), inputs)


def check_reference(program: Program, expected: Results) -> None:
    """Check our tape: raises AssertionError if a value differs from NumPy's or a gradient from finite differences."""
    loss = weight_outputs(engines.find_engine(engines.OWN), program.plain)
    plain = [(value, None) for value in calls(program, loss, program.inputs)]
    if wrong := off([(value, None) for value, _ in expected], plain):
        raise AssertionError(wrong)

    def near(index: int, rest: Sequence[Any], point: Any) -> Any:
        calls(program, program.plain, program.inputs[:index])  # which the program may remember
        return program.plain(point, *rest)

    for index, (point, *rest) in enumerate(program.inputs):
        check_grads(partial(near, index, rest), (point,), engine=dynamic)


def further(program: Program) -> list[Arguments]:
    """Return arguments near the program's inputs that give finite results; inputs and these are INPUTS at most."""

    def finite(args: Arguments) -> bool:
        try:
            results = reference(program, [args])
        except Exception:  # noqa: BLE001  (only inputs with a result are used)
            return False
        return all(np.isfinite(leaf).all() for leaf in tree.leaves(results))

    usable = filter(finite, islice(program.nearby(), 4 * INPUTS))
    return list(islice(usable, INPUTS - len(program.inputs)))


def calls(program: Program, function: Callable[..., Any], inputs: Sequence[Arguments]) -> list[Any]:
    """Call a function on each input in order, after a reset of the program's state, and return the results."""
    if program.reset is not None:
        program.reset()
    return [function(*args) for args in inputs]


def off(results: Results, expected: Results) -> str:
    """Name the first input whose value or gradient is off, and by how much; return an empty string if none is."""
    for index, (result, wanted) in enumerate(zip(results, expected, strict=True)):
        error = max(tree_error(*pair) for pair in zip(result, wanted, strict=True))
        if error > TOLERANCE:
            return f"input {index}: off by {error:.3g}, allowed {TOLERANCE:g}"
    return ""


def weight_outputs(engine: Engine, function: Function) -> Function:
    """Return the function as a scalar loss: the sum over all elements of floating results, each with its own weight."""
    total = engine.functions()["sum"]

    def loss(*args: Any) -> Any:
        leaves = [leaf for leaf in optree.tree_leaves(function(*args)) if "float" in str(leaf.dtype)]
        weights = [np.cos(np.arange(np.prod(tuple(leaf.shape)))).reshape(tuple(leaf.shape)) for leaf in leaves]
        terms = [total(leaf * weight) for leaf, weight in zip(leaves, engine.arrays(weights), strict=True)]
        return sum(terms)

    return loss


def error_line(error: BaseException) -> str:
    """Return an error on one line; if its message quotes a traceback, the last error that is quoted there."""
    quoted = _QUOTED.findall(str(error))
    return without_folders(" ".join((quoted[-1] if quoted else describe_error(error)).split()))[:LONGEST]

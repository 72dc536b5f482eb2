"""C1: ordinary Python control flow works in a dynamic graph and is hard to express in a static one.

The eager mode runs each program of the corpus unchanged. A mode that compiles is given the whole program, first
unchanged and then rewritten in the engine's own control flow. A mode that converts Python's control flow, if the
engine has one, is given the unchanged program. Read `measure`, then `ProgramTrial` (one program in an engine) and
`ProgramVersion` (one version of it), then the rule (`find`).

The rule was written before the run. Each program is tried (a) unchanged and traced, (b) unchanged and converted, both
on at least 20 arguments, and (c) rewritten by hand; if none of these works, it counts as (d) refused. A program is
hard if the conversion refuses it or gets it wrong, and its rewriting changes more than 10% of its tokens or does not
exist. The share of programs that are hard if they are only traced, which was the rule before conversion existed, is
reported as well. Times are reported, not judged.
"""

from __future__ import annotations

import ast
import gc
import inspect
import re
import textwrap
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from math import fsum
from random import Random
from statistics import median
from typing import Any, Literal, NamedTuple

import numpy as np
import optree

import dynamic
from compare import engines, steps, text
from compare.claims.base import Claim, Effect, Finding, Label, Regime, not_measured
from compare.engines import Engine
from compare.engines.process import LimitError, limit_seconds
from compare.engines.step import Compilation, Observations
from compare.errors import describe_error, without_folders
from compare.instruments.rounding import tree_error
from compare.instruments.rounds import paired_rounds
from compare.instruments.standard import TOLERANCES
from compare.records.checks import ProgramRow, Programs
from compare.records.job import KINDS, Budget, Job
from compare.records.record import Records, kind_of, records_of
from compare.stats import Interval, geometric_mean, proportion_interval
from compare.workloads import edits
from compare.workloads.programs import Arguments, Function, Program, programs
from graphs import tree
from graphs.testing import check_grads

TOLERANCE = TOLERANCES["float64"]
BUDGET = Budget(rounds=7, least=3, seconds=0.1, block_seconds=0.002)
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


# The rule -------------------------------------------------------------------------------------------------------------


MIN_PROGRAMS = 40
"""The fewest programs for a verdict: a smaller corpus is a choice of favourites."""
EASY_EDIT = 0.10
"""A rewriting of at most this share of a program's tokens is easy."""
GENEROUS_EDIT = 0.50
"""A looser limit than `EASY_EDIT`, for readers who find that one too strict; the verdict does not use it."""
RUNS = 0.95
"""Dynamic works if it runs at least this share of the programs unchanged."""
ALONE = "all programs, traced alone"
"""The name of the regime in which programs are only traced, which was the rule before conversion existed."""
HARD_MOST, HARD_FEW = 0.50, 0.10
"""Static is hard if the interval of its hard share lies above the first, easy if below the second."""


def find(records: Records) -> Finding:
    """Judge C1: supported if dynamic runs nearly all programs and most are hard for static, refuted if either fails."""
    programs = _programs(records)
    if not programs:
        return not_measured("programs with control flow")
    runs = proportion_interval(sum(p.dynamic for p in programs), len(programs))
    hard, alone = _share(programs, _is_hard), _share(programs, _is_hard_alone)
    verdict: Label = "supported" if hard.low > HARD_MOST else "depends"
    if len(programs) < MIN_PROGRAMS:
        verdict = "inconclusive"
    elif runs.estimate < RUNS or hard.high < HARD_FEW:
        verdict = "refuted"
    share = f"{alone.estimate:.0%} are hard for static"
    if _conversion_rows(programs):
        converted = f"{hard.estimate:.0%} are hard for static if it converts their control flow"
        share = f"{converted}; {share} if it only traces them"
    reasons = (
        f"of {len(programs)} programs {share}",
        f"hard: static refuses a program or gets it wrong, and a rewriting changes over {EASY_EDIT:.0%} of its tokens",
        f"dynamic runs {runs.estimate:.0%} of the programs unchanged",
        *_details(programs),
    )
    return Finding(
        verdict,
        reasons,
        Effect("programs that are hard for static", hard.estimate, "share"),
        hard,
        (
            _regime(ALONE, alone),
            *(
                _regime(family, _share([p for p in programs if p.family == family], _is_hard))
                for family in sorted({p.family for p in programs})
            ),
        ),
    )


def _conversion_rows(programs: list[ProgramRow]) -> list[ProgramRow]:
    """Return the rows of programs that were also converted; frameworks convert only as they compile, so have none."""
    return [p for p in programs if p.convert is not None]


def _programs(records: Records) -> list[ProgramRow]:
    """Return one row for each program: the worst of its measurements, since a repetition is no new evidence."""
    rows_by_name: dict[str, ProgramRow] = {}
    for row in (row for record in records_of(records, Programs) for row in record.programs):
        rows_by_name[row.program] = min(
            rows_by_name.get(row.program, row), row, key=lambda p: (p.dynamic, not _is_hard(p), repr(p))
        )
    return [rows_by_name[name] for name in sorted(rows_by_name)]


def _is_hard(program: ProgramRow) -> bool:
    return program.convert != "right" and _is_hard_alone(program)


def _is_hard_alone(program: ProgramRow) -> bool:
    easy = program.static == "rewritten" and (program.edit or 0.0) <= EASY_EDIT
    return not (easy or program.static == "unchanged")


def _share(programs: list[ProgramRow], holds: Callable[[ProgramRow], bool]) -> Interval:
    return proportion_interval(sum(map(holds, programs)), len(programs))


def _details(programs: list[ProgramRow]) -> Iterator[str]:
    """Yield sentences with the counts behind the shares, the names of failing programs, and the ratio of times."""
    edits = [p.edit or 0.0 for p in programs if p.static == "rewritten"]
    cost = f" (median: {median(edits):.0%} of the tokens change)" if edits else ""
    unchanged, refused = (sum(p.static == kind for p in programs) for kind in ("unchanged", "refused"))
    first = text.count_noun(unchanged, "program")
    how = "traced" if _conversion_rows(programs) else "compiled"
    yield f"{how}, what runs: {first} unchanged, {len(edits)} after a rewriting{cost}, {refused} never"
    beyond = (refused + sum(edit > GENEROUS_EDIT for edit in edits)) / len(programs)
    yield f"{how}: if a change of {GENEROUS_EDIT:.0%} of the tokens still counted as easy, {beyond:.0%} would be hard"
    yield from _conversion_sentences(programs)
    yield from _name_programs("dynamic fails in", (p for p in programs if not p.dynamic))
    yield from _name_programs(
        f"{how} without an error, but wrong for another input", (p for p in programs if p.trace == "wrong")
    )
    yield from _name_programs("no fixed graph gives the same result", (p for p in programs if p.static == "refused"))
    if ratios := [p.static_seconds / p.dynamic_seconds for p in programs if p.dynamic_seconds and p.static_seconds]:
        yield f"static ÷ dynamic in time, once compiled, where both run: {geometric_mean(ratios):.2g}"


def _conversion_sentences(programs: list[ProgramRow]) -> Iterator[str]:
    """Yield sentences on converted programs: how many are right, and their times ÷ those of rewritings by hand."""
    tried = _conversion_rows(programs)
    if not tried:
        return
    right = sum(p.convert == "right" for p in tried)
    least = min(p.inputs or 0 for p in tried)
    yield f"converted: {right} of {len(tried)} programs run unchanged, on {least} inputs or more each"
    yield from _name_programs("converted without an error, but wrong", (p for p in tried if p.convert == "wrong"))
    yield from _name_programs(
        "converted, but failed with an error that is no refusal", (p for p in tried if p.convert == "failed")
    )
    by_hand = [p for p in tried if p.static == "rewritten"]
    calls = [p.convert_seconds / p.static_seconds for p in by_hand if p.convert_seconds and p.static_seconds]
    compiled = [
        p.convert_compile_seconds / p.compile_seconds
        for p in by_hand
        if p.convert_compile_seconds and p.compile_seconds
    ]
    for words, ratios in (("time of a call", calls), ("time to compile", compiled)):
        if ratios:
            shown = f"median {median(ratios):.2f}, at most {max(ratios):.2f}"
            yield f"{words}, converted ÷ rewritten by hand: {shown}, over {text.count_noun(len(ratios), 'program')}"


def _name_programs(words: str, programs: Iterable[ProgramRow]) -> Iterator[str]:
    if names := [p.program for p in programs]:
        yield f"{words}: {', '.join(names)}"


def _regime(name: str, hard: Interval) -> Regime:
    verdict: Label = "supported" if hard.low > HARD_MOST else "inconclusive"
    return Regime(name, "refuted" if hard.high < HARD_MOST else verdict, hard.estimate, hard)


CLAIM = Claim(
    id="C1",
    title="Python control flow works in a dynamic graph and is hard in a static one",
    statement="Branches, loops, break and recursion are ordinary Python in a dynamic graph. In a static "
    "graph the same program must be rewritten in special ops, or cannot be expressed.",
    opposite="A few control-flow ops express nearly every program that people differentiate, and cost a line or two. "
    "Tracing unrolls the other programs. The result is faster, and it is checked before it runs.",
    measured="A corpus of programs: branches, nested loops, break, recursion, convergence loops, "
    "data-dependent shapes, parsers, samplers, training loops, library code. The dynamic engine runs each as plain "
    "Python. The static engine runs it traced, converted, and rewritten by hand. Recorded are: what runs, the share of "
    "tokens that must change, and whether values and gradients are equal. A framework runs the same programs over its "
    "functions: eager, compiled whole, and rewritten in its own control flow.",
    rule=f"A program is hard for static if static refuses it or gets it wrong when converted, and a rewriting by hand "
    f"changes more than {EASY_EDIT:.0%} of its tokens. Refuted if dynamic runs fewer than {RUNS:.0%} of the programs "
    f"unchanged, or if the 95% interval of the share of hard programs lies below {HARD_FEW:.0%}. Supported if that "
    f"interval lies above {HARD_MOST:.0%}. Otherwise depends. Inconclusive with fewer than {MIN_PROGRAMS} programs.",
    find=find,
    reads=(Programs,),
    check=KINDS[kind_of(Programs)],
    literature=(
        "AutoGraph turns Python control flow into graphs as fast as graphs by hand (abstract, arXiv 1810.08061)",
        "control flow inside the graph can be differentiated (abstract, arXiv 1805.01772)",
        "jax.lax.while_loop has no reverse mode (JAX documentation)",
    ),
    not_tested=(
        "conversion by other tools than static's own; a run with --frameworks has AutoGraph and Dynamo",
        "how hard people find a rewriting: the share of changed tokens stands in for it",
        "how often people write each kind of program: the corpus has a few of each family, and the shares depend on it",
        "programs longer than a page: the same rewriting would be a smaller share of their tokens",
        "other rewritings: each program has one, and a shorter one may exist",
        "changes to the callers: where a rewriting takes state as an argument, only the function is counted",
        "results padded to a largest size: if the shape of a result depends on values, the program counts as refused",
        "speed on large arrays: the times come from one process and small arrays; C6 judges speed",
    ),
)

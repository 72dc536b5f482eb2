"""C1 about a framework: each program of the corpus as it is, eager and compiled whole, and rewritten in its own ops."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import optree

from compare.claims.c1_control_flow.corpus import programs
from compare.claims.c1_control_flow.corpus.program import Arguments, Function, Program
from compare.claims.c1_control_flow.measure import Results, Tried, calls, check_equal, found, reference
from compare.engines import of_arm
from compare.engines.base import Engine, Observed
from compare.engines.limit import LimitError, within
from compare.engines.source import Loader, namespace
from compare.errors import described, without_folders
from compare.records.control_flow import ProgramRow, Programs
from compare.records.job import Job

LIMIT = 20.0
"""Seconds for a version of a program, all inputs twice: a compiler may take minutes."""
LONGEST = 200
"""Characters of a reason that are recorded."""
_QUOTED = re.compile(r"^ +(\w+Error: .*)$", re.MULTILINE)


def measure(job: Job) -> Programs:
    """The record of claim C1 about an arm, compared with its framework's eager one."""
    arm = str(job.arm)
    framework = of_arm(arm)
    framework.start(0, doubles=True)
    name = f"{framework.name}_control"
    control = Loader(name, namespace(name, {**framework.functions(), **framework.control()}))
    versions = zip(programs(), programs(framework.load), programs(control.load), sampled(), strict=True)
    return Programs("C1", [OutsideProgram(framework, arm, *version).row() for version in versions])


def sampled() -> list[bool]:
    """Of each program whether it is the first of its family: those for which kernels are compiled in any case."""
    families = [program.family for program in programs()]
    return [family not in families[:i] for i, family in enumerate(families)]


class OutsideProgram:
    """A program in a framework: ours, the same over the framework's functions, and over its own control flow."""

    def __init__(
        self, framework: Engine, arm: str, ours: Program, theirs: Program, rewriting: Program, sampled: bool
    ) -> None:
        self.framework, self.arm, self.ours, self.theirs, self.rewriting = framework, arm, ours, theirs, rewriting
        self.sampled = sampled
        self.sum = framework.functions()["sum"]

    def row(self) -> ProgramRow:
        """As `compare.claims.c1_control_flow.measure.measured` makes one, eager as dynamic and compiled as static."""
        self.framework.forget()  # pieces that are compiled already would run where the whole is asked for
        expected = reference(self.ours, self.ours.inputs)
        eager = ProgramVersion(self, self.theirs, self.theirs.plain, self.ours.inputs)
        in_eager = eager.tried(expected)
        version, as_it_is = self.taken(self.theirs, self.theirs.plain, self.ours.inputs, expected)
        rewritten = as_it_is
        function, idiom = self.ours.plain, None
        if as_it_is.status != "right" and self.ours.graph and self.rewriting.graph:
            function, idiom = self.ours.graph, self.idiom(self.ours.graph)
            inputs = self.ours.graph_inputs or self.ours.inputs
            version, rewritten = self.taken(self.rewriting, self.rewriting.graph, inputs, expected)
        right = rewritten.status == "right"
        row = found(self.ours, in_eager, as_it_is, rewritten, function if right else None)
        if right:
            row.compiles, row.compile_seconds = len(version.observed.compilations) or None, version.first_seconds
        row.idiom = idiom
        row.kernels = self.sampled if self.framework.captured(self.arm, self.theirs.plain) else None
        row.breaks, row.pieces = self.broken(expected) if as_it_is.status != "right" else (None, None)
        return row

    def taken(
        self, program: Program, function: Function, inputs: Sequence[Arguments], expected: Results
    ) -> tuple[ProgramVersion, Tried]:
        """A version of the program, compiled, and how it fares.

        Where kernels take a stage of their own, that stage is reached for a sample of what comes so far.
        """
        stages = [self.framework.compiled(self.arm, function)]
        if graph := self.framework.captured(self.arm, function):
            stages = [graph, *stages] if self.sampled else [graph]
        for stage in stages:
            version = ProgramVersion(self, program, stage, inputs)
            outcome = version.tried(expected)
            if outcome.status != "right":
                break
        return version, outcome

    def idiom(self, function: Function) -> str | None:
        """What the framework calls the control flow that a rewriting is written in; None where it needs no such op."""
        names = dict.fromkeys(self.framework.idioms[name] for name in used(function) if name in self.framework.idioms)
        return ", ".join(names) or None

    def broken(self, expected: Results) -> tuple[int | None, Any]:
        """The graph breaks of the program as it is, and how it fares with them; None where a framework has none."""
        self.framework.forget()  # a framework counts no break of what it has compiled before
        pieces = self.framework.pieces(self.theirs.plain)
        if pieces is None:
            return None, None
        version = ProgramVersion(self, self.theirs, pieces, self.ours.inputs)
        outcome = version.tried(expected)
        return sum(version.observed.breaks.values()), outcome.status


class ProgramVersion:
    """One version of a program, as it is called: the value and the gradient, taken by the eager framework."""

    def __init__(
        self, outside: OutsideProgram, program: Program, function: Function, inputs: Sequence[Arguments]
    ) -> None:
        self.framework, self.program, self.function, self.inputs = outside.framework, program, function, inputs
        loss = weighted(self.framework, outside.sum, function)
        self.step = self.framework.build(self.framework.arms[0], loss, 0)
        self.before, self.first_seconds = self.framework.observed(function), 0.0

    def __call__(self) -> Results:
        """All inputs, one after the other."""
        return calls(self.program, self._called, self.inputs)

    def _called(self, *args: Any) -> Any:
        return self.framework.numpy(self.step(*self.framework.arrays(args)))

    @property
    def observed(self) -> Observed:
        """What the framework tells of this version."""
        return self.framework.observed(self.function).since(self.before)

    def tried(self, expected: Results) -> Tried:
        """How it fares on all inputs, also on a second round, within the time limit."""
        started = time.perf_counter()
        try:
            with warnings.catch_warnings(action="ignore"), within(LIMIT):  # compilers warn of much
                first = self()
                self.first_seconds = time.perf_counter() - started
                rounds = first, self()
        except LimitError as error:
            return Tried("failed", f"time limit: {error}")
        except Exception as error:  # noqa: BLE001  (whatever a program raises is its result)
            return Tried("refused" if self.framework.refuses(error) else "failed", shortened(error))
        try:
            for results in rounds:
                check_equal(results, expected)
        except AssertionError as error:
            return Tried("wrong", str(error))
        return Tried("right")


def weighted(framework: Engine, total: Function, function: Function) -> Function:
    """The function as a scalar one, with the weights that our engines are given."""

    def loss(*args: Any) -> Any:
        leaves = [leaf for leaf in optree.tree_leaves(function(*args)) if "float" in str(leaf.dtype)]
        weights = [np.cos(np.arange(np.prod(tuple(leaf.shape)))).reshape(tuple(leaf.shape)) for leaf in leaves]
        terms = [total(leaf * weight) for leaf, weight in zip(leaves, framework.arrays(weights), strict=True)]
        return sum(terms)

    return loss


def used(function: Function) -> list[str]:
    """The functions of `graphs` that a function calls, in the order in which they are written."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    return [
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "graphs"
    ]


def shortened(error: BaseException) -> str:
    """An error on one line: that which its words end with, where they quote a traceback of the user's code."""
    quoted = _QUOTED.findall(str(error))
    return without_folders(" ".join((quoted[-1] if quoted else described(error)).split()))[:LONGEST]

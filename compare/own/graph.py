"""The graph of a user's function, its values in memory, and the graph that is slower compiled, as workers find them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from math import exp
from textwrap import fill
from typing import Any

import dynamic
import static
from compare import steps, text
from compare.claims.base import SMALLEST_EFFECT
from compare.engines import cases
from compare.engines.graphduel.steps import transform_step
from compare.engines.step import GraphProgram
from compare.errors import UnsupportedError
from compare.instruments import timing
from compare.instruments.bench import Bench
from compare.instruments.rounds import clock_name, half_width
from compare.own.workers import answer_or_fault
from compare.records.job import Budget, Job
from compare.records.own import (
    AROUND,
    Bisection,
    BisectionRow,
    FunctionFault,
    FunctionGraph,
    FunctionMemory,
    GraphTrial,
)
from compare.records.record import Status
from compare.report.show import WIDTH
from compare.stats import Interval, geometric_mean
from compare.subjects import origin
from compare.subjects.case import case_of
from compare.workloads.base import Case
from graphs.drawing import beside, difference, mark_changes, of_graph
from graphs.drawing.diagram import Change
from graphs.drawing.difference import renumber_like
from graphs.drawing.drawing import Stage
from graphs.drawing.text import CHANGES, changes_of, outline
from graphs.ir import Graph, format_rows
from static.passes import pipeline


def measure(job: Job) -> FunctionGraph | FunctionFault:
    """Return a worker's answer with the graph; `asked` are the arguments of `graph_of`."""
    return answer_or_fault(str(job.size), lambda: graph_of(**job.asked))


def measure_memory(job: Job) -> FunctionMemory | FunctionFault:
    """Return a worker's answer with the memory; `asked` are the arguments of `memory_of`."""
    return answer_or_fault(str(job.size), lambda: memory_of(**job.asked))


def memory_of(function: str, *, inputs: str | None, gradient: bool | None) -> FunctionMemory:
    """Return the memory plan of the compiled step over the first call."""
    case = _case(function, inputs, gradient)
    step = transform_step(static, case.loss, case.argnum)
    executable = static.compile(step, case.params, *case.examples[0], convert=True)
    drawn, plan = executable.draw_memory(), executable.plan
    return FunctionMemory(function.rpartition(":")[2], plan.peak, plan.lower_bound, list(drawn.buffers))


def _case(function: str, inputs: str | None, gradient: bool | None) -> Case:
    steps.now(f"imported {function.rpartition(':')[0]}")
    f, calls = origin.load_function(function, inputs)
    steps.now(f"called {function}")
    return case_of(f, calls, gradient, None)


def graph_of(
    function: str,
    *,
    inputs: str | None,
    gradient: bool | None,
    engine: str,
    optimised: bool,
    passes: bool,
    unfold: bool,
) -> FunctionGraph:
    """Return the graph of the first call, as text and as a drawing; with `passes` after each pass.

    The engine "both" gives the tape of dynamic beside the graph that static optimises, with differences marked.
    """
    case = _case(function, inputs, gradient)
    args = (case.params, *case.examples[0])
    if passes:
        return _after_passes(static.trace(static.converted(_step(static, case)), *args), unfold)
    if engine == "both":
        return _beside(_record_graph(case, args), _optimise_graph(case, args), unfold)
    if engine == "dynamic":
        graph = _record_graph(case, args)
    else:
        graph = _optimise_graph(case, args) if optimised else static.trace(static.converted(_step(static, case)), *args)
    written = str(graph) if unfold else outline(graph, *format_rows(graph))
    return FunctionGraph(written, [Stage(graph.name, "", of_graph(graph))])


def _step(engine: Any, case: Case) -> Callable[..., Any]:
    return transform_step(engine, case.loss, case.argnum)


def _record_graph(case: Case, args: tuple[Any, ...]) -> Graph:
    return dynamic.record(_step(dynamic, case), *args)


def _optimise_graph(case: Case, args: tuple[Any, ...]) -> Graph:
    return static.compile(_step(static, case), *args, convert=True).graph


def _after_passes(graph: Graph, unfold: bool) -> FunctionGraph:
    """Return the traced graph, and the graph after each pass that changed it; a node keeps its number."""
    before, fresh = of_graph(graph), count(len(graph))
    stages = [Stage("traced", text.count_noun(len(graph), "node"), before)]
    idle = []
    for step, after in pipeline.stages(graph):
        if step.changed:
            diagram = renumber_like(before, of_graph(after), fresh)
            stages.append(
                Stage(step.name, str(step).partition(": ")[2].replace("->", "→"), difference(before, diagram))
            )
            before = diagram
        else:
            idle.append(step.name)
    rows = [f"graph {graph.name}, {stages[0].note} as it was traced"]
    for stage in stages[1:]:
        rows += [f"{stage.title}: {stage.note}", *changes_of(stage.diagram, None if unfold else CHANGES)]
    busy = {stage.title for stage in stages}
    unused = ", ".join(dict.fromkeys(name for name in idle if name not in busy)) or "no pass"
    rows.append(fill(f"nothing to do for {unused}", WIDTH, subsequent_indent="  "))
    return FunctionGraph("\n".join(rows), stages)


def _beside(tape: Graph, optimised: Graph, unfold: bool) -> FunctionGraph:
    """Return the tape beside the optimised graph: nodes that passes left out are "removed", new ones "added"."""
    before, after = of_graph(tape), of_graph(optimised)
    changed = difference(before, after)
    left, right = mark_changes(before, after)
    titled = replace(left, title="dynamic: the tape of one run"), replace(right, title="static: the optimised graph")
    counts = Counter(item.change for item in changed.items if item.change)
    said = ", ".join(f"{counts[change]:,} {word}" for change, word in _CHANGES.items() if counts[change])
    sizes = (
        f"dynamic records {text.count_noun(len(tape), 'node')}, static runs {text.count_noun(len(optimised), 'node')}"
    )
    rows = [f"{tape.name}: {sizes}: {said or 'the same'}", *changes_of(changed, None if unfold else 3 * CHANGES)]
    return FunctionGraph("\n".join(rows), [Stage(tape.name, said, beside(*titled))])


_CHANGES: dict[Change, str] = {"removed": "removed", "added": "added", "rewritten": "read other nodes"}


# The graph that is slower compiled, or wrong --------------------------------------------------------------------------


BUDGET = Budget(rounds=15, least=7, seconds=1.0)
"""The budget of timing a graph and a half of one: a half is told from a whole by much."""
PATIENCE = 240.0
"""The seconds after which no graph is cut further: each half is compiled."""
KEPT = 0.5
"""The share of what a graph loses that a half of it must lose, beyond what any graph does, to be cut further."""


def bisections(job: Job, bench: Bench, names: Mapping[str, str]) -> Iterator[Bisection]:
    """Yield the record of modes that compile: the graphs of each, eager and compiled, and the worst of them.

    `names` are those of the modes in records.
    """
    rows: dict[str, BisectionRow] = {}
    for mode in names:
        try:
            index = cases.median_length(bench.lengths)
            steps.now(f"captured the graphs of {names[mode]}")
            with bench.state.fresh():
                programs = bench.engine.ops.graphs(mode, bench.step, index, lambda step: bench.state.turns({"": step}))
            rows[names[mode]] = Bisector(job, bench).row(programs)
        except Exception as error:  # noqa: BLE001  (the figures of the answer are there: this look fails alone)
            refused = isinstance(error, UnsupportedError) or bench.engine.errors.refuses(error, mode)
            status: Status = "unsupported" if refused else "failed"
            rows[names[mode]] = BisectionRow(status, bench.reason(error))
    if rows:
        yield Bisection(str(job.workload), str(job.size), modes=rows)


class Bisector:
    """Runs graphs eager and compiled, by the gate and the clock of any function, and cuts the worst in halves."""

    def __init__(self, job: Job, bench: Bench) -> None:
        self.job, self.bench = job, bench
        self.began = time.monotonic()

    def row(self, programs: Sequence[GraphProgram]) -> BisectionRow:
        """Return the trials of graphs, and the worst one cut down."""
        trials = [self.trial(program) for program in programs]
        row = BisectionRow("ok", None, trials)
        number = worst(trials)
        if number is None:
            return row
        row.number, is_wrong = number + 1, bool(trials[number].wrong)
        row.least = None if is_wrong else self.trial(programs[number].least)
        spent = row.least.lost if row.least else 0.0
        program, row.part = self.cut(programs[number], trials[number], spent)
        said = told_trial(row.part, self.bench.engine.title, self.bench.engine.version, self.job.threads)
        title = f"Graph {row.number} of {len(trials)} of {self.bench.name}, cut down to {_ops(row.part)}."
        name = Bisection("", "", modes={"": row}).file("")
        row.program = program.text(name, title, said, exact=is_wrong)
        return row

    def cut(self, program: GraphProgram, trial: GraphTrial, spent: float) -> tuple[GraphProgram, GraphTrial]:
        """Return the smallest part of a graph that shows what it shows; `spent` is what any graph loses in seconds."""
        while time.monotonic() - self.began < PATIENCE:
            if not trial.wrong and trial.lost < AROUND * spent:
                break  # what it loses is around its kernels
            needed = KEPT * (trial.lost - spent)
            halves = [(half, self.trial(half)) for half in program.halves]
            shown = [
                (half, each)
                for half, each in halves
                if (each.wrong if trial.wrong else is_slower(each) and each.lost - spent >= needed)
            ]
            if not shown:
                break
            program, trial = max(shown, key=lambda pair: pair[1].lost)
        return program, trial

    def trial(self, program: GraphProgram) -> GraphTrial:
        """Return a graph by itself, eager and compiled: judged, and timed if it runs."""
        engine, outcome = self.bench.engine, GraphTrial(program.line, list(program.ops))
        steps.now(f"compared a graph of {_ops(outcome)}")
        modes = self.bench.base, engine.words.full_name(program.word)
        module = program.module(exact=True)
        bench = Bench.of_function(
            engine, modes[0], self.bench.name, module.step, [engine.arrays(call) for call in module.batches()], None,
            checks=True, needed=False,
        )  # fmt: skip
        bench.prepare()
        engine.compiler.forget()
        epochs = {mode: timing.first_epoch(bench, mode, timing.no_limit) for mode in modes}
        last = epochs[modes[-1]]
        if last.status not in ("ok", "disagree"):
            outcome.failed = str(last.reason)
            return outcome
        outcome.wrong = str(last.reason) if last.status == "disagree" else ""
        if ready := {mode: step for mode, epoch in epochs.items() if (step := epoch.timed(bench))}:
            name = clock_name(engine.device, has_events=engine.has_events, threads=self.job.threads)
            clock = timing.clock_of(name, engine)
            rounds = timing.steady_rounds(ready, BUDGET, self.job.random(), clock, bench.state.turns(ready))
            early, late = (rounds.steady()[mode] for mode in modes)
            outcome.eager, outcome.compiled = geometric_mean(early), geometric_mean(late)
            half = exp(half_width(late, early))
            ratio = outcome.compiled / outcome.eager
            outcome.ratio = [ratio, ratio / half, ratio * half]
        return outcome


def worst(trials: Sequence[GraphTrial]) -> int | None:
    """Return the index of the first graph that is wrong, else of the one that loses most; None for none."""
    wrong = [number for number, trial in enumerate(trials) if trial.wrong]
    slower = [number for number, trial in enumerate(trials) if is_slower(trial)]
    return next(iter(wrong), None) if wrong else max(slower, key=lambda number: trials[number].lost, default=None)


def is_slower(trial: GraphTrial) -> bool:
    """Return whether a graph is clearly slower compiled than eager."""
    return bool(trial.ratio) and Interval(*trial.ratio).side(SMALLEST_EFFECT) == "above"


def _ops(trial: GraphTrial) -> str:
    return text.count_noun(len(trial.ops), "op")


def told_trial(trial: GraphTrial, framework: str, version: str, threads: int) -> str:
    """Return what was seen of a part of a graph, for its file."""
    place = f"with {framework} {version} on {text.count_noun(threads, 'thread')}"
    if trial.wrong:
        return f"Compiled it was wrong {place}: {trial.wrong}."
    return f"Compiled it took {text.estimate(Interval(*trial.ratio))} the time of eager {place}."

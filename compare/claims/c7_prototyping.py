"""C7: dynamic graphs make prototyping faster: from an edit of a model to its first result.

The session is warm: the engine has run the model op by op before the edit, and has compiled another model. The time
after the edit is measured: Python reads the changed source, a graph is traced and compiled, and the first loss and
gradients are computed. An engine that keeps compiled code on the disk makes each edit once. Our engines make it several
times, and the first time does not count.

The rule judges these edits in both engines, the tokens of the programs of claim C1, and the share of the faults of
claim C3 that are found before any data run.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from statistics import median
from types import ModuleType
from typing import Any

from compare import engines, text, workloads
from compare.claims.base import Citation, Claim, Effect, Finding, Label, Regime, judge_ratio, not_measured
from compare.engines import Engine, session, try_block
from compare.errors import UnsupportedError
from compare.instruments.rounds import orders, without_collection
from compare.records.checks import Faults, ModelCost, Programs, Prototypes, TaskRow
from compare.records.job import KINDS, Job
from compare.records.record import Records, kind_of, records_of
from compare.stats import Interval, geometric_mean_interval, proportion_interval
from compare.workloads import Case
from compare.workloads.edits import EDITS, SourceEdit, length

REPEATS = 3
"""How often each edit is timed in each of our engines, after one time that does not count."""
LIMIT = 60.0
"""The limit in seconds for a first result."""


def measure(job: Job) -> Prototypes:
    """Measure claim C7 for a mode in the role of static, and the eager mode of its engine in the role of dynamic."""
    engine, mode = engines.engine_of_mode(job.mode)
    session(mode)
    gc.freeze()  # so that the collections below do not scan the objects that exist now
    return Prototypes("C7", [measure_edit(engine, mode, edit) for edit in EDITS])


def measure_edit(engine: Engine, mode: str, edit: SourceEdit) -> TaskRow:
    """Measure the seconds from an edit to the first result in both modes, and the length of the model in each."""
    row = TaskRow(edit.workload, f"{edit.old} -> {edit.new}", {})
    case, source = case_before_edit(engine, edit), edit.source()
    call, modes = arguments(engine, case), {"dynamic": engine.mode_names[0], "static": mode}
    repeats = 1 if engine.compiles_slowly else 1 + REPEATS
    seconds: dict[str, list[float]] = {role: [] for role in modes}
    order = orders(tuple(modes), Random(edit.workload))
    for _ in range(repeats):
        for role in next(order) if repeats > 1 else modes:
            if role in row.refused:
                continue
            try:
                run(engine, engine.mode_names[0], case.loss, call)
                with without_collection():
                    seconds[role].append(edit_to_result(engine, modes[role], edit, source, case, call))
            except UnsupportedError as error:
                row.refused[role] = str(error)
    for role, name in modes.items():
        if role not in row.refused:
            model = getattr(edit.module, engine.loss(name, case).__name__)
            row.engines[role] = ModelCost(seconds[role][-REPEATS:], **length(model))
    return row


def edit_to_result(
    engine: Engine, mode: str, edit: SourceEdit, source: str, case: Case, call: tuple[Any, ...]
) -> float:
    """Time an edit until its first loss and gradients are there, in seconds. Raises UnsupportedError."""
    start = time.perf_counter()
    with engine.library.edited(edit.module.__name__, source) as module:
        run(engine, mode, engine.loss(mode, case_with_module(case, module)), call)
        return time.perf_counter() - start


def case_with_module(case: Case, module: ModuleType) -> Case:
    """Return the case with its losses taken from another module, by the same names."""
    losses = {name: getattr(case, name) for name in ("loss", "static_loss", "scanned")}
    return replace(case, **{name: loss and getattr(module, loss.__name__) for name, loss in losses.items()})


def run(engine: Engine, mode: str, loss: Any, call: tuple[Any, ...]) -> None:
    """Compute the loss and its gradients once by a mode, within LIMIT seconds. Raises UnsupportedError."""
    with try_block(engine, LIMIT):
        engine.wait(engine.build(mode, loss, 0)(*call))


def case_before_edit(engine: Engine, edit: SourceEdit) -> Case:
    """Return the small case of a workload before the edit, over the functions of the engine."""
    return engine.library.workload(workloads.source(edit.workload)).case("small")


def arguments(engine: Engine, case: Case) -> tuple[Any, ...]:
    """Return the arguments of the model as arrays of the engine: its parameters and its first example."""
    call: tuple[Any, ...] = engine.arrays((case.params, *case.examples[0]))
    return call


# The rule -----------------------------------------------------------------------------------------------------------


MIN_TASKS = 3
"""The fewest tasks from which an interval is computed."""
AT_ONCE = 0.1
"""The wait in seconds below which a result feels immediate (Miller, AFIPS 1968)."""
ENGINES = ("static", "dynamic")


def find(records: Records) -> Finding:
    """Judge C7, at most as "proxy only": no measurement of a machine shows how fast a person prototypes."""
    rows = sorted(
        (task for r in records_of(records, Prototypes) for task in r.tasks), key=lambda task: (task.task, repr(task))
    )
    tasks = [task for task in rows if not task.refused]
    refused = sorted(f"{row.task}, {engine}: not run, {why}" for row in rows for engine, why in row.refused.items())
    if not rows:
        return not_measured("prototyping tasks")
    if len(tasks) < MIN_TASKS:
        return Finding(
            "inconclusive",
            (f"only {text.count_noun(len(tasks), 'task')} measured, and {MIN_TASKS} are needed", *refused),
        )
    sides = [[task.engines[engine] for task in tasks] for engine in ENGINES]
    pairs = list(zip(*sides, strict=True))  # of each task, static and dynamic
    wait = geometric_mean_interval(
        [
            [top / bottom for top, bottom in zip(static.edit_to_result, dynamic.edit_to_result, strict=True)]
            for static, dynamic in pairs
        ]
    )
    tokens = geometric_mean_interval([[static.tokens / dynamic.tokens] for static, dynamic in pairs])
    shares = _shares(records)
    shown = [f"{engine} {s.estimate:.0%} [{s.low:.0%}, {s.high:.0%}]" for engine, s in shares.items()]
    early = f"share of the possible faults that are found before any data run: {', '.join(shown)}"
    return Finding(
        "proxy only",
        (*_wait_reasons(tasks, wait), *([early] if shares else []), *refused),
        Effect("seconds from edit to first result, static ÷ dynamic", wait.estimate, "ratio"),
        wait,
        (
            judge_ratio("from edit to first result", wait),
            judge_ratio("tokens of model code, the tasks", tokens),
            *_programs(records),
            *_catch_regimes(shares),
        ),
    )


def _wait_reasons(tasks: list[TaskRow], wait: Interval) -> Iterator[str]:
    each = {engine: [median(task.engines[engine].edit_to_result) for task in tasks] for engine in ENGINES}
    waits = ", ".join(f"{engine} {text.seconds(median(each[engine]))}" for engine in ENGINES)
    yield (
        f"from edit to first result, static ÷ dynamic: {text.ratio(wait.estimate)} over {len(tasks)} tasks "
        f"(median: {waits})"
    )
    late = {engine: [task for task, t in zip(tasks, each[engine], strict=True) if t > AT_ONCE] for engine in ENGINES}
    felt = ", ".join(f"{engine} {len(late[engine])}" for engine in ENGINES)
    named = ", ".join(task.task for task in late["static"])
    yield f"tasks with a wait of more than {AT_ONCE} s, which people notice: {felt}" + (f" ({named})" if named else "")


def _programs(records: Records) -> Iterator[Regime]:
    """Yield the ratio of tokens, static ÷ plain Python, over the programs of C1 that a fixed graph can express."""
    programs = sorted((p for r in records_of(records, Programs) for p in r.programs), key=repr)
    ratios = [[p.taken_tokens / p.tokens] for p in programs if p.taken_tokens]
    if len(ratios) > 1:
        yield judge_ratio("tokens of model code, programs with control flow", geometric_mean_interval(ratios))


def _shares(records: Records) -> dict[str, Interval]:
    """Return for each engine the share of its possible faults found before any data run; empty if one has no faults."""
    rows = sorted((row for record in records_of(records, Faults) for row in record.faults), key=repr)
    last = {(row.family, row.fault, row.engine): row for row in rows if row.when != "cannot happen"}
    faults = list(last.values())
    early = {engine: [fault.when == "trace" for fault in faults if fault.engine == engine] for engine in ENGINES}
    return {engine: proportion_interval(sum(rows), len(rows)) for engine, rows in early.items() if all(early.values())}


def _catch_regimes(shares: dict[str, Interval]) -> Iterator[Regime]:
    """Yield a regime on faults caught before any data run: refuted if static catches more, beyond the intervals."""
    if shares:
        static, dynamic = (shares[engine] for engine in ENGINES)
        label: Label = "refuted" if static.low > dynamic.high else "inconclusive"
        shown = f"faults caught before any data run: static {static.estimate:.0%}, dynamic {dynamic.estimate:.0%}"
        # shares of faults are not ratios like the other values, so they are put into the name
        yield Regime(shown, "supported" if static.high < dynamic.low else label)


CLAIM = Claim(
    id="C7",
    title="Dynamic graphs make prototyping faster",
    statement="With a dynamic graph people can try an idea as fast as they type it. There is nothing to declare, "
    "build or compile, and the model is plain code.",
    opposite="A traced function is the same plain code. It compiles before a person looks up, and an error that it "
    "finds before the run saves a failed run.",
    measured="Proxies only. First: the seconds from an edit of one line of a model to its first loss and gradients, in "
    "a warm session, where Python reads the source again, and static traces and compiles. Second: the tokens of model "
    "code for the same task, in these models and in the programs of C1 that a fixed graph can express. Third: the "
    "share of the faults of C3 that are found before any data run.",
    rule="Always proxy only, because none of these measures a person at work. Each ratio static ÷ dynamic has a 95% "
    "interval (bootstrap over tasks, then repetitions), and a label by the smallest effect of 5%. The shares of faults "
    "have Wilson's intervals. Where static finds more of them before a run, "
    "beyond the intervals, that speaks against the claim. "
    f"Inconclusive with fewer than {MIN_TASKS} tasks.",
    find=find,
    reads=(Prototypes, Programs, Faults),
    check=KINDS[kind_of(Prototypes)],
    tape="alone",
    literature=(
        Citation(
            "a wait of less than 0.1 s feels immediate",
            "Miller, AFIPS Fall Joint Computer Conference 1968",
            "people at terminals",
            apart="it asks no person, and uses this bound as it is",
        ),
        Citation(
            "the authors of TensorFlow Eager say that a graph hinders rapid prototyping",
            "abstract, arXiv 1903.01855",
            "users of TensorFlow",
            apart="it asks no user; the wait from edit to first result is above",
        ),
        Citation(
            "AutoGraph turns Python control flow into graphs that are as fast as native ones",
            "abstract, arXiv 1810.08061",
            "TensorFlow, programs translated from Python",
            apart="it traces its tasks, and does not translate them",
        ),
    ),
    not_tested=(
        "programmers: time to a working model, errors made, what they prefer",
        "long projects, in which people read more code than they write",
        "edits of more than a line, edits of data, and a new session for each edit",
        "models that compile for minutes: the models here are small",
    ),
)

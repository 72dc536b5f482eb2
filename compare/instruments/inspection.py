"""Findings about a function without a clock: shape policies over its calls, helpful rewrites, and its graphs.

Hints come from a trace of the function over one call, and from the calls themselves; each stands for one finding.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec import structs

import dynamic
import static
from compare import text
from compare.engines import cases
from compare.engines.cases import signature
from compare.engines.graphduel.steps import transform_step
from compare.errors import is_users
from compare.instruments.ledger import texts
from compare.records.job import Job
from compare.records.own import EngineGraphs, PolicyCompile, PolicyCount, RewriteHint, RewriteHints, ShapePolicies
from compare.workloads.base import Case
from graphs import tree
from graphs.drawing import mark_changes, of_graph
from graphs.drawing.groups import fold
from graphs.errors import ControlFlowError, GraphError
from graphs.ir import Graph, Node
from graphs.ops.slicing import getitem
from static.call.jit import LIMIT
from static.trace.tracing import is_traced

# Shape policies: how often each compiles, why, and which compiles least ----------------------------------------------


DEFAULT = "auto"
EXACT = "exact"
"""The policy whose row is that of `auto` too: `auto` is exact up to its limit, and no more shapes are tried."""


def shape_policies(what: Job, case: Case) -> ShapePolicies | None:
    """Return the record of the shape policies, over one call of each kind; None where all calls are of one kind."""
    first: dict[Any, int] = {}
    for index, example in enumerate(case.examples):
        first.setdefault(signature(example), index)
    if len(first) == 1:
        return None
    calls = list(first.values())[:LIMIT]
    counts = {options["shapes"]: policy_count(case, calls, options) for options in _policy_options(case)}
    usual = counts[DEFAULT]
    rows = {EXACT: structs.replace(usual, options=usual.options.replace(DEFAULT, EXACT)), **counts}
    return ShapePolicies(**what.head, shapes=len(calls), left_out=len(first) - len(calls), policies=rows)


def _policy_options(case: Case) -> Iterator[dict[str, Any]]:
    """Yield the options of `static.jit` for each policy; padding policies need the names of the axes that vary.

    Where one axis varies, `pad` pads to its largest size.
    """
    yield {"shapes": DEFAULT}
    if case.dims is None:
        yield {"shapes": "symbolic"}
        return
    dims = {"dims": case.dims}
    names = {name for axes in case.dims for name in axes or () if name}
    yield {"shapes": "symbolic", **dims}
    yield {"shapes": "bucket", **dims}
    yield {"shapes": "pad", **dims, **({"buckets": (max(case.lengths),)} if len(names) == 1 else {})}


def policy_count(case: Case, calls: Sequence[int], options: Mapping[str, Any]) -> PolicyCount:
    """Return what a policy compiles over the calls; control flow is converted where Python branches on values."""
    if not case.branches:
        plain = _run(case, calls, options)
        if not (plain.reason or "").startswith(ControlFlowError.__name__):
            return plain
    return _run(case, calls, {**options, "convert": True})


def _run(case: Case, calls: Sequence[int], options: Mapping[str, Any]) -> PolicyCount:
    jitted = static.jit(transform_step(static, case.loss, case.argnum), **options)
    row = PolicyCount("ok", None, _options_text(case, options), [])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the count shows what a warning of the limit says
            for index in calls:
                jitted(case.params, *case.examples[index])
                row.compiles += [PolicyCompile(index + 1, why) for why in jitted.stats.reasons[len(row.compiles) :]]
    except Exception as error:  # noqa: BLE001  (whatever a policy raises is what its row says)
        return structs.replace(row, status="unsupported", reason=f"{type(error).__name__}: {error}", compiles=[])
    useful, computed = jitted.stats.useful, jitted.stats.computed
    return structs.replace(row, padding=computed / useful if useful else 1.0)


def _options_text(case: Case, options: Mapping[str, Any]) -> str:
    """Return the options as the user writes them: `dims` lacks the entry of parameters where there are none.

    A function made from a module has other arguments than the user's, so its `dims` are left out.
    """
    shown = dict(options)
    if "dims" in shown:
        has_parameters = not (isinstance(case.params, tuple) and not case.params)
        shown["dims"] = shown["dims"] if has_parameters else shown["dims"][1:]
        if not is_users(getattr(inspect.unwrap(case.loss), "__code__", shape_policies.__code__).co_filename):
            del shown["dims"]
    return ", ".join(f"{name}={value!r}" for name, value in shown.items())


# Rewrites that would help a fixed graph ------------------------------------------------------------------------------


ROWS = 4
"""The number of parts of one array, each read in the same line, that show a loop over it."""
ROUNDS = 8
"""The number of nodes of one op and spec in one line that show a loop, even without reads of parts."""
SCAN = "write the loop as graphs.scan: one node, whatever the number of rounds"
_LINE = re.compile(r"\(([^():\s]+\.py:\d+)\)")


def rewrite_hints(what: Job, case: Case, *, scans: bool = True) -> RewriteHints | None:
    """Return the record of the hints for a function; None where there are none.

    `scans` tells that the function can use `graphs`. A file of PyTorch's cannot: there a line with many equal nodes
    may as well be layers, or an optimizer's parameters.
    """
    alone = cases.alone(case)
    graph, error = _try_trace(alone)
    hints = list(static_values(case))
    if isinstance(error, ControlFlowError):
        graph, still = _try_trace(replace(alone, loss=static.converted(alone.loss)))
        hints.insert(0, branch_hint(error, graph, still))
    hints += loop_hints(graph) if graph and scans else ()
    if not hints:
        return None
    return RewriteHints(
        **what.head, hints=hints, code=texts(case.loss, [line for hint in hints for line in hint.lines])
    )


def _try_trace(case: Case) -> tuple[Graph | None, Exception | None]:
    """Return the graph of the loss without gradients, or the error of its trace."""
    try:
        return static.trace(transform_step(static, case.loss, None), case.params, *case.examples[0]), None
    except Exception as error:  # noqa: BLE001  (the gate tells an error that is not of control flow)
        return None, error


def loop_hints(graph: Graph) -> Iterator[RewriteHint]:
    """Yield one hint for all lines whose loops were unrolled, with the number of nodes of each line."""
    nodes = [node for node in graph.nodes if node.source and not node.is_source]
    rounds = _most(Counter((node.source, node.op.name, _spec(node)) for node in nodes))
    rows = _most(Counter((node.source, node.inputs[0]) for node in nodes if node.op is getitem))
    read = max(rows.values(), default=0)
    least = min(read - 1, ROUNDS) if read >= ROWS else ROUNDS
    unrolled = [line for line, count in rounds.items() if count >= least]
    if not unrolled:
        return
    of_line = Counter(node.source for node in nodes)
    lines = {line: of_line[line] for line in unrolled}
    what = f"a Python loop over the {read} rows of an array" if read >= ROWS else "a Python loop"
    yield RewriteHint(f"{what} was unrolled into {text.count_noun(sum(lines.values()), 'node')}", lines, SCAN)


def _spec(node: Node) -> Any:
    return node.spec, *(source.spec for source in node.inputs)


def _most(counted: Counter[Any]) -> dict[str, int]:
    """Return the largest count for each line, which is the first part of a key."""
    largest: dict[str, int] = {}
    for (line, *_), count in counted.items():
        largest[line] = max(largest.get(line, 0), count)
    return largest


def branch_hint(refusal: ControlFlowError, converted: Graph | None, still: Exception | None) -> RewriteHint:
    """Return a hint with the lines where Python branches on a value, by the converted graph, or why it has none."""
    lines = dict.fromkeys(_LINE.findall(str(refusal))[:1], 1)
    if converted is None:
        why = str(still) if isinstance(still, GraphError) else f"{type(still).__name__}: {still}"
        what = "a value that only the run knows blocks the trace"
        return RewriteHint(what, lines, f"convert=True does not help: {why}")
    decided = Counter(node.source for node in converted.nodes if node.subgraphs and node.source)
    lines = dict(decided) or lines
    what = f"Python decides on a value in {text.count_noun(sum(lines.values()), 'place')}, which blocks a plain trace"
    remedy = "compile with convert=True, as was done here, or write graphs.where, graphs.cond or graphs.while_loop"
    return RewriteHint(what, lines, remedy)


def static_values(case: Case) -> Iterator[RewriteHint]:
    """Yield a hint for each argument with a value that is no array and changes from call to call."""
    count = len(case.examples[0])
    try:
        names = list(inspect.signature(case.loss).parameters)[1 : count + 1]
    except (TypeError, ValueError):
        names = []
    arguments = names if len(names) == count else [f"argument {place}" for place in range(count)]
    for place, name in enumerate(arguments):
        values = {_values(example[place]) for example in case.examples}
        if len(values) > 1:
            what = f"{name} is not an array and takes {text.count_noun(len(values), 'value')}, and each compiles again"
            remedy = f"pass {name} as an array, or take a size from the shape of one"
            yield RewriteHint(what, dict.fromkeys(_definition(case), len(values)), remedy)


def _values(argument: Any) -> tuple[Any, ...]:
    return tuple(repr(leaf) for leaf in tree.leaves(argument) if not is_traced(leaf))


def _definition(case: Case) -> Iterator[str]:
    """Yield the line where the function is defined, if it has one."""
    code = getattr(inspect.unwrap(case.loss), "__code__", None)
    if code is not None:
        yield f"{Path(code.co_filename).name}:{code.co_firstlineno}"


# The graph of a step as each engine has it ---------------------------------------------------------------------------


MOST = 60
"""The most items of a graph that are kept; others are folded into groups."""
TITLES = {"dynamic": "the tape of one run", "static": "the optimised graph"}


def engine_graphs(what: Job, case: Case) -> EngineGraphs | None:
    """Return the record of both engines' graphs, control flow converted; None where the step cannot be traced."""
    median = cases.alone(case)
    arguments = (median.params, *median.examples[0])
    try:
        step = transform_step(static, median.loss, median.argnum)
        optimised = static.compile(step, *arguments, convert=True).graph
        tape = dynamic.record(transform_step(dynamic, median.loss, median.argnum), *arguments)
    except Exception:  # noqa: BLE001  (the gate says what an engine refuses; here it has no graph)
        return None
    diagrams = dict(zip(TITLES, mark_changes(of_graph(tape), of_graph(optimised)), strict=True))
    nodes = {engine: len(diagram.items) for engine, diagram in diagrams.items()}
    graphs = {engine: fold(diagram, MOST) for engine, diagram in diagrams.items()}
    return EngineGraphs(**what.head, graphs=graphs, nodes=nodes)

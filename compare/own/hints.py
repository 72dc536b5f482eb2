"""Rewrites that would help a fixed graph: a loop that was unrolled, a branch on a value, a static value that changes.

All is read off a trace of the function over one call, and off the calls themselves; a hint stands for what was found.
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import static
from compare.engines import cases
from compare.engines.graphduel.functions import transformed
from compare.instruments.watch.lines import texts
from compare.records.job import Job
from compare.records.own import RewriteHint, RewriteHints
from compare.words import text
from compare.workloads.base import Case
from graphs import tree
from graphs.errors import ControlFlowError, GraphError
from graphs.ir import Graph, Node
from graphs.ops.slicing import getitem
from static.trace.tracing import is_traced

ROWS = 4
"""As many parts of one array, each read by itself in one line, are a loop over it."""
ROUNDS = 8
"""As many nodes of one op and one spec in one line are a loop, even if it reads no array part by part."""
SCAN = "write the loop as graphs.scan: one node, whatever the number of rounds"
_LINE = re.compile(r"\(([^():\s]+\.py:\d+)\)")


def look(what: Job, case: Case, *, scans: bool = True) -> RewriteHints | None:
    """The record of the hints for a function; None where nothing was found.

    `scans` tells that it can be written with functions of graphs, as a file of PyTorch's cannot: there a line whose
    nodes are alike may as well be layers, or an optimizer's parameters.
    """
    alone = cases.alone(case)
    graph, error = _traced(alone.loss, alone)
    hints = list(static_values(case))
    if isinstance(error, ControlFlowError):
        graph, still = _traced(static.converted(alone.loss), alone)
        hints.insert(0, branches(error, graph, still))
    hints += loops(graph) if graph and scans else ()
    if not hints:
        return None
    return RewriteHints(
        **what.head, hints=hints, code=texts(case.loss, [line for hint in hints for line in hint.lines])
    )


def _traced(f: Callable[..., Any], case: Case) -> tuple[Graph | None, Exception | None]:
    """The graph of the function alone, or what the trace raises."""
    try:
        return static.trace(transformed(static, f, None), case.params, *case.examples[0]), None
    except Exception as error:  # noqa: BLE001  (one that is not of control flow is said by the gate)
        return None, error


def loops(graph: Graph) -> Iterator[RewriteHint]:
    """A hint for each file whose lines were unrolled: the nodes of each such line."""
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
    yield RewriteHint(f"{what} was unrolled into {text.counted(sum(lines.values()), 'node')}", lines, SCAN)


def _spec(node: Node) -> Any:
    return node.spec, *(source.spec for source in node.inputs)


def _most(counted: Counter[Any]) -> dict[str, int]:
    """For each line, which is the first part of a key, the largest count."""
    largest: dict[str, int] = {}
    for (line, *_), count in counted.items():
        largest[line] = max(largest.get(line, 0), count)
    return largest


def branches(refusal: ControlFlowError, converted: Graph | None, still: Exception | None) -> RewriteHint:
    """The lines at which Python decides on a value, of the converted graph, or why there is none."""
    lines = dict.fromkeys(_LINE.findall(str(refusal))[:1], 1)
    if converted is None:
        why = str(still) if isinstance(still, GraphError) else f"{type(still).__name__}: {still}"
        what = "a value that only the run knows blocks the trace"
        return RewriteHint(what, lines, f"convert=True does not help: {why}")
    decided = Counter(node.source for node in converted.nodes if node.subgraphs and node.source)
    lines = dict(decided) or lines
    what = f"Python decides on a value in {text.counted(sum(lines.values()), 'place')}, which blocks a plain trace"
    remedy = "compile with convert=True, as was done here, or write graphs.where, graphs.cond or graphs.while_loop"
    return RewriteHint(what, lines, remedy)


def static_values(case: Case) -> Iterator[RewriteHint]:
    """A hint for each argument that holds a value other than an array which changes from call to call."""
    for place, name in enumerate(_arguments(case)):
        values = {_values(example[place]) for example in case.examples}
        if len(values) > 1:
            what = f"{name} is not an array and takes {text.counted(len(values), 'value')}, and each compiles again"
            remedy = f"pass {name} as an array, or take a size from the shape of one"
            yield RewriteHint(what, dict.fromkeys(_definition(case), len(values)), remedy)


def _arguments(case: Case) -> Sequence[str]:
    """The names of the arguments that change from call to call."""
    count = len(case.examples[0])
    try:
        names = list(inspect.signature(case.loss).parameters)[1 : count + 1]
    except (TypeError, ValueError):
        names = []
    return names if len(names) == count else [f"argument {place}" for place in range(count)]


def _values(argument: Any) -> tuple[Any, ...]:
    return tuple(repr(leaf) for leaf in tree.leaves(argument) if not is_traced(leaf))


def _definition(case: Case) -> Iterator[str]:
    """The line of the function itself, if it has one."""
    code = getattr(inspect.unwrap(case.loss), "__code__", None)
    if code is not None:
        yield f"{Path(code.co_filename).name}:{code.co_firstlineno}"


def sentences(record: RewriteHints) -> list[str]:
    """`model.py:12 (20), 13 (5): a Python loop ...; remedy`, one for each hint."""
    return [f"{_places(hint)}{hint.what}; {hint.remedy}" for hint in record.hints]


def _places(hint: RewriteHint) -> str:
    return f"{', '.join(f'{line} ({count:,})' for line, count in hint.lines.items())}: " if hint.lines else ""

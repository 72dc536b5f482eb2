"""Graphs as the tests of passes print them, and whether a pass kept what a graph computes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

import static
from graphs import tree
from graphs.dims import evaluate, symbols
from graphs.ir import Graph
from static.call.executable import Executable
from static.passes import pipeline
from static.passes.simplification import remove_dead_code
from static.trace.tracing import TracedFunction

# What a line says about subgraphs that their own lines say too, and options that are as they are by default.
_REPEATED = re.compile(
    r", (body|condition)=<[^>]*>|, rows=\(.*\)(?=\))|, (reverse|save)=False|(?<= )[a-z]+\d+: (?=.*->)"
)


def node_lines(graph: Graph) -> list[str]:
    """The nodes of a graph, one a line, without the user's lines and what other lines say too."""
    return [_REPEATED.sub("", line.split("#")[0].rstrip()).removeprefix("  ") for line in str(graph).splitlines()[1:]]


def shown(graph: Graph) -> str:
    """A graph as expressions: a line for each output, and before them one for each node that is read more than once.

    A graph with subgraphs has a line for each node.
    """
    lines = node_lines(graph)
    if any(line.startswith(" ") for line in lines):
        return "\n".join(lines)
    uses = Counter(re.findall(r"%\d+", " ".join(line.partition("=")[2] or line for line in lines)))
    text: dict[str, str] = {}
    specs: dict[str, str] = {}
    named: list[str] = []
    for line in lines[:-1]:
        name, spec, call = re.fullmatch(r"(%\d+): (.+?) = (.+)", line).groups()  # type: ignore[union-attr]
        call = re.sub(r"%\d+", lambda read: text.get(read[0], read[0]), call)
        text[name], specs[name] = re.sub(r"constant\(value=(.*), dtype=\w+\)", r"\1", call), f"{spec} "
        if uses[name] > 1 and not call.startswith("constant("):
            text[name], specs[name] = f"v{len(named)}", ""
            named.append(f"v{len(named)}: {spec} = {call}")
    outputs = re.findall(r"%\d+", lines[-1])
    return "\n".join([*named, *(specs.get(name, "") + text.get(name, name) for name in outputs)])


def check(one: pipeline.Pass, f: Callable[..., Any], specs: Any, after: str | None = None) -> Graph:
    """Assert what a graph is after a pass, as `shown` prints it, and that it computes the same; the graph after.

    Without `after` the pass leaves the graph as it is.
    """
    traced = remove_dead_code(static.trace(f, *specs))
    result = remove_dead_code(pipeline.apply(one, traced))
    if after is None:
        assert str(result) == str(traced)
    else:
        assert shown(result).split() == after.split()  # a long line may be wrapped
        assert shown(result) != shown(traced)
    agree(traced, result, exact=one not in pipeline.INEXACT)
    return result


def agree(graph: Graph, other: Graph, exact: bool, size: int = 3) -> None:
    """Assert that two graphs compute the same, to the last bit or within rounding; symbolic sizes are `size`."""
    values = inputs_of(graph, size)
    for a, b in zip(evaluated(graph, values), evaluated(other, values), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        if exact:
            np.testing.assert_array_equal(a, b)
        else:
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


def inputs_of(graph: Graph, size: int) -> list[Any]:
    """Values for the inputs of a graph."""
    rng = np.random.default_rng(0)
    shapes = [[evaluate(s, dict.fromkeys(symbols(s), size)) for s in node.spec.shape] for node in graph.inputs]
    return [np.asarray(rng.normal(size=s), n.spec.dtype) for s, n in zip(shapes, graph.inputs, strict=True)]


def evaluated(graph: Graph, values: list[Any]) -> list[Any]:
    """The outputs of a graph, run as it is."""
    arguments, results = tree.flatten(tuple(values))[1], tree.flatten([0.0] * len(graph.outputs))[1]
    traced = TracedFunction(graph, arguments, (None,) * len(values), results)
    found: list[Any] = Executable(traced, graph, ())(*values)
    return found

"""Looking into an executable: run it node by node, find the first NaN, and see what a failed trace had reached."""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphs import dims, dispatch, tree
from graphs.anomaly import anomaly
from graphs.builder import Builder
from graphs.errors import GraphError, ShapeError
from graphs.ir import Graph, Node
from static.backends.numpy import resolve
from static.executable import Executable


class Step(NamedTuple):
    """One node that has run: `node.op`, `node.spec` and `node.source` (the user's line), its inputs and its value."""

    node: Node
    inputs: tuple[Any, ...]
    value: Any


Visit = Callable[[Step], None]


def run(executable: Executable, *args: Any, visit: Visit) -> Any:
    """Run the graph as it was traced, node by node, calling `visit` after each; the result is that of a call.

    Inside branches and loop bodies every node is visited as often as it runs, before the node that holds them.
    Whatever `visit` raises ends the run. Nothing is planned or fused, so that each node has a value of its own.
    """
    arrays = executable._inputs(args)
    graph = executable.traced.graph
    expected = [(str(node.attrs["name"]), node.spec.shape) for node in graph.inputs]
    sizes = dims.solve(expected, [array.shape for array in arrays])
    return tree.unflatten(executable.traced.outputs, list(_walk(graph, arrays, sizes, visit)))


def steps(executable: Executable, *args: Any) -> list[Step]:
    """All that a run computes, in order: what a debugger would show one step at a time."""
    found: list[Step] = []
    run(executable, *args, visit=found.append)
    return found


def check(executable: Executable, *args: Any, infinite: bool = True) -> Any:
    """Run, and raise AnomalyError at the first node that makes NaN, or infinity of finite values.

    The error names the op, its inputs and the user's line; a gradient is put down to the line of its forward op.
    `infinite=False` looks for NaN alone. NumPy's own warnings are off meanwhile.
    """
    with np.errstate(all="ignore"):
        return run(executable, *args, visit=functools.partial(stop_at_anomaly, infinite=infinite))


def stop_at_anomaly(step: Step, *, infinite: bool = True) -> None:
    """What `check` does after each node, for a `visit` that does more."""
    error = anomaly(step.node.op, step.inputs, step.value, infinite=infinite, line=step.node.source)
    if error is not None:
        raise error


def traced_before(error: BaseException) -> list[Node]:
    """The nodes that a failed trace had made when this error was raised, in order; [] for any other error."""
    found: dict[Builder, None] = {}
    for frame, _ in traceback.walk_tb(error.__traceback__):
        found |= dict.fromkeys(value for value in frame.f_locals.values() if isinstance(value, Builder))
    return [node for builder in found for node in builder.nodes]


def _walk(graph: Graph, arrays: Sequence[Any], sizes: Mapping[str, int], visit: Visit) -> tuple[Any, ...]:
    values: dict[Node, Any] = dict(zip(graph.inputs, arrays, strict=True))
    for node in graph.nodes:
        if node not in values:
            inputs = tuple([values[source] for source in node.inputs])
            values[node] = _computed(node, inputs, sizes, visit)
            if node.op.family != "source":  # constants compute nothing
                visit(Step(node, inputs, values[node]))
    return tuple(values[output] for output in graph.outputs)


def _computed(node: Node, inputs: Sequence[Any], sizes: Mapping[str, int], visit: Visit) -> Any:
    attrs = {key: _resolved(value, sizes, visit) for key, value in node.attrs.items()}
    try:
        value = node.op.kernel(*inputs, **attrs)
    except Exception as error:  # noqa: BLE001  (whatever a kernel raises is explained, and raised again)
        rule = error if isinstance(error, GraphError) else ShapeError(f"{type(error).__name__}: {error}")
        raise dispatch.explained(node.op, inputs, rule, node.source) from None
    return value if isinstance(value, (tuple, list)) else np.asarray(value)


def _resolved(value: Any, sizes: Mapping[str, int], visit: Visit) -> Any:
    """An attribute with numbers for symbolic sizes; a subgraph becomes a function that is run node by node too."""
    if isinstance(value, Graph):
        return lambda *arrays: _walk(value, arrays, sizes, visit)
    if isinstance(value, tuple):
        return tuple(_resolved(part, sizes, visit) for part in value)
    return resolve(value, sizes)

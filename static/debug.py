"""Looking into an executable: run it node by node, find the first NaN, and see what a failed trace had reached."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import threading
import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from graphs import dims, dispatch, tree
from graphs.anomaly import anomaly
from graphs.builder import Builder
from graphs.ir import Graph, Node
from static.call.executable import Executable
from static.codegen.kernels import resolve

Item = TypeVar("Item")


class _IteratorClosed(BaseException):
    """Nobody wants any more items."""


def iterate_visits(run: Callable[..., Any]) -> Generator[Item, None, None]:
    """Each item that `run(visit=...)` calls `visit` with, as an iterator; what it raises comes out of it.

    A loop in a graph calls its body from inside a kernel, out of which nothing can be yielded: so the run is in a
    thread of its own, which never runs while the caller does. An iterator that is closed ends it.
    """
    wanted, there = threading.Semaphore(0), threading.Semaphore(0)
    items: list[Item] = []
    errors: list[BaseException] = []
    closed = False

    def wait() -> None:
        wanted.acquire()
        if closed:
            raise _IteratorClosed

    def visit(item: Item) -> None:
        items.append(item)
        there.release()
        wait()

    def worker() -> None:
        try:
            wait()
            run(visit=visit)
        except BaseException as error:  # noqa: BLE001  (whatever it is belongs to the caller)
            errors.append(error)
        finally:
            there.release()

    context = contextvars.copy_context()  # NumPy's error state among other things
    thread = threading.Thread(target=context.run, args=(worker,), daemon=True)
    thread.start()
    try:
        while True:
            wanted.release()
            there.acquire()
            if not items:
                break
            yield items.pop()
    finally:
        closed = True
        wanted.release()
        thread.join()
    if errors and not isinstance(errors[0], _IteratorClosed):
        raise errors[0]


class DebugStep(NamedTuple):
    """One node that has run: `node.op`, `node.spec` and `node.source` (the user's line), its inputs and its value.

    `values` holds what the graph of the node has computed so far, by node; `inside` are the nodes of control flow
    around it, the outermost first.
    """

    node: Node
    inputs: tuple[Any, ...]
    value: Any
    values: Mapping[Node, Any]
    inside: tuple[Node, ...]

    def __str__(self) -> str:
        within = "".join(f"{node.op.name} > " for node in self.inside)
        line = f"  # {self.node.source}" if self.node.source else ""
        return f"{within}{self.node.op.name}: {self.node.spec}{line}"


Visit = Callable[[DebugStep], None]


def run(executable: Executable, *args: Any, visit: Visit, optimised: bool = False) -> Any:
    """Run the graph as it was traced, node by node, calling `visit` after each; the result is that of a call.

    Inside branches and loop bodies every node is visited as often as it runs, before the node that holds them.
    Whatever `visit` raises ends the run. Nothing is planned, so that each node has a value of its own. With
    `optimised` the graph that the passes made of it runs instead, and fused groups are visited node by node.
    """
    arrays = executable.inputs(args)
    graph = executable.graph if optimised else executable.traced.graph
    expected = [(str(node.attrs["name"]), node.spec.shape) for node in graph.inputs]
    sizes = dims.solve(expected, [array.shape for array in arrays])
    return tree.unflatten(executable.traced.outputs, list(_Walk(sizes, visit).run(graph, arrays, ())))


def steps(executable: Executable, *args: Any, optimised: bool = False) -> Generator[DebugStep, None, None]:
    """Each step of a run when it is asked for: the node has run, and those after it have not.

    for step in static.debug.steps(exe, x):
        print(step, step.value)
    """
    return _steps(executable, args, optimised)


def _steps(executable: Executable, args: tuple[Any, ...], optimised: bool) -> Generator[DebugStep, None, None]:
    return iterate_visits(functools.partial(run, executable, *args, optimised=optimised))


def until(
    executable: Executable,
    *args: Any,
    op: str | None = None,
    line: str | None = None,
    when: Callable[[DebugStep], Any] | None = None,
    optimised: bool = False,
) -> DebugStep | None:
    """The first step of an op of this name, of a line (`model.py:12`) and for which `when(step)` holds.

    Nothing after it runs. None when the run ends before.
    """
    with contextlib.closing(_steps(executable, args, optimised)) as steps:
        for step in steps:
            fits = op in (None, step.node.op.name) and line in (None, step.node.source)
            if fits and (when is None or when(step)):
                return step
    return None


def check(executable: Executable, *args: Any, infinite: bool = True) -> Any:
    """Run, and raise AnomalyError at the first node that makes NaN, or infinity of finite values.

    The error names the op, its inputs and the user's line; a gradient is put down to the line of its forward op.
    `infinite=False` looks for NaN alone. NumPy's own warnings are off meanwhile.
    """
    with np.errstate(all="ignore"):
        return run(executable, *args, visit=functools.partial(stop_at_anomaly, infinite=infinite))


def stop_at_anomaly(step: DebugStep, *, infinite: bool = True) -> None:
    """What `check` does after each node, for a `visit` that does more."""
    error = anomaly(step.node.op, step.inputs, step.value, infinite=infinite, line=step.node.source)
    if error is not None:
        raise error


def nodes_before_error(error: BaseException) -> list[Node]:
    """The nodes that a failed trace had made when this error was raised, in order; [] for any other error."""
    builders: dict[Builder, None] = {}
    for frame, _ in traceback.walk_tb(error.__traceback__):
        builders |= dict.fromkeys(value for value in frame.f_locals.values() if isinstance(value, Builder))
    return [node for builder in builders for node in builder.nodes]


class _Walk:
    """A run node by node, at these sizes."""

    def __init__(self, sizes: Mapping[str, int], visit: Visit) -> None:
        self._sizes = sizes
        self._visit = visit

    def run(self, graph: Graph, arrays: Sequence[Any], inside: tuple[Node, ...]) -> tuple[Any, ...]:
        values: dict[Node, Any] = dict(zip(graph.inputs, arrays, strict=True))
        for node in graph.nodes:
            if node not in values:
                inputs = tuple([values[source] for source in node.inputs])
                values[node] = self._compute(node, inputs, inside)
                if not node.is_source:  # constants compute nothing
                    self._visit(DebugStep(node, inputs, values[node], values, inside))
        return tuple(values[output] for output in graph.outputs)

    def _compute(self, node: Node, inputs: Sequence[Any], inside: tuple[Node, ...]) -> Any:
        attrs = {key: self._resolve(value, (*inside, node)) for key, value in node.attrs.items()}
        try:
            value = node.op.kernel(*inputs, **attrs)
        except dispatch.BROKEN_RULES as error:
            raise dispatch.kernel_error(node.op, inputs, error, node.source) from None
        return value if isinstance(value, (tuple, list)) else np.asarray(value)

    def _resolve(self, value: Any, inside: tuple[Node, ...]) -> Any:
        """An attribute with numbers for symbolic sizes; a subgraph becomes a function that is run like the graph."""
        if isinstance(value, Graph):
            return lambda *arrays: self.run(value, arrays, inside)
        if isinstance(value, tuple):
            return tuple(self._resolve(part, inside) for part in value)
        return resolve(value, self._sizes)

"""Debugging an executable: run it node by node, find the first NaN, and list the nodes that a failed trace had made."""

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
from graphs.builder import Builder
from graphs.ir import Graph, Node
from graphs.wrong_calls import anomaly
from static.call.executable import Executable
from static.codegen.kernels import resolve

Item = TypeVar("Item")


class _IteratorClosed(BaseException):
    """Raised inside the worker thread to end a run whose iterator was closed."""


def iterate_visits(run: Callable[..., Any]) -> Generator[Item, None, None]:
    """Yield each item that `run(visit=...)` passes to `visit`.

    An exception that `run` raises comes out of the iterator. A loop in a graph calls its body from inside a kernel, and
    a kernel cannot yield. So `run` works in a thread of its own, which never runs while the caller does. Closing the
    iterator ends the run.
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
    """Run the traced graph node by node and call `visit` after each node; return the result of a call.

    Nodes of branches and loop bodies are visited each time they run, before the node that holds them. An exception that
    `visit` raises ends the run. No memory is planned, so each node has a value of its own. With `optimised` the graph
    that the passes made runs instead, and fused groups are visited node by node.
    """
    arrays = executable.inputs(args)
    graph = executable.graph if optimised else executable.traced.graph
    expected = [(str(node.attrs["name"]), node.spec.shape) for node in graph.inputs]
    sizes = dims.solve(expected, [array.shape for array in arrays])
    return tree.unflatten(executable.traced.outputs, list(_Walk(sizes, visit).run(graph, arrays, ())))


def steps(executable: Executable, *args: Any, optimised: bool = False) -> Generator[DebugStep, None, None]:
    """Iterate over the steps of a run; at each step the node has run and the nodes after it have not.

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
    """Return the first step of an op of this name, of a line (`model.py:12`), for which `when(step)` holds.

    Nodes after that step do not run. Returns None when the run ends before.
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
    """Raise AnomalyError where a step made a NaN, or an infinity of finite values, as `check` does."""
    error = anomaly(step.node.op, step.inputs, step.value, infinite=infinite, line=step.node.source)
    if error is not None:
        raise error


def nodes_before_error(error: BaseException) -> list[Node]:
    """Return the nodes that a failed trace had made when it raised this error; [] for any other error."""
    builders: dict[Builder, None] = {}
    for frame, _ in traceback.walk_tb(error.__traceback__):
        builders |= dict.fromkeys(value for value in frame.f_locals.values() if isinstance(value, Builder))
    return [node for builder in builders for node in builder.nodes]


class _Walk:
    """A run of a graph node by node, with these numbers for its symbolic sizes."""

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
        """Return an attribute with numbers for symbolic sizes, and a function that walks it for a subgraph."""
        if isinstance(value, Graph):
            return lambda *arrays: self.run(value, arrays, inside)
        if isinstance(value, tuple):
            return tuple(self._resolve(part, inside) for part in value)
        return resolve(value, self._sizes)

"""The debuggers of our two engines: the dynamic one logs each op as it runs, the static one runs its graph by nodes."""

from __future__ import annotations

import re
import sys
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from typing import Any

import numpy as np

import dynamic
import static
from compare.engines.debugging import (
    Attempt,
    Event,
    ToolReport,
    Tools,
    TrainingUpdate,
    ops_of,
    zero_gradient,
)
from compare.records.checks import Phase
from compare.workloads.faults import SourceLine, Training
from dynamic.anomaly import Lines, forward_lines
from graphs import dispatch, tree
from graphs.analysis import nodes_without_gradient
from graphs.ir import Graph, Node
from graphs.op import Attrs, Op

_NO_VALUE = ("source", "control")  # inputs, constants, and nodes with subgraphs, whose own nodes are logged
_PLACE = re.compile(r"\(([^()\s]+\.py:\d+)\)")


class GraphTools(Tools):
    """The tools of an engine that shows every value and the graph of a loss."""

    @abstractmethod
    def gradients(self, training: Training) -> Any:
        """Return the gradients of the loss on the first example, as arrays."""

    @abstractmethod
    def graph(self, training: Training) -> tuple[Graph, Phase, int]:
        """Return the graph of the loss, the phase in which it exists, and how many ops run until then."""

    def reach(self, training: Training, faulty: Attempt) -> ToolReport | None:
        """Report a parameter without a gradient, with the node where it stops, or with an all-zero gradient."""
        training.reset()
        graph, when, ops = self.graph(training)
        for name, stops in nodes_without_gradient(graph).items():
            if any(name.endswith(f"[{parameter!r}]") for parameter in training.params):
                at = (
                    f"it stops at {stops[0].op.name} ({stops[0].source})" if stops else "nothing of it reaches the loss"
                )
                message = f"{name} gets no gradient: {at}"
                return ToolReport(when, message, ops, named_line(message))
        training.reset()
        return zero_gradient(self.gradients(training), faulty.ops)


class DynamicTools(GraphTools):
    """The tools of the dynamic engine, which runs trainings on tensors."""

    def attempt(self, training: Training, *, checked: bool = False) -> Attempt:  # noqa: D102  (the base says it)
        training.reset()
        watch = dynamic.detect_anomaly() if checked else nullcontext()
        with forward_lines() as lines, np.errstate(all="ignore"), watch, dispatch.observe_kernels(log := _Log(lines)):
            losses, params = [], _tensors(training.params)
            step = _training_step(
                log.entering("forward", training.loss, "backward"), log.entering("update", training.update)
            )
            for example in training.examples:
                log.events += inputs_of(example)
                try:
                    loss, params = step(params, *example)
                except Exception as error:  # noqa: BLE001  (whatever a faulty training raises is what is looked for)
                    return failed_attempt(log.events, error, log.phase)
                losses.append(_array(loss))
            return Attempt(tuple(log.events), (losses, tree.tree_map(_array, params)))

    def step(self, training: Training) -> TrainingUpdate:  # noqa: D102
        step = _training_step(training.loss, training.update)
        return lambda params, *example: step(_tensors(params), *example)

    def gradients(self, training: Training) -> Any:  # noqa: D102
        return dynamic.grad(training.loss)(training.params, *training.examples[0])

    def graph(self, training: Training) -> tuple[Graph, Phase, int]:  # noqa: D102
        graph = dynamic.record(training.loss, training.params, *training.examples[0])
        return graph, "forward", len(list(graph.calls))


class _Log:
    """Logs every op that runs, with its line, a copy of its value, and the current phase."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self.events: list[Event] = []
        self.phase: Phase = "forward"

    def __call__(self, op: Op, _arrays: Sequence[Any], _attrs: Attrs, out: Any) -> None:
        if not op.marks:  # what marks a value is in no graph
            _, line = self.lines.place(sys._getframe(1))  # below this log, which is no part of the training
            self.events.append(Event(op.name, line, np.array(out)))

    def entering(self, phase: Phase, function: Callable[..., Any], then: Phase | None = None) -> Callable[..., Any]:
        """Return the function with its phase noted when it begins, and the phase `then` when it ends."""

        def run(*args: Any) -> Any:
            self.phase = phase
            result = function(*args)
            self.phase = then or phase
            return result

        return run


def _training_step(loss: Callable[..., Any], update: Callable[..., Any]) -> TrainingUpdate:
    def step(params: Any, *example: Any) -> tuple[Any, Any]:
        value, gradients = dynamic.value_and_grad(loss)(params, *example)
        return value, update(params, gradients)

    return step


def _tensors(params: Any) -> Any:
    return tree.tree_map(dynamic.tensor, params)


def _array(value: Any) -> Any:
    return np.array(value.detach() if isinstance(value, dynamic.Tensor) else value)


class StaticTools(GraphTools):
    """The tools of the static engine, which compiles each training once, for the specs that it declares."""

    def attempt(self, training: Training, *, checked: bool = False) -> Attempt:  # noqa: D102  (the base says it)
        training.reset()
        phases = _TracePhases()
        try:
            executable = _compile_training(training, phases)
        except Exception as error:  # noqa: BLE001  (whatever a faulty training raises is what is looked for)
            nodes = [node for node in static.debug.nodes_before_error(error) if node.op.family not in _NO_VALUE]
            made = [Event(node.op.name, node.source, node.spec) for node in nodes if not node.op.marks]
            return failed_attempt([*inputs_of(training.declared), *made], error, "trace")
        walk = _Walk(checked)
        losses, params = [], training.params
        for example in training.examples:
            try:
                loss, params = walk.step(executable, params, example)
            except Exception as error:  # noqa: BLE001  (as above)
                ahead = (node for node in executable.traced.graph.calls if node not in walk.visited)
                when = phases.of(next(ahead, None)) if walk.visited else "call"
                return failed_attempt(walk.events, error, when)
            losses.append(np.asarray(loss))
        return Attempt(tuple(walk.events), (losses, params))

    def step(self, training: Training) -> TrainingUpdate:  # noqa: D102
        return _compile_training(training, _TracePhases())

    def gradients(self, training: Training) -> Any:  # noqa: D102
        return static.grad(training.loss)(training.params, *training.examples[0])

    def graph(self, training: Training) -> tuple[Graph, Phase, int]:  # noqa: D102
        return static.trace(training.loss, training.params, *training.declared), "trace", 0


class _TracePhases:
    """The nodes of a trace that are the forward pass, and the nodes that are the backward pass."""

    def __init__(self) -> None:
        self.forward: set[Node] = set()
        self.backward: set[Node] = set()

    def marking(self, function: Callable[..., Any], *, before: set[Node], after: set[Node]) -> Callable[..., Any]:
        """Return the function; it adds the nodes that exist before and after its trace to two sets."""

        def wrapper(*args: Any) -> Any:
            before.update(_nodes())
            result = function(*args)
            after.update(_nodes())
            return result

        return wrapper

    def of(self, node: Node | None) -> Phase:
        """Return the phase that a node belongs to."""
        if node in self.forward:
            return "forward"
        return "backward" if node in self.backward else "update"


class _Walk:
    """Runs compiled steps, and runs each again node by node to log its values."""

    def __init__(self, checked: bool) -> None:
        self.checked = checked
        self.events: list[Event] = []
        self.visited: set[Node] = set()

    def step(self, executable: static.Executable, params: Any, example: Any) -> tuple[Any, Any]:
        """Run one training step. Raises what the compiled call raises, or the first anomaly where `checked`."""
        self.events += inputs_of(example)
        self.visited.clear()
        with np.errstate(all="ignore"):
            if self.checked:
                return self._walk(executable, params, example)
            try:
                result: tuple[Any, Any] = executable(params, *example)
                return result
            finally:
                with suppress(Exception):  # the error of the call itself is the one that a user sees
                    self._walk(executable, params, example)

    def _walk(self, executable: static.Executable, params: Any, example: Any) -> tuple[Any, Any]:
        result: tuple[Any, Any] = static.debug.run(executable, params, *example, visit=self.visit)
        return result

    def visit(self, step: static.debug.DebugStep) -> None:
        """Log a node's value, after the check for anomalies."""
        if self.checked:
            static.debug.stop_at_anomaly(step)
        self.visited.add(step.node)
        if step.node.op.family not in _NO_VALUE:
            self.events.append(Event(step.node.op.name, step.node.source, np.array(step.value)))


def _nodes() -> list[Node]:
    from static.trace.tracing import current

    builder = current()
    return list(builder.nodes) if builder else []


def _compile_training(training: Training, phases: _TracePhases) -> static.Executable:
    loss = phases.marking(training.loss, before=set(), after=phases.forward)
    update = phases.marking(training.update, before=phases.backward, after=set())

    def step(params: Any, *example: Any) -> tuple[Any, Any]:
        value, gradients = static.value_and_grad(loss)(params, *example)
        return value, update(params, gradients)

    return static.compile(step, training.params, *training.declared)


def failed_attempt(events: Sequence[Event], error: Exception, when: Phase) -> Attempt:
    """Return the attempt that ended in an error, with its report."""
    message = f"{type(error).__name__}: {' '.join(str(error).split())}"
    notes = " ".join(getattr(error, "__notes__", ()))
    message = f"{message} {notes}".strip()
    return Attempt(tuple(events), None, ToolReport(when, message, ops_of(events), named_line(message)))


def named_line(message: str) -> SourceLine | None:
    """Return the user's line that a message names; None where it names none."""
    place = _PLACE.search(message)
    return SourceLine.parse(place[1]) if place else None


def inputs_of(example: Sequence[Any]) -> list[Event]:
    """Return the inputs of a step as events."""
    return [Event(f"input {i}", "", np.asarray(value)) for i, value in enumerate(example)]

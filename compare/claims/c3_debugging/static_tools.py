"""The static engine's debugger: the trace, the declared specs, and the graph run node by node."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

import static
from compare.claims.c3_debugging.base import Training
from compare.claims.c3_debugging.tools import Attempt, Event, Tools, TrainingUpdate, inputs_of
from compare.records.debugging import Phase
from graphs.ir import Graph, Node

_NO_VALUE = ("source", "control")  # inputs and constants; what holds subgraphs, whose nodes are seen by themselves


class StaticTools(Tools):
    """Compiles each training once, for the specs it is written for."""

    name = "static"

    def attempt(self, training: Training, *, checked: bool = False) -> Attempt:  # noqa: D102  (the base says it)
        training.reset()
        phases = _Phases()
        try:
            executable = _compiled(training, phases)
        except Exception as error:  # noqa: BLE001  (whatever a faulty training raises is what is looked for)
            return Attempt((*inputs_of(training.declared), *_traced_before(error)), None, error, "trace")
        walk = _Walk(checked)
        losses, params = [], training.params
        for example in training.examples:
            try:
                loss, params = walk.step(executable, params, example)
            except Exception as error:  # noqa: BLE001  (as above)
                when = phases.of(walk.stopped_at(executable)) if walk.visited else "call"
                return Attempt(tuple(walk.events), None, error, when)
            losses.append(np.asarray(loss))
        return Attempt(tuple(walk.events), (losses, params))

    def step(self, training: Training) -> TrainingUpdate:  # noqa: D102
        return _compiled(training, _Phases())

    def gradients(self, training: Training) -> Any:  # noqa: D102
        return static.grad(training.loss)(training.params, *training.examples[0])

    def graph(self, training: Training) -> tuple[Graph, Phase, int]:  # noqa: D102
        return static.trace(training.loss, training.params, *training.declared), "trace", 0


class _Phases:
    """Which nodes of a trace are the forward pass, and which the backward pass."""

    def __init__(self) -> None:
        self.forward: set[Node] = set()
        self.backward: set[Node] = set()

    def marking(self, function: Callable[..., Any], *, before: set[Node], after: set[Node]) -> Callable[..., Any]:
        """The function, writing down the nodes that are there before and after it is traced."""

        def traced(*args: Any) -> Any:
            before.update(_nodes())
            result = function(*args)
            after.update(_nodes())
            return result

        return traced

    def of(self, node: Node | None) -> Phase:
        """The phase that a node belongs to."""
        if node in self.forward:
            return "forward"
        return "backward" if node in self.backward else "update"


class _Walk:
    """Runs steps, and again node by node for what they compute."""

    def __init__(self, checked: bool) -> None:
        self.checked = checked
        self.events: list[Event] = []
        self.visited: set[Node] = set()

    def step(self, executable: static.Executable, params: Any, example: Any) -> tuple[Any, Any]:
        """One training step. Raises what the compiled call raises, or the first anomaly where that is looked for."""
        self.events += inputs_of(example)
        self.visited.clear()
        with np.errstate(all="ignore"):
            if self.checked:
                return self._walked(executable, params, example)
            try:
                result: tuple[Any, Any] = executable(params, *example)
                return result
            finally:
                with suppress(Exception):  # the error of the call itself is the one that a user sees
                    self._walked(executable, params, example)

    def _walked(self, executable: static.Executable, params: Any, example: Any) -> tuple[Any, Any]:
        result: tuple[Any, Any] = static.debug.run(executable, params, *example, visit=self.visit)
        return result

    def visit(self, step: static.debug.DebugStep) -> None:
        """Write a node's value down, once it has passed the check."""
        if self.checked:
            static.debug.stop_at_anomaly(step)
        self.visited.add(step.node)
        if step.node.op.family not in _NO_VALUE:
            self.events.append(Event(step.node.op.name, step.node.source, np.array(step.value)))

    def stopped_at(self, executable: static.Executable) -> Node | None:
        """The first node of the graph that the last step did not get through."""
        return next((node for node in executable.traced.graph.calls if node not in self.visited), None)


def _nodes() -> list[Node]:
    from static.trace.tracing import current

    builder = current()
    return list(builder.nodes) if builder else []


def _compiled(training: Training, phases: _Phases) -> static.Executable:
    loss = phases.marking(training.loss, before=set(), after=phases.forward)
    update = phases.marking(training.update, before=phases.backward, after=set())

    def step(params: Any, *example: Any) -> tuple[Any, Any]:
        value, gradients = static.value_and_grad(loss)(params, *example)
        return value, update(params, gradients)

    return static.compile(step, training.params, *training.declared)


def _traced_before(error: Exception) -> list[Event]:
    """The specs that a failed trace had reached."""
    nodes = [node for node in static.debug.traced_before(error) if node.op.family not in _NO_VALUE]
    return [Event(node.op.name, node.source, node.spec) for node in nodes if node.op.name != "identity"]

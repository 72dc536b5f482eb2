"""The dynamic engine's debugger: every op is seen as it runs, `detect_anomaly`, and the record of a run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

import dynamic
from compare.claims.c3_debugging.base import Training
from compare.claims.c3_debugging.tools import Attempt, Event, Tools, TrainingUpdate, inputs_of
from compare.records.debugging import Phase
from dynamic.anomaly import Lines, forward_lines
from graphs import dispatch, tree
from graphs.ir import Graph
from graphs.op import Attrs, Op


class DynamicTools(Tools):
    """Runs trainings on tensors."""

    name = "dynamic"

    def attempt(self, training: Training, *, checked: bool = False) -> Attempt:  # noqa: D102  (the base says it)
        training.reset()
        watch = dynamic.detect_anomaly() if checked else nullcontext()
        with forward_lines() as lines, np.errstate(all="ignore"), watch, dispatch.observed(log := _Log(lines)):
            losses, params = [], _tensors(training.params)
            step = _training_step(
                log.entering("forward", training.loss, "backward"), log.entering("update", training.update)
            )
            for example in training.examples:
                log.events += inputs_of(example)
                try:
                    loss, params = step(params, *example)
                except Exception as error:  # noqa: BLE001  (whatever a faulty training raises is what is looked for)
                    return Attempt(tuple(log.events), None, error, log.phase)
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
    """Writes down every op that runs, with its line and a copy of its value, and the phase that it belongs to."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self.events: list[Event] = []
        self.phase: Phase = "forward"

    def __call__(self, op: Op, _arrays: Sequence[Any], _attrs: Attrs, out: Any) -> None:
        if op.name != "identity":  # what only marks a value, and is in no graph
            _, line = self.lines.place(sys._getframe(1))  # below this log, which is no part of the training
            self.events.append(Event(op.name, line, np.array(out)))

    def entering(self, phase: Phase, function: Callable[..., Any], then: Phase | None = None) -> Callable[..., Any]:
        """The function with its phase, and the phase after it, written down."""

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

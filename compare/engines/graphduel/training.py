"""A PyTorch-style training step as a function of the state that it changes: parameters, buffers, optimizer sums.

`step(state, *call)` returns the step's value and the state after it. On arrays it runs as written, on the objects
of its file. On the symbols of a trace it is `static.TrainingStep`: the same code runs, and the backward pass and the
updates of optimizers are part of the graph.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import static
from compare.engines.graphduel.functions import PARTS
from compare.engines.graphduel.programs import StandingProgram, StandingStep, array_of, as_array, plain
from compare.errors import UnsupportedError
from dynamic import Tensor, enable_grad
from dynamic.optim.optimizer import Optimizer
from graphs import tree
from graphs.errors import count_as_ours
from static.call.step import is_ruled, slot_sums, sums_of, trainable_params
from static.trace.symbol import callee
from static.trace.tracing import current

count_as_ours(__file__)

State = Mapping[str, Any]


class TrainingProgram(StandingProgram):
    """A training step as a function of its state: tensors, and the sums of optimizers that have made no step yet."""

    @functools.cached_property
    def optimizers(self) -> list[Optimizer]:
        """Return the optimizers that the step reaches. Raises UnsupportedError for one that has made steps."""
        optimizers = list({id(value): value for value in self.values if isinstance(value, Optimizer)}.values())
        if any(any(optimizer.state.values()) for optimizer in optimizers):
            raise UnsupportedError("an optimizer has made steps before it is measured; leave them out of the file")
        return optimizers

    @property
    def state(self) -> State:
        """Return the state at the start."""
        return {
            "tensors": {name: tensor.numpy(force=True).copy() for name, tensor in self.tensors.items()},
            "sums": list(map(sums_of, self.optimizers)),
        }

    @property
    def after(self) -> State:
        """Return the present state, read from the objects of the file."""
        tensors = {name: array_of(tensor).copy() for name, tensor in self.now.items()}
        return {"tensors": tensors, "sums": list(map(_sums, self.optimizers))}

    def parts(self, result: tuple[Any, Any]) -> tuple[Any, ...]:
        """Return the parts of a call's result: value, gradients, and the state by the names that messages use."""
        (value, state), gradients = result
        named = {self.labels[name]: array for name, array in state["tensors"].items()}
        names = {id(tensor): label for tensor, label in zip(self.tensors.values(), self.labels.values(), strict=True)}
        for place, (optimizer, groups) in enumerate(zip(self.optimizers, state["sums"], strict=True)):
            of = f" in optimizer {place + 1}" if place else ""
            slots: Mapping[str, str] = getattr(optimizer, "slots", {})
            for number, (group, sums) in enumerate(zip(optimizer.param_groups, groups, strict=False)):
                params = [
                    names.get(id(param), f"parameter {k} of group {number}, which the step does not read")
                    for k, param in enumerate(trainable_params(group))
                ]
                for slot, kept in sums.items():
                    each = (
                        zip(params, kept, strict=False) if isinstance(kept, list) else [(f"group {len(named)}", kept)]
                    )
                    named |= {f"`{slots.get(slot, slot)}` of {label}{of}": array for label, array in each}
        return value, gradients, named

    def load(self, state: State) -> None:
        """Load a state into the objects of the file, without gradients; the optimizers start anew."""
        for name, tensor in self.tensors.items():
            value = state["tensors"][name]
            np.copyto(array_of(tensor), array_of(value) if isinstance(value, Tensor) else value)
            tensor.grad = None
        for optimizer in self.optimizers:
            optimizer.state.clear()

    def written(self, argnum: int | None) -> StandingStep:
        """Return the step as its author writes it."""
        return _WrittenTraining(self)

    def calls_of(self) -> list[tuple[Any, ...]]:
        """Return the arguments of each call, with the state of the start first."""
        state = self.state
        return [(state, *call) for call in self.calls.plain]

    def made(self) -> Callable[..., Any]:
        """Return `step(state, *args) -> (value, state)`."""

        def call(*args: Any) -> Any:
            return _value(callee(self.function)(*self.calls(args)))

        def step(state: State, *args: Any) -> tuple[Any, State]:
            if current() is not None:
                traced = static.TrainingStep(call, self.tensors, self.optimizers, self.places)
                with self.drawing():
                    value, after = traced.function(state, *args)
                pairs = zip(self.optimizers, after["sums"], strict=True)
                sums = [[_slots_with_sums(optimizer, each) for each in groups] for optimizer, groups in pairs]
                return value, {**after, "sums": sums}
            self.load(state)
            with enable_grad(), self.drawing():
                value = self.function(*self.taking(args))
            return _value(value), self.after

        vars(step)[PARTS] = self.parts
        return self.tag_function(step)


class _WrittenTraining(StandingStep):
    """A training step as its author writes it, for the dynamic engine."""

    program: TrainingProgram

    def load(self, *state: Any) -> None:
        """Load a state into the objects of the file."""
        self.program.load(*state)

    def result(self, args: tuple[Any, ...]) -> Callable[[Any], Any]:
        """Return a function that makes ((value, state after), ()) from what a run returns."""
        return lambda value: ((tree.tree_map(as_array, _value(value)), self.program.after), ())


def _value(returned: Any) -> Any:
    return () if returned is None else plain(returned)


def _sums(optimizer: Optimizer) -> list[Any]:
    """Return the present sums of an optimizer by PyTorch's slots; initial sums where no gradient came yet."""
    return [
        _slots_with_sums(optimizer, slot_sums(optimizer, group))
        for group in optimizer.param_groups
        if is_ruled(optimizer)
    ]


def _slots_with_sums(optimizer: Any, sums: Mapping[str, Any]) -> Mapping[str, Any]:
    return {slot: sums[slot] for slot in optimizer.slots if sums.get(slot)}

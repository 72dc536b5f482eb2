"""A PyTorch-style function as a function of the parameters that it reaches, or of all state that it changes.

`LossProgram` is a function that trains nothing, whether it returns a loss or not. `TrainingProgram` is a whole
training step, whose state are parameters, buffers and the sums of optimizers: `step(state, *call)` returns the step's
value and the state after it. On arrays it runs as written, on the objects of its file. On the symbols of a trace it is
`static.TrainingStep`: the same code runs, and the backward pass and the updates of optimizers are part of the graph.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

import dynamic
import static
from compare.engines.graphduel.programs import StandingProgram, StandingStep, array_of, as_array, plain
from compare.engines.graphduel.steps import PARTS
from compare.engines.reach import ReachedCode, names_of
from compare.engines.step import loss_in
from compare.engines.torch.step import differentiate_step
from compare.errors import UnsupportedError
from dynamic import Tensor, enable_grad
from dynamic.optim.optimizer import Optimizer
from graphs import tree
from graphs.errors import count_as_ours
from static.call.optimizers import (
    KeptState,
    is_ruled,
    is_written,
    keep_state,
    kept_by,
    kept_state,
    slot_sums,
    trainable_params,
)
from static.call.training import traced_tensors
from static.convert.stage.places import putting_back
from static.trace.step import StepTrace, place_values
from static.trace.symbol import callee
from static.trace.tracing import current

count_as_ours(__file__)

State = Mapping[str, Any]


class LossProgram(StandingProgram):
    """A function of its parameters by name, or of its arguments alone where it reaches no parameter.

    It returns the loss where gradients are `wanted` and the result has a loss with gradients; else the whole result.
    """

    @functools.cached_property
    def params(self) -> Mapping[str, Any]:
        """Return the tensors that require a gradient, by name; one module's names lack its prefix."""
        named = {name: tensor for name, tensor in self.tensors.items() if tensor.requires_grad}
        is_one = len({name.partition(".")[0] for name in named}) == 1
        return {name.partition(".")[2] or name if is_one else name: tensor for name, tensor in named.items()}

    @functools.cached_property
    def differentiates(self) -> bool:
        """Return whether the function takes gradients by itself."""
        return any("grad" in names_of(reached) for reached in ReachedCode(self.function).functions)

    def first_call(self) -> tuple[Any, ...]:
        """Return the arguments of the first call; the first argument requires gradients where nothing else does."""
        own = super().first_call()
        return own if self.trainable else _requiring(own)

    def differentiate(self, value: Any) -> None:
        """Note whether the value has a loss with gradients, and run its backward pass."""
        loss = loss_in(value)
        is_loss = self.wanted and isinstance(loss, dynamic.Tensor) and loss.shape == () and loss.requires_grad
        self.is_loss = is_loss
        if is_loss:
            loss.backward()

    def counted_in(self, value: Any) -> Any:
        """Return the part of the result to compare: the loss, or the plain result as a container."""
        if self.is_loss:
            return loss_in(value)
        value = plain(value)
        return value if isinstance(value, (tuple, list, dict)) else (value,)

    def written(self, argnum: int | None) -> StandingStep:
        """Return the step as its user writes it."""
        return _WrittenLoss(self, takes_gradients=argnum is not None)

    def calls_of(self) -> list[tuple[Any, ...]]:
        """Return the arguments of each call, with copies of the parameters first where there are any."""
        params = {name: array_of(tensor).copy() for name, tensor in self.params.items()}
        return [(params, *call) if params else call for call in self.calls.plain]

    def made(self) -> Callable[..., Any]:
        """Return `loss(params, *args)`, or `loss(*args)` for a function without parameters."""
        names = {id(tensor): name for name, tensor in self.tensors.items()}

        def loss(*args: Any) -> Any:
            params, rest = (args[0], args[1:]) if self.params else ({}, args)
            values = {names[id(self.params[name])]: value for name, value in params.items()}
            builder = current()
            if builder is not None:
                trace = StepTrace(builder, {**self.tensors, **values}, rest)
                with self.drawing(), traced_tensors(trace, self.places) as call:
                    return self.counted_in(callee(self.function)(*self.calls(call)))
            with place_values(self.places, values), self.drawing(), putting_back():
                value = self._call(rest)
            return self.counted_in(value)

        return self.tag_function(loss)

    def _call(self, args: Any) -> Any:
        if not self.differentiates:
            return callee(self.function)(*self.taking(args))
        is_outside = not dynamic.is_grad_enabled()
        with dynamic.enable_grad():
            value = callee(self.function)(*self.taking(args))
        return plain(value) if is_outside else value


def _requiring(args: tuple[Any, ...]) -> tuple[Any, ...]:
    for leaf in tree.leaves(args[:1]):
        if isinstance(leaf, dynamic.Tensor) and leaf.dtype.kind == "f":
            leaf.requires_grad_()
    return args


class _WrittenLoss(StandingStep):
    """A loss and its backward pass, as a user writes them, for the dynamic engine."""

    program: LossProgram

    def __init__(self, program: LossProgram, *, takes_gradients: bool) -> None:
        super().__init__(program)
        self.takes_gradients = takes_gradients

    def mode(self) -> AbstractContextManager[Any]:
        """Return the context of a run: gradients are recorded where the step or the function takes them."""
        records = self.takes_gradients or self.program.differentiates
        return dynamic.enable_grad() if records else dynamic.no_grad()

    def load(self, *state: Any) -> None:
        """Copy the given parameters into the tensors of the file."""
        if self.program.params:
            for name, tensor in self.program.params.items():
                np.copyto(array_of(tensor), as_array(state[0][name]))

    def run(self, call: Callable[[], Any], args: tuple[Any, ...]) -> Callable[[], Any]:
        """Return the call, with its backward pass where the step takes gradients."""
        if not self.takes_gradients:
            return call
        if not self.program.params:
            _requiring(args)
        return differentiate_step(call, tree.leaves(self._parts(args)), may_be_none=True)

    def _parts(self, args: tuple[Any, ...]) -> Any:
        """Return the tensors in which gradients are taken: the parameters, or the first argument."""
        return dict(self.program.params) or args[0]

    def result(self, args: tuple[Any, ...]) -> Callable[[Any], Any]:
        """Return a function that makes the value and the gradients from what a run returns."""

        def gradient(part: Any) -> Any:  # zeros where the loss does not depend on the tensor
            return np.zeros_like(array_of(part)) if part.grad is None else part.grad.numpy(force=True).copy()

        def make_result(value: Any) -> tuple[Any, Any]:
            gradients = tree.tree_map(gradient, self._parts(args)) if self.takes_gradients else ()
            return tree.tree_map(as_array, plain(self.program.counted_in(value))), gradients

        return make_result


# Training steps -------------------------------------------------------------------------------------------------------


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
            "sums": [kept_by(optimizer, self._names) for optimizer in self.optimizers],
        }

    @property
    def after(self) -> State:
        """Return the present state, read from the objects of the file.

        The sums of an optimizer are by PyTorch's slots; initial sums where no gradient came yet.
        """
        tensors = {name: array_of(tensor).copy() for name, tensor in self.now.items()}
        return {"tensors": tensors, "sums": list(map(self._kept_now, self.optimizers))}

    def _kept_now(self, optimizer: Optimizer) -> Any:
        if is_written(optimizer):
            return kept_state(optimizer, self._names)
        groups = optimizer.param_groups if is_ruled(optimizer) else ()
        return [_slots_with_sums(optimizer, slot_sums(optimizer, group)) for group in groups]

    @functools.cached_property
    def _names(self) -> Mapping[int, str]:
        """The names of the tensors, by id."""
        return {id(tensor): name for name, tensor in self.tensors.items()}

    def parts(self, result: tuple[Any, Any]) -> tuple[Any, ...]:
        """Return the parts of a call's result: value, gradients, and the state by the names that messages use."""
        (value, state), gradients = result
        named = {self.labels[name]: array for name, array in state["tensors"].items()}
        names = {id(tensor): label for tensor, label in zip(self.tensors.values(), self.labels.values(), strict=True)}
        for place, (optimizer, groups) in enumerate(zip(self.optimizers, state["sums"], strict=True)):
            of = f" in optimizer {place + 1}" if place else ""
            if isinstance(groups, KeptState):
                named |= {f"`{key}` of {self.labels[name]}{of}": array for name, key, array in groups.tensors()}
                continue
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
        for optimizer, kept in zip(self.optimizers, state["sums"], strict=True):
            optimizer.state.clear()
            if isinstance(kept, KeptState):
                keep_state(optimizer, kept, self.tensors)

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
                sums = [
                    kept if isinstance(kept, KeptState) else [_slots_with_sums(optimizer, each) for each in kept]
                    for optimizer, kept in pairs
                ]
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


def _slots_with_sums(optimizer: Any, sums: Mapping[str, Any]) -> Mapping[str, Any]:
    return {slot: sums[slot] for slot in optimizer.slots if sums.get(slot)}

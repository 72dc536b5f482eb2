"""A PyTorch-style function as a function of the parameters that it reaches, whether it returns a loss or not."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

import dynamic
from compare.engines.graphduel.programs import StandingProgram, StandingStep, array_of, as_array, plain
from compare.engines.reach import ReachedCode, names_of
from compare.engines.step import loss_in
from compare.engines.torch.step import differentiate_step
from graphs import tree
from graphs.errors import count_as_ours
from static.call.step import traced_tensors
from static.convert.stage.places import putting_back
from static.trace.step import StepTrace, place_values
from static.trace.symbol import callee
from static.trace.tracing import current

count_as_ours(__file__)


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

        def make_result(value: Any) -> tuple[Any, Any]:
            gradients = tree.tree_map(_gradient, self._parts(args)) if self.takes_gradients else ()
            return tree.tree_map(as_array, plain(self.program.counted_in(value))), gradients

        return make_result


def _gradient(part: Any) -> Any:
    """Return a copy of the gradient that a run left; zeros where the loss does not depend on the tensor."""
    if part.grad is None:
        return np.zeros_like(array_of(part))
    return part.grad.numpy(force=True).copy()

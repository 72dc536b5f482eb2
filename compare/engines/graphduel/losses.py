"""A loss of PyTorch's names, or what is no loss, as a function of the parameters that it reaches."""

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
from static.call.step import traced_tensors
from static.convert.stage.places import putting_back
from static.trace.step import StepTrace, place_values
from static.trace.symbol import callee
from static.trace.tracing import current


class LossProgram(StandingProgram):
    """A function of its parameters by their names, and of the first argument alone where it has none.

    It gives the loss in what it returns where that has gradients, and they are `wanted`; else all that it returns.
    """

    @functools.cached_property
    def params(self) -> Mapping[str, Any]:
        """What requires a gradient; of one module by the names that it has there."""
        named = {name: tensor for name, tensor in self.tensors.items() if tensor.requires_grad}
        is_one = len({name.partition(".")[0] for name in named}) == 1
        return {name.partition(".")[2] or name if is_one else name: tensor for name, tensor in named.items()}

    @functools.cached_property
    def differentiates(self) -> bool:
        """Whether the function takes gradients itself."""
        return any("grad" in names_of(reached) for reached in ReachedCode(self.function).functions)

    def first_call(self) -> tuple[Any, ...]:
        """See the base; the first argument requires gradients where nothing else does."""
        own = super().first_call()
        return own if self.trainable else _requiring(own)

    def differentiate(self, value: Any) -> None:
        """See the base."""
        loss = loss_in(value)
        is_loss = self.wanted and isinstance(loss, dynamic.Tensor) and loss.shape == () and loss.requires_grad
        self.is_loss = is_loss
        if is_loss:
            loss.backward()

    def counted_in(self, value: Any) -> Any:
        """What counts of what the function returns; a tuple where there are no gradients of it."""
        if self.is_loss:
            return loss_in(value)
        value = plain(value)
        return value if isinstance(value, (tuple, list, dict)) else (value,)

    def written(self, argnum: int | None) -> StandingStep:
        """See the base."""
        return _WrittenLoss(self, takes_gradients=argnum is not None)

    def calls_of(self) -> list[tuple[Any, ...]]:
        """See the base."""
        params = {name: array_of(tensor).copy() for name, tensor in self.params.items()}
        return [(params, *call) if params else call for call in self.calls.plain]

    def made(self) -> Callable[..., Any]:
        """`loss(params, *args)`, or `loss(*args)` of a function without parameters."""
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
    """A loss and its backward pass, as a user writes them."""

    program: LossProgram

    def __init__(self, program: LossProgram, *, takes_gradients: bool) -> None:
        super().__init__(program)
        self.takes_gradients = takes_gradients

    def mode(self) -> AbstractContextManager[Any]:
        """See the base."""
        records = self.takes_gradients or self.program.differentiates
        return dynamic.enable_grad() if records else dynamic.no_grad()

    def load(self, *state: Any) -> None:
        """See the base: the parameters, where there are any."""
        if self.program.params:
            for name, tensor in self.program.params.items():
                np.copyto(array_of(tensor), as_array(state[0][name]))

    def run(self, call: Callable[[], Any], args: tuple[Any, ...]) -> Callable[[], Any]:
        """See the base."""
        if not self.takes_gradients:
            return call
        if not self.program.params:
            _requiring(args)
        return differentiate_step(call, tree.leaves(self._parts(args)), may_be_none=True)

    def _parts(self, args: tuple[Any, ...]) -> Any:
        """What gradients are taken in."""
        return dict(self.program.params) or args[0]

    def result(self, args: tuple[Any, ...]) -> Callable[[Any], Any]:
        """See the base."""

        def make_result(value: Any) -> tuple[Any, Any]:
            gradients = tree.tree_map(_gradient, self._parts(args)) if self.takes_gradients else ()
            return tree.tree_map(as_array, plain(self.program.counted_in(value))), gradients

        return make_result


def _gradient(part: Any) -> Any:
    """What a run has left; zeros where the loss does not depend on it."""
    if part.grad is None:
        return np.zeros_like(array_of(part))
    return part.grad.numpy(force=True).copy()

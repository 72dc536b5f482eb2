"""A user's function as our two engines run it in a step."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import dynamic
import graphs
from compare.engines.state import StartState
from compare.engines.step import Bindable, BoundCall, bind_call
from graphs import dispatch, promotion, tree
from graphs.blocks import Block, enter

START = "state_of_the_start"
"""The attribute of a function that has its `StartState`, from which each of its calls begins."""
PARTS = "parts_of_a_result"
"""The attribute of a function that returns (value, state); it maps a result to value, gradients and named state."""
WRITTEN = "as_its_user_writes_it"
"""The attribute of a function that makes the step timed in the dynamic engine; it takes `argnum`."""


def transform_step(engine: Any, f: Callable[..., Any], argnum: int | None) -> Callable[..., Any]:
    """Return the function that a step runs: the value of `f` with gradients in `argnum`, or `(output, ())`.

    Each run begins with the state of the start, where the function has one.
    """
    step, start = _transform(engine, f, argnum), getattr(f, START, None)
    if start is None:
        return step
    return StepFromStart(step, start) if engine is dynamic else _trace_from(start, step)


def _transform(engine: Any, f: Callable[..., Any], argnum: int | None) -> Callable[..., Any]:
    if argnum is not None:
        return engine.value_and_grad(f, argnum)
    return DynamicOutput(f) if engine is dynamic else _alone(f)


def _alone(f: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(f)
    def output(*args: Any) -> tuple[Any, tuple[()]]:
        return f(*args), ()

    return output


def _trace_from(start: StartState, step: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(step)
    def wrapper(*args: Any) -> Any:
        start.begin(is_trace=True)
        return step(*args)

    return wrapper


class StepFromStart(Bindable):
    """A step of the dynamic engine; each run begins with the state of the start."""

    def __init__(self, step: Callable[..., Any], start: StartState) -> None:
        self.step, self.start = step, start
        functools.update_wrapper(self, step)

    def bind(self, *args: Any) -> BoundCall:
        """Bind a call of the step; the run first restores the state of the start."""
        call = bind_call(self.step, args)

        def run() -> Any:
            self.start.begin(is_trace=False)
            return call.run()

        return replace(call, run=run)


class DynamicOutput(Bindable):
    """`step(*args) -> (f(...), ())` in the dynamic engine: without a tape, on arrays."""

    def __init__(self, f: Callable[..., Any]) -> None:
        self.function = f
        functools.update_wrapper(self, f)

    def bind(self, *args: Any) -> BoundCall:
        """Bind a call of `f` to tensors that are made from the arguments here."""
        call = partial(self.function, *tree.tree_map(tensor_of, args))
        return BoundCall(call, lambda value: (tree.tree_map(_array, value), ()), dynamic.no_grad)


def tensor_of(leaf: Any) -> Any:
    """Return a tensor for an array, as `value_and_grad` does, so that operators on data are ops."""
    return dynamic.from_numpy(leaf) if isinstance(leaf, np.ndarray) else leaf


def _array(leaf: Any) -> Any:
    return leaf.numpy(force=True) if isinstance(leaf, dynamic.Tensor) else leaf


class InDoubles(Block):
    """A context in which an op that meets float64 and narrower floats takes all of them in float64.

    A function with float64 arguments then computes in float64, whatever arrays it closes over, keeps or makes.
    """

    def __enter__(self) -> None:
        hold = self.hold()
        enter(promotion.mixing, hold, True)
        enter(dispatch.detours, hold, _widening)


def _widening(interpreter: dispatch.Interpreter) -> dispatch.Interpreter:
    def run(op: Any, args: Sequence[Any], attrs: dispatch.Attrs) -> Any:
        dtypes = {arg.dtype for arg in args if hasattr(arg, "dtype")}
        if len(dtypes) > 1 and np.dtype(np.float64) in dtypes:
            args = [_widen(arg) for arg in args]
        return interpreter(op, args, attrs)

    return run


def _widen(arg: Any) -> Any:
    narrow = hasattr(arg, "dtype") and arg.dtype.kind == "f" and arg.dtype.itemsize < 8
    return graphs.astype(arg, np.float64) if narrow else arg

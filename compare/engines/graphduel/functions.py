"""A function as our two engines run it in a step."""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import dynamic
from compare.engines.step import Bindable, BoundCall
from graphs import tree

INSIDE = "differentiates_inside"
"""An attribute of a function that takes gradients itself, and may require them of its arguments: of tensors."""


def transformed(engine: Any, f: Callable[..., Any], argnum: int | None) -> Callable[..., Any]:
    """What a step runs in an engine: the value of `f` with its gradients in an argument, or `(output, ())`."""
    if argnum is not None:
        step = engine.value_and_grad(f, argnum)
        return _arrays_of(step) if engine is dynamic and getattr(f, INSIDE, False) else step
    return DynamicOutput(f) if engine is dynamic else _alone(f)


def _alone(f: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(f)
    def output(*args: Any) -> tuple[Any, tuple[()]]:
        return f(*args), ()

    return output


class DynamicOutput(Bindable):
    """`step(*args) -> (f(...), ())` in the dynamic engine: no tape, arrays in and arrays out."""

    def __init__(self, f: Callable[..., Any]) -> None:
        self.function = f
        functools.update_wrapper(self, f)

    def bind(self, *args: Any) -> BoundCall:
        """See the base; `f` is given tensors, made here."""
        call = partial(self.function, *tree.tree_map(tensor_of, args))
        return BoundCall(call, lambda value: (tree.tree_map(_array, value), ()), dynamic.no_grad)


def _arrays_of(step: Callable[..., Any]) -> Callable[..., Any]:
    """A step that gives arrays, also where what is left of a graph inside makes tensors of its results."""

    @functools.wraps(step)
    def plain(*args: Any) -> Any:
        return tree.tree_map(_array, step(*args))

    return plain


def tensor_of(leaf: Any) -> Any:
    """An array as `value_and_grad` hands it to a function: a tensor, so that operators on data are ops too."""
    return dynamic.from_numpy(leaf) if isinstance(leaf, np.ndarray) else leaf


def _array(leaf: Any) -> Any:
    return leaf.numpy(force=True) if isinstance(leaf, dynamic.Tensor) else leaf

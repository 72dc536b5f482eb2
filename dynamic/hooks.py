"""Hooks on tensors: functions that see, and may replace, a gradient on its way back."""

from __future__ import annotations

import weakref

from dynamic.entry import Entry
from dynamic.tensor import Hook, Tensor
from graphs.errors import NotDifferentiableError, located


class Handle:
    """Takes a hook away again."""

    def __init__(self, hooks: list[Hook], hook: Hook) -> None:
        self._hooks, self._hook = hooks, hook

    def remove(self) -> None:
        """Stop calling the hook; a second call does nothing."""
        if self._hook in self._hooks:
            self._hooks.remove(self._hook)


def register_hook(tensor: Tensor, hook: Hook) -> Handle:
    """Call `hook(gradient)` when backward reaches the tensor. Raises NotDifferentiableError where it never will."""
    edge = tensor._edge
    if edge is None:
        raise NotDifferentiableError(located("a hook on a tensor that does not require a gradient is never called"))
    hooks = edge.hooks = edge.hooks or []
    hooks.append(hook)
    hooks.sort(key=lambda one: isinstance(one, _Keep))  # what is kept is the gradient after every other hook
    return Handle(hooks, hook)


def retain_grad(tensor: Tensor) -> None:
    """Store the gradient of a tensor that is no leaf in its `grad`; a second call does nothing."""
    if type(tensor._edge) is not Entry:
        return  # a leaf keeps its gradient anyway
    if not any(isinstance(hook, _Keep) for hook in tensor._edge.hooks or ()):
        register_hook(tensor, _Keep(tensor))


class _Keep:
    """The hook that adds a gradient to the `grad` of a tensor, as long as the tensor is there."""

    def __init__(self, tensor: Tensor) -> None:
        self._target = weakref.ref(tensor)

    def __call__(self, gradient: Tensor) -> None:
        kept = self._target()
        if kept is not None:
            kept.grad = gradient if kept.grad is None else kept.grad + gradient

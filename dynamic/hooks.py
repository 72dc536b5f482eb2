"""What stands behind `Tensor.register_hook` and `Tensor.retain_grad`, and how threads take turns at gradients."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

from dynamic.node import Hook

turns = threading.RLock()
"""Threads take turns: one at a time adds to a `grad` or to hooks, or notes a change; none while the process forks."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=turns.acquire, after_in_parent=turns.release, after_in_child=turns.release)


def add_hook(edge: Any, hook: Hook) -> Handle:
    """Put a hook last; what is kept is the gradient after every other hook."""
    with turns:
        kept = [isinstance(other, Keep) for other in edge.hooks or ()]
        if edge.hooks is None:
            edge.hooks = []
        edge.hooks.insert(len(kept) if isinstance(hook, Keep) else kept.count(False), hook)
        return Handle(edge.hooks, hook)


def move_kept(before: Any, after: Any, tensor: Any) -> None:
    """Keep the gradient of a tensor where its history goes on, if it was to be kept before; other hooks stay."""
    kept = [hook for hook in before.hooks or () if isinstance(hook, Keep) and hook.is_of(tensor)]
    for hook in kept:
        before.hooks.remove(hook)
        add_hook(after, hook)


class Handle:
    """Takes a hook away again."""

    def __init__(self, hooks: list[Hook], hook: Hook) -> None:
        self._hooks, self._hook = hooks, hook

    def remove(self) -> None:
        """Stop calling the hook; a second call does nothing."""
        if self._hook in self._hooks:
            self._hooks.remove(self._hook)


class Keep:
    """The hook that adds a gradient to the `grad` of a tensor, as long as the tensor is there."""

    def __init__(self, tensor: Any) -> None:
        self._target = weakref.ref(tensor)

    def is_of(self, tensor: Any) -> bool:
        """Whether it is that of a tensor."""
        return self._target() is tensor

    def __call__(self, gradient: Any) -> None:
        """Add what has arrived."""
        tensor = self._target()
        if tensor is not None:
            with turns:
                tensor.grad = gradient if tensor.grad is None else tensor.grad + gradient

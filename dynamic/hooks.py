"""What stands behind `Tensor.register_hook` and `Tensor.retain_grad`."""

from __future__ import annotations

import weakref
from typing import Any

from dynamic.node import Hook


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

    def __call__(self, gradient: Any) -> None:
        """Add what has arrived."""
        tensor = self._target()
        if tensor is not None:
            tensor.grad = gradient if tensor.grad is None else tensor.grad + gradient

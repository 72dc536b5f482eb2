"""Training steps as their authors write them in PyTorch, over a module that is `torch` or `dynamic`.

Each function returns a step: a call trains once and returns the loss. Sizes are those of a lesson or a small study: a
step of PyTorch on one thread takes 2 to 150 ms. Inputs are the same for both, weights are drawn by each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

Torch = Any
"""The module `torch` or `dynamic`."""
Step = Callable[[], Any]


def training(torch: Torch, optimizer: Any, loss_of: Step, limit: float = 0.0, params: Iterable[Any] = ()) -> Step:
    """A step of an optimizer; with a limit the norm of the gradients of the parameters is kept below it."""
    params = list(params)

    def step() -> Any:
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        if limit:
            torch.nn.utils.clip_grad_norm_(params, limit)
        optimizer.step()
        return loss

    return step


def classifying(torch: Torch, model: Any, inputs: Any, labels: Any) -> Step:
    """A step of Adam on the cross entropy."""
    optimizer, criterion = torch.optim.Adam(model.parameters(), lr=1e-3), torch.nn.CrossEntropyLoss()
    return training(torch, optimizer, lambda: criterion(model(inputs), labels))


def normal(torch: Torch, *shape: int, seed: int = 0) -> Any:
    """Random numbers f32 of a shape."""
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape, np.float32))


def labels(torch: Torch, count: int, *shape: int, seed: int = 1) -> Any:
    """Random integers i64 below `count`."""
    return torch.from_numpy(np.random.default_rng(seed).integers(0, count, shape))


def parameters(*modules: Any) -> list[Any]:
    """The parameters of some modules, in order."""
    return [param for module in modules for param in module.parameters()]

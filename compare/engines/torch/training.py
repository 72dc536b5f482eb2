"""A training step as its author wrote it: it differentiates, and changes parameters, by itself."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import optree

from compare.engines.reached import ReachedCode, outermost
from compare.engines.step import Function, TrainingFunction
from compare.engines.torch.numbers import moving


def holders_in(function: Any) -> list[Any]:
    """What the code of a function reaches by itself and holds tensors: the outermost modules, then other parameters."""
    import torch

    values = ReachedCode(function).values
    modules = outermost([value for value in values if isinstance(value, torch.nn.Module)])
    inside = {id(parameter) for module in modules for parameter in module.parameters()}
    tensors = [value for value in values if isinstance(value, torch.Tensor) and value.requires_grad and value.is_leaf]
    return [*modules, *(tensor for tensor in tensors if id(tensor) not in inside)]


class TorchTraining(TrainingFunction):
    """The modules, tensors and optimizers that a training step is given, or that its code reaches by itself.

    `run` makes the function that an arm runs.
    """

    def __init__(self, function: Any, calls: Sequence[tuple[Any, ...]], run: Callable[[str], Function]) -> None:
        import torch

        leaves: Any = list(calls)
        values = [*optree.tree_leaves(leaves), *ReachedCode(function).values]
        tensors: list[Any] = [leaf for leaf in values if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
        for module in (leaf for leaf in values if isinstance(leaf, torch.nn.Module)):
            tensors += [*module.parameters(), *module.buffers()]
        self.tensors = list({id(tensor): tensor for tensor in tensors}.values())
        self.stateful = [leaf for leaf in values if _has_state(leaf)]
        self.run = run

    def build(self, arm: str) -> Function:
        """See the base."""
        run = self.run(arm)

        def step(*args: Any) -> tuple[Any, Any]:
            value = run(*args)
            return () if value is None else value, self.tensors

        return step

    def snapshot(self) -> Callable[[], None]:
        """See the base."""
        import torch

        tensors = [(tensor, tensor.detach().clone(), _cloned(tensor.grad)) for tensor in self.tensors]
        states = [(holder, copy.deepcopy(holder.state_dict())) for holder in self.stateful]

        def restore() -> None:
            with torch.no_grad():
                for tensor, value, gradient in tensors:
                    tensor.copy_(value)
                    tensor.grad = _cloned(gradient)
            for holder, state in states:
                holder.load_state_dict(copy.deepcopy(state))

        return restore

    def nudge(self, seed: int) -> None:
        """See the base."""
        import torch

        move = moving(seed)
        with torch.no_grad():
            for tensor in self.tensors:
                tensor.copy_(move(tensor))


def _cloned(tensor: Any) -> Any:
    return None if tensor is None else tensor.detach().clone()


def _has_state(value: Any) -> bool:
    """Optimizers, schedules of the learning rate and scalers of gradients; the state of a module are its tensors."""
    import torch

    kinds = (torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler, torch.amp.GradScaler)
    return isinstance(value, kinds)

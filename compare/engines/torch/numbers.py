"""The numbers of tensors and modules, changed: to float64, or by as much as rounding changes them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import optree

from compare.engines.nudge import nudging

Change = Callable[[Any], Any]
"""Makes a tensor of another one of floats."""


def double(tensor: Any) -> Any:
    """In float64."""
    return tensor.double()


def moving(seed: int) -> Change:
    """Moves the elements of a tensor as `compare.engines.nudge` does; a tensor of other numbers stays."""
    nudge = nudging(seed)

    def move(tensor: Any) -> Any:
        import torch

        if tensor.dtype not in (torch.float16, torch.float32, torch.float64):  # which NumPy has
            return tensor
        return torch.from_numpy(nudge(tensor.numpy(force=True))).to(tensor.device)

    return move


def changed(tree: Any, change: Change) -> Any:
    """A container of other tensors of floats, and of copies of modules that hold such."""
    import torch

    def of(leaf: Any) -> Any:
        if isinstance(leaf, torch.nn.Module):
            module = copy.deepcopy(leaf)
            for tensor in tensors_of([module]):
                tensor.data = change(tensor.data)
            return module
        is_float = isinstance(leaf, torch.Tensor) and leaf.is_floating_point()
        return change(leaf.detach()).requires_grad_(leaf.requires_grad) if is_float else leaf

    return optree.tree_map(of, tree, none_is_leaf=True)


@contextmanager
def meanwhile(holders: Sequence[Any], change: Change) -> Iterator[None]:
    """Inside, the tensors that modules hold, and those that are holders themselves, have other data."""
    tensors = [(tensor, tensor.data) for tensor in tensors_of(holders)]
    try:
        for tensor, data in tensors:
            tensor.data = change(data)
        yield
    finally:
        for tensor, data in tensors:
            tensor.data = data


def tensors_of(holders: Sequence[Any]) -> list[Any]:
    """The parameters and buffers of modules, and the tensors themselves, where they are floats."""
    import torch

    modules = [holder for holder in holders if isinstance(holder, torch.nn.Module)]
    inside = [tensor for module in modules for tensor in (*module.parameters(), *module.buffers())]
    tensors = [*inside, *(holder for holder in holders if not isinstance(holder, torch.nn.Module))]
    return [tensor for tensor in tensors if tensor.is_floating_point()]

"""The numbers of tensors and modules, changed: to float64, or by as much as rounding changes them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import optree

from compare.engines.nudge import nudging
from compare.engines.state import Piece

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
    """Inside, the tensors that modules hold, and those that are holders themselves, have other data and no gradient."""
    tensors = [(tensor, tensor.data, tensor.grad) for tensor in tensors_of(holders)]
    try:
        for tensor, data, _ in tensors:
            tensor.grad = None  # a gradient has the dtype of its tensor
            tensor.data = change(data)
        yield
    finally:
        for tensor, data, gradient in tensors:
            tensor.grad = None
            tensor.data = data
            tensor.grad = gradient


def tensors_of(holders: Sequence[Any]) -> list[Any]:
    """The parameters and buffers of modules, and the tensors themselves, where they are floats."""
    import torch

    modules = [holder for holder in holders if isinstance(holder, torch.nn.Module)]
    inside = [tensor for module in modules for tensor in (*module.parameters(), *module.buffers())]
    tensors = [*inside, *(holder for holder in holders if not isinstance(holder, torch.nn.Module))]
    return [tensor for tensor in tensors if tensor.is_floating_point()]


def kept(value: Any) -> Piece | None:
    """What brings back a tensor with its gradient, or a generator of random numbers; and what a wrapper stands for."""
    import torch

    if isinstance(value, torch.Tensor):
        return _kept_tensor(value)
    if isinstance(value, torch.Generator):
        before = value.get_state()
        return Piece(lambda: torch.equal(value.get_state(), before), lambda: value.set_state(before) and None)
    if isinstance(value, torch.jit.ScriptModule):
        return Piece(parts=[*value.parameters(), *value.buffers()])
    behind = getattr(value, "__dict__", {}).get("_torchdynamo_orig_callable")
    if behind is not None:
        return Piece(parts=[behind])
    return Piece(parts=[value._orig_mod]) if isinstance(value, torch._dynamo.OptimizedModule) else None


def _kept_tensor(tensor: Any) -> Piece:
    import torch

    if not _is_plain(tensor):
        return Piece()
    with torch.no_grad():
        before, wants = tensor.detach().clone(), tensor.requires_grad
    gradient = tensor.grad if tensor.is_leaf else None

    def is_back() -> bool:
        return tensor.shape == before.shape and tensor.dtype == before.dtype and tensor.device == before.device

    def same() -> bool:
        now = tensor.grad if tensor.is_leaf else None
        return now is gradient and is_back() and torch.equal(tensor.detach(), before)

    def back() -> None:
        with torch.inference_mode() if tensor.is_inference() else torch.no_grad():
            if is_back():
                tensor.copy_(before)
            else:
                tensor.data = before.clone()
        if tensor.is_leaf:
            tensor.requires_grad_(wants)
            tensor.grad = gradient

    hooks = (tensor._backward_hooks, getattr(tensor, "_post_accumulate_grad_hooks", None))  # one may hold an optimizer
    return Piece(same, back, [gradient, *hooks, *vars(tensor).values()])


def _is_plain(tensor: Any) -> bool:
    """Whether a tensor has elements of its own, each once: others are not changed in place."""
    import torch

    dense = tensor.layout is torch.strided and tensor.device.type != "meta"
    return dense and not any(step == 0 and size > 1 for step, size in zip(tensor.stride(), tensor.shape, strict=True))

"""A step of PyTorch: what a function returns, and the gradients of the loss in it, in modules and tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import optree

from compare.engines.step import LOSS, Function, loss_in
from compare.errors import InputsError


def stepped(run: Function, argnum: int, reached: Sequence[Any] = ()) -> Function:
    """`step(*args) -> (what run returns, gradients)` in one argument: a module, float tensors, or containers of them.

    The gradients of a module are those of its parameters, by their names; what is neither has (). Parameters are looked
    up once a module. An argument without either leaves the modules that the loss has `reached` by itself: gradients are
    then theirs. Raises InputsError where there is no loss, or it has no gradients.
    """
    import torch

    named: dict[Any, dict[str, Any]] = {}

    def parameters(module: Any) -> dict[str, Any]:
        if module not in named:
            named[module] = {name: p for name, p in module.named_parameters() if p.requires_grad}
        return named[module]

    def differentiated(leaf: Any) -> Any:
        return parameters(leaf) if isinstance(leaf, torch.nn.Module) else leaf if _is_float(leaf) else ()

    def step(*args: Any) -> tuple[Any, Any]:
        leaves, structure = optree.tree_flatten(args[argnum])
        leaves = [leaf.detach().requires_grad_() if _is_float(leaf) else leaf for leaf in leaves]
        value = run(*args[:argnum], optree.tree_unflatten(structure, leaves), *args[argnum + 1 :])
        if not any(isinstance(leaf, torch.nn.Module) or _is_float(leaf) for leaf in leaves):
            leaves, structure = optree.tree_flatten(list(reached))  # type: ignore[arg-type]
        wanted: Any = [differentiated(leaf) for leaf in leaves]
        parts, shape = optree.tree_flatten(wanted)
        arrays_alone = not any(isinstance(leaf, torch.nn.Module) for leaf in leaves)
        gradients: Any = optree.tree_unflatten(shape, _gradients(value, parts, may_be_none=arrays_alone))
        return _detached(value), optree.tree_unflatten(structure, gradients)

    return step


def _is_float(leaf: Any) -> bool:
    import torch

    return isinstance(leaf, torch.Tensor) and leaf.is_floating_point()


def _detached(value: Any) -> Any:
    import torch

    return optree.tree_map(lambda x: x.detach() if isinstance(x, torch.Tensor) else x, value, none_is_leaf=True)


def _gradients(value: Any, parts: list[Any], *, may_be_none: bool) -> Any:
    """Gradients of the loss; zeros where it depends on no tensor, which of the parameters of a module is an error."""
    import torch

    loss = loss_in(value)
    if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
        what = f"a tensor of shape {tuple(loss.shape)}" if isinstance(loss, torch.Tensor) else type(loss).__name__
        raise InputsError(f"the loss is {what}; return a tensor of one number, or a tuple or dict with it as {LOSS}")
    if parts and may_be_none and not loss.requires_grad:
        return [torch.zeros_like(part) for part in parts]
    if not parts or not loss.requires_grad:
        what = "the loss has no gradient" if parts else "neither the first argument nor the loss holds a parameter"
        raise InputsError(f"{what}; return the loss of a module or of float tensors, before backward() and item()")
    try:
        return torch.autograd.grad(loss, parts, materialize_grads=True)
    except RuntimeError as error:
        if "second time" not in str(error):
            raise
        raise InputsError("the loss has been differentiated already; leave backward() and the optimiser out") from error

"""A step of PyTorch: what a function returns, and the gradients of the loss in it, in modules and tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import optree

from compare.engines.step import LOSS, Function, loss_in
from compare.errors import InputsError
from compare.words import text

INSTEAD = "or take no gradients: --no-gradient (gradient=False)"


class TorchStep:
    """`step(*args) -> (what run returns, gradients)`: those that `backward` would leave, and nothing is left anywhere.

    They are in what requires a gradient of the arguments and of what the loss has `reached` by itself: parameters of
    modules, by their names, and tensors. Where nothing does they are in the float tensors of the argument `argnum`.
    The gradients have the structure of that argument if there are no others. Else they are a list over what holds any,
    arguments first; what has none in these has (). Parameters are looked up once a module. Raises InputsError where
    there is no loss, or it has no gradients.
    """

    def __init__(self, run: Function, argnum: int, reached: Sequence[Any] = ()) -> None:
        self.run, self.argnum, self.reached = run, argnum, reached
        self.gradients_in = ""
        self._named: dict[Any, dict[str, Any]] = {}

    def __call__(self, *args: Any) -> tuple[Any, Any]:
        """See the class."""
        trees = [optree.tree_flatten(arg) for arg in args]
        elsewhere = bool(self.reached) or any(self._requires(leaf) for leaves, _ in trees for leaf in leaves)
        asked = self.argnum if not elsewhere else None
        flat = [[_apart(leaf, wanted=i == asked) for leaf in leaves] for i, (leaves, _) in enumerate(trees)]
        wanted: list[Any] = [
            optree.tree_unflatten(tree, list(map(self._parts, leaves)))
            for (_, tree), leaves in zip(trees, flat, strict=True)
        ]
        wanted += map(self._parts, self.reached)
        holding = [i for i, tree in enumerate(wanted) if optree.tree_leaves(tree)]
        alone = bool(wanted) and holding in ([], [self.argnum])
        asked_of: Any = wanted[self.argnum] if alone else [wanted[i] for i in holding]
        parts, structure = optree.tree_flatten(asked_of)
        plain = [leaf for leaves in flat for leaf in leaves if not _requires(leaf)]
        value = self.run(*(optree.tree_unflatten(tree, leaves) for (_, tree), leaves in zip(trees, flat, strict=True)))
        self.gradients_in = self.gradients_in or _said(len(parts), elsewhere=elsewhere)
        gradients: Any = optree.tree_unflatten(structure, _gradients(value, parts, may_be_none=not elsewhere))
        for leaf in filter(_requires, plain):  # the function has asked for it: no other call does
            leaf.requires_grad_(False)
        return _detached(value), gradients

    def _requires(self, leaf: Any) -> bool:
        import torch

        return bool(self._parts(leaf)) if isinstance(leaf, torch.nn.Module) else _requires(leaf)

    def _parts(self, leaf: Any) -> Any:
        import torch

        if not isinstance(leaf, torch.nn.Module):
            return leaf if _requires(leaf) else ()
        if leaf not in self._named:
            self._named[leaf] = {name: p for name, p in leaf.named_parameters() if p.requires_grad}
        return self._named[leaf]


def trainable(holder: Any) -> bool:
    """Whether a module or a tensor has something that requires a gradient."""
    import torch

    if not isinstance(holder, torch.nn.Module):
        return _requires(holder)
    return any(parameter.requires_grad for parameter in holder.parameters())


def _said(count: int, *, elsewhere: bool) -> str:
    if elsewhere:
        return f"{text.counted(count, 'parameter')}, as backward() leaves them"
    return f"{text.counted(count, 'tensor')} of the first argument, as no parameter requires any"


def _requires(leaf: Any) -> bool:
    import torch

    return isinstance(leaf, torch.Tensor) and leaf.requires_grad


def _apart(leaf: Any, *, wanted: bool) -> Any:
    """A tensor that requires a gradient, or is to have one, as a leaf of a graph of its own; anything else as it is."""
    import torch

    if _requires(leaf) or (wanted and isinstance(leaf, torch.Tensor) and leaf.is_floating_point()):
        return leaf.detach().requires_grad_()
    return leaf


def _detached(value: Any) -> Any:
    import torch

    return optree.tree_map(lambda x: x.detach() if isinstance(x, torch.Tensor) else x, value, none_is_leaf=True)


def _gradients(value: Any, parts: list[Any], *, may_be_none: bool) -> Any:
    """Gradients of the loss; zeros where it depends on no tensor, which of the parameters of a module is an error."""
    import torch

    loss = loss_in(value)
    if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
        what = f"a tensor of shape {tuple(loss.shape)}" if isinstance(loss, torch.Tensor) else type(loss).__name__
        raise InputsError(
            f"the loss is {what}; return a tensor of one number, or a tuple or dict with it as {LOSS}, {INSTEAD}"
        )
    if parts and may_be_none and not loss.requires_grad:
        return [torch.zeros_like(part) for part in parts]
    if not parts or not loss.requires_grad:
        what = "the loss has no gradient" if parts else "neither the first argument nor the loss holds a parameter"
        raise InputsError(
            f"{what}; return the loss of a module or of float tensors, before backward() and item(), {INSTEAD}"
        )
    try:
        return torch.autograd.grad(loss, parts, materialize_grads=True)
    except RuntimeError as error:
        if "second time" not in str(error):
            raise
        raise InputsError("the loss has been differentiated already; leave backward() and the optimiser out") from error

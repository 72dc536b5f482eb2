"""A step of PyTorch: the result of a function, and the gradients of its loss in modules and tensors.

A training step as its author wrote it differentiates, and changes parameters, by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import optree

from compare import text
from compare.engines.process import patch_namespace
from compare.engines.reach import ReachedCode, names_in, outermost
from compare.engines.step import LOSS, Bindable, BoundCall, Context, Function, inside, kind_of_loss, loss_in
from compare.errors import InputsError, NoGradientsError
from graphs.tree import argument_names

INSTEAD = "or take no gradients: --no-gradient (gradient=False)"


class TorchStep(Bindable):
    """`step(*args) -> (result of run, gradients)`, by `backward`; the step leaves no gradient in any tensor.

    Gradients are taken in the tensors that require one, among the arguments and what the loss reaches by itself:
    parameters of modules, by their names, and tensors. Where no tensor does, they are taken in the float tensors of
    the argument `argnum`. The gradients have the structure of that argument if there are no others. Else they are a
    dict of the holders by the names in the loss's code; a part without a gradient has (). Parameters are looked up
    once a module. Raises InputsError where there is no loss, or it has no gradients.
    """

    def __init__(self, run: Function, argnum: int, loss: Function, within: Context = nullcontext) -> None:
        self.run, self.argnum, self.loss, self.within = run, argnum, loss, within
        holders = [(name, holder) for name, holder in named_holders(loss) if trainable(holder)]
        self.reached, self._names = [holder for _, holder in holders], [name for name, _ in holders]
        self.gradients_in = ""
        self._named: dict[Any, dict[str, Any]] = {}

    def bind(self, *args: Any) -> BoundCall:
        """Bind a call of the step; an argument that requires a gradient and is no leaf becomes a leaf of its own.

        The gradient of a tensor on which the loss does not depend is zeros.
        """
        import torch

        trees = [optree.tree_flatten(arg, is_leaf=is_whole) for arg in args]
        elsewhere = bool(self.reached) or any(trainable(leaf) for leaves, _ in trees for leaf in leaves)
        asked = self.argnum if not elsewhere else None
        flat = [[_apart(leaf, wanted=i == asked) for leaf in leaves] for i, (leaves, _) in enumerate(trees)]
        wanted: list[Any] = [
            optree.tree_unflatten(tree, list(map(self._parts, leaves)))
            for (_, tree), leaves in zip(trees, flat, strict=True)
        ]
        wanted += map(self._parts, self.reached)
        holding = [i for i, tree in enumerate(wanted) if optree.tree_leaves(tree)]
        alone = bool(wanted) and holding in ([], [self.argnum])
        asked_of: Any = wanted[self.argnum] if alone else self._by_name(wanted, len(args), holding)
        parts, structure = optree.tree_flatten(asked_of)
        plain = [leaf for leaves in flat for leaf in leaves if not _requires(leaf)]
        call = list(args)  # an argument of which no leaf differs stays, so that a call's changes to it are seen
        for i, ((before, tree), leaves) in enumerate(zip(trees, flat, strict=True)):
            if any(old is not new for old, new in zip(before, leaves, strict=True)):
                call[i] = optree.tree_unflatten(tree, leaves)
        counted = text.count_noun(len(parts), "parameter" if elsewhere else "tensor")
        how = "as backward() leaves them" if elsewhere else "as no parameter requires any"
        self.gradients_in = self.gradients_in or f"{counted}{'' if elsewhere else ' of the first argument'}, {how}"

        def result(value: Any) -> tuple[Any, Any]:
            detached = map_leaves(lambda x: x.detach() if isinstance(x, torch.Tensor) else x, value)
            gradients = [torch.zeros_like(part) if part.grad is None else part.grad for part in parts]
            return detached, optree.tree_unflatten(structure, gradients)

        return BoundCall(
            differentiate_step(partial(self.run, *call), parts, may_be_none=not elsewhere),
            result,
            inside(self.within, partial(_keep_gradients, parts, plain)),
        )

    def _by_name(self, wanted: Sequence[Any], arguments: int, holding: Sequence[int]) -> dict[str, Any]:
        """Return the wanted tensors by the holders' names; a repeated name gets the later holder's index."""
        names = [*argument_names(self.loss, arguments), *self._names]
        return {names[i] if names.index(names[i]) == i else f"{names[i]} {i}": wanted[i] for i in holding}

    def _parts(self, leaf: Any) -> Any:
        import torch

        if not isinstance(leaf, torch.nn.Module):
            return leaf if _requires(leaf) else ()
        if leaf not in self._named:
            self._named[leaf] = {name: p for name, p in leaf.named_parameters() if p.requires_grad}
        return self._named[leaf]


def trainable(holder: Any) -> bool:
    """Return whether a module or a tensor requires a gradient."""
    import torch

    if not isinstance(holder, torch.nn.Module):
        return _requires(holder)
    return any(parameter.requires_grad for parameter in holder.parameters())


def _requires(leaf: Any) -> bool:
    import torch

    return isinstance(leaf, torch.Tensor) and leaf.requires_grad


def _apart(leaf: Any, *, wanted: bool) -> Any:
    """Return a leaf for a tensor that requires a gradient, or is `wanted` to; any other value as it is."""
    import torch

    if _requires(leaf):
        return leaf if leaf.is_leaf else leaf.detach().requires_grad_()
    is_float = isinstance(leaf, torch.Tensor) and (leaf.is_floating_point() or leaf.is_complex())
    return leaf.detach().requires_grad_() if wanted and is_float else leaf


def is_whole(value: Any) -> bool:
    """Return whether PyTorch takes a tuple as one value, which it does with a packed sequence."""
    import torch

    return isinstance(value, torch.nn.utils.rnn.PackedSequence)


def map_leaves(change: Callable[[Any], Any], tree: Any) -> Any:
    """Return the containers with each leaf changed."""
    return optree.tree_map(change, tree, is_leaf=is_whole, none_is_leaf=True)


def differentiate_step(call: Callable[[], Any], parts: Sequence[Any], *, may_be_none: bool) -> Callable[[], Any]:
    """Return a step as its author writes it: clear gradients, call, and run the backward pass of the loss.

    With `may_be_none` the loss may depend on no tensor.
    """
    import torch

    tensor = torch.Tensor

    def run() -> Any:
        for part in parts:
            part.grad = None
        value = call()
        try:
            (value if value.__class__ is tensor else loss_in(value)).backward()  # loss_in costs 0.4 µs for a tensor
        except Exception as error:  # noqa: BLE001  (checked only after a failure: checks would be timed)
            _look(value, error, parts, may_be_none=may_be_none)
        return value

    return run


def _look(value: Any, error: Exception, parts: Sequence[Any], *, may_be_none: bool) -> None:
    """Raise the reason why a value was not differentiated, unless it `may_be_none`."""
    import torch

    loss = loss_in(value)
    if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
        is_tensor = isinstance(loss, torch.Tensor)
        what = f"the loss is a tensor of shape {tuple(loss.shape)}" if is_tensor else f"it gives {kind_of_loss(value)}"
        raise (InputsError if value is None else NoGradientsError)(
            f"{what}; return a tensor of one number, or a tuple or dict with it as {LOSS}, {INSTEAD}"
        ) from error
    if not parts or not loss.requires_grad:
        if parts and may_be_none:
            return
        what = "the loss has no gradient" if parts else "neither the first argument nor the loss holds a parameter"
        raise NoGradientsError(
            f"{what}; return the loss of a module or of float tensors, before backward() and item(), {INSTEAD}"
        ) from error
    if "second time" in str(error):
        raise InputsError("the loss has been differentiated already; leave backward() and the optimiser out") from error
    raise error


@contextmanager
def _keep_gradients(parts: Sequence[Any], plain: Sequence[Any]) -> Iterator[None]:
    """A context after which gradients, and whether tensors require them, are as before."""
    before = [(part, part.grad) for part in parts]
    try:
        yield
    finally:
        for part, gradient in before:
            part.grad = gradient
        for leaf in filter(_requires, plain):  # the function has required it, which other calls must not see
            leaf.requires_grad_(False)


def holders_in(function: Any) -> list[Any]:
    """Return the holders of tensors that a function's code reaches: outermost modules, then other parameters."""
    return [holder for _, holder in named_holders(function)]


def named_holders(function: Any) -> list[tuple[str, Any]]:
    """Return the holders of tensors that a function's code reaches, each with its name in the code."""
    import torch

    code = ReachedCode(function)
    values, names = code.values, names_in(function, [()], code)
    modules = outermost([value for value in values if isinstance(value, torch.nn.Module)])
    inside = {id(parameter) for module in modules for parameter in module.parameters()}
    tensors = [value for value in values if isinstance(value, torch.Tensor) and value.requires_grad and value.is_leaf]
    holders = [*modules, *(tensor for tensor in tensors if id(tensor) not in inside)]
    return [(names.get(id(holder), f"{type(holder).__name__.lower()} {k}"), holder) for k, holder in enumerate(holders)]


def trains(function: Function, call: tuple[Any, ...], changed: Callable[[], Sequence[Any]]) -> bool:
    """Return whether a call shows a function to be a whole training step, whose result needs no differentiation.

    It is one if it leaves gradients, as `backward` does. It is also one if its result requires no gradient and it has
    taken gradients inside, or changed trained tensors. A loss may do these two as well, with a penalty on gradients for
    example.
    """
    with _differentiating() as seen:
        result = function(*call)
    if seen.leaves_gradients:
        return True
    return not _requires(loss_in(result)) and (seen.differentiates or any(_requires(piece.of) for piece in changed()))


@dataclass
class _BackwardPasses:
    differentiates: bool = False
    leaves_gradients: bool = False


@contextmanager
def _differentiating() -> Iterator[_BackwardPasses]:
    """A context that notes each backward pass, whoever starts it."""
    import torch.autograd as autograd

    seen, run = _BackwardPasses(), vars(autograd)["_engine_run_backward"]

    def noting(*args: Any, **options: Any) -> Any:
        seen.differentiates = True
        seen.leaves_gradients |= bool(options.get("accumulate_grad"))
        return run(*args, **options)

    with patch_namespace(vars(autograd), {"_engine_run_backward": noting}):
        yield seen

"""A training step as its author wrote it: it differentiates, and changes parameters, by itself."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FunctionType
from typing import Any

import optree

from compare.engines.step import Function, TrainingFunction

BACKWARD = "backward"
"""What a loss that is differentiated outside does not call."""


def is_training(function: Any) -> bool:
    """Whether a function, or one of its file that it calls, calls `backward`; nothing is run to see it."""
    return any(BACKWARD in code.co_names for code in _codes(function, set()))


def modules_in(function: Any) -> list[Any]:
    """The modules that a function closes over, or names as globals, each once."""
    import torch

    modules = (leaf for leaf in _values(function, ()) if isinstance(leaf, torch.nn.Module))
    return list({id(module): module for module in modules}.values())


class TorchTraining(TrainingFunction):
    """The modules, tensors and optimizers that a training step is given, closes over, or names as globals.

    `run` makes the function that an arm runs.
    """

    def __init__(self, function: Any, calls: Sequence[tuple[Any, ...]], run: Callable[[str], Function]) -> None:
        import torch

        values = list(_values(function, calls))
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

    def nudge(self) -> None:
        """See the base."""
        import torch

        with torch.no_grad():
            for tensor in self.tensors:
                if tensor.is_floating_point():
                    tensor.mul_(1 + torch.finfo(tensor.dtype).eps)


def _cloned(tensor: Any) -> Any:
    return None if tensor is None else tensor.detach().clone()


def _has_state(value: Any) -> bool:
    """Optimizers, schedules of the learning rate and scalers of gradients; the state of a module are its tensors."""
    import torch

    kinds = (torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler, torch.amp.GradScaler)
    return isinstance(value, kinds)


def _values(function: Any, calls: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
    """The leaves of the calls, of what the function closes over, and of the globals that it names."""
    leaves: Any = list(calls)
    yield from optree.tree_leaves(leaves)
    for reached in _functions(function, set()):
        names = {name for code in _nested(reached.__code__) for name in code.co_names}
        named: Any = [value for name, value in reached.__globals__.items() if name in names]
        closed: Any = [cell.cell_contents for cell in reached.__closure__ or ()]
        both: Any = (named, closed)
        yield from optree.tree_leaves(both)


def _codes(function: Any, seen: set[int]) -> Iterator[CodeType]:
    for reached in _functions(function, seen):
        yield from _nested(reached.__code__)


def _functions(function: Any, seen: set[int]) -> Iterator[FunctionType]:
    """The function, and those of its own file that it names."""
    function = getattr(function, "__func__", function)
    if not isinstance(function, FunctionType) or id(function) in seen:
        return
    seen.add(id(function))
    yield function
    for code in _nested(function.__code__):
        for name in code.co_names:
            other = function.__globals__.get(name)
            if isinstance(other, FunctionType) and other.__code__.co_filename == function.__code__.co_filename:
                yield from _functions(other, seen)


def _nested(code: CodeType) -> Iterator[CodeType]:
    """The code, and that of what is defined in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)

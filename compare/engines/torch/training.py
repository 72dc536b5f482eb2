"""A training step as its author wrote it: it differentiates, and changes parameters, by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import optree

from compare.engines.reached import ReachedCode, outermost
from compare.engines.step import Bindable, BoundCall, Function, TrainingFunction, loss_in


def holders_in(function: Any) -> list[Any]:
    """What the code of a function reaches by itself and holds tensors: the outermost modules, then other parameters."""
    import torch

    values = ReachedCode(function).values
    modules = outermost([value for value in values if isinstance(value, torch.nn.Module)])
    inside = {id(parameter) for module in modules for parameter in module.parameters()}
    tensors = [value for value in values if isinstance(value, torch.Tensor) and value.requires_grad and value.is_leaf]
    return [*modules, *(tensor for tensor in tensors if id(tensor) not in inside)]


def trains(function: Function, call: tuple[Any, ...], changed: Callable[[], Sequence[Any]]) -> bool:
    """Whether a function is a whole step, as a call of it shows: nobody need differentiate what it gives.

    It has left gradients, as `backward` does. Or what it gives has none, and it has taken gradients inside, or changed
    what is trained. What is a loss may do that too: one with a penalty on gradients, for one.
    """
    with _differentiating() as seen:
        result = function(*call)
    if seen.leaves_gradients:
        return True
    return not _requires(loss_in(result)) and (seen.differentiates or any(_requires(piece.of) for piece in changed()))


@dataclass
class _Seen:
    differentiates: bool = False
    leaves_gradients: bool = False


@contextmanager
def _differentiating() -> Iterator[_Seen]:
    """Inside, each backward pass is noted, whoever asks for it."""
    import torch.autograd as autograd

    seen, run = _Seen(), vars(autograd)["_engine_run_backward"]

    def noting(*args: Any, **options: Any) -> Any:
        seen.differentiates = True
        seen.leaves_gradients |= bool(options.get("accumulate_grad"))
        return run(*args, **options)

    vars(autograd)["_engine_run_backward"] = noting
    try:
        yield seen
    finally:
        vars(autograd)["_engine_run_backward"] = run


def _requires(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor) and value.requires_grad


class TorchTraining(TrainingFunction):
    """The modules and tensors that a training step is given, or that its code reaches by itself.

    After a call it gives what stands in their places then, and the gradients that were left.
    `run` makes the function that an arm runs. `changed` are pieces of the state that a call has changed.
    """

    def __init__(
        self,
        function: Any,
        calls: Sequence[tuple[Any, ...]],
        run: Callable[[str], Function],
        changed: Sequence[Any] = (),
    ) -> None:
        import torch

        leaves: Any = list(calls)
        values = [*optree.tree_leaves(leaves), *ReachedCode(function).values]
        modules = [inner for value in values if isinstance(value, torch.nn.Module) for inner in value.modules()]
        spaces = [vars(module)[kind] for module in modules for kind in ("_parameters", "_buffers")]
        alone = [value for value in values if _requires(value)]
        alone += [piece.of for piece in changed if not piece.is_argument and _is_float(piece.of)]
        places = [(space, name) for space in spaces for name, tensor in space.items() if tensor is not None]
        places += [({"": tensor}, "") for tensor in alone]
        by_id: dict[int, Any] = {}
        for space, name in places:
            by_id.setdefault(id(space[name]), (space, name))
        self.places = list(by_id.values())
        self.tensors = [space[name] for space, name in self.places]
        self.run = run

    def build(self, arm: str) -> Function:
        """See the base."""
        return _Trained(self.run(arm), self.places)


def _left(tensor: Any) -> Any:
    """The gradient that a step has left; an empty container where there is none."""
    gradient = tensor.grad if tensor is not None and tensor.is_leaf else None
    return () if gradient is None else gradient.to_dense() if gradient.layout is not tensor.layout else gradient


class _Trained(Bindable):
    """`step(*call) -> (what run returns, the state after it)`: what stands in the places, and the gradients left."""

    def __init__(self, run: Function, places: Sequence[tuple[Any, str]]) -> None:
        self.run, self.places = run, places

    def bind(self, *args: Any) -> BoundCall:
        """See the base."""
        return BoundCall(partial(self.run, *args), self._result)

    def _result(self, value: Any) -> tuple[Any, Any]:
        after = [space[name] for space, name in self.places]
        return () if value is None else value, [*after, *map(_left, after)]


def _is_float(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor) and value.is_floating_point()

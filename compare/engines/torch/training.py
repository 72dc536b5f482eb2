"""A training step as its author wrote it: it differentiates, and changes parameters, by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from compare.engines.kinds import names_in
from compare.engines.reach import ReachedCode, outermost
from compare.engines.step import Function, loss_in


def holders_in(function: Any) -> list[Any]:
    """What the code of a function reaches by itself and holds tensors: the outermost modules, then other parameters."""
    return [holder for _, holder in named_holders(function)]


def named_holders(function: Any) -> list[tuple[str, Any]]:
    """The same, each with what the code calls it."""
    import torch

    code = ReachedCode(function)
    values, names = code.values, names_in(function, [()], code)
    modules = outermost([value for value in values if isinstance(value, torch.nn.Module)])
    inside = {id(parameter) for module in modules for parameter in module.parameters()}
    tensors = [value for value in values if isinstance(value, torch.Tensor) and value.requires_grad and value.is_leaf]
    holders = [*modules, *(tensor for tensor in tensors if id(tensor) not in inside)]
    return [(names.get(id(holder), f"{type(holder).__name__.lower()} {k}"), holder) for k, holder in enumerate(holders)]


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

"""The random numbers that the dispatcher sees in a step of PyTorch, for noting and for giving them again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from compare.engines.torch.numbers import array
from compare.errors import UnsupportedError

_PLAIN: Mapping[str, Callable[..., Any]] = {
    "uniform_": lambda drawn, low=0.0, high=1.0: (drawn - low) / ((high - low) or 1.0),
    "normal_": lambda drawn, mean=0.0, std=1.0: (drawn - mean) / (std or 1.0),
    "exponential_": lambda drawn, rate=1.0: drawn * rate,
}
"""The inverse of each in-place draw's options, which follow the tensor: it gives numbers of the plain distribution."""


class DispatchMode(TorchDispatchMode):
    """A context in which `note(op, args, options, result)` replaces the result of each op."""

    def __init__(self, note: Callable[[Any, Any, Any, Any], Any]) -> None:
        super().__init__()
        self.note = note

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        options = kwargs or {}
        return self.note(op, args, options, op(*args, **options))


def _is_drawn(op: Any) -> bool:
    return torch.Tag.nondeterministic_seeded in op.tags


def _is_backward() -> bool:
    """Return whether a backward pass runs now: a checkpoint in it repeats the draws of the forward pass."""
    return int(torch._C._current_graph_task_id()) != -1


def draws(step: Callable[..., Any], call: tuple[Any, ...]) -> list[np.ndarray]:
    """Return the result of each op that draws, in order: uniform in 0 to 1, standard normal, masks, integers."""
    drawn = list[np.ndarray]()

    def note(op: Any, args: Any, _: Any, result: Any) -> Any:
        if _is_drawn(op) and not _is_backward():
            last = result[-1] if isinstance(result, tuple) else result
            plain: Callable[..., Any] = _PLAIN.get(op.overloadpacket.__name__, lambda numbers, *_: numbers)
            drawn.append(np.array(plain(array(last), *(arg for arg in args[1:] if isinstance(arg, (int, float))))))
        return result

    with DispatchMode(note):
        step(*call)
    return drawn


def noting(drawn: list[Any]) -> DispatchMode:
    """A context that appends the result of each op that draws to `drawn`, with those of backward passes."""

    def note(op: Any, _: Any, __: Any, result: Any) -> Any:
        if _is_drawn(op):
            drawn.append(result.clone() if _gives_numbers_alone(op) else None)
        return result

    return DispatchMode(note)


class Giving(DispatchMode):
    """A context in which each op that draws gives the noted numbers, in order, in the op's present dtype.

    Raises UnsupportedError where another number of ops draws, or other shapes, and for an op whose result is not only
    its random numbers: the result of a dropout in one op depends on its argument.
    """

    def __init__(self, drawn: Sequence[Any]) -> None:
        super().__init__(self._given)
        self.left = list(drawn)

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        if self.left and error[0] is None:
            raise UnsupportedError("in float64 it draws fewer random numbers")

    def _given(self, op: Any, _: Any, __: Any, result: Any) -> Any:
        if not _is_drawn(op):
            return result
        numbers = self.left.pop(0) if self.left else None
        if numbers is None or numbers.shape != result.shape:
            raise UnsupportedError(f"in float64 {op} cannot draw the same random numbers")
        return result.copy_(numbers)


def _gives_numbers_alone(func: Any) -> bool:
    """Return whether an op gives one tensor of random numbers only, new or in place of its first argument."""
    name, _, overload = func.name().partition(".")
    schema = torch._C._get_schema(name, overload)
    changes = [argument.name for argument in schema.arguments if argument.is_write]
    return len(schema.returns) == 1 and changes in ([], ["self"], ["out"])

"""The random numbers that a step of PyTorch's draws, as the dispatcher sees them: noted, and given again."""

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
"""What was drawn in place, as the distribution without options: options come after the tensor."""


class DispatchMode(TorchDispatchMode):
    """Inside, an op gives what `note(op, args, options, result)` makes of its result."""

    def __init__(self, note: Callable[[Any, Any, Any, Any], Any]) -> None:
        super().__init__()
        self.note = note

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        options = kwargs or {}
        return self.note(op, args, options, op(*args, **options))


def _is_drawn(op: Any) -> bool:
    return torch.Tag.nondeterministic_seeded in op.tags


def _is_backward() -> bool:
    """Whether a backward pass runs now: a checkpoint in it draws again what it drew before."""
    return int(torch._C._current_graph_task_id()) != -1


def draws(step: Callable[..., Any], call: tuple[Any, ...]) -> list[np.ndarray]:
    """What each op that draws gave, in order: uniform numbers from 0 to 1, normal ones, masks, integers."""
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
    """Inside, what each op that draws gave is appended to `drawn`, that of a backward pass as well."""

    def note(op: Any, _: Any, __: Any, result: Any) -> Any:
        if _is_drawn(op):
            drawn.append(result.clone() if _gives_numbers_alone(op) else None)
        return result

    return DispatchMode(note)


class Giving(DispatchMode):
    """Inside, each op that draws gives what was noted, in its order, in the dtype that is asked for now.

    Raises UnsupportedError where another number of ops draw, or other shapes, and for an op whose result is more than
    what it has drawn: a dropout in one op has its argument in it.
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
    """Whether an op gives one tensor and nothing but what it has drawn, in place of its first argument or anew."""
    name, _, overload = func.name().partition(".")
    schema = torch._C._get_schema(name, overload)
    changes = [argument.name for argument in schema.arguments if argument.is_write]
    return len(schema.returns) == 1 and changes in ([], ["self"], ["out"])

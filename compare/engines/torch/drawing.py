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


class _Ear(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.drawn: list[np.ndarray] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if torch.Tag.nondeterministic_seeded in func.tags and not _is_backward():
            drawn = result[-1] if isinstance(result, tuple) else result
            plain: Callable[..., Any] = _PLAIN.get(func.overloadpacket.__name__, lambda drawn, *_: drawn)
            numbers = [arg for arg in args[1:] if isinstance(arg, (int, float))]
            self.drawn.append(np.array(plain(array(drawn), *numbers)))
        return result


def _is_backward() -> bool:
    """Whether a backward pass runs now: a checkpoint in it draws again what it drew before."""
    return int(torch._C._current_graph_task_id()) != -1


def draws(step: Callable[..., Any], call: tuple[Any, ...]) -> list[np.ndarray]:
    """What each op that draws gave, in order: uniform numbers from 0 to 1, normal ones, masks, integers."""
    with _Ear() as ear:
        step(*call)
    return ear.drawn


class Noting(TorchDispatchMode):
    """Inside, what each op that draws gave is appended to `drawn`, that of a backward pass as well."""

    def __init__(self, drawn: list[Any]) -> None:
        super().__init__()
        self.drawn = drawn

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if torch.Tag.nondeterministic_seeded in func.tags:
            self.drawn.append(result.clone() if _gives_numbers_alone(func) else None)
        return result


class Giving(TorchDispatchMode):
    """Inside, each op that draws gives what was noted, in its order, in the dtype that is asked for now.

    Raises UnsupportedError where another number of ops draw, or other shapes, and for an op whose result is more than
    what it has drawn: a dropout in one op has its argument in it.
    """

    def __init__(self, drawn: Sequence[Any]) -> None:
        super().__init__()
        self.left = list(drawn)

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        if self.left and error[0] is None:
            raise UnsupportedError("in float64 it draws fewer random numbers")

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if torch.Tag.nondeterministic_seeded not in func.tags:
            return result
        numbers = self.left.pop(0) if self.left else None
        if numbers is None or numbers.shape != result.shape:
            raise UnsupportedError(f"in float64 {func} cannot draw the same random numbers")
        return result.copy_(numbers)


def _gives_numbers_alone(func: Any) -> bool:
    """Whether an op gives one tensor and nothing but what it has drawn, in place of its first argument or anew."""
    name, _, overload = func.name().partition(".")
    schema = torch._C._get_schema(name, overload)
    changes = [argument.name for argument in schema.arguments if argument.is_write]
    return len(schema.returns) == 1 and changes in ([], ["self"], ["out"])

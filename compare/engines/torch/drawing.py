"""The random numbers that a step of PyTorch's draws, as the dispatcher sees them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from compare.engines.torch.numbers import array

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

"""`torch.jit`: what programs say to PyTorch's compiler changes nothing, and the compiler is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

__all__ = ["Final", "export", "ignore", "is_scripting", "is_tracing", "unused"]

F = TypeVar("F", bound=Callable[..., Any])


def export(fn: F) -> F:
    """The function itself."""
    return fn


def unused(fn: F) -> F:
    """The function itself."""
    return fn


def ignore(drop: Any = False, **_: Any) -> Any:
    """The function itself; with an option, what gives it back."""
    return drop if callable(drop) else export


_overload_method = export  # a private name of PyTorch's that published models use


def is_scripting() -> bool:
    """False: Python runs the code."""
    return False


def is_tracing() -> bool:
    """False: Python runs the code."""
    return False


def __getattr__(name: str) -> Any:
    """Raise AttributeError with a replacement."""
    raise AttributeError(f"jit has no {name!r}: the dynamic engine runs op by op; compile the function with static.jit")

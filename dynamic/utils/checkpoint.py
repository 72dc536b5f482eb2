"""PyTorch's path `torch.utils.checkpoint`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dynamic.checkpoint import checkpoint as _checkpoint

__all__ = ["checkpoint", "checkpoint_sequential"]


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """`function(*args, **kwargs)`, whose saved values are computed again in backward: see `dynamic.checkpoint`.

    PyTorch's two modes are one here, and what is drawn is always drawn again.
    """
    del use_reentrant, preserve_rng_state
    return _checkpoint(function, *args, **kwargs)


def checkpoint_sequential(functions: Any, segments: int, input: Any, **options: Any) -> Any:
    """The functions one after another, in so many segments, all but the last of which are checkpoints."""
    listed = list(functions)
    size = len(listed) // segments

    def run(part: list[Any]) -> Callable[[Any], Any]:
        def call_part(x: Any) -> Any:
            for function in part:
                x = function(x)
            return x

        return call_part

    for start in range(0, size * (segments - 1), size):
        input = checkpoint(run(listed[start : start + size]), input, **options)
    return run(listed[size * (segments - 1) :])(input)

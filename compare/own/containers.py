"""Containers of a class of its own among the arguments of a function: to our engines they are dicts of their parts.

The function is given its own class again, with what the engine has put in the parts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import static
from compare.engines.containers import CallContainers, is_container
from graphs import tree

Function = Callable[..., Any]


def over_dicts(f: Function, inputs: Sequence[Any]) -> tuple[Function, Sequence[Any]]:
    """The function over dicts and its calls; as they are where no argument holds such a container."""
    calls = list(inputs)
    if not any(map(is_container, tree.leaves(calls))):
        return f, calls
    brought = CallContainers(calls)

    @static.plain  # not converted: it writes into what it makes
    def restored(args: Sequence[Any]) -> Sequence[Any]:
        return brought(args)

    @functools.wraps(f)
    def over(*args: Any) -> Any:
        return f(*restored(args))

    return over, brought.plain

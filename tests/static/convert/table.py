"""A trap: a small program in which one thing of Python is easily converted wrongly, and how it has to end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple


class Trap(NamedTuple):
    """A function f64[4] -> f64[], and whether a conversion must be right or a refusal is what there can be."""

    function: Callable[[Any], Any]
    ends: Literal["right", "refused"]

    @property
    def name(self) -> str:
        """Where it stands: its file and its name."""
        return f"{self.function.__module__.rpartition('.')[2]}.{self.function.__name__}"


TRAPS: list[Trap] = []


def right(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """This trap is converted, and right."""
    TRAPS.append(Trap(function, "right"))
    return function


def refused(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """No graph of a fixed structure says the same, or nothing tells that it is safe: this one is refused."""
    TRAPS.append(Trap(function, "refused"))
    return function

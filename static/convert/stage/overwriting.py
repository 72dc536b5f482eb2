"""`x += y` on tensors: in Python it changes the tensor under all its names, and what shares its memory.

A graph's values stay as they are. So the variable gets a new value, and to read the old one through another name is
refused from then on. What shares memory with it is told by the ops between: a view has the base of its source.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from graphs.errors import ControlFlowError, located
from graphs.ir import INPUT, Node
from static.convert.stage.places import journal
from static.convert.stage.unknown import refuse
from static.trace.symbol import Symbol
from static.trace.tracing import forbidden, memory


class Overwriting:
    """Whether a tensor has been changed in place: a place, so that what a branch does to it is noted."""

    def __init__(self, node: Node) -> None:
        self.owner = node
        self.key = ("tensor", id(node))
        self.label = "a tensor"

    def get(self) -> Any:
        """The error that reading it raises, or None."""
        return forbidden().get(self.owner)

    def put(self, value: Any) -> None:
        """Allow to read it, or forbid it by an error."""
        if value is None:
            forbidden().pop(self.owner, None)
        else:
            forbidden()[self.owner] = value


def overwrite(value: Symbol) -> None:
    """A tensor is changed in place. Raises ControlFlowError for an argument."""
    node = memory(value.node)
    if node.op is INPUT and value.builder.parent is None:
        refuse(
            "an argument is changed in place, and a graph leaves the arrays of its caller as they are; write x = x + y"
        )
    _forbid(node)


def _forbid(node: Node) -> None:
    rule = "a tensor is read that was changed in place under another name, and a graph's values stay as they are"
    still_overwritten([(Overwriting(node), ControlFlowError(located(f"{rule}; write x = x + y")))])


def still_overwritten(places: Iterable[Any]) -> None:
    """What a branch or a loop has changed in place stays changed after it."""
    for place, error in places:
        journal(place)
        place.put(error)

"""Where a tape would have a cotangent: one that only a branch gives is none where another branch is taken."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from graphs.ir import Node
from graphs.ops.elementwise import logical_and, logical_or


class Partial:
    """A bool of the graph, made when it is first asked for: most are never."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._known: Any = None

    def known(self) -> Any:
        """The bool."""
        if self._known is None:
            self._known = self._make()
        return self._known


Reach = Partial | None
"""None stands for a cotangent that a tape has on every path."""


def either(one: Reach, other: Reach) -> Reach:
    """Where one of two contributions is there."""
    return None if one is None or other is None else Partial(lambda: logical_or(one.known(), other.known()))


def both(one: Reach, other: Reach) -> Reach:
    """Where what a contribution is made of is there, and what it goes through is reached."""
    if one is None or other is None:
        return one or other
    return Partial(lambda: logical_and(one.known(), other.known()))


class Reached:
    """Where the nodes of a graph have cotangents, as far as these have been carried back."""

    def __init__(self) -> None:
        self._nodes: dict[Node, Reach] = {}
        self._parts: dict[Node, dict[int, Reach]] = {}

    def of(self, node: Node) -> Reach:
        """Where a node has a cotangent."""
        return self._nodes.get(node)

    def of_parts(self, node: Node) -> Mapping[int, Reach]:
        """Where the parts of a node have cotangents."""
        return self._parts.get(node, {})

    def add(self, node: Node, reach: Reach) -> None:
        """One more contribution to a node."""
        self._nodes[node] = either(self._nodes[node], reach) if node in self._nodes else reach

    def add_part(self, node: Node, number: int, reach: Reach) -> None:
        """One more contribution to a part of a node."""
        parts = self._parts.setdefault(node, {})
        parts[number] = either(parts[number], reach) if number in parts else reach
        self.add(node, reach)

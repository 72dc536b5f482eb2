"""Where a tape would have a cotangent: one that only a branch gives is none where another branch is taken."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from graphs.ir import Graph, Node
from graphs.ops.elementwise import logical_and, logical_or


class Partial:
    """A bool of the graph, made when it is first asked for: most are never.

    One that holds in one `branch` of a switch of two says in which: the node of the index, and whether it is the later.
    """

    def __init__(self, make: Callable[[], Any], branch: tuple[Node, bool] | None = None) -> None:
        self._make = make
        self._flag: Any = None
        self.branch = branch

    def flag(self) -> Any:
        """The bool."""
        if self._flag is None:
            self._flag = self._make()
        return self._flag


Reach = Partial | None
"""None stands for a cotangent that a tape has on every path."""


def either(first: Reach, second: Reach) -> Reach:
    """Where one of two contributions is there."""
    if first is None or second is None or first is second:
        return first and second
    if first.branch and second.branch and first.branch[0] is second.branch[0]:
        return first if first.branch == second.branch else None
    return Partial(lambda: logical_or(first.flag(), second.flag()))


def both(first: Reach, second: Reach) -> Reach:
    """Where what a contribution is made of is there, and what it goes through is reached."""
    if first is None or second is None or first is second:
        return first or second
    return Partial(lambda: logical_and(first.flag(), second.flag()))


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


def graphs_in(node: Node) -> list[Graph]:
    """The graphs that a node of control flow holds."""
    held = [part for value in node.attrs.values() for part in (value if isinstance(value, tuple) else (value,))]
    return [part for part in held if isinstance(part, Graph)]

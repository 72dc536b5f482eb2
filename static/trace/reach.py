"""Where a tape would have a cotangent: one that only a branch gives is none where another branch is taken."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any
from weakref import WeakKeyDictionary

from graphs.builder import Builder
from graphs.ir import Graph, Node
from graphs.ops.elementwise import logical_and, logical_or


class Partial:
    """A bool of the graph, made when it is first asked for: most are never."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._flag: Any = None

    def flag(self) -> Any:
        """The bool."""
        if self._flag is None:
            self._flag = self._make()
        return self._flag


Reach = Partial | None
"""None stands for a cotangent that a tape has on every path."""


def either(first: Reach, second: Reach) -> Reach:
    """Where one of two contributions is there."""
    return None if first is None or second is None else Partial(lambda: logical_or(first.flag(), second.flag()))


def both(first: Reach, second: Reach) -> Reach:
    """Where what a contribution is made of is there, and what it goes through is reached."""
    if first is None or second is None:
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


# Where it matters ----------------------------------------------------------------------------------------------------

_TEXT = """
    exp expm1 sinh cosh
    sqrt log log1p log2 log10 divide reciprocal pow acos acosh asin atanh atan2 hypot logaddexp gammaln polygamma
    ruled betainc gammainc gammaincc stdtr prod cumulative_prod cholesky det slogdet inv pinv solve eigh svd qr
"""
_SINGULAR = frozenset(_TEXT.split())
"""Ops whose value or derivative is infinite, or none, somewhere in what is usual."""
_scanned: WeakKeyDictionary[Builder, tuple[int, bool]] = WeakKeyDictionary()


def graphs_in(node: Node) -> list[Graph]:
    """The graphs that a node of control flow holds."""
    held = [part for value in node.attrs.values() for part in (value if isinstance(value, tuple) else (value,))]
    return [part for part in held if isinstance(part, Graph)]


def is_singular(graph: Graph) -> bool:
    """Whether a graph may compute a value or a derivative that is not finite."""
    return any(map(_is_singular_node, graph.nodes))


def _is_singular_node(node: Node) -> bool:
    return node.op.name in _SINGULAR or any(map(is_singular, graphs_in(node)))


def may_poison(builder: Builder | None) -> bool:
    """Whether a zero cotangent may become NaN in a graph, or in one around it; else nobody asks where it is none."""
    while builder is not None:
        count, poisons = _scanned.get(builder, (0, False))
        poisons = poisons or any(map(_is_singular_node, islice(builder.nodes, count, None)))
        _scanned[builder] = len(builder.nodes), poisons
        if poisons:
            return True
        builder = builder.parent
    return False

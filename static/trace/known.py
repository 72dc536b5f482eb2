"""Values that a trace knows: what follows from constants alone, of which Python may ask while the graph is traced."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from graphs.builder import Builder
from graphs.dims import Dim
from graphs.dispatch import execute
from graphs.ir import Node
from static.trace.views import present

Array = np.ndarray[Any, Any]


def known_value(symbol: Any) -> Array | None:
    """Return the value of a symbol that follows from constants alone, None where only a run can tell it."""
    builder: Builder = symbol.builder
    if builder not in _known:
        _known[builder] = KnownValues(builder)
    return _known[builder].value(present(builder, symbol.node))


class KnownValues:
    """The values of those nodes of a graph that follow from constants alone."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._count, self._nodes = 0, set[Node]()
        self._values: dict[Node, Array] = {}

    def value(self, node: Node) -> Array | None:
        """Return the value of a node, None where only a run can tell it."""
        for new in self._builder.nodes[self._count :]:
            if not new.is_input and not new.subgraphs and all(source in self._nodes for source in new.inputs):
                self._nodes.add(new)
        self._count = len(self._builder.nodes)
        return self._computed(node) if node in self._nodes else None

    def _computed(self, node: Node) -> Array | None:
        if node not in self._values:
            if node.is_constant:
                if isinstance(node.attrs["value"], Dim):
                    return None
                self._values[node] = np.asarray(node.attrs["value"], node.attrs["dtype"])
            else:
                sources = [self._computed(source) for source in node.inputs]
                if any(source is None for source in sources):
                    return None
                self._values[node] = execute(node.op, sources, dict(node.attrs))
        return self._values[node]


_known: WeakKeyDictionary[Builder, KnownValues] = WeakKeyDictionary()

"""Builder: a graph in the making, for a trace and for the record of a run alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphs.dims import Dim
from graphs.ir import CONSTANT, INPUT, Graph, Node
from graphs.op import Attrs, Op
from graphs.ops.movement import identity
from graphs.spec import TensorSpec


class Builder:
    """Appends nodes in the order they are computed; `finish` makes the verified graph."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.inputs: list[Node] = []
        self.nodes: list[Node] = []
        self._same: dict[Node, Node] = {}

    def input(self, name: str, spec: TensorSpec) -> Node:
        """A new input."""
        node = self._add(Node(INPUT, (), {"name": name, "spec": spec}, spec))
        self.inputs.append(node)
        return node

    def constant(self, value: np.ndarray[Any, Any] | Dim, dtype: np.dtype[Any] | None = None) -> Node:
        """A new constant: an array, or a symbolic size as a scalar of `dtype`."""
        kind = np.dtype(np.int64) if isinstance(value, Dim) else value.dtype
        attrs: Attrs = {"value": value, "dtype": dtype or kind}
        return self._add(Node(CONSTANT, (), attrs, CONSTANT.infer(**attrs)))

    def append(self, op: Op, sources: Sequence[Node], attrs: Attrs, line: str = "") -> Node:
        """The node of an op on earlier nodes. Raises what the op's `infer` raises."""
        node = Node(op, sources, attrs, op.infer(*[s.spec for s in sources], **attrs), line)
        if op is identity:
            # Only a mark of what is differentiated apart: the graph itself has no use for it.
            self._same[node] = self._same.get(node.inputs[0], node.inputs[0])
            return node
        node.inputs = tuple([self._same.get(s, s) for s in node.inputs])
        return self._add(node)

    def finish(self, outputs: Sequence[Node]) -> Graph:
        """The graph with these outputs, verified."""
        return Graph(self.name, self.inputs, self.nodes, [self._same.get(o, o) for o in outputs])

    def _add(self, node: Node) -> Node:
        self.nodes.append(node)
        return node

"""What only a gradient needs, taken out of a graph that is finished.

A choice becomes `where`, and a value with a rule of the user's own the value.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from graphs.ir import Graph, Node
from graphs.op import Attrs
from graphs.ops.control import part, ruled_op, switch_op
from graphs.ops.elementwise import where
from graphs.ops.movement import astype
from static.rebuild import replaced

CHOICE = "choice"
"""The name of the branches of a choice, `static/trace/choice.py`."""


def is_choice(attrs: Attrs) -> bool:
    """Whether a switch with these attributes is a choice."""
    return bool(attrs["branches"][0].name == CHOICE)


def lowered(graph: Graph) -> Graph:
    """The graph with `where` in place of each choice, and without rules, in it and in the graphs inside it."""
    instead = {}
    for node in graph.nodes:
        if node.op is part and node.inputs[0].op is ruled_op:
            instead[node] = node.inputs[0].inputs[node.attrs["number"]]
        elif node.op is part and node.inputs[0].op is switch_op and is_choice(node.inputs[0].attrs):
            instead[node] = _where(node)
        elif any(map(_holds_graphs, node.attrs.values())):
            attrs = {key: _lowered(value) for key, value in node.attrs.items()}
            if any(attrs[key] is not value for key, value in node.attrs.items()):
                instead[node] = Node.of(node.op, node.inputs, attrs, node.source)
    return replaced(graph, instead)


def _where(node: Node) -> Node:
    index, then, otherwise = node.inputs[0].inputs
    is_cast = index.op is astype and index.inputs[0].spec.dtype == np.bool_
    test = index.inputs[0] if is_cast else Node.of(astype, [index], {"dtype": np.dtype(np.bool_)}, node.source)
    return Node.of(where, [test, then, otherwise], {}, node.inputs[0].source)


def _holds_graphs(value: Any) -> bool:
    return isinstance(value, Graph) or (isinstance(value, tuple) and bool(value) and isinstance(value[0], Graph))


def _lowered(value: Any) -> Any:
    if isinstance(value, Graph):
        return lowered(value)
    if _holds_graphs(value):
        parts = tuple([lowered(part) for part in value])
        return value if all(map(operator.is_, parts, value)) else parts
    return value

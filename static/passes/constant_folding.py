"""Constant folding: what depends on constants alone is computed once, when the graph is compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphs.dims import is_symbolic
from graphs.dispatch import BROKEN_RULES
from graphs.ir import CONSTANT, Graph, Node
from static.passes.rewrite import rewrite

LARGEST = 1 << 16  # bytes: a larger result would take more memory than it saves time


def fold_constants(graph: Graph) -> Graph:
    """The graph with each op on constants replaced by its result; the bits are those the op would give.

    Views of constants are known, but stay: they cost nothing to run, and folded they would hold memory of their own.
    """
    values: dict[Node, Any] = {}
    return rewrite(graph, lambda node: _folded(node, values))


def _folded(node: Node, values: dict[Node, Any]) -> Node | None:
    if node.op is CONSTANT and not is_symbolic(node.attrs["value"]):
        values[node] = node.attrs["value"]
    if not _foldable(node, values):
        return None
    try:  # a kernel may give a NumPy scalar where an array of no axes is meant
        value = np.asarray(node.op.kernel(*(values[source] for source in node.inputs), **node.attrs))
    except BROKEN_RULES:
        return None  # it may stand in a branch that is never taken; where it runs, it fails there
    if node.op.view:
        values[node] = value
        return None
    folded = Node(CONSTANT, (), {"value": value, "dtype": node.spec.dtype}, node.spec, node.source)
    values[folded] = value
    return folded


def _foldable(node: Node, values: dict[Node, Any]) -> bool:
    if not node.inputs or not values.keys() >= set(node.inputs):
        return False
    if node.op.may_have_effect or any(map(is_symbolic, node.attrs.values())):
        return False
    return node.op.view or node.spec.nbytes <= LARGEST

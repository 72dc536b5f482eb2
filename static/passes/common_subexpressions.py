"""Common subexpressions: the same op on the same inputs is computed once."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphs.ir import INPUT, Graph, Node, format_attr
from static.passes.rewrite import rewrite


def merge_common_subexpressions(graph: Graph) -> Graph:
    """The graph with equal computations merged; ops are functions of their inputs, so the bits stay the same."""
    seen: dict[Any, Node] = {}
    return rewrite(graph, lambda node: seen.setdefault(_key(node), node) if _is_mergeable(node) else None)


def _is_mergeable(node: Node) -> bool:
    return node.op is not INPUT and not node.has_effect


def _key(node: Node) -> Any:
    if not node.attrs:
        return node.op, node.inputs
    return node.op, node.inputs, *[(name, _comparable(value)) for name, value in sorted(node.attrs.items())]


def _comparable(value: Any) -> Any:
    """Something hashable that is equal exactly when two attributes mean the same."""
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype, value.tobytes() if value.nbytes <= 64 else id(value)
    if isinstance(value, tuple):
        return tuple(map(_comparable, value))
    if isinstance(value, Graph):
        return id(value)
    return type(value).__name__, format_attr(value)

"""The results of a branch in the graph: a switch, or `where` on both sides of a branch that computes next to nothing.

Computing both sides must be cheap, and safe: an untaken side may overflow, and its gradient, which is 0, must not meet
an infinity. So only what is linear, compares or picks is computed for both, and products of values from outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphs.ir import CONSTANT, INPUT, Node
from graphs.ops.control import switch_op
from graphs.ops.elementwise import where
from graphs.ops.movement import astype
from static.trace.control import Subgraph, building, emit, finished, nodes_of
from static.trace.symbol import Symbol

MOST_NODES, MOST_ELEMENTS = 8, 256
"""The largest side of a branch that is computed whether it is taken or not."""

_COMPARING = (
    "less less_equal greater greater_equal equal not_equal logical_and logical_or logical_not where minimum maximum"
)
_MOVING = "astype identity reshape expand_dims squeeze index getitem stop_gradient"
_LINEAR = frozenset(f"add subtract negative {_COMPARING} {_MOVING}".split())
_OF_OUTER = frozenset(["multiply", "square", "abs", "tanh", "sin", "cos", "sigmoid", "relu"])


def picked(test: Symbol, branches: Sequence[Subgraph], count: int) -> list[Symbol]:
    """The outputs of the branch that a test picks, 0 if it is false."""
    if all(map(_is_cheap, branches)):
        otherwise, then = map(_computed, branches)
        return [where(test, one, other) for one, other in zip(then, otherwise, strict=True)]
    graphs, captured = finished(*branches)
    sources = [*nodes_of([astype(test, np.int64)]), *captured]
    return emit(switch_op, sources, {"branches": tuple(graphs)}, count)


def _is_cheap(branch: Subgraph) -> bool:
    nodes = [node for node in branch.builder.nodes if node.op not in (INPUT, CONSTANT)]
    return len(nodes) <= MOST_NODES and all(map(_is_safe, nodes))


def _is_safe(node: Node) -> bool:
    size = node.spec.size
    if not isinstance(size, int) or size > MOST_ELEMENTS:
        return False
    return node.op.name in _LINEAR or (node.op.name in _OF_OUTER and all(map(_is_finite_outer, node.inputs)))


def _is_finite_outer(node: Node) -> bool:
    """Whether a value comes from outside of a branch, or is a finite constant."""
    return node.op is INPUT or (node.op is CONSTANT and bool(np.all(np.isfinite(node.attrs["value"]))))


def _computed(branch: Subgraph) -> list[Any]:
    """The outputs of a branch, computed in the enclosing graph."""
    builder = building()
    known = {inside: outer for outer, inside in branch.builder.captured.items()}
    for node in branch.builder.nodes:
        if node.op is CONSTANT:
            known[node] = builder.constant(node.attrs["value"], node.attrs["dtype"])
        elif node.op is not INPUT:
            known[node] = builder.append(node.op, [known[one] for one in node.inputs], node.attrs, node.source)
    return [Symbol(builder, known[output]) for output in branch.outputs]

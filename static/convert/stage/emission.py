"""The results of a branch in the graph: a switch, or `where` if neither side computes anything.

To compute a few cheap ops on both sides was tried: it is slower than a switch, whose gradient computes one side too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphs.ir import CONSTANT, INPUT, Node
from graphs.ops.control import switch_op
from graphs.ops.movement import astype
from static.trace.choice import choice
from static.trace.control import Subgraph, building, emit, finished, nodes_of
from static.trace.symbol import Symbol


def picked(test: Symbol, branches: Sequence[Subgraph], count: int) -> list[Symbol]:
    """The outputs of the branch that a test picks, 0 if it is false."""
    if not any(map(_computes, branches)):
        otherwise, then = ([_outside(branch, output) for output in branch.outputs] for branch in branches)
        return [choice(test, if_true, if_false) for if_true, if_false in zip(then, otherwise, strict=True)]
    graphs, captured = finished(*branches)
    sources = [*nodes_of([astype(test, np.int64)]), *captured]
    return emit(switch_op, sources, {"branches": tuple(graphs)}, count)


def _computes(branch: Subgraph) -> bool:
    return any(node.op not in (INPUT, CONSTANT) for node in branch.builder.nodes)


def _outside(branch: Subgraph, output: Node) -> Any:
    """What a branch returns, as a value of the enclosing graph."""
    builder = building()
    if output.op is CONSTANT:
        return Symbol(builder, builder.constant(output.attrs["value"], output.attrs["dtype"]))
    outer = next(node for node, inside in branch.builder.captured.items() if inside is output)
    return Symbol(builder, outer)

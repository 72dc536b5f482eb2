"""Decomposition: ops that are made of simpler ones become these, of which other passes know more.

softmax    exp(x - max(x)) / sum(...): elementwise ops and sums over rows, which fuse with what is around them
stack      a concat

Bits stay, since an op's parts have the bits of its kernel. It comes after differentiation, so that the gradient is
that of the whole op, as on the tape.
"""

from __future__ import annotations

from graphs.builder import Builder
from graphs.ir import Graph, Node
from static.passes.rewrite import rewrite
from static.trace.symbol import Symbol
from static.trace.tracing import tracing


def decompose(graph: Graph) -> Graph:
    """The graph without the ops that tell their parts."""
    return rewrite(graph, parts_of)


def parts_of(node: Node) -> Node | None:
    """The last of the nodes that do what an op does, put down to its line; None for an op without parts."""
    if node.op.parts is None:
        return None
    builder = Builder(node.op.name)
    builder.line = node.source
    with tracing(builder):
        result: Symbol = node.op.parts(*[Symbol(builder, source) for source in node.inputs], **node.attrs)
    return result.node

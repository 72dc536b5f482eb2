"""Products merged: those that share an operand are one product with the others side by side.

x @ wq, x @ wk, x @ wv      y = x @ concat([wq, wk, wv], axis=1); its columns
x1 @ w, x2 @ w, ...         y = concat([x1, x2, ...], axis=0) @ w; its rows

Joining weights costs a copy of them in each call, unless they are constants, and columns are read more slowly than a
matrix of their own: products are merged where reading the shared operand once, and the calls that go, save more. What
is joined is given to the graph, or a view of that, so that no product waits for another. **This changes bits**: BLAS
sums a product of another shape in another order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from graphs.ir import CONSTANT, INPUT, Graph, Node
from graphs.ops.linalg import matmul
from graphs.ops.slicing import getitem
from static.passes.constant_folding import LARGEST
from static.passes.together import CALL, joined, nbytes
from static.passes.views import bounds
from static.rebuild import replaced


def merge_products(graph: Graph) -> Graph:
    """The graph with products that share an operand merged, where that pays."""
    groups: dict[tuple[int, Node], list[Node]] = defaultdict(list)
    for node in graph.nodes:
        if node.op is matmul and all(source.spec.ndim == 2 for source in node.inputs):
            for side in (0, 1):
                if _is_given(node.inputs[1 - side]):
                    groups[side, node.inputs[side]].append(node)
    instead: dict[Node, Node] = {}
    for (side, shared), members in groups.items():
        rest = [node for node in members if node not in instead and node.spec.dtype == members[0].spec.dtype]
        if len({node.inputs[1 - side] for node in rest}) == len(rest) > 1 and _pays(rest, side, shared):
            instead |= _merged(rest, side, shared)
    return replaced(graph, instead)


def _is_given(node: Node) -> bool:
    while node.op.view and node.inputs:
        node = node.inputs[0]
    return node.op in (INPUT, CONSTANT)


def _pays(members: Sequence[Node], side: int, shared: Node) -> bool:
    """Whether reading the shared operand once, in one call, saves more than it costs.

    That is to move the others together, and to read results that lie in columns.
    """
    saved = (len(members) - 1) * (CALL + nbytes(shared))
    others = [node.inputs[1 - side] for node in members]
    size = sum(map(nbytes, others))
    cost = 0 if size <= LARGEST and all(other.op is CONSTANT for other in others) else CALL + 2 * size
    return saved > cost + (sum(map(nbytes, members)) if side == 0 else 0)


def _merged(members: Sequence[Node], side: int, shared: Node) -> dict[Node, Node]:
    axis = 1 - side  # the axis of the other operands, and of the result, along which they lie side by side
    other = joined([node.inputs[1 - side] for node in members], axis, members[0].source)
    whole = Node.of(matmul, [shared, other] if side == 0 else [other, shared], {}, members[0].source)
    keys = [(*[slice(None)] * axis, slice(*place), *[slice(None)] * (1 - axis)) for place in bounds(members, axis)]
    return {n: Node.of(getitem, [whole], {"key": key}, n.source) for n, key in zip(members, keys, strict=True)}

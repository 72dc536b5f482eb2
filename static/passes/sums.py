"""Sums merged: products that are added up become one product, and sums of rows that are added up one sum.

a1 @ b1 + a2 @ b2 + ...                    concat([a1, a2, ...], axis=1) @ concat([b1, b2, ...], axis=0)
sum(x1, axis=0) + sum(x2, axis=0) + ...    sum(concat([x1, x2, ...]), axis=0)

This is the gradient of a weight that a loop over time steps reads: `dw = sum over t of x_t^T @ dz_t` is one product
over all steps. What is already part of one array is not joined but taken whole, and transposed operands are joined as
they were before. **This changes bits**: the sums are made in another order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from graphs.dims import Size
from graphs.ir import Graph, Node
from graphs.op import Op
from graphs.ops import elementwise, movement, reductions
from graphs.ops.linalg import matmul
from static.passes.rewrite import Uses, count_uses
from static.passes.together import CALL, in_order, joined, nbytes
from static.rebuild import replaced


def merge_sums(graph: Graph) -> Graph:
    """The graph with products and sums that are added up merged, where what that saves is more than joining costs."""
    return _Merging(graph).run()


class _Merging:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.uses = count_uses(graph)
        self.position = {node: i for i, node in enumerate(graph.nodes)}
        self.joins: dict[Any, Node] = {}

    def run(self) -> Graph:
        instead: dict[Node, Node] = {}
        absorbed: set[Node] = set()
        roots = [
            (node, terms(node, self.uses, absorbed))
            for node in reversed(self.graph.nodes)
            if node.op is elementwise.add and node not in absorbed and node.spec.is_float
        ]
        # Products first: the sums of rows can then read what was joined for them.
        for kind in (matmul, reductions.sum):
            for root, leaves in roots:
                self._merge(root, leaves, kind, instead)
        return replaced(self.graph, instead)

    def _merge(self, root: Node, leaves: list[Node], kind: Op, instead: dict[Node, Node]) -> None:
        groups: dict[Any, list[Node]] = defaultdict(list)
        for leaf in leaves:
            if leaf.op is kind and self.uses[leaf] == 1 and leaf.spec == root.spec:
                groups[_alike(leaf)].append(leaf)
        made: list[Node] = []
        members: set[Node] = set()
        for group in groups.values():
            operands = self._operands(group) if len(group) > 1 else []
            if operands and _pays(group, operands):
                made.append(Node.of(kind, operands, group[0].attrs, group[0].source))
                members.update(group)
        if made:
            leaves[:] = [*(leaf for leaf in leaves if leaf not in members), *made]
            instead[root] = _added(leaves, root.source)

    def _operands(self, group: Sequence[Node]) -> list[Node]:
        """The operands of all members, joined in the order in which the first ones were computed."""
        first = [member.inputs[0] for member in group]
        if group[0].op is reductions.sum and (frozenset(first), 0) in self.joins:
            return [self.joins[frozenset(first), 0]]
        order = in_order(first, self.position)
        axes = (1, 0) if group[0].op is matmul else (0,)
        return [self._joined([group[i].inputs[k] for i in order], axis) for k, axis in enumerate(axes)]

    def _joined(self, parts: Sequence[Node], axis: int) -> Node:
        key = (tuple(parts), axis)
        if key not in self.joins:
            self.joins[key] = joined(parts, axis, parts[0].source)
            self.joins.setdefault((frozenset(parts), axis), self.joins[key])
        return self.joins[key]


def terms(root: Node, uses: Uses, absorbed: set[Node]) -> list[Node]:
    """What a tree of additions adds up, in order; its inner additions, which nothing else reads, are `absorbed`."""
    addends: list[Node] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        inner = node is root or (node.op is elementwise.add and uses[node] == 1 and node.spec == root.spec)
        if inner:
            absorbed.add(node)
            waiting += reversed(node.inputs)
        else:
            addends.append(node)
    return addends


def _added(leaves: Sequence[Node], source: str) -> Node:
    total = leaves[0]
    for leaf in leaves[1:]:
        total = Node.of(elementwise.add, [total, leaf], {}, source)
    return total


def _alike(leaf: Node) -> Any:
    """What leaves must have in common to be merged; a leaf that can not be merged is alike to itself alone."""
    first = leaf.inputs[0].spec
    if leaf.op is matmul:
        fits = first.ndim == 2 and leaf.inputs[1].spec.ndim == 2
        return (first.dtype, leaf.inputs[1].spec.dtype) if fits else leaf
    axis, keepdims = leaf.attrs["axis"], leaf.attrs["keepdims"]
    fits = 0 in axis and first.dtype == leaf.spec.dtype
    return (first.dtype, axis, keepdims, _sizes(first.shape[1:])) if fits else leaf


def _sizes(shape: Iterable[Size]) -> tuple[str, ...]:
    return tuple(map(str, shape))


def _pays(group: Sequence[Node], operands: Sequence[Node]) -> bool:
    """Whether the additions and calls that go cost more than moving the operands together."""
    saved = (len(group) - 1) * (3 * nbytes(group[0]) + 2 * CALL)
    return saved > sum(2 * nbytes(operand) + CALL for operand in operands if _is_moved(operand))


def _is_moved(operand: Node) -> bool:
    while operand.op is movement.permute_dims:
        operand = operand.inputs[0]
    return operand.op is movement.concat

"""Rewriting: one walk over a graph in order, each node replaced, kept, or rebuilt on its new inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import chain

from graphs.ir import Graph, Node
from static.rebuild import rebuilt

RewriteRule = Callable[[Node], Node | None]
Uses = Counter[Node]

_MOST = 16  # how often rules may replace what a rule has made: far more than any chain of them needs


def rewrite(graph: Graph, rule: RewriteRule, uses: Uses | None = None) -> Graph:
    """The graph after `rule(node)`: a node to use instead, which may be new or an earlier one, or None to keep it.

    The rule sees nodes whose inputs are rewritten already, and what it makes itself, until it has nothing to say.
    Where it looks at how often nodes are read, as `count_uses` says, `uses` is given here too and stays true meanwhile.
    Nodes that nothing reads any more are left for dead code. A graph in which nothing changes is returned as it is.
    """
    made: dict[Node, Node] = {}  # only what changes, so that a walk in which nothing does is cheap
    order: dict[Node, None] = {}
    stays = made.keys().isdisjoint
    for node in graph.nodes:
        current = node if stays(node.inputs) else rebuilt(node, made)
        replacement = rule(current)
        if replacement is not None and replacement is not current:
            current = _settled(current, replacement, rule, uses, order)
            _place(current, order)
        else:
            order[current] = None
        if current is not node:
            made[node] = current
            if uses is not None:
                uses[current] += uses[node]
    if not made:
        return graph
    ends = [[made.get(node, node) for node in nodes] for nodes in (graph.inputs, graph.outputs)]
    return Graph(graph.name, ends[0], order, ends[1])


def count_uses(graph: Graph) -> Uses:
    """How often each node is read, by nodes and as an output."""
    uses: Uses = Counter(chain.from_iterable([node.inputs for node in graph.nodes]))
    uses.update(graph.outputs)
    return uses


def _settled(
    node: Node, replacement: Node | None, rule: RewriteRule, uses: Uses | None, order: Mapping[Node, None]
) -> Node:
    """What rules make of a node, and of each node that they make for it, until they have nothing more to say."""
    for _ in range(_MOST):
        if replacement is None or replacement is node:
            return node
        is_placed = replacement in order
        if uses is not None:
            _read_instead(node, None if is_placed else replacement, uses)
        if is_placed:
            return replacement
        new = {n: _settled(n, rule(n), rule, uses, order) for n in replacement.inputs if n not in order}
        if uses is not None:
            uses.update({settled: uses[made] for made, settled in new.items() if settled is not made})
        node = rebuilt(replacement, new)
        replacement = rule(node)
    return node


def _read_instead(old: Node, new: Node | None, uses: Uses) -> None:
    """Count what a node reads that is new, and no more what the old one did.

    In this order, since most of what they read is the same: it would be taken for dead in between, with all that it is
    computed from, and a walk over that for each replacement takes quadratic time.
    """
    if new is not None:
        _count(new, uses, 1)
    _count(old, uses, -1)


def _count(node: Node, uses: Uses, reads: int) -> None:
    """Count what a node reads once more, or once less; and what that reads, where it is read first or no more."""
    waiting = [node]
    while waiting:
        for source in waiting.pop().inputs:
            uses[source] += reads
            if uses[source] == (reads > 0):
                waiting.append(source)


def _place(node: Node, order: dict[Node, None]) -> None:
    """Put a node after those of its inputs that a rule has made and nobody has placed yet."""
    for source in node.inputs:
        if source not in order:
            _place(source, order)
    order[node] = None

"""Rewriting: one walk over a graph in order, each node replaced, kept, or rebuilt on its new inputs."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain

from graphs.ir import Graph, Node, ancestors

Rule = Callable[[Node], Node | None]
Uses = Counter[Node]

_MOST = 16  # how often rules may replace what a rule has made: far more than any chain of them needs


def rewrite(graph: Graph, rule: Rule) -> Graph:
    """The graph after `rule(node)`: a node to use instead, which may be new or an earlier one, or None to keep it.

    The rule sees nodes whose inputs are rewritten already, and what it makes itself, until it has nothing to say.
    Nodes that nothing reads any more are left for dead code. A graph in which nothing changes is returned as it is.
    """
    return _walk(graph, rule, None)


def rewrite_with_uses(graph: Graph, rule_of: Callable[[Uses], Rule]) -> Graph:
    """The same with `rule_of(uses)`, where `uses` tells how many nodes and outputs read a node."""
    uses = count_uses(graph)
    return _walk(graph, rule_of(uses), uses)


def _walk(graph: Graph, rule: Rule, uses: Uses | None) -> Graph:
    made: dict[Node, Node] = {}  # only what changes, so that a walk in which nothing does is cheap
    order: dict[Node, None] = {}
    for node in graph.nodes:
        current = rebuilt(node, made)
        found = rule(current)
        if found is not None and found is not current:
            current = _settled(current, found, rule, uses, order)
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


def rebuilt(node: Node, made: Mapping[Node, Node]) -> Node:
    """The node on what was made of its inputs; those that are not in `made` stay."""
    if made.keys().isdisjoint(node.inputs):
        return node
    inputs = [made.get(source, source) for source in node.inputs]
    return node if all(map(operator.is_, inputs, node.inputs)) else node.on(inputs)


def _settled(node: Node, found: Node | None, rule: Rule, uses: Uses | None, order: Mapping[Node, None]) -> Node:
    """What rules make of a node, and of each node that they make for it, until they have nothing more to say."""
    for _ in range(_MOST):
        if found is None or found is node:
            return node
        known = found in order
        if uses is not None:
            _read_instead(node, None if known else found, uses)
        if known:
            return found
        new = {n: _settled(n, rule(n), rule, uses, order) for n in found.inputs if n not in order}
        if uses is not None:
            uses.update({settled: uses[made] for made, settled in new.items() if settled is not made})
        node = rebuilt(found, new)
        found = rule(node)
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


def replaced(graph: Graph, instead: Mapping[Node, Node]) -> Graph:
    """The graph with nodes replaced by others, which may be made of any nodes, replaced ones included.

    What is new comes right before what first reads it; everything else keeps its order, and what nobody reads goes.
    No new node may depend on one that it stands for. Where effects would change places the graph stays as it is.
    """
    if not instead:
        return graph
    made: dict[Node, Node] = {}
    for node in (*graph.inputs, *_live(graph, instead)):
        _make(node, instead, made)
    order = dict.fromkeys(made.values())
    if not is_in_order([made[n] for n in graph.effects], order):
        return graph
    return Graph(graph.name, [made[n] for n in graph.inputs], order, [made[n] for n in graph.outputs])


def is_in_order(nodes: Sequence[Node], order: Iterable[Node]) -> bool:
    """Whether these nodes come in this order."""
    wanted = set(nodes)
    return len(wanted) < 2 or [node for node in order if node in wanted] == list(nodes)


def collected(name: str, inputs: Sequence[Node], outputs: Sequence[Node], order: Iterable[Node] = ()) -> Graph:
    """The graph of all that these outputs are computed from, nodes of `order` in that order where they can be."""
    live = ancestors(outputs)
    made: dict[Node, Node] = {}
    for node in (*inputs, *(node for node in order if node in live), *outputs):
        _make(node, {}, made)
    return Graph(name, inputs, made, outputs)


def _live(graph: Graph, instead: Mapping[Node, Node]) -> list[Node]:
    """The nodes of the graph that are still read, or have an effect, in its order."""
    seen: set[Node] = set()
    waiting = [*graph.outputs, *graph.effects]
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting += [instead[node]] if node in instead else node.inputs
    return [node for node in graph.nodes if node in seen]


def _make(node: Node, instead: Mapping[Node, Node], made: dict[Node, Node]) -> None:
    """Enter what stands for a node, after all that it is made of; without recursion, since graphs are deep."""
    waiting = [node]
    while waiting:
        one = waiting[-1]
        missing = [n for n in sources(one, instead) if n not in made]
        if missing and one not in made:
            waiting += reversed(missing)
            continue
        waiting.pop()
        if one not in made:
            made[one] = made[instead[one]] if one in instead else rebuilt(one, made)


def sources(node: Node, instead: Mapping[Node, Node]) -> Iterable[Node]:
    """What a node is made of: its inputs, or what stands for it."""
    return (instead[node],) if node in instead else node.inputs

"""Graphs made again with some of their nodes replaced, or from what some outputs need: each in one walk."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence

from graphs.ir import Graph, Node, ancestors


def rebuild_node(node: Node, made: Mapping[Node, Node]) -> Node:
    """The node on what was made of its inputs; those that are not in `made` stay."""
    if made.keys().isdisjoint(node.inputs):
        return node
    inputs = [made.get(source, source) for source in node.inputs]
    return node if all(map(operator.is_, inputs, node.inputs)) else node.on(inputs)


def replace_nodes(graph: Graph, instead: Mapping[Node, Node]) -> Graph:
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


def collect_graph(name: str, inputs: Sequence[Node], outputs: Sequence[Node], order: Iterable[Node] = ()) -> Graph:
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
        current = waiting[-1]
        missing = [n for n in sources(current, instead) if n not in made]
        if missing and current not in made:
            waiting += reversed(missing)
            continue
        waiting.pop()
        if current not in made:
            made[current] = made[instead[current]] if current in instead else rebuild_node(current, made)


def sources(node: Node, instead: Mapping[Node, Node]) -> Iterable[Node]:
    """What a node is made of: its inputs, or what stands for it."""
    return (instead[node],) if node in instead else node.inputs

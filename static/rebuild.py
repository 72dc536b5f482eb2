"""Graphs built again: with some nodes replaced by others, or with the nodes alone that given outputs need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from graphs.ir import Graph, Node, ancestors

N = TypeVar("N", Node, int)


def rebuild_node(node: Node, made: Mapping[Node, Node]) -> Node:
    """Return the node on the new inputs that `made` maps its inputs to; inputs that are not in `made` stay."""
    if made.keys().isdisjoint(node.inputs):
        return node
    inputs = tuple([made.get(source, source) for source in node.inputs])
    return node if inputs == node.inputs else node.on(inputs)


def replace_nodes(graph: Graph, instead: Mapping[Node, Node]) -> Graph:
    """Return the graph with the keys of `instead` replaced by their values.

    A value may read any nodes, replaced ones included. A new node comes right before its first reader. All other nodes
    keep their order, and nodes without a reader go. No new node may depend on the node that it replaces. The graph
    stays as it is where effects would change their order.
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


def is_in_order(nodes: Sequence[N], order: Iterable[N]) -> bool:
    """Whether these nodes, or numbers of nodes, come in this order."""
    wanted = set(nodes)
    return len(wanted) < 2 or [node for node in order if node in wanted] == list(nodes)


def collect_graph(name: str, inputs: Sequence[Node], outputs: Sequence[Node], order: Iterable[Node] = ()) -> Graph:
    """Return the graph that these outputs are computed from, in the order of `order` where possible."""
    live = ancestors(outputs)
    made: dict[Node, Node] = {}
    for node in (*inputs, *(node for node in order if node in live), *outputs):
        _make(node, {}, made)
    return Graph(name, inputs, made, outputs)


def _live(graph: Graph, instead: Mapping[Node, Node]) -> list[Node]:
    """Return the nodes that are still read after the replacement, or have an effect, in the graph's order."""
    seen: set[Node] = set()
    waiting = [*graph.outputs, *graph.effects]
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting += [instead[node]] if node in instead else node.inputs
    return [node for node in graph.nodes if node in seen]


def _make(node: Node, instead: Mapping[Node, Node], made: dict[Node, Node]) -> None:
    """Enter in `made` the new node for a node, after those of its inputs; no recursion, since graphs are deep."""
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
    """Return the nodes that a node is made from: its replacement where it has one, else its inputs."""
    return (instead[node],) if node in instead else node.inputs

"""Rewriting: one walk over a graph in order, each node replaced, kept, or rebuilt on its new inputs."""

from __future__ import annotations

from collections.abc import Callable

from graphs.ir import Graph, Node

Rule = Callable[[Node], Node | None]


def rewrite(graph: Graph, rule: Rule) -> Graph:
    """The graph after `rule(node)`: a node to use instead, which may be new or an earlier one, or None to keep it.

    The rule sees nodes whose inputs are rewritten already. Nodes that nothing reads any more are left for dead code.
    """
    made: dict[Node, Node] = {}
    order: dict[Node, None] = {}
    for node in graph.nodes:
        current = _rebuilt(node, made)
        found = rule(current)
        made[node] = current if found is None else found
        for new in _with_new_inputs(made[node], order):
            order[new] = None
    inputs = [made[node] for node in graph.inputs]
    return Graph(graph.name, inputs, order, [made[node] for node in graph.outputs])


def _rebuilt(node: Node, made: dict[Node, Node]) -> Node:
    inputs = [made[source] for source in node.inputs]
    if all(new is old for new, old in zip(inputs, node.inputs, strict=True)):
        return node
    return Node(node.op, inputs, node.attrs, node.spec, node.source)


def _with_new_inputs(node: Node, order: dict[Node, None]) -> list[Node]:
    """A node after those of its inputs that a rule has made and nobody has placed yet."""
    if node in order:
        return []
    placed: list[Node] = []
    for source in node.inputs:
        placed += [new for new in _with_new_inputs(source, order) if new not in placed]
    return [*placed, node]

"""Dead code: nodes that no output depends on."""

from __future__ import annotations

from graphs.ir import Graph, Node


def remove_dead_code(graph: Graph) -> Graph:
    """The graph without the nodes that no output reads; inputs stay, because callers pass them."""
    live: set[Node] = set(graph.inputs) | set(graph.outputs)
    for node in reversed(graph.nodes):
        if node in live:
            live.update(node.inputs)
    return Graph(graph.name, graph.inputs, [node for node in graph.nodes if node in live], graph.outputs)

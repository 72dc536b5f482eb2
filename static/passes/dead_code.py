"""Dead code: nodes that no output and no effect depends on."""

from __future__ import annotations

from graphs.ir import Graph, Node


def remove_dead_code(graph: Graph) -> Graph:
    """The graph without the nodes that nothing it is run for reads; inputs stay, because callers pass them."""
    live: set[Node] = {*graph.inputs, *graph.outputs, *graph.effects}
    for node in reversed(graph.nodes):
        if node in live:
            live.update(node.inputs)
    if len(live) == len(graph):
        return graph
    return Graph(graph.name, graph.inputs, [node for node in graph.nodes if node in live], graph.outputs)

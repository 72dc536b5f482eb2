"""Which inputs of a graph its gradient reaches, and where the way to the others is cut."""

from __future__ import annotations

from graphs.ir import INPUT, Graph, Node


def unreached(graph: Graph) -> dict[str, list[Node]]:
    """The floating point inputs that get no gradient from the outputs, each with the nodes at which it stops.

    A node stops a gradient when its op has no rule for that input, or when its result is no float. The list is
    empty for an input that nothing reads, or that is read only for what is thrown away.
    """
    users = graph.users()
    reached = _reached(graph)
    return {
        str(node.attrs["name"]): _stops(node, users)
        for node in graph.nodes
        if node.op is INPUT and node.spec.is_float and node not in reached
    }


def _reached(graph: Graph) -> set[Node]:
    reached = {output for output in graph.outputs if output.spec.is_float}
    for node in reversed(graph.nodes):
        if node in reached:
            reached.update(source for i, source in enumerate(node.inputs) if _passes(node, i))
    return reached


def _stops(start: Node, users: dict[Node, list[Node]]) -> list[Node]:
    """The nodes where the gradients of everything that is computed from a node end, in the order they are found."""
    stops: dict[Node, None] = {}
    seen, queue = {start}, [start]
    for node in queue:
        for user in users[node]:
            if not any(_passes(user, i) for i, source in enumerate(user.inputs) if source is node):
                stops[user] = None
            elif user not in seen:
                seen.add(user)
                queue.append(user)
    return list(stops)


def _passes(node: Node, index: int) -> bool:
    """Whether a gradient passes from a node to one of its inputs; control flow passes it to what its parts use."""
    if node.op.family == "control":
        return True
    return node.spec.is_float and node.op.rule(index) is not None

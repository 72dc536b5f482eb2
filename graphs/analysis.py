"""Analyses of graphs: whether two graphs are the same labelled graph, and which inputs the gradient does not reach.

Read `isomorphic` first, then `nodes_without_gradient`, which says at which nodes the gradient stops.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from graphs.ir import Graph, Node

if TYPE_CHECKING:
    import networkx as nx


def _contents(graph: Graph) -> str:
    """A hash of a subgraph that does not depend on the source lines of its nodes."""
    return hashlib.sha256("".join(_hashes(_hash_graph(graph))).encode()).hexdigest()[:16]


def _hashes(graph: nx.DiGraph[int]) -> list[str]:
    return sorted(text for _, text in graph.nodes(data="hash"))


def isomorphic(first: Graph, second: Graph) -> bool:
    """Whether two graphs are the same labelled graph: same ops, specs, attributes, wiring and outputs, in any order.

    Each node is first labelled with a hash of everything it is computed from and everything computed from it. The
    search (VF2++, Jüttner and Madarasi, 2018) then compares only nodes with the same hash.
    """
    import networkx as nx  # only here: a worker that compares no graphs need not wait for it

    left, right = _hash_graph(first), _hash_graph(second)
    if _hashes(left) != _hashes(right):
        return False
    return bool(nx.vf2pp_is_isomorphic(left, right, node_label="hash"))


def _hash_graph(graph: Graph) -> nx.DiGraph[int]:
    hashes = {node: _hash(node.label, *map(_contents, node.subgraphs), _place(graph, node)) for node in graph.nodes}
    classes = 0
    while classes < len(set(hashes.values())):
        classes = len(set(hashes.values()))
        hashed: dict[Node, str] = {}
        for node in graph.nodes:
            hashed[node] = _hash(hashes[node], *(hashed[source] for source in node.inputs))
        hashes = _with_users(graph, hashed)
    result = graph.to_networkx()
    for i, node in enumerate(graph.nodes):
        result.nodes[i]["hash"] = hashes[node]
    return result


def _place(graph: Graph, node: Node) -> str:
    """Text that says which input and which outputs of the graph a node is; empty for an inner node."""
    inputs = [f"<{i}" for i, end in enumerate(graph.inputs) if end is node]
    return "".join(inputs + [f">{i}" for i, end in enumerate(graph.outputs) if end is node])


def _with_users(graph: Graph, hashes: Mapping[Node, str]) -> dict[Node, str]:
    hashed: dict[Node, str] = {}
    uses: dict[Node, list[str]] = {node: [] for node in graph.nodes}
    for node in reversed(graph.nodes):
        hashed[node] = _hash(hashes[node], *sorted(uses[node]))
        for position, source in enumerate(node.inputs):
            uses[source].append(f"{position} {hashed[node]}")
    return hashed


def _hash(*parts: str) -> str:
    return hashlib.sha256("|".join(parts).encode()).hexdigest()


def nodes_without_gradient(graph: Graph) -> dict[str, list[Node]]:
    """Map each floating point input that gets no gradient from the outputs to the nodes at which its gradient stops.

    A node stops a gradient when its op has no rule for that input, or when its result is not floating point. The list
    is empty for an input that no node reads, or whose results reach no output.
    """
    users = graph.users()
    reached = _nodes_on_path(graph)
    return {
        str(node.attrs["name"]): _stops(node, users)
        for node in graph.nodes
        if node.is_input and node.spec.is_float and node not in reached
    }


def _nodes_on_path(graph: Graph) -> set[Node]:
    reached = {output for output in graph.outputs if output.spec.is_float}
    for node in reversed(graph.nodes):
        if node in reached:
            reached.update(source for i, source in enumerate(node.inputs) if _passes(node, i))
    return reached


def _stops(start: Node, users: dict[Node, list[Node]]) -> list[Node]:
    """The nodes that stop the gradient on its way from the outputs to `start`, in breadth-first order."""
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
    """Whether a gradient passes from a node to its input number `index`; a control-flow op always passes it."""
    if node.op.family == "control":
        return True
    return node.spec.is_float and node.op.rule(index) is not None

"""Graphs as networkx sees them: export, labels, and whether two graphs are the same graph."""

from __future__ import annotations

import hashlib

import networkx as nx
import numpy as np

from graphs.ir import CONSTANT, INPUT, Graph, Node, format_attr


def to_networkx(graph: Graph) -> nx.DiGraph[int]:
    """A DiGraph over node numbers; `op`, `spec`, `label`, `source` on nodes, the argument `positions` on edges."""
    number = {node: i for i, node in enumerate(graph.nodes)}
    result: nx.DiGraph[int] = nx.DiGraph(name=graph.name)
    for node, i in number.items():
        result.add_node(i, op=node.op.name, spec=str(node.spec), label=label(node), source=node.source)
    for node, i in number.items():
        for position, source in enumerate(node.inputs):
            if result.has_edge(number[source], i):
                result.edges[number[source], i]["positions"] += (position,)
            else:
                result.add_edge(number[source], i, positions=(position,))
    return result


def label(node: Node) -> str:
    """What a node is, apart from where it stands: op, spec, attributes, and the data of a constant."""
    if node.op is INPUT:
        return f"input {node.spec}"
    if node.op is CONSTANT:
        return f"constant {node.spec} {_digest(node.attrs['value'])}"
    attrs = ", ".join(f"{key}={_whole(value)}" for key, value in sorted(node.attrs.items()))
    return f"{node.op.name} {node.spec} {attrs}"


def _whole(value: object) -> str:
    return str(value) if isinstance(value, Graph) else format_attr(value)


def _digest(value: object) -> str:
    return (
        hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:16]
        if isinstance(value, np.ndarray)
        else str(value)
    )


def isomorphic(first: Graph, second: Graph) -> bool:
    """Whether two graphs are the same labelled graph: same ops, specs, attributes, wiring and outputs, in any order.

    Nodes are labelled with a hash of all that they are computed from, so that the search (VF2++, Jüttner and
    Madarasi, 2018) seldom meets two candidates.
    """
    left, right = _hashed(first), _hashed(second)
    if sorted(nx.get_node_attributes(left, "hash").values()) != sorted(nx.get_node_attributes(right, "hash").values()):
        return False
    return bool(nx.vf2pp_is_isomorphic(left, right, node_label="hash"))


def _hashed(graph: Graph) -> nx.DiGraph[int]:
    result = to_networkx(graph)
    order = {node: i for i, node in enumerate(graph.nodes)}
    hashes: dict[Node, str] = {}
    for node in graph.nodes:
        place = f"#{graph.inputs.index(node)}" if node.op is INPUT else ""
        place += "".join(f">{i}" for i, output in enumerate(graph.outputs) if output is node)
        text = "|".join((label(node) + place, *(hashes[source] for source in node.inputs)))
        hashes[node] = hashlib.sha256(text.encode()).hexdigest()
        result.nodes[order[node]]["hash"] = hashes[node]
    return result

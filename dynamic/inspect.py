"""Looking at a tape: what it holds, as a readable list, as a networkx graph, and drawn."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dynamic.anomaly import Lines
from dynamic.inplace import owner_of
from dynamic.node import Leaf, Node
from dynamic.tapes import history
from dynamic.tensor import Tensor
from graphs.drawing import Diagram, GraphDrawing, Item, Link
from graphs.spec import TensorSpec, spec_of


class TapeStats(NamedTuple):
    """What the history of a tensor holds: nodes, bytes of the nodes themselves, bytes of the saved arrays."""

    nodes: int
    structure_bytes: int
    saved_bytes: int


def tape_stats(tensor: Tensor) -> TapeStats:
    """Count the history of a tensor. Memory shared by several saved arrays is counted once; leaves are not saved."""
    if tensor._edge is None:
        return TapeStats(0, 0, 0)
    nodes, ends = history([tensor._edge])
    leaves = {id(owner_of(leaf._data)) for end in ends if (leaf := end.tensor()) is not None}
    owners = {id(o): o.nbytes for node in nodes for o in _saved(node) if id(o) not in leaves}
    return TapeStats(len(nodes), sum(map(_structure_bytes, nodes)), sum(owners.values()))


def _saved(node: Node) -> list[Any]:
    return [owner_of(value) for value in node.saved or () if isinstance(value, np.ndarray)]


def _structure_bytes(node: Node) -> int:
    """The node and what it alone holds, but for the arrays."""
    saved = [value for value in node.saved or () if isinstance(value, tuple)]
    parts: list[Any] = [node, node.edges, node.saved, node.shape, node.sequence, *saved]
    if node.attrs:
        parts.append(node.attrs)
    return sum(sys.getsizeof(part) for part in parts if part is not None and part != ())


class Tape:
    """What led to a tensor: its leaves, then the recorded ops in the order they ran. Prints as a list.

    It holds the nodes, and so what they have saved, as long as it lives itself. `lines` are those of a block
    `forward_lines()` in which the tensor was computed.
    """

    def __init__(self, tensor: Tensor, lines: Lines | None = None) -> None:
        self.nodes = history([tensor._edge]).nodes
        read = [edge for node in self.nodes for edge in node.edges] or [tensor._edge]
        self.leaves = list(dict.fromkeys([edge for edge in read if type(edge) is Leaf]))
        self.stats: TapeStats = tape_stats(tensor)
        self.spec = spec_of(tensor)
        self._lines = {node: line for node in self.nodes if lines and (line := lines.of(node))}
        self._number: dict[Any, int] = {edge: number for number, edge in enumerate([*self.leaves, *self.nodes])}

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __repr__(self) -> str:
        nodes, structure, saved = self.stats
        head = f"tape of {self.spec}: {nodes} ops, {structure} bytes of nodes, {saved} bytes saved"
        return "\n".join([head, *(f"  {self._line(edge)}" for edge in self._number)])

    def _line(self, edge: Any) -> str:
        name = f"%{self._number[edge]}: {TensorSpec(edge.shape, edge.dtype)}"
        if type(edge) is Leaf:
            return f"{name} leaf"
        if edge.saved is None:
            return f"{name} = {edge.op.name}(...), freed"
        arguments = [f"%{self._number[e]}" if e in self._number else "_" for e in edge.edges]
        options = [f"{key}={value!r}" for key, value in edge.attrs.items()]
        saved = ", ".join([repr(spec_of(value)) for value in edge.saved if isinstance(value, np.ndarray)])
        return f"{name} = {edge.op.name}({', '.join([*arguments, *options])})" + (f", saves {saved}" if saved else "")

    def to_networkx(self) -> Any:
        """The tape as a networkx MultiDiGraph (needs networkx).

        Nodes are the numbers of the list, with op, spec, attributes and the bytes saved; edges go from an input to
        its reader, with its position.
        """
        import networkx as nx

        graph: nx.MultiDiGraph[int] = nx.MultiDiGraph()
        for edge, number in self._number.items():
            spec = TensorSpec(edge.shape, edge.dtype)
            nbytes = sum(value.nbytes for value in edge.saved or () if isinstance(value, np.ndarray))
            op = "leaf" if type(edge) is Leaf else edge.op.name
            graph.add_node(number, op=op, spec=spec, attrs=edge.attrs, saved_bytes=nbytes)
        for node in self.nodes:
            for position, source in enumerate(node.edges):
                if source in self._number:
                    graph.add_edge(self._number[source], self._number[node], position=position)
        return graph

    def draw(self, path: str | Path | None = None, unfold: bool = False) -> GraphDrawing:
        """A drawing, the leaves on top, with the bytes that each node saves for backward; saved where `path` says.

        It shows itself in a notebook, and has `save(path)`. A large tape is folded by line where the lines are known,
        else by op. Memory that several nodes save counts at the first of them, and that of leaves nowhere.
        """
        drawing = GraphDrawing(self._diagram(), unfold)
        if path is not None:
            drawing.save(path)
        return drawing

    def _repr_html_(self) -> str:
        return self.draw().svg()

    def _diagram(self) -> Diagram:
        items, links = [], []
        last = len(self._number) - 1
        counted = {id(owner_of(tensor._data)) for leaf in self.leaves if (tensor := leaf.tensor()) is not None}
        for edge, number in self._number.items():
            is_leaf = type(edge) is Leaf
            options = "" if is_leaf else ", ".join(f"{key}={value!r}" for key, value in edge.attrs.items())
            new = {} if is_leaf else {id(array): array.nbytes for array in _saved(edge) if id(array) not in counted}
            counted.update(new)
            lines = (self._lines[edge],) if edge in self._lines else ()
            label, kind = ("leaf", "input") if is_leaf else (edge.op.name, "forward")
            spec = str(TensorSpec(edge.shape, edge.dtype))
            item = Item(f"%{number}", label, spec, kind, lines, sum(new.values()), 1, options, "", number == last)  # type: ignore[arg-type]
            items.append(item)
            sources = () if is_leaf else dict.fromkeys(edge.edges)
            links += [Link(f"%{self._number[source]}", item.key) for source in sources if source in self._number]
        return Diagram(f"tape of {self.spec}", tuple(items), tuple(links))


def tape_of(tensor: Tensor, lines: Lines | None = None) -> Tape:
    """What is recorded of how a tensor was computed; with the user's lines, if it was in a block that gave `lines`.

    Such a block is `with dynamic.anomaly.forward_lines() as lines:`.
    """
    return Tape(tensor, lines)

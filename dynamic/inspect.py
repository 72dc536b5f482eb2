"""Looking at a tape: what it holds, as a readable list, as a networkx graph, and drawn."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dynamic.inplace import owner_of
from dynamic.node import Edge, Leaf, Node
from dynamic.tapes import history
from dynamic.tensor import Tensor
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

    It holds the nodes, and so what they have saved, as long as it lives itself.
    """

    def __init__(self, tensor: Tensor) -> None:
        self.nodes = history([tensor._edge]).nodes
        read = [edge for node in self.nodes for edge in node.edges] or [tensor._edge]
        self.leaves = list(dict.fromkeys([edge for edge in read if type(edge) is Leaf]))
        self.stats: TapeStats = tape_stats(tensor)
        self.spec = spec_of(tensor)
        edges: list[Edge] = [*self.leaves, *self.nodes]
        self._number = {edge: number for number, edge in enumerate(edges)}

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

        graph = nx.MultiDiGraph()
        for edge, number in self._number.items():
            op = "leaf" if type(edge) is Leaf else edge.op.name  # type: ignore[union-attr]
            saved = () if type(edge) is Leaf else edge.saved or ()  # type: ignore[union-attr]
            spec = TensorSpec(edge.shape, edge.dtype)  # type: ignore[union-attr]
            nbytes = sum(value.nbytes for value in saved if isinstance(value, np.ndarray))
            graph.add_node(number, op=op, spec=spec, attrs=getattr(edge, "attrs", {}), saved_bytes=nbytes)
        for node in self.nodes:
            for position, source in enumerate(node.edges):
                if source in self._number:
                    graph.add_edge(self._number[source], self._number[node], position=position)
        return graph

    def draw(self, path: str | Path | None = None) -> Any:
        """A matplotlib figure of the tape, the leaves on top (needs matplotlib); saved where `path` says."""
        from matplotlib.figure import Figure

        places = self._places()
        width = max(x for x, _ in places.values()) + 1
        height = 1 - min(y for _, y in places.values())
        figure = Figure(figsize=(1.6 * width, 0.8 * height))
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set(xlim=(-0.5, width - 0.5), ylim=(0.5 - height, 0.5))
        for node in self.nodes:
            for source in (edge for edge in node.edges if edge in places):
                axes.annotate("", places[node], places[source], arrowprops={"arrowstyle": "->", "color": "0.6"})
        for edge, (x, y) in places.items():
            name = "leaf" if type(edge) is Leaf else edge.op.name  # type: ignore[union-attr]
            text = f"{name}\n{TensorSpec(edge.shape, edge.dtype)}"  # type: ignore[union-attr]
            colour = "#dbe9f6" if type(edge) is Leaf else "white"
            axes.text(x, y, text, ha="center", va="center", fontsize=8, bbox={"boxstyle": "round", "fc": colour})
        if path is not None:
            figure.savefig(path)
        return figure

    def _places(self) -> dict[Edge, tuple[float, float]]:
        """Where each leaf and node is drawn: below all that it reads, one beside the other."""
        depth: dict[Edge, int] = {}
        for edge in self._number:
            depth[edge] = 1 + max([depth[e] for e in edge.edges if e in depth], default=-1)  # type: ignore[union-attr]
        taken: dict[int, int] = {}
        places: dict[Edge, tuple[float, float]] = {}
        for edge, row in depth.items():
            places[edge] = (taken.get(row, 0), -row)
            taken[row] = taken.get(row, 0) + 1
        return places


def tape_of(tensor: Tensor) -> Tape:
    """What is recorded of how a tensor was computed."""
    return Tape(tensor)

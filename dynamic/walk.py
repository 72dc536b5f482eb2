"""The pass back along a tape, by the reverse accumulation and the rules that both engines share."""

from __future__ import annotations

import functools
from collections.abc import Container, Iterator, Sequence
from typing import Any, NamedTuple

from dynamic import grad_mode, inplace
from dynamic.node import Edge, Leaf, Node
from dynamic.tape import wrap
from dynamic.tensor import Tensor
from graphs import reverse
from graphs.errors import NotDifferentiableError, located
from graphs.ops.movement import identity
from graphs.spec import spec_of


class Way(NamedTuple):
    """What a pass back is to do.

    wanted         nodes whose cotangents are asked for, beside those of leaves
    useful         the only inputs that get a cotangent; all of them if None
    retain         whether nodes keep what they have saved; else each is freed as soon as it has been visited
    create_graph   whether the pass is itself recorded
    """

    wanted: frozenset[Edge] = frozenset()
    useful: Container[Edge] | None = None
    retain: bool = False
    create_graph: bool = False


def walk(nodes: list[Node], cotangents: dict[Any, Any], way: Way) -> dict[Any, Any]:
    """Visit the nodes, the latest first; the cotangents of the leaves, and of the nodes that are `wanted`.

    Nodes leave the list.
    """
    reached: dict[Any, Any] = {}
    latest_first = (nodes.pop() for _ in range(len(nodes)))
    reverse.accumulate(latest_first, cotangents, functools.partial(visit, reached=reached, way=way))
    for edge, cotangent in cotangents.items():
        reached[edge] = hooked(edge, cotangent) if edge.hooks else cotangent
    return reached


def visit(node: Node, cotangent: Any, reached: dict[Any, Any], way: Way) -> Iterator[tuple[Edge, Any]]:
    """Each input of a node with its contribution."""
    prepare(node)
    if node.hooks:
        cotangent = hooked(node, cotangent)
    if node in way.wanted:
        reached[node] = cotangent
    return carry(node, cotangent, way)


def carry(node: Node, cotangent: Any, way: Way) -> Iterator[tuple[Edge, Any]]:
    """The same of a node that is ready. `detect_anomaly` looks for the frames of these two functions."""
    edges, saved = node.taken(way.retain)
    values = _as_tensors(node, edges, saved) if way.create_graph else list(saved)
    values.append(cotangent)
    del cotangent, saved  # so that each is dropped after its last use
    yield from node.pullback.pull(edges, values, way.useful)


def prepare(node: Node) -> None:
    """Check what a node has saved, and fill in what `checkpoint` has dropped. Raises as `backward` does."""
    saved: Any = node.saved
    inplace.check_saved(node)
    while saved is not None and type(saved) is not tuple:  # a `checkpoint` hole
        saved.fill()
        saved = node.saved
    if saved is None:  # released before, or meanwhile by a backward in another thread
        raise node.freed()


def _as_tensors(node: Node, inputs: Sequence[Edge], saved: Sequence[Any]) -> list[Any]:
    """What was saved as tensors with their history, so that what the rules do with them is recorded."""
    edges = [*[None if type(edge) is Leaf and edge.closed else edge for edge in inputs], node]
    return [
        value if source is None else wrap(value, edges[source])  # `OUTPUT` is the last
        for source, value in zip(node.pullback.sources, saved, strict=True)
    ]


def hooked(edge: Node | Leaf, cotangent: Any) -> Any:
    """The cotangent after the hooks of a tensor, each of which may replace it."""
    recorded = issubclass(type(cotangent), Tensor)
    gradient = cotangent if recorded else wrap(cotangent)
    with grad_mode.recording(recorded):
        for hook in list(edge.hooks or ()):
            replaced = hook(gradient)
            if replaced is not None:
                gradient = _checked(gradient, replaced)
        return identity(gradient if recorded else gradient._data)  # apart from what a hook may keep


def _checked(gradient: Tensor, replaced: Any) -> Tensor:
    what = spec_of(replaced) if issubclass(type(replaced), Tensor) else type(replaced).__name__
    if what != spec_of(gradient):
        raise NotDifferentiableError(
            located(f"a hook returned {what} for a gradient {spec_of(gradient)}; return None, or a tensor of that spec")
        )
    return replaced

"""Nodes that share memory: views, results written over an operand, and parts written at their place in a concat."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from graphs.dims import Size, same, same_shape
from graphs.ir import Node
from graphs.ops.movement import concat, permute_dims, reshape, stop_gradient
from graphs.spec import TupleSpec
from static.passes.fusion import is_result, is_view
from static.passes.loops import is_scan


class BufferPlace(NamedTuple):
    """The place of a result: the buffer of a node, its own or another's, and an offset in bytes."""

    buffer: Node
    offset: Size = 0


class Views(NamedTuple):
    """The owner of the memory that each node looks at, and the nodes that are all of it, in row-major order."""

    owner: dict[Node, Node]
    whole: set[Node]


def views(nodes: Sequence[Node]) -> Views:
    """Return the views of a graph's nodes, which are in topological order."""
    owner: dict[Node, Node] = {}
    contiguous: dict[Node, bool] = {}
    stacks: dict[tuple[Node, int], Node] = {}
    for node in nodes:
        if _is_stack(node):
            owner[node] = stacks.setdefault((node.inputs[0], node.attrs["number"]), node)
            contiguous[node] = True
            continue
        shares = node.op.view and (node.op is not reshape or contiguous[node.inputs[0]])
        owner[node] = owner[node.inputs[0]] if shares else node
        contiguous[node] = not shares or (contiguous[node.inputs[0]] and _keeps_order(node))
    return Views(owner, {node for node in nodes if contiguous[node]})


def _is_stack(node: Node) -> bool:
    """Whether a node is an output that a scan has stacked, in memory of its own that the scan writes into."""
    loop = node.inputs[0] if node.is_part else node
    return is_scan(loop) and node is not loop and node.attrs["number"] >= loop.attrs["carry"]


def _keeps_order(node: Node) -> bool:
    """Whether a view of contiguous memory is certainly contiguous itself, and all of that memory."""
    if node.op is permute_dims:
        moved = [a for a in node.attrs["axes"] if not same(node.inputs[0].spec.shape[a], 1)]
        return moved == sorted(moved)
    return node.op is reshape or node.op is stop_gradient


def in_arena(nodes: Sequence[Node], outputs: Sequence[Node], owner: Mapping[Node, Node]) -> list[Node]:
    """Return the nodes that get a place in the arena: they own memory, compute, and are not returned to the caller."""
    kept = {owner[output] for output in outputs}
    owners = (node for node in nodes if owner[node] is node and node not in kept)
    return [node for node in owners if not node.is_source and not isinstance(node.spec, TupleSpec)]


def writer(node: Node) -> Node:
    """Return the node whose kernel writes this node's memory: itself, or the node of which it is a result."""
    inputs = node.inputs
    return inputs[0] if inputs and isinstance(inputs[0].spec, TupleSpec) else node


def places(order: Sequence[Node], seen: Views, planned: Collection[Node], join: bool = True) -> dict[Node, BufferPlace]:
    """Return the place of each planned node, if nodes run in this order.

    With `join`, a part of a `concat` is computed at its place in the result, so that nothing is copied. Where the
    kernel works element by element, a result takes the buffer of an operand that nobody reads any more. All other nodes
    have a buffer of their own.
    """
    placed = {node: BufferPlace(node) for node in planned}
    for node in reversed(order) if join else ():  # backwards: a joined value may itself be part of a later concat
        if node.op is concat and node in placed:
            placed |= _parts(node, placed, seen)
    step = {node: i for i, node in enumerate(order)}
    until = _last_reads(order, seen, placed)
    for node in order:
        if node in placed and placed[node].buffer is node:
            over = _overwritable_operand(node, step[writer(node)], seen, placed, until)
            if over is not None:
                placed[node] = placed[seen.owner[over]]
                until[placed[node].buffer] = until.pop(node)
    return placed


def last_use(order: Sequence[Node], owner: Mapping[Node, Node]) -> dict[Node, int]:
    """Return for each owner the step after which nobody reads its memory."""
    last: dict[Node, int] = {}
    for step, node in enumerate(order):
        last[owner[node]] = step
        for source in node.inputs:
            last[owner[source]] = step
    return last


def _last_reads(order: Sequence[Node], seen: Views, placed: Mapping[Node, BufferPlace]) -> dict[Node, int]:
    """Return for each buffer the step after which nobody reads it."""
    last = last_use(order, seen.owner)
    until: dict[Node, int] = {}
    for node, place in placed.items():
        until[place.buffer] = max(until.get(place.buffer, 0), last[node])
    return until


def _parts(node: Node, placed: Mapping[Node, BufferPlace], seen: Views) -> dict[Node, BufferPlace]:
    """Return places in a concat's result for the parts that fill a contiguous piece of it and have no other place."""
    if not all(same(size, 1) for size in node.spec.shape[: node.attrs["axis"]]):
        return {}
    moved: dict[Node, BufferPlace] = {}
    buffer, offset = placed[node]
    for piece in node.inputs:
        own = seen.owner[piece]
        if piece in seen.whole and placed.get(own) == (own, 0) and own not in moved and _same_type(piece, node):
            moved[own] = BufferPlace(buffer, offset)
        offset = offset + piece.spec.size * node.spec.dtype.itemsize
    return moved


def _same_type(node: Node, other: Node) -> bool:
    return node.spec.dtype == other.spec.dtype


def _overwritable_operand(
    node: Node, now: int, seen: Views, placed: Mapping[Node, BufferPlace], until: Mapping[Node, int]
) -> Node | None:
    """Return the operand that a result may be written over: one nobody reads later, of the same elements."""
    numbers = _operands_read_first(node)
    if not numbers:
        return None
    inputs = writer(node).inputs
    lying = [placed.get(seen.owner[source]) for source in inputs]
    for i in numbers:
        operand, place = inputs[i], lying[i]
        if place is None or until[place.buffer] != now or not _has_its_elements(operand, node, seen):
            continue
        others = [source for source, other in zip(inputs, lying, strict=True) if other and other.buffer is place.buffer]
        if all(source is operand for source in others) and same(place.buffer.spec.nbytes, node.spec.nbytes):
            return operand
    return None


def _has_its_elements(operand: Node, node: Node, seen: Views) -> bool:
    """Whether an operand has the shape and dtype of a result, and is all of its memory in row-major order."""
    return (operand.spec is node.spec or operand.spec == node.spec) and operand in seen.whole


def _operands_read_first(node: Node) -> Sequence[int]:
    """Return the operands of which the kernel reads each element before it writes the same element of the result."""
    if is_result(node):
        return _group_operands_read_first(node.inputs[0], node.attrs["number"])
    return node.op.overwrites


def _group_operands_read_first(group: Node, number: int) -> Sequence[int]:
    """Return the operands that no node of a fused group reads after it has computed this result of its whole space."""
    body, out = group.attrs["body"], group.attrs["body"].outputs[number]
    if out.op.family != "elementwise" or not same_shape(out.spec.shape, group.attrs["space"]):
        return ()
    root: dict[Node, Node] = {}
    for node in body.nodes:
        root[node] = root[node.inputs[0]] if node.inputs and is_view(node) else node
    at = body.nodes.index(out)
    late = {root[source] for node in body.nodes[at + 1 :] for source in node.inputs}
    late |= {root[source] for i, source in enumerate(out.inputs) if i not in _operands_read_first(out)}
    return [i for i, operand in enumerate(body.inputs) if operand not in late]

"""Views: compositions of reshape, permute_dims, broadcast_to and getitem become one, and those that undo another go.

reshape of a reshape               one reshape; none where the shape is that of the start
reshape of columns of a matrix     the same part of the matrix reshaped, which needs no copy
permute_dims of a permute_dims     one permutation; none where the axes are in order again
broadcast_to of a broadcast_to     one, also of a reshape that only put axes of size 1 in front
flip of the same flip              neither
getitem of all, place of all       its input
getitem of one part of a concat    the part
concat of all parts of an array    the array; of one array: it
sum(keepdims=False), then reshape  sum(keepdims=True), and the other way round
stop_gradient                      its input: nothing is differentiated any more

Expanding and squeezing are reshapes. Bits stay, since no element is computed. A transposed operand of a matmul stays
too: BLAS reads it as it lies, so it costs nothing.

Broadcasting pushed down: an elementwise op reads its operand before it is repeated, or repeats its result instead.

multiply(broadcast_to(s, (B, N)), x)     multiply(s, x)
divide(broadcast_to(s, (B, N)), 2)       broadcast_to(divide(s, 2), (B, N))
multiply(ones of (B, N), x)              multiply(a constant of one number, x)

The same kernels run on the same numbers, and so give the same bits. Only ops that IEEE 754 defines to the last bit are
computed on fewer elements than before: the loops of other functions may differ with the layout of their operand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from graphs import dims
from graphs.dims import Size
from graphs.ir import CONSTANT, Graph, Node
from graphs.op import RuleTable
from graphs.ops import movement
from graphs.ops.creation import full
from graphs.ops.movement import broadcast_to
from graphs.ops.shapes import reduced_shape
from graphs.ops.slicing import getitem
from graphs.spec import broadcast_shapes
from static.passes.rewrite import Uses, count_uses, is_turned, number, rewrite, value_of

Parts = dict[tuple[str, str], Node]  # by start and stop, which may be symbolic


class _Facts(NamedTuple):
    """Facts that the rules look at beside a node: how often each node is read, and the parts of each concat."""

    uses: Uses
    concats: dict[Node, Parts]


def eliminate_views(graph: Graph) -> Graph:
    """Return the graph with every rule of `_RULES` applied where it fits."""
    if graph.ops.isdisjoint(_RULES):
        return graph
    facts = _Facts(count_uses(graph), {})
    return rewrite(graph, lambda node: _RULES[node.op](node, facts) if node.op in _RULES else None, facts.uses)


def reshape_node(x: Node, shape: Sequence[Size], source: str = "") -> Node:
    """Return `x` in another shape; `x` itself where it has that shape."""
    if dims.same_shape(x.spec.shape, shape):
        return x
    return Node.of(movement.reshape, [x], {"shape": tuple(shape)}, source or x.source)


def permute_node(x: Node, axes: Sequence[int], source: str = "") -> Node:
    """Return `x` with its axes in another order; `x` itself where the order is the same."""
    if tuple(axes) == tuple(range(len(axes))):
        return x
    return Node.of(movement.permute_dims, [x], {"axes": tuple(axes)}, source or x.source)


def _reshape(node: Node, facts: _Facts) -> Node | None:
    source = node.inputs[0]
    if source.spec == node.spec:
        return source
    if source.op is movement.reshape:
        return reshape_node(source.inputs[0], node.spec.shape, node.source)
    if source.op is getitem:
        return _columns(node, source)
    return _kept_dims(node, source) if "keepdims" in source.attrs and facts.uses[source] == 1 else None


def _columns(node: Node, part: Node) -> Node | None:
    """Rewrite a reshape that splits some columns of an array to a part of the reshaped array, which is a view."""
    base, (start, stop) = slice_of(part, part.spec.ndim - 1)
    if base is None or not all(isinstance(size, int) for size in (start, stop, base.spec.shape[-1])):
        return None
    sizes = [start, stop, base.spec.shape[-1]]
    shape, count = list(node.spec.shape), stop - start
    at = next((i for i in range(len(shape)) if dims.same(dims.product(shape[i:]), count)), None)
    if at is None or dims.same(count, 0):
        return None
    inner = dims.product(shape[at + 1 :])
    if not all(dims.same(size % inner, 0) for size in sizes):
        return None
    whole = reshape_node(base, (*shape[:at], sizes[2] // inner, *shape[at + 1 :]), node.source)
    rows, rest = [slice(None)] * at, [slice(None)] * (len(shape) - at - 1)
    return Node.of(getitem, [whole], {"key": (*rows, slice(start // inner, stop // inner), *rest)}, node.source)


def _kept_dims(node: Node, reduction: Node) -> Node | None:
    """Return the reduction with the other `keepdims`, where that gives the shape that the reshape asks for."""
    axis, keepdims = reduction.attrs["axis"], reduction.attrs["keepdims"]
    if axis is None:
        return None
    axes = (axis,) if isinstance(axis, int) else axis  # argmax has one axis, an int
    shape = reduced_shape(reduction.inputs[0].spec.shape, axes, not keepdims)
    if not dims.same_shape(shape, node.spec.shape):
        return None
    return Node.of(reduction.op, reduction.inputs, {**reduction.attrs, "keepdims": not keepdims}, reduction.source)


def _permute(node: Node, _: _Facts) -> Node | None:
    source, axes = node.inputs[0], node.attrs["axes"]
    if axes == tuple(range(len(axes))):
        return source
    if not is_turned(source):
        return None
    return permute_node(source.inputs[0], [source.attrs["axes"][a] for a in axes], node.source)


def _broadcast(node: Node, _: _Facts) -> Node | None:
    source = node.inputs[0]
    if source.spec == node.spec:
        return source
    if source.op is movement.broadcast_to or (source.op is movement.reshape and _only_prepends(source)):
        return Node.of(node.op, source.inputs, node.attrs, node.source)
    return None


def _only_prepends(node: Node) -> bool:
    before, after = node.inputs[0].spec.shape, node.spec.shape
    added = len(after) - len(before)
    return added > 0 and dims.same_shape(after, (*[1] * added, *before))


def _flip(node: Node, _: _Facts) -> Node | None:
    source = node.inputs[0]
    return source.inputs[0] if source.op is movement.flip and source.attrs == node.attrs else None


def _part(node: Node, facts: _Facts) -> Node | None:
    source, key = node.inputs[0], node.attrs["key"]
    if _takes_all(key):
        return source
    return _part_of_concat(source, key, facts.concats) if source.op is movement.concat else None


def _place(node: Node, _: _Facts) -> Node | None:
    return node.inputs[0] if _takes_all(node.attrs["key"]) else None


def _takes_all(key: Sequence[object]) -> bool:
    return _whole(key) and all(entry == slice(None) for entry in key)


def _whole(key: Sequence[object]) -> bool:
    return all(isinstance(entry, slice) for entry in key)


def _part_of_concat(concat: Node, key: Sequence[object], concats: dict[Node, Parts]) -> Node | None:
    axis = concat.attrs["axis"]
    if len(key) != concat.spec.ndim or not _whole(key):
        return None
    cut = key[axis]
    others = all(entry == slice(None) for i, entry in enumerate(key) if i != axis)
    if not others or not isinstance(cut, slice) or cut.step not in (None, 1) or cut.start is None or cut.stop is None:
        return None
    if concat not in concats:
        # The inputs of a concat that have its dtype, by start and stop; the first of several at one place.
        parts: Parts = {}
        for part, (start, stop) in zip(concat.inputs, bounds(concat.inputs, concat.attrs["axis"]), strict=True):
            if part.spec.dtype == concat.spec.dtype:
                parts.setdefault((str(start), str(stop)), part)
        concats[concat] = parts
    return concats[concat].get((str(cut.start), str(cut.stop)))


def bounds(nodes: Sequence[Node], axis: int) -> Iterator[tuple[Size, Size]]:
    """Yield (start, stop) of each array along an axis on which they are joined."""
    start: Size = 0
    for node in nodes:
        stop = start + node.spec.shape[axis]
        yield start, stop
        start = stop


def _concat(node: Node, _: _Facts) -> Node | None:
    if len(node.inputs) == 1:
        return node.inputs[0]
    whole = whole_of(node.inputs, node.attrs["axis"])
    return whole if whole is not None and whole.spec == node.spec else None


def whole_of(parts: Sequence[Node], axis: int) -> Node | None:
    """Return the array whose consecutive parts along `axis` these nodes are, from the first element to the last.

    Parts are slices, or reshapes of single entries along the first axis. Returns None where they are not the whole
    array.
    """
    base, position = slice_of(parts[0], axis)
    if base is None or not dims.same(position[0], 0):
        return None
    for part in parts:
        owner, (start, stop) = slice_of(part, axis)
        if owner is not base or not dims.same(start, position[0]):
            return None
        position = (stop, stop)
    return base if dims.same(position[0], base.spec.shape[axis]) else None


def slice_of(part: Node, axis: int) -> tuple[Node | None, tuple[Size, Size]]:
    """Return the array that a node is a slice of along an axis, and (start, stop); None for any other node."""
    nothing: tuple[Node | None, tuple[Size, Size]] = (None, (0, 0))
    if part.op is movement.reshape and part.inputs[0].op is getitem:
        return _entry(part, axis) or nothing
    if part.op is not getitem or len(part.attrs["key"]) != part.inputs[0].spec.ndim or axis >= part.spec.ndim:
        return nothing
    base, key = part.inputs[0], part.attrs["key"]
    if not _whole(key) or any(entry != slice(None) for i, entry in enumerate(key) if i != axis):
        return nothing
    start, stop, step = key[axis].start, key[axis].stop, key[axis].step
    if step not in (None, 1) or _may_count_backwards(start) or _may_count_backwards(stop):
        return nothing
    start = 0 if start is None else start
    return base, (start, start + part.spec.shape[axis])


def _may_count_backwards(position: object) -> bool:
    return isinstance(position, int) and position < 0


def _entry(part: Node, axis: int) -> tuple[Node, tuple[Size, Size]] | None:
    """Return (base, (i, i + 1)) for `base[i]` reshaped to have a first axis of size 1, as `stack` makes it.

    Else None.
    """
    entry = part.inputs[0]
    base, key = entry.inputs[0], entry.attrs["key"]
    if axis or not key or not isinstance(key[0], int) or key[0] < 0 or any(k != slice(None) for k in key[1:]):
        return None
    if not dims.same_shape(part.spec.shape, (1, *base.spec.shape[1:])):
        return None
    return base, (key[0], key[0] + 1)


def _input(node: Node, _: _Facts) -> Node:
    return node.inputs[0]


_RULES: RuleTable[Callable[[Node, _Facts], Node | None]] = RuleTable("views", otherwise=lambda _, __: None)
_RULES.enter({
    "reshape": _reshape, "permute_dims": _permute, "broadcast_to": _broadcast, "flip": _flip, "getitem": _part,
    "place": _place, "concat": _concat, "stop_gradient": _input,
})  # fmt: skip


def push_broadcasts(graph: Graph) -> Graph:
    """Return the graph in which elementwise ops read their operands as they were before they were broadcast."""
    return rewrite(graph, _push_broadcast)


def _push_broadcast(node: Node) -> Node | None:
    if node.op.family != "elementwise" or not node.spec.ndim:
        return None
    if _REPEATS.keys().isdisjoint([source.op for source in node.inputs if source.spec.ndim]):
        return None
    inputs = [_drop_repeat(source, node) for source in node.inputs]
    if all(new is old for new, old in zip(inputs, node.inputs, strict=True)):
        return None
    shape = broadcast_shapes(*(source.spec.shape for source in inputs))
    if dims.same_shape(shape, node.spec.shape):
        return Node.of(node.op, inputs, node.attrs, node.source)
    if not node.op.exact:
        return None
    smaller = Node.of(node.op, inputs, node.attrs, node.source)
    return Node.of(broadcast_to, [smaller], {"shape": node.spec.shape}, node.source)


_REPEATS: RuleTable[Callable[[Node], Any]] = RuleTable("repeated values", otherwise=lambda _: None)
"""What the result repeats along its axes: a node, or a number; None where it may repeat nothing."""
_REPEATS.enter({
    broadcast_to: lambda node: node.inputs[0],
    full: lambda node: node.attrs["value"],
    CONSTANT: value_of,
})  # fmt: skip


def _drop_repeat(source: Node, reader: Node) -> Node:
    value = _REPEATS[source.op](source) if source.spec.ndim else None
    if isinstance(value, Node):
        return value
    if value is None or not reader.op.exact:
        return source
    return number(value, source.spec.dtype, reader.source)

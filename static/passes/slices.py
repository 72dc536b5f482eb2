"""Slices merged: the same op on every entry of one array is that op on the array.

xs[0] @ w, xs[1] @ w, ...           y = reshape(xs) @ w; y[0], y[1], ...
tanh(y[0]), tanh(y[1]), ...         z = tanh(y); z[0], z[1], ...
(y[t] + q) + b for every t          (y[t] + b) + q, and then the sums y[t] + b are one
square(h1), square(h2), ...         z = square(c); the parts of z, where c = concat([h1, h2, ...]) is computed anyway

This helps a loop over time steps that a trace has unrolled: work that does not depend on the state is done for all
steps at once. **This changes bits**: a product of more rows is summed in another order, and so are reordered sums.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from graphs import dims
from graphs.dims import Size
from graphs.ir import Graph, Node
from graphs.ops import movement
from graphs.ops.linalg import matmul
from graphs.ops.slicing import getitem
from static.passes.products import entry_of, rows_times, section
from static.passes.rewrite import Rules, Uses, count_uses, is_product, rewrite
from static.passes.views import bounds, slice_of
from static.rebuild import replace_nodes

FEWEST = 4  # entries: fewer are not worth a view of each
ROUNDS = 8  # how many ops, one on the other, are merged at most


def merge_slices(graph: Graph) -> Graph:
    """Return the graph in which equal work on the entries of one array is done once, on the array."""
    for _ in range(ROUNDS):
        before, graph = graph, _merge_slices(_entries_first(graph))
        if graph is before:
            break
    return graph


class AxisPart(NamedTuple):
    """A part along the first axis of an array: `base[start:stop]`, or `base[start]` where `entry` holds."""

    base: Node
    start: Size
    stop: Size
    entry: bool


def _entries_first(graph: Graph) -> Graph:
    uses = count_uses(graph)
    return rewrite(graph, lambda node: _ENTRY_FIRST(node, uses), uses)


def _is_late(node: Node, total: Node, y: Node, q: Node, b: Node, facts: Uses) -> bool:
    """Whether b is smaller than the array entry y, so that adding b to y first lets all entries share the sum."""
    if not node.spec.is_float or facts[total] != 1 or dims.same_shape(b.spec.shape, node.spec.shape):
        return False
    return entry_of(y) is not None and entry_of(q) is None and y.spec == node.spec == q.spec


_ENTRY_FIRST = Rules(("(total := y + q) + b", "(y + b) + q", _is_late))


def _merge_slices(graph: Graph) -> Graph:
    parts = _parts(graph)
    groups: dict[Any, list[Node]] = defaultdict(list)
    for position, node in enumerate(graph.nodes):
        for key in _keys(node, position, parts):
            groups[key].append(node)
    instead: dict[Node, Node] = {}
    for key, members in groups.items():
        rest = [node for node in members if node not in instead]
        if len(rest) >= FEWEST:
            instead |= _merge_members(key, rest, parts)
    return replace_nodes(graph, instead)


class _Parts(NamedTuple):
    """The parts of arrays that nodes are, and for each concat the position after which it can be read for its parts."""

    of: dict[Node, list[AxisPart]]
    after: dict[Node, int]


def _parts(graph: Graph) -> _Parts:
    """Return the nodes that are views of parts of an array, and the nodes that a concat joins.

    The parts of a concat exist before the concat. An op on such a part may read the concat instead if the op comes
    after all parts of the concat, since then it cannot be one of them itself.
    """
    parts = _Parts(defaultdict(list), {})
    position = {node: i for i, node in enumerate(graph.nodes)}
    for node in graph.nodes:
        entry = entry_of(node)
        base, (start, stop) = slice_of(node, 0)
        if entry is not None:
            parts.of[node].append(AxisPart(entry[0], entry[1], entry[1] + 1, True))
        elif base is not None:
            parts.of[node].append(AxisPart(base, start, stop, False))
        elif node.op is movement.concat and node.attrs["axis"] == 0 and len(node.inputs) >= FEWEST:
            parts.after[node] = max(position[source] for source in node.inputs)
            for source, place in zip(node.inputs, bounds(node.inputs, 0), strict=True):
                parts.of[source].append(AxisPart(node, *place, False))
    return parts


def _keys(node: Node, position: int, parts: _Parts) -> Iterator[Any]:
    """Yield what nodes must have in common to become one op on an array: a key for each part that the node reads."""
    if not _is_mergeable(node):
        return
    for i, source in enumerate(node.inputs):
        for part in parts.of.get(source, ()) if i == 0 or not is_product(node) else ():
            others = (*node.inputs[:i], *node.inputs[i + 1 :])
            if _is_free(others, part, position, parts) and all(o.spec.ndim <= source.spec.ndim for o in others):
                yield node.op, part.base, part.entry, i, others, str(source.spec.shape)


def _is_mergeable(node: Node) -> bool:
    if is_product(node):
        return node.inputs[0].spec.ndim == 2 and node.inputs[1].spec.ndim == 2
    return node.op.family == "elementwise" and bool(node.spec.ndim)


def _is_free(others: Sequence[Node], part: AxisPart, position: int, parts: _Parts) -> bool:
    """Whether an op on the whole base depends on no result of an op on a part of it."""
    after = parts.after.get(part.base)
    if after is None:
        return True  # the op on a view comes after its base, and after the others
    return position > after and all(other.is_source for other in others)


def _merge_members(key: Any, members: Sequence[Node], parts: _Parts) -> dict[Node, Node]:
    """Return the replacement of each member: its part of one op on the base, or on a slice of the base."""
    op, base, entry, index, others, _ = key
    on_base = [(part, node) for node in members for part in parts.of[node.inputs[index]] if part.base is base]
    runs = _runs([(part, node) for part, node in on_base if part.entry == entry])
    made: dict[Node, Node] = {}
    for run in runs:
        if len(run) >= FEWEST:
            made |= _merge_run(run, op, index, others)
    return made


def _runs(parts: Sequence[tuple[AxisPart, Node]]) -> list[list[tuple[AxisPart, Node]]]:
    """Return the members on consecutive parts as runs, each part once."""
    by_start = {str(part.start): (part, node) for part, node in reversed(parts)}
    ends = {str(part.stop) for part, _ in by_start.values()}
    runs = []
    for start, (part, node) in by_start.items():
        if start in ends:
            continue
        run = [(part, node)]
        while str(run[-1][0].stop) in by_start and len(run) <= len(by_start):
            run.append(by_start[str(run[-1][0].stop)])
        runs.append(run)
    return runs


def _merge_run(run: Sequence[tuple[AxisPart, Node]], op: Any, index: int, others: Sequence[Node]) -> dict[Node, Node]:
    first, node = run[0]
    base = section(first.base, first.start, run[-1][0].stop)
    inputs = [*others[:index], base, *others[index:]]
    if op is matmul:
        whole = rows_times(base, others[0], node.source)
    elif any(o.spec.ndim > node.inputs[index].spec.ndim for o in others):
        return {}
    else:
        whole = Node.of(op, inputs, {}, node.source)
    if not dims.same(whole.spec.shape[0], base.spec.shape[0]):
        return {}
    made = {}
    for part, member in run:
        view = _part_of(whole, part, first.start)
        if view.spec != member.spec:
            return {}
        made[member] = view
    return made


def _part_of(whole: Node, part: AxisPart, start: Size) -> Node:
    first = part.start - start
    rest = [slice(None)] * (whole.spec.ndim - 1)
    key = (first, *rest) if part.entry else (slice(first, part.stop - start), *rest)
    return Node.of(getitem, [whole], {"key": key}, whole.source)

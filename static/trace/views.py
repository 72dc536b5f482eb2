"""Views in a trace: which values share memory, and what a view shows after that memory was changed in place.

A graph's values do not change. A change in place gives the memory a new value (`static/trace/changes.py`), and a view
of it is taken anew from that when it is read. Whether a reshape is a view depends on the layout, which a graph knows
only of values that it computes from constants: elsewhere such a value is neither written through nor taken anew.
`known_value` computes what follows from constants, since Python may ask for it while the graph is traced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from graphs.builder import Builder
from graphs.capture import DecidingValue, Guard, deciding_value
from graphs.dims import Dim, Shape
from graphs.dispatch import BROKEN_RULES, compute, execute
from graphs.errors import GraphError, locate
from graphs.frontends.torch.shapes import check_view
from graphs.ir import Node
from graphs.op import RuleTable
from graphs.ops.indexing import take
from graphs.ops.movement import identity, reshape
from graphs.ops.shapes import axes_order


def chain(builder: Builder | None, node: Node) -> tuple[list[Node], Node]:
    """Return the views that lead from a value to the memory that it lies in, the value first, and that memory's node.

    Where the value is no view, the list is empty and the memory is its own.
    """
    steps: list[Node] = []
    while shares(builder, node):
        steps.append(node)
        node = node.inputs[0]
    return steps, node


def shares(builder: Builder | None, node: Node) -> bool:
    """Whether a node lies in the memory of its input."""
    if not node.inputs or node.is_part or (builder is not None and node in builder.copies):
        return False
    if node.op.view or _passes_on(node) or builder is None:
        return node.op.view or _passes_on(node)
    return node in builder.views or (node in builder.tensors and picks_one(node))


def picks_one(node: Node) -> bool:
    """Whether a node picks by one position that only a run knows: of a tensor that is a view in PyTorch."""
    return node.op is take and not node.inputs[1].spec.shape


def _passes_on(node: Node) -> bool:
    """Whether a node shares its input's memory; a mark of a constant does not, as a constant may be shared."""
    return node.op.marks and not node.inputs[0].is_constant


def present(builder: Builder, node: Node) -> Node:
    """Return the node of a value as it is now: where its memory was changed in place, the value is taken anew.

    Raises GraphError where it may be a copy, which the change leaves as it was.
    """
    while builder.present:
        steps, owner = chain(builder, node)
        if owner not in builder.present:
            break
        if any(is_doubtful(builder, step) for step in steps):
            rule = "only the layout tells whether this is a view or a copy of memory that was changed in place since"
            raise GraphError(locate(f"{steps[0].op.name}: {rule}; take it anew, by view() or by clone()"))
        node = _taken_anew(builder, steps, builder.present[owner])
    return node


def between(builder: Builder, source: Node, node: Node) -> list[Node]:
    """Return the nodes that lead from a value, as it is now, to a result of it, the result first."""
    start, nodes = present(builder, source), list[Node]()
    while node is not start and node.inputs:
        nodes.append(node)
        node = node.inputs[0]
    return nodes


def _taken_anew(builder: Builder, steps: Sequence[Node], base: Node) -> Node:
    for step in reversed(steps):
        if (step, base) not in builder.anew:
            new = builder.append(step.op, [base, *step.inputs[1:]], step.attrs, step.source)
            for kind in (builder.views, builder.doubtful):
                if step in kind:
                    kind.add(new)
            if step not in builder.tensors:
                builder.tensors.discard(new)
            builder.anew[step, base] = new
        base = builder.anew[step, base]
    return base


class ViewLayout(NamedTuple):
    """How a view lies beside its input: whether row by row where that does, and whether it may be a copy elsewhere.

    `orders` says that it is a copy in the order that an option names.
    """

    keeps_order: bool = False
    may_copy: bool = False
    orders: bool = False


_LAYOUTS: RuleTable[ViewLayout] = RuleTable("layouts of views", otherwise=ViewLayout())
_LAYOUTS.enter({reshape: ViewLayout(True, may_copy=True), identity: ViewLayout(True, orders=True)})

# Views or copies --------------------------------------------------------------------------------------------------


def is_doubtful(builder: Builder, node: Node) -> bool:
    """Whether a node is a view for some layouts of its input and a copy for others, and the layout is not known."""
    may_copy = _LAYOUTS[node.op].may_copy and node not in builder.views and not _is_always_view(node)
    if may_copy or node in builder.doubtful:
        return not is_row_major(builder, node.inputs[0])
    return False


def _is_always_view(node: Node) -> bool:
    """Whether a reshape only splits axes, adds axes of one element or drops them."""
    have, want = _wide(node.inputs[0].spec.shape), _wide(node.spec.shape)
    if have is None or want is None:
        return False
    for size in have:
        while size > 1 and want and size % want[0] == 0:
            size //= want.pop(0)
        if size != 1:
            return False
    return not want


def _wide(shape: Shape) -> list[int] | None:
    """Return the sizes that are not 1, None where a size is symbolic or 0."""
    sizes = [size for size in shape if isinstance(size, int) and size]
    return [size for size in sizes if size != 1] if len(sizes) == len(shape) else None


def is_row_major(builder: Builder, node: Node) -> bool:
    """Whether a value lies row by row without gaps, as everything does that is computed from such values."""
    waiting, seen = [node], set[Node]()
    while waiting:
        node = waiting.pop()
        order = node.attrs.get("order") if _LAYOUTS[node.op].orders else None
        if node in seen or node.is_constant or order == "C":
            continue
        seen.add(node)
        moves = shares(builder, node) and not _LAYOUTS[node.op].keeps_order
        if order or node.is_input or node.is_part or node.subgraphs or moves or node in builder.views:
            return False
        waiting += node.inputs
    return True


def check_shape(builder: Builder, node: Node, shape: Shape) -> None:
    """Raise ShapeError where a value has no view of another shape if arguments lie row by row, as most do.

    Nothing is raised where sizes are symbolic, or where the ops that led to the value do not tell how it lies.
    """
    source = _stand_in(builder, node)
    if source is not None and not source.flags.c_contiguous and min(source.strides) >= 0:
        memory = _with_memory(source)
        check_view(memory, memory.reshape(shape))


def _stand_in(builder: Builder, node: Node) -> np.ndarray[Any, Any] | None:
    """Return an array that lies as a value does, without memory behind it; None where that is not known."""
    held: dict[Node, np.ndarray[Any, Any] | None] = {}
    waiting = [node]
    while waiting:
        node = waiting[-1]
        told = node.op.view or _LAYOUTS[node.op].orders or node.op.layout in ("inputs", "ufunc")
        is_open = node in builder.anyhow
        needed = [x for x in node.inputs if x not in held] if told and not is_open else []
        if not needed:
            sources = [held[x] for x in node.inputs] if told and not is_open else None
            held[waiting.pop()] = None if is_open else _laid_out(node, sources)
        waiting += needed
    return held[node]


def _laid_out(node: Node, sources: Sequence[Any] | None) -> np.ndarray[Any, Any] | None:
    shape, kind = node.spec.shape, _LAYOUTS[node.op]
    order = node.attrs.get("order") if kind.orders else None
    if any(isinstance(size, Dim) for size in shape) or node.is_part or node.subgraphs:
        return None
    if sources is None or order == "C":
        is_known = node.is_input or node.is_constant or node.op.layout == "rows"
        return _without_memory(shape, range(len(shape))) if is_known else None
    if any(source is None for source in sources):
        return None
    if kind.may_copy:
        source = sources[0]
        rows = source.flags.c_contiguous or not source.size
        made = None if rows or min(source.strides) < 0 else _with_memory(source).reshape(shape)
        return _without_memory(shape, range(len(shape))) if rows else made
    if node.op.view:
        return compute(node.op, sources, dict(node.attrs))
    return sources[0] if kind.orders and order is None else _without_memory(shape, order or axes_order(*sources))


def _without_memory(shape: Sequence[Any], order: Sequence[int]) -> np.ndarray[Any, Any]:
    """Return an array whose axes lie in this order, the outer one first; its elements must not be read."""
    steps, step = [0] * len(shape), 1
    for axis in reversed(order):
        steps[axis] = step
        step *= max(shape[axis], 1)
    return np.lib.stride_tricks.as_strided(np.empty((), np.int8), shape, steps)


def _with_memory(source: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return an array that lies as another does, whose steps are 0 or more, and may be read."""
    reach = sum((size - 1) * step for size, step in zip(source.shape, source.strides, strict=True))
    return np.lib.stride_tricks.as_strided(np.empty(reach + 1, np.int8), source.shape, source.strides)


# Values that follow from constants alone ------------------------------------------------------------------------------


def known_value(symbol: Any) -> np.ndarray[Any, Any] | None:
    """Return the value of a symbol that follows from constants alone, None where only a run can tell it."""
    builder: Builder = symbol.builder
    if builder not in _known:
        _known[builder] = KnownValues(builder)
    return _known[builder].value(present(builder, symbol.node))


class KnownValues:
    """The values of those nodes of a graph that follow from constants alone."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._count, self._nodes = 0, set[Node]()
        self._values: dict[Node, np.ndarray[Any, Any]] = {}

    def value(self, node: Node) -> np.ndarray[Any, Any] | None:
        """Return the value of a node, None where only a run can tell it."""
        for new in self._builder.nodes[self._count :]:
            if not new.is_input and not new.subgraphs and all(source in self._nodes for source in new.inputs):
                self._nodes.add(new)
        self._count = len(self._builder.nodes)
        return self._computed(node) if node in self._nodes else None

    def _computed(self, node: Node) -> np.ndarray[Any, Any] | None:
        if node not in self._values:
            if node.is_constant:
                if isinstance(node.attrs["value"], Dim):
                    return None
                self._values[node] = np.asarray(node.attrs["value"], node.attrs["dtype"])
            else:
                sources = [self._computed(source) for source in node.inputs]
                if any(source is None for source in sources):
                    return None
                self._values[node] = execute(node.op, sources, dict(node.attrs))
        return self._values[node]


_known: WeakKeyDictionary[Builder, KnownValues] = WeakKeyDictionary()


def decided_value(symbol: Any) -> np.ndarray[Any, Any] | None:
    """Return the value of a symbol that follows from constants and from small tensors that the function reads.

    The values of these tensors are guards of the trace then: with others the function is traced again. None where only
    a run can tell the value, or where more than `MOST_NODES` lead to it.
    """
    reading = _Reading()
    value = reading.value(symbol.builder, present(symbol.builder, symbol.node))
    if value is None:
        return None
    outermost = symbol.builder
    while outermost.parent is not None:
        outermost = outermost.parent
    for owner in reading.owners:
        outermost.guards[id(owner), "value"] = Guard(owner, "value", owner.value)
    return value


MOST_NODES = 200
"""The number of nodes through which a value is followed to the constants and tensors that it follows from."""


class _Reading:
    """The values of nodes that follow from constants and read tensors, and the `owners` of these tensors' guards."""

    def __init__(self) -> None:
        self.owners: list[DecidingValue] = []
        self._values: dict[Node, np.ndarray[Any, Any] | None] = {}

    def value(self, builder: Builder, node: Node) -> np.ndarray[Any, Any] | None:
        if node not in self._values and len(self._values) < MOST_NODES:
            self._values[node] = None
            self._values[node] = self._compute(builder, node)
        return self._values.get(node)

    def _compute(self, builder: Builder, node: Node) -> np.ndarray[Any, Any] | None:
        if node.is_constant:
            value = node.attrs["value"]
            return None if isinstance(value, Dim) else np.asarray(value, node.attrs["dtype"])
        if node.is_input:
            return self._read(builder, node)
        if node.subgraphs or node.op.may_have_effect:
            return None
        sources = []
        for source in node.inputs:  # one by one, as most values end at an argument
            if (value := self.value(builder, source)) is None:
                return None
            sources.append(value)
        try:
            return execute(node.op, sources, dict(node.attrs))
        except BROKEN_RULES:
            return None

    def _read(self, builder: Builder, node: Node) -> np.ndarray[Any, Any] | None:
        """Return the value of an input that stands for a tensor which is read; of an inner graph, for an outer node."""
        if builder.parent is not None:
            outer = next((outer for outer, inner in builder.captured.items() if inner is node), None)
            return None if outer is None else self.value(builder.parent, present(builder.parent, outer))
        source = next((source for source, read in (builder.reads or {}).values() if read is node), None)
        if source is None or (owner := deciding_value(source)) is None:
            return None
        self.owners.append(owner)
        return np.array(source.captured_array())

"""Products merged: those that share an operand are one product with the others side by side.

x @ wq, x @ wk, x @ wv      y = x @ concat([wq, wk, wv], axis=1); its columns
x1 @ w, x2 @ w, ...         y = concat([x1, x2, ...], axis=0) @ w; its rows

Joining weights costs a copy of them in each call, unless they are constants, and a product's columns are read more
slowly than a matrix of their own. So products are merged where reading the shared operand once, in fewer calls, saves
more than that. Only inputs and constants of the graph, or views of them, are joined, so that no product waits for
another. **This changes bits**: BLAS sums a product of another shape in another order.

Read `merge_products`, `flatten_products` and `merge_sums` in this order, then the helpers that join arrays, then
`contract` (sums as products).

Flattening: a stack of matrix products with one matrix is a single product.

x[B, T, K] @ w[K, N]                               reshape(reshape(x, (B * T, K)) @ w, (B, T, N))
sum(transpose(x)[B, K, T] @ g[B, T, N], axis=0)    transpose(reshape(x, (B * T, K))) @ reshape(g, (B * T, N))

NumPy multiplies a stack matrix by matrix; BLAS is faster on one that is large. The second is the gradient of the
first in w. **This changes bits**: the sums of a product are made in another order.

Sums merged: products that are added up become one product, and sums of rows that are added up one sum.

a1 @ b1 + a2 @ b2 + ...                    concat([a1, a2, ...], axis=1) @ concat([b1, b2, ...], axis=0)
sum(x1, axis=0) + sum(x2, axis=0) + ...    sum(concat([x1, x2, ...]), axis=0)

This is the gradient of a weight that a loop over time steps reads: `dw = sum over t of x_t^T @ dz_t` is one product
over all steps. Parts of one array are not joined: the array is taken whole. Transposed operands are joined before they
are transposed. **This changes bits**: the sums are made in another order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from graphs import dims
from graphs.dims import Size
from graphs.ir import CONSTANT, Graph, Node
from graphs.op import Op
from graphs.ops import elementwise, movement, reductions
from graphs.ops.linalg import matmul
from graphs.ops.slicing import getitem
from static.passes.rewrite import Uses, call, count_uses, is_product, is_sum, is_turned, number, rewrite
from static.passes.simplification import LARGEST
from static.passes.views import bounds, permute_node, reshape_node, whole_of
from static.rebuild import replace_nodes


def merge_products(graph: Graph) -> Graph:
    """Return the graph with products that share an operand merged, where that pays."""
    groups: dict[tuple[int, Node], list[Node]] = defaultdict(list)
    for node in graph.nodes:
        if is_product(node) and all(source.spec.ndim == 2 for source in node.inputs):
            for side in (0, 1):
                if _is_given(node.inputs[1 - side]):
                    groups[side, node.inputs[side]].append(node)
    instead: dict[Node, Node] = {}
    for (side, shared), members in groups.items():
        rest = [node for node in members if node not in instead and node.spec.dtype == members[0].spec.dtype]
        if len({node.inputs[1 - side] for node in rest}) == len(rest) > 1 and _pays(rest, side, shared):
            instead |= _merge_products(rest, side, shared)
    return replace_nodes(graph, instead)


def _is_given(node: Node) -> bool:
    while node.op.view and node.inputs:
        node = node.inputs[0]
    return node.is_source


def _pays(members: Sequence[Node], side: int, shared: Node) -> bool:
    """Whether reading the shared operand once, in one call, saves more than merging costs.

    Merging costs moving the other operands together, and reading results that lie in columns.
    """
    saved = (len(members) - 1) * (CALL + nbytes(shared))
    others = [node.inputs[1 - side] for node in members]
    size = sum(map(nbytes, others))
    cost = 0 if size <= LARGEST and all(other.is_constant for other in others) else CALL + 2 * size
    return saved > cost + (sum(map(nbytes, members)) if side == 0 else 0)


def _merge_products(members: Sequence[Node], side: int, shared: Node) -> dict[Node, Node]:
    axis = 1 - side  # the axis of the other operands, and of the result, along which they lie side by side
    other = join_matrices([node.inputs[1 - side] for node in members], axis, members[0].source)
    whole = Node.of(matmul, [shared, other] if side == 0 else [other, shared], {}, members[0].source)
    keys = [(*[slice(None)] * axis, slice(*place), *[slice(None)] * (1 - axis)) for place in bounds(members, axis)]
    return {n: Node.of(getitem, [whole], {"key": key}, n.source) for n, key in zip(members, keys, strict=True)}


def flatten_products(graph: Graph) -> Graph:
    """Return the graph with stacks of products with one matrix, and sums of such stacks, as single products."""
    uses = count_uses(graph)
    return rewrite(graph, lambda node: _flatten_product(node, uses), uses)


def _flatten_product(node: Node, uses: Uses) -> Node | None:
    if is_product(node):
        return _rows_at_once(node)
    if is_sum(node) and is_product(node.inputs[0]) and uses[node.inputs[0]] <= 1:
        return _gradient_at_once(node, node.inputs[0])
    return None


def rows_of(x: Node) -> Node:
    """Return all rows of an array one under the other: [..., K] -> [N, K]."""
    return reshape_node(x, (dims.product(x.spec.shape[:-1]), x.spec.shape[-1]))


def rows_times(x: Node, w: Node, source: str) -> Node:
    """Return the product of all rows of an array with one matrix: [..., K] @ [K, N] -> [..., N]."""
    return reshape_node(Node.of(matmul, [rows_of(x), w], {}, source), (*x.spec.shape[:-1], w.spec.shape[-1]), source)


def _rows_at_once(node: Node) -> Node | None:
    x, w = node.inputs
    # A reshape would copy a transposed or repeated operand, which the stacked product reads as it lies.
    if x.spec.ndim < 3 or w.spec.ndim != 2 or x.op in (movement.permute_dims, movement.broadcast_to):
        return None
    return rows_times(x, w, node.source)


def _gradient_at_once(node: Node, product: Node) -> Node | None:
    transposed, g = product.inputs
    stack = product.spec.ndim - 2
    swapped = (*range(stack), stack + 1, stack)
    if not is_turned(transposed) or transposed.attrs["axes"] != swapped:
        return None
    x = transposed.inputs[0]
    if node.attrs["axis"] != tuple(range(stack)) or not dims.same_shape(x.spec.shape[:-1], g.spec.shape[:-1]):
        return None
    if node.spec.dtype != product.spec.dtype or not stack:
        return None
    whole = Node.of(matmul, [permute_node(rows_of(x), (1, 0)), rows_of(g)], {}, product.source)
    return reshape_node(whole, node.spec.shape, node.source)


def merge_sums(graph: Graph) -> Graph:
    """Return the graph with added products and added sums merged, where that saves more than joining costs."""
    return _Merging(graph).run()


class _Merging:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.uses = count_uses(graph)
        self.position = {node: i for i, node in enumerate(graph.nodes)}
        self.joins: dict[Any, Node] = {}

    def run(self) -> Graph:
        instead: dict[Node, Node] = {}
        absorbed: set[Node] = set()
        roots = [
            (node, terms(node, self.uses, absorbed))
            for node in reversed(self.graph.nodes)
            if node.op is elementwise.add and node not in absorbed and node.spec.is_float
        ]
        # Products first: the sums of rows can then read the arrays that were joined for them.
        for kind in (matmul, reductions.sum):
            for root, leaves in roots:
                self._merge(root, leaves, kind, instead)
        return replace_nodes(self.graph, instead)

    def _merge(self, root: Node, leaves: list[Node], kind: Op, instead: dict[Node, Node]) -> None:
        groups: dict[Any, list[Node]] = defaultdict(list)
        for leaf in leaves:
            if leaf.op is kind and self.uses[leaf] == 1 and leaf.spec == root.spec:
                groups[_alike(leaf)].append(leaf)
        made: list[Node] = []
        members: set[Node] = set()
        for group in groups.values():
            operands = self._operands(group) if len(group) > 1 else []
            if operands and _saves_calls(group, operands):
                made.append(Node.of(kind, operands, group[0].attrs, group[0].source))
                members.update(group)
        if made:
            leaves[:] = [*(leaf for leaf in leaves if leaf not in members), *made]
            instead[root] = _add_leaves(leaves, root.source)

    def _operands(self, group: Sequence[Node]) -> list[Node]:
        """Return the operands of all members, joined in the order in which the first operands were computed."""
        first = [member.inputs[0] for member in group]
        if is_sum(group[0]) and (frozenset(first), 0) in self.joins:
            return [self.joins[frozenset(first), 0]]
        order = in_order(first, self.position)
        axes = (1, 0) if is_product(group[0]) else (0,)
        return [self._join([group[i].inputs[k] for i in order], axis) for k, axis in enumerate(axes)]

    def _join(self, parts: Sequence[Node], axis: int) -> Node:
        key = (tuple(parts), axis)
        if key not in self.joins:
            self.joins[key] = join_matrices(parts, axis, parts[0].source)
            self.joins.setdefault((frozenset(parts), axis), self.joins[key])
        return self.joins[key]


def terms(root: Node, uses: Uses, absorbed: set[Node]) -> list[Node]:
    """Return the terms of a tree of additions in order; `absorbed` gets its inner additions, which have one reader."""
    addends: list[Node] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        inner = node is root or (node.op is elementwise.add and uses[node] == 1 and node.spec == root.spec)
        if inner:
            absorbed.add(node)
            waiting += reversed(node.inputs)
        else:
            addends.append(node)
    return addends


def _add_leaves(leaves: Sequence[Node], source: str) -> Node:
    total = leaves[0]
    for leaf in leaves[1:]:
        total = Node.of(elementwise.add, [total, leaf], {}, source)
    return total


def _alike(leaf: Node) -> Any:
    """Return what leaves must have in common to be merged; the leaf itself where it cannot be merged."""
    first = leaf.inputs[0].spec
    if is_product(leaf):
        fits = first.ndim == 2 and leaf.inputs[1].spec.ndim == 2
        return (first.dtype, leaf.inputs[1].spec.dtype) if fits else leaf
    axis, keepdims = leaf.attrs["axis"], leaf.attrs["keepdims"]
    fits = 0 in axis and first.dtype == leaf.spec.dtype
    return (first.dtype, axis, keepdims, _sizes(first.shape[1:])) if fits else leaf


def _sizes(shape: Iterable[Size]) -> tuple[str, ...]:
    return tuple(map(str, shape))


def _saves_calls(group: Sequence[Node], operands: Sequence[Node]) -> bool:
    """Whether the additions and calls that are saved cost more than moving the operands together."""
    saved = (len(group) - 1) * (3 * nbytes(group[0]) + 2 * CALL)
    return saved > sum(2 * nbytes(operand) + CALL for operand in operands if _is_moved(operand))


def _is_moved(operand: Node) -> bool:
    while is_turned(operand):
        operand = operand.inputs[0]
    return operand.op is movement.concat


CALL = 8192  # a call of a kernel takes about as long as moving that many bytes
TYPICAL = 64  # the number that stands for a symbolic size where a decision needs one


def typical(size: Size) -> int:
    """Return a number for a size; `TYPICAL` stands for each symbol in it."""
    return dims.evaluate(size, dict.fromkeys(dims.symbols(size), TYPICAL))


def nbytes(node: Node) -> int:
    """Return the bytes of a value, with typical numbers for symbolic sizes."""
    return typical(node.spec.nbytes)


def join_matrices(parts: Sequence[Node], axis: int, source: str) -> Node:
    """Return matrices joined along an axis: a view where they are parts of one array in order, else a concat."""
    if all(is_turned(p) and p.attrs["axes"] == parts[0].attrs["axes"] for p in parts):
        axes = parts[0].attrs["axes"]
        return permute_node(join_matrices([p.inputs[0] for p in parts], axes[axis], source), axes, source)
    entries = entries_as_slice(parts) if axis == 0 else None
    if entries is not None:
        return reshape_node(entries, (dims.product(entries.spec.shape[:2]), *entries.spec.shape[2:]), source)
    whole = whole_of(parts, axis)
    return Node.of(movement.concat, parts, {"axis": axis}, source) if whole is None else whole


def entry_of(node: Node) -> tuple[Node, int] | None:
    """Return (array, t) for a node that is `array[t]`, None for any other node."""
    if node.op is not getitem or not node.attrs["key"]:
        return None
    first, *rest = node.attrs["key"]
    if not isinstance(first, int) or first < 0 or any(entry != slice(None) for entry in rest if entry is not None):
        return None
    return None if None in rest else (node.inputs[0], first)


def entries_as_slice(parts: Sequence[Node]) -> Node | None:
    """Return the array, or the slice of one, whose consecutive entries these nodes are; None where they are not."""
    entries = [entry_of(part) for part in parts]
    if entries[0] is None:
        return None
    base, start = entries[0]
    if any(entry is None or entry[0] is not base or entry[1] != start + i for i, entry in enumerate(entries)):
        return None
    return section(base, start, start + len(parts))


def section(base: Node, start: Size, stop: Size) -> Node:
    """Return `base[start:stop]`, or `base` itself where the slice is all of it."""
    if dims.same(start, 0) and dims.same(stop, base.spec.shape[0]):
        return base
    key = (slice(start, stop), *[slice(None)] * (base.spec.ndim - 1))
    return Node.of(getitem, [base], {"key": key}, base.source)


def in_order(parts: Sequence[Node], position: Mapping[Node, int]) -> list[int]:
    """Return the indices of parts, sorted by where each, or the array that it is a view of, was computed."""

    def place(node: Node) -> tuple[int, int]:
        while is_turned(node):
            node = node.inputs[0]
        entry = entry_of(node)
        return (position.get(node, -1), 0) if entry is None else (position.get(entry[0], -1), entry[1])

    return sorted(range(len(parts)), key=lambda i: place(parts[i]))


# Sums as products -----------------------------------------------------------------------------------------------------


MOST_SUMMED = 1 << 18  # elements of the operand of a sum
LONGEST = 1 << 16  # terms of one sum: BLAS adds them up in a few registers, and rounds more than NumPy does
OFTEN = 8  # how often a transposed matrix is read for a copy of it to pay


def contract(graph: Graph) -> Graph:
    """Return the graph with sums as products, and with one copy of each transposed matrix that many products read."""
    uses, weights = count_uses(graph), _Weights()
    return _straighten(rewrite(graph, lambda node: _contract(node, uses, weights), uses))


class _Weights:
    """Constant vectors whose elements are all one value, each made once."""

    def __init__(self) -> None:
        self._made: dict[Any, Node] = {}

    def __call__(self, value: float, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Node:
        key = value, shape, dtype
        if key not in self._made:
            self._made[key] = Node.of(CONSTANT, (), {"value": np.full(shape, value, dtype), "dtype": dtype})
        return self._made[key]


def _contract(node: Node, uses: Uses, weights: _Weights) -> Node | None:
    if node.op not in (reductions.sum, reductions.mean) or not _fits(node):
        return None
    x, axis = node.inputs[0], node.attrs["axis"]
    count: Any = dims.product(x.spec.shape[a] for a in axis)
    weight = 1 if is_sum(node) else 1 / count
    if len(axis) == x.spec.ndim:
        return _reduce_all(node, x, uses, count, weight)
    if _is_strided(x):
        return None
    rows: Size = dims.product(s for i, s in enumerate(x.spec.shape) if i not in axis)
    if axis == tuple(range(len(axis))):
        product = [weights(weight, (count,), x.spec.dtype), reshape_node(x, (count, rows))]
    elif axis == tuple(range(x.spec.ndim - len(axis), x.spec.ndim)):
        product = [reshape_node(x, (rows, count)), weights(weight, (count, 1), x.spec.dtype)]
    else:
        return None
    return reshape_node(Node.of(matmul, product, {}, node.source), node.spec.shape, node.source)


def _fits(node: Node) -> bool:
    x, axis = node.inputs[0], node.attrs["axis"]
    if x.spec.dtype.char not in "fd" or x.spec.dtype != node.spec.dtype or not axis or x.is_constant:
        return False
    if x.spec.symbols or not 1 < dims.product(x.spec.shape[a] for a in axis) <= LONGEST:
        return False
    return 0 < x.spec.size <= MOST_SUMMED


def _is_strided(x: Node) -> bool:
    """Whether a reshape of a node may copy, or BLAS cannot read it as it lies in memory."""
    while x.op is movement.reshape:
        x = x.inputs[0]
    return x.op.view


def _reduce_all(node: Node, x: Node, uses: Uses, count: int, weight: float) -> Node | None:
    factors = x.inputs * 2 if x.op is elementwise.square else x.inputs
    own = uses[x] <= 1 and x.op in (elementwise.square, elementwise.multiply)
    if not own or any(f.spec != x.spec or _is_strided(f) for f in factors):
        return None
    total = Node.of(matmul, [reshape_node(f, (count,)) for f in factors], {}, node.source)
    if weight != 1:
        total = call(elementwise.multiply, total, number(weight, x.spec.dtype), source=node.source)
    return reshape_node(total, node.spec.shape, node.source)


# Transposed operands ----------------------------------------------------------------------------------------------


def _straighten(graph: Graph) -> Graph:
    often = _often_read(graph)
    copies: dict[Node, Node] = {}

    def rule(node: Node) -> Node | None:
        if not is_product(node) or node.inputs[1] not in often:
            return None
        w = node.inputs[1]
        if w not in copies:
            copies[w] = Node.of(movement.identity, [w], {}, w.source)
        return Node.of(matmul, [node.inputs[0], copies[w]], {}, node.source)

    return rewrite(graph, rule) if often else graph


def _often_read(graph: Graph) -> set[Node]:
    """Return the transposed matrices that at least `OFTEN` products read as their second operand."""
    reads: dict[Node, int] = {}
    for node in graph.nodes:
        if is_product(node) and is_turned(node.inputs[1]) and node.inputs[1].spec.ndim == 2:
            reads[node.inputs[1]] = reads.get(node.inputs[1], 0) + 1
    return {node for node, count in reads.items() if count >= OFTEN}

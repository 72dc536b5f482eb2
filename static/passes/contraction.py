"""Contraction: sums and means as matrix products, and what products that are repeated read, laid out for BLAS.

sum(x, axis=0), of [N, M]         ones[N] @ x               and so for all leading axes
sum(x, axis=-1), of [N, M]        x @ ones[M, 1]            and so for all trailing axes; a mean has 1 / M for ones
sum(x * y), sum(square(x))        reshape(x, -1) @ reshape(y, -1)
x1 @ w.T, x2 @ w.T, ...           v = a copy of w.T; x1 @ v, x2 @ v, ...

BLAS adds up in vector registers, several times as fast as NumPy's reductions. Only float32 and float64, sizes that are
numbers, and arrays that fit into the cache: larger ones are better added up where they are made, block by block.
**This changes bits**: the sums are made in another order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphs import dims
from graphs.dims import Size
from graphs.ir import CONSTANT, Graph, Node
from graphs.ops import elementwise, movement, reductions
from graphs.ops.linalg import matmul
from static.passes.rewrite import Uses, call, count_uses, is_product, is_sum, is_turned, number, rewrite
from static.passes.views import reshaped

LARGEST = 1 << 18  # elements of what is summed
LONGEST = 1 << 16  # terms of one sum: BLAS adds them up in a few registers, and rounds more than NumPy does
OFTEN = 8  # how often a transposed matrix is read for a copy of it to pay


def contract(graph: Graph) -> Graph:
    """The graph with sums as products, and one copy of each transposed matrix that many products read."""
    uses, weights = count_uses(graph), _Weights()
    return _straightened(rewrite(graph, lambda node: _contracted(node, uses, weights), uses))


class _Weights:
    """Constant vectors of one value, each made once."""

    def __init__(self) -> None:
        self._made: dict[Any, Node] = {}

    def __call__(self, value: float, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Node:
        key = value, shape, dtype
        if key not in self._made:
            self._made[key] = Node.of(CONSTANT, (), {"value": np.full(shape, value, dtype), "dtype": dtype})
        return self._made[key]


def _contracted(node: Node, uses: Uses, weights: _Weights) -> Node | None:
    if node.op not in (reductions.sum, reductions.mean) or not _fits(node):
        return None
    x, axis = node.inputs[0], node.attrs["axis"]
    count: Any = dims.product(x.spec.shape[a] for a in axis)
    weight = 1 if is_sum(node) else 1 / count
    if len(axis) == x.spec.ndim:
        return _of_all(node, x, uses, count, weight)
    if _is_strided(x):
        return None
    rows: Size = dims.product(s for i, s in enumerate(x.spec.shape) if i not in axis)
    if axis == tuple(range(len(axis))):
        product = [weights(weight, (count,), x.spec.dtype), reshaped(x, (count, rows))]
    elif axis == tuple(range(x.spec.ndim - len(axis), x.spec.ndim)):
        product = [reshaped(x, (rows, count)), weights(weight, (count, 1), x.spec.dtype)]
    else:
        return None
    return reshaped(Node.of(matmul, product, {}, node.source), node.spec.shape, node.source)


def _fits(node: Node) -> bool:
    x, axis = node.inputs[0], node.attrs["axis"]
    if x.spec.dtype.char not in "fd" or x.spec.dtype != node.spec.dtype or not axis or x.is_constant:
        return False
    if x.spec.symbols or not 1 < dims.product(x.spec.shape[a] for a in axis) <= LONGEST:
        return False
    return 0 < x.spec.size <= LARGEST


def _is_strided(x: Node) -> bool:
    """Whether a reshape may have to copy, or BLAS can not read a node as it lies."""
    while x.op is movement.reshape:
        x = x.inputs[0]
    return x.op.view


def _of_all(node: Node, x: Node, uses: Uses, count: int, weight: float) -> Node | None:
    factors = x.inputs * 2 if x.op is elementwise.square else x.inputs
    own = uses[x] <= 1 and x.op in (elementwise.square, elementwise.multiply)
    if not own or any(f.spec != x.spec or _is_strided(f) for f in factors):
        return None
    total = Node.of(matmul, [reshaped(f, (count,)) for f in factors], {}, node.source)
    if weight != 1:
        total = call(elementwise.multiply, total, number(weight, x.spec.dtype), source=node.source)
    return reshaped(total, node.spec.shape, node.source)


# Transposed operands ----------------------------------------------------------------------------------------------


def _straightened(graph: Graph) -> Graph:
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
    """The transposed matrices that many products read as their second operand."""
    reads: dict[Node, int] = {}
    for node in graph.nodes:
        if is_product(node) and is_turned(node.inputs[1]) and node.inputs[1].spec.ndim == 2:
            reads[node.inputs[1]] = reads.get(node.inputs[1], 0) + 1
    return {node for node, count in reads.items() if count >= OFTEN}

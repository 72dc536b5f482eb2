"""Flattening: a stack of matrix products with one matrix is a single product.

x[B, T, K] @ w[K, N]                               reshape(reshape(x, (B * T, K)) @ w, (B, T, N))
sum(transpose(x)[B, K, T] @ g[B, T, N], axis=0)    transpose(reshape(x, (B * T, K))) @ reshape(g, (B * T, N))

NumPy multiplies a stack matrix by matrix; BLAS is faster on one that is large. The second is the gradient of the
first in w. **This changes bits**: the sums of a product are made in another order.
"""

from __future__ import annotations

from graphs import dims
from graphs.ir import Graph, Node
from graphs.ops import movement, reductions
from graphs.ops.linalg import matmul
from static.passes.rewrite import Uses, count_uses, rewrite
from static.passes.views import permuted, reshaped


def flatten_products(graph: Graph) -> Graph:
    """The graph with stacks of products with one matrix, and sums of stacks of products, as single products."""
    uses = count_uses(graph)
    return rewrite(graph, lambda node: _flattened(node, uses), uses)


def _flattened(node: Node, uses: Uses) -> Node | None:
    if node.op is matmul:
        return _rows_at_once(node)
    if node.op is reductions.sum and node.inputs[0].op is matmul and uses[node.inputs[0]] <= 1:
        return _gradient_at_once(node, node.inputs[0])
    return None


def rows_of(x: Node) -> Node:
    """All rows of an array one under the other: [..., K] -> [N, K]."""
    return reshaped(x, (dims.product(x.spec.shape[:-1]), x.spec.shape[-1]))


def rows_times(x: Node, w: Node, source: str) -> Node:
    """The product of all rows of an array with one matrix: [..., K] @ [K, N] -> [..., N]."""
    return reshaped(Node.of(matmul, [rows_of(x), w], {}, source), (*x.spec.shape[:-1], w.spec.shape[-1]), source)


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
    if transposed.op is not movement.permute_dims or transposed.attrs["axes"] != swapped:
        return None
    x = transposed.inputs[0]
    if node.attrs["axis"] != tuple(range(stack)) or not dims.same_shape(x.spec.shape[:-1], g.spec.shape[:-1]):
        return None
    if node.spec.dtype != product.spec.dtype or not stack:
        return None
    whole = Node.of(matmul, [permuted(rows_of(x), (1, 0)), rows_of(g)], {}, product.source)
    return reshaped(whole, node.spec.shape, node.source)

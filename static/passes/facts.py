"""What rules over sums and products look at: readers of a product, its smaller factor, what is known already."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from graphs import dims
from graphs.dims import Shape
from graphs.ir import Node
from graphs.ops import elementwise, movement
from graphs.ops.linalg import matmul
from graphs.spec import broadcast_shapes
from static.passes.patterns import call, number, value_of
from static.passes.rewrite import Uses
from static.passes.views import reshaped


class Facts:
    """How often nodes are read, and what is computed already: products by their two factors, and reciprocals."""

    def __init__(self, uses: Uses) -> None:
        self.uses = uses
        self.products: dict[Hashable, Node] = {}  # elementwise by the set of their factors
        self._reciprocals: dict[Node, Node] = {}

    def note(self, node: Node) -> None:
        """Enter a node that stays as it is."""
        if node.op is elementwise.multiply:
            self.products.setdefault(frozenset(node.inputs), node)
        elif node.op is elementwise.reciprocal:
            self._reciprocals.setdefault(node.inputs[0], node)
        elif node.op is matmul:
            self.products.setdefault((node.inputs[0], *_matrix(node.inputs[1])), node)

    def owns(self, product: Node) -> bool:
        """Whether a node is a product of factors of its dtype that one node alone reads."""
        is_product = product.op is elementwise.multiply and is_of_one_dtype(product)
        return is_product and self.uses[product] <= 1  # 0: a rule has just made it

    def product(self, x: Node, y: Node) -> Node | None:
        """x * y, where that is computed already, and read."""
        known_product = self.products.get(frozenset((x, y)))
        return known_product if known_product is not None and self.uses[known_product] else None

    def weighted(self, p: Node, transposed: Node) -> Node | None:
        """p @ v, where that is computed already, and read; v is given transposed."""
        root, axes = _matrix(transposed)
        known_product = self.products.get((p, root, (*axes[:-2], *axes[:-3:-1])))
        return known_product if known_product is not None and self.uses[known_product] else None

    def has_inverse(self, x: Node) -> bool:
        """Whether 1 / x is computed already."""
        return x in self._reciprocals and self.uses[self._reciprocals[x]] > 0

    def inverse(self, x: Node, source: str) -> Node | None:
        """1 / x, which may be computed already; of a number, a number, or None where that is beyond its dtype."""
        divisor = value_of(x)
        if divisor is None:
            if x not in self._reciprocals:
                self._reciprocals[x] = call(elementwise.reciprocal, x, source=source)
            return self._reciprocals[x]
        with np.errstate(all="ignore"):
            value = np.reciprocal(divisor)
        return _of_rank(value, x.spec.ndim, x.source) if _is_harmless(value) else None


def _matrix(node: Node) -> tuple[Node, tuple[int, ...]]:
    """What a node is a permutation of, and its axes there."""
    if node.op is movement.permute_dims:
        return node.inputs[0], node.attrs["axes"]
    return node, tuple(range(node.spec.ndim))


def fills(node: Node, shape: Shape) -> bool:
    """Whether a factor of something of this shape is not repeated along any axis of it."""
    return node.spec.shape is shape or dims.same_shape(node.spec.shape, shape)  # equal specs are mostly one object


def is_of_one_dtype(node: Node) -> bool:
    """Whether all inputs of a node have its dtype."""
    dtype = node.spec.dtype
    for source in node.inputs:  # a loop, since rules ask this of every node
        own = source.spec.dtype
        if own is not dtype and own != dtype:
            return False
    return True


def has_smaller(product: Node, x: Node, s: Node) -> bool:
    """Whether a product of factors of its dtype is one of a factor of its shape and a smaller one."""
    shape = product.spec.shape
    return fills(x, shape) and not fills(s, shape) and is_of_one_dtype(product)


def times(x: Node, y: Node, source: str) -> Node | None:
    """The product; of two numbers, their product, or None where that is beyond their dtype."""
    x_value, y_value = value_of(x), value_of(y)
    if x_value is None or y_value is None:
        return call(elementwise.multiply, x, y, source=source)
    with np.errstate(all="ignore"):
        value = np.multiply(x_value, y_value)
    if not _is_harmless(value) and x_value and y_value:
        return None
    return _of_rank(value, len(broadcast_shapes(x.spec.shape, y.spec.shape)), source)


def _is_harmless(value: Any) -> bool:
    """Whether a number that was computed ahead lost nothing to the limits of its dtype."""
    return bool(np.isfinite(value) and abs(value) >= np.finfo(value.dtype).tiny)


def _of_rank(value: Any, ndim: int, source: str) -> Node:
    return reshaped(number(value, value.dtype, source), (1,) * ndim, source)

"""Gradients made smaller: by their norm together, or element by element."""

from __future__ import annotations

import numpy as np

from graphs import tree
from graphs.op import Array
from graphs.ops.elementwise import add, clip, divide, equal, minimum, multiply, sqrt, square, where
from graphs.ops.movement import cast
from graphs.ops.reductions import sum
from graphs.ops.shapes import dtype_of
from graphs.optim.base import check_not_negative, like_param
from graphs.tree import Tree

TINY = 1e-6  # keeps the limit from being divided by a norm of 0; the value is that of torch.nn.utils.clip_grad_norm_


def global_norm(gradients: Tree) -> Array:
    """The Euclidean norm of all leaves as one vector; its own gradient at 0 is 0. No leaves: 0, a float32.

    float16 is squared in float32: its squares overflow from 256 on.
    """
    total: Array = np.zeros((), np.float32)
    for leaf in tree.leaves(gradients):
        total = add(total, sum(square(cast(leaf, np.promote_types(dtype_of(leaf), np.float32)))))
    zero = equal(total, 0)
    return where(zero, 0, sqrt(where(zero, 1, total)))


def clip_by_global_norm(gradients: Tree, limit: float | Array) -> Tree:
    """Gradients scaled down together so that their global norm is at most `limit`; dtypes are kept.

    The factor is PyTorch's, `min(1, limit / (norm + 1e-6))` (Pascanu, Mikolov and Bengio, "On the difficulty of
    training recurrent neural networks", 2013). The limit may be traced. Raises ValueError for a negative one.
    """
    check_not_negative(limit=limit)
    factor = minimum(divide(limit, add(global_norm(gradients), TINY)), 1)
    return tree.tree_map(lambda leaf: multiply(leaf, like_param(factor, leaf)), gradients)


def clip_by_value(gradients: Tree, limit: float | Array) -> Tree:
    """Every element limited to the range from `-limit` to `limit`, which may be traced; dtypes are kept.

    Raises ValueError for a negative limit.
    """
    check_not_negative(limit=limit)

    def clipped(leaf: Array) -> Array:
        high = like_param(limit, leaf)
        return clip(leaf, -high, high)

    return tree.tree_map(clipped, gradients)

"""PyTorch's names for what the op library calls otherwise, so that a small PyTorch program runs as it is.

Only names that mean the same in NumPy, or mean nothing there: `transpose` and `size` keep NumPy's meaning.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, Self, TypeVar

import numpy as np

from graphs import ops
from graphs.ops.shapes import shape_of

P = ParamSpec("P")
R = TypeVar("R")


def axis_words(function: Callable[P, R]) -> Callable[..., R]:
    """Let a function be called with PyTorch's words, `dim` and `keepdim`, for `axis` and `keepdims`."""

    @functools.wraps(function)
    def called(*args: Any, **options: Any) -> R:
        if options:
            for theirs, ours in (("dim", "axis"), ("keepdim", "keepdims")):
                if theirs in options:
                    options[ours] = options.pop(theirs)
        return function(*args, **options)

    return called


class TorchNames:
    """Methods of a tensor under PyTorch's names; each is one op."""

    __slots__ = ()

    def abs(self) -> Self:
        """The absolute value."""
        return ops.abs(self)

    def cos(self) -> Self:
        """The cosine."""
        return ops.cos(self)

    def exp(self) -> Self:
        """e to the power of each element."""
        return ops.exp(self)

    def log(self) -> Self:
        """The natural logarithm."""
        return ops.log(self)

    def neg(self) -> Self:
        """The elements with the other sign."""
        return ops.negative(self)

    def relu(self) -> Self:
        """max(x, 0)."""
        return ops.relu(self)

    def sigmoid(self) -> Self:
        """1 / (1 + exp(-x))."""
        return ops.sigmoid(self)

    def sin(self) -> Self:
        """The sine."""
        return ops.sin(self)

    def sqrt(self) -> Self:
        """The square root."""
        return ops.sqrt(self)

    def square(self) -> Self:
        """Each element times itself."""
        return ops.square(self)

    def tanh(self) -> Self:
        """The hyperbolic tangent."""
        return ops.tanh(self)

    def softmax(self, dim: int = -1) -> Self:
        """exp(x) / sum(exp(x)) along one axis."""
        return ops.softmax(self, axis=dim)

    def log_softmax(self, dim: int = -1) -> Self:
        """The logarithm of softmax."""
        return ops.log_softmax(self, axis=dim)

    def cummax(self, dim: int) -> Any:
        """The largest element so far along one axis, and its index."""
        return ops.cummax(self, axis=dim)

    def cummin(self, dim: int) -> Any:
        """The smallest element so far along one axis, and its index."""
        return ops.cummin(self, axis=dim)

    def logcumsumexp(self, dim: int) -> Self:
        """The logarithm of the running sum of exponentials along one axis."""
        return ops.logcumsumexp(self, axis=dim)

    def scatter_reduce(self, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True) -> Self:
        """With the elements of `src` sent to places along one axis and joined there."""
        return ops.scatter_reduce(self, dim, index, src, reduce, include_self)

    def pow(self, exponent: Any) -> Self:
        """Each element to a power."""
        return self**exponent

    def matmul(self, other: Any) -> Self:
        """The matrix product."""
        return ops.matmul(self, other)

    mm = matmul

    def t(self) -> Self:
        """The transpose of a matrix."""
        return ops.permute_dims(self)

    def permute(self, *dims: Any) -> Self:
        """The axes in another order."""
        return ops.permute_dims(self, dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims)

    def view(self, *shape: Any) -> Self:
        """The same elements in another shape."""
        return ops.reshape(self, shape[0] if len(shape) == 1 else shape)

    def unsqueeze(self, dim: int) -> Self:
        """With an axis of size 1 at `dim`."""
        return ops.expand_dims(self, dim)

    def expand(self, *sizes: Any) -> Self:
        """Repeated without copying to larger sizes; -1 keeps a size."""
        wanted = tuple(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
        have = (1,) * (len(wanted) - len(shape_of(self))) + shape_of(self)
        return ops.broadcast_to(
            self, [h if isinstance(w, int) and w == -1 else w for h, w in zip(have, wanted, strict=True)]
        )

    def dim(self) -> int:
        """The number of axes."""
        return len(shape_of(self))

    def float(self) -> Self:
        """The values as float32."""
        return ops.astype(self, np.float32)

    def double(self) -> Self:
        """The values as float64."""
        return ops.astype(self, np.float64)

    def long(self) -> Self:
        """The values as int64."""
        return ops.astype(self, np.int64)

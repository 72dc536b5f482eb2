"""PyTorch's names for what the op library calls otherwise, so that a small PyTorch program runs as it is.

Only names that mean the same in NumPy, or mean nothing there: `transpose` and `size` keep NumPy's meaning.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, Protocol, Self, TypeVar, cast

import numpy as np

from graphs import ops
from graphs.op import Op
from graphs.ops.shapes import shape_of

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")


def axis_words(function: Callable[P, R]) -> Callable[..., R]:
    """Let a function be called with PyTorch's words, `dim` and `keepdim`, for `axis` and `keepdims`."""

    @functools.wraps(function, updated=())
    def called(*args: Any, **options: Any) -> R:
        if options:
            for theirs, ours in (("dim", "axis"), ("keepdim", "keepdims")):
                if theirs in options:
                    options[ours] = options.pop(theirs)
        return function(*args, **options)

    return called


class Method(Protocol):
    """A function among the methods of a class, as a checker of types sees it."""

    def __get__(self, instance: S, owner: type[S], /) -> Callable[..., S]: ...


def method(function: Callable[..., Any]) -> Method:
    """A function of the op library as a method, the tensor its first argument; its help is that of the function."""
    return cast(Method, axis_words(function))


def unary(op: Op) -> Callable[[S], S]:
    """An op of one input as a method."""

    def called(self: S) -> S:
        return op(self)

    functools.update_wrapper(called, op, updated=())
    return called


class TorchNames:
    """Methods of a tensor under PyTorch's names; each is one op, and takes PyTorch's words where it has them."""

    __slots__ = ()

    abs = unary(ops.abs)
    cos = unary(ops.cos)
    exp = unary(ops.exp)
    log = unary(ops.log)
    neg = unary(ops.negative)
    relu = unary(ops.relu)
    sigmoid = unary(ops.sigmoid)
    sin = unary(ops.sin)
    sqrt = unary(ops.sqrt)
    square = unary(ops.square)
    tanh = unary(ops.tanh)
    matmul = mm = method(ops.matmul)
    t = method(ops.permute_dims)
    softmax = method(ops.softmax)
    log_softmax = method(ops.log_softmax)
    cummax: Any = axis_words(ops.cummax)
    cummin: Any = axis_words(ops.cummin)
    logcumsumexp = method(ops.logcumsumexp)
    scatter_reduce = method(ops.scatter_reduce)

    def pow(self, exponent: Any) -> Self:
        """Each element to a power."""
        return self**exponent

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

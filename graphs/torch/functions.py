"""PyTorch's functions where their name, or the word `dim`, differs from the op library's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphs import ops
from graphs.torch_names import axis_words

__all__ = [
    "all",
    "any",
    "argmax",
    "argmin",
    "cat",
    "cross",
    "cummax",
    "cummin",
    "log_softmax",
    "logcumsumexp",
    "logsumexp",
    "mean",
    "mm",
    "mul",
    "neg",
    "prod",
    "scatter_reduce",
    "softmax",
    "stack",
    "sub",
    "sum",
    "unsqueeze",
]

all = axis_words(ops.all)
any = axis_words(ops.any)
argmax = axis_words(ops.argmax)
argmin = axis_words(ops.argmin)
cross = axis_words(ops.cross)
cummax = axis_words(ops.cummax)
cummin = axis_words(ops.cummin)
log_softmax = axis_words(ops.log_softmax)
logcumsumexp = axis_words(ops.logcumsumexp)
logsumexp = axis_words(ops.logsumexp)
mean = axis_words(ops.mean)
mm = ops.matmul
mul = ops.multiply
neg = ops.negative
prod = axis_words(ops.prod)
scatter_reduce = axis_words(ops.scatter_reduce)
softmax = axis_words(ops.softmax)
stack = axis_words(ops.stack)
sub = ops.subtract
sum = axis_words(ops.sum)


def cat(tensors: Sequence[Any], dim: int = 0) -> Any:
    """Tensors joined along an axis they all have."""
    return ops.concat(tensors, axis=dim)


def unsqueeze(x: Any, dim: int) -> Any:
    """With an axis of size 1 at `dim`."""
    return ops.expand_dims(x, dim)

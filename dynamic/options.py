"""The attributes of a call, from its options and the shapes and dtypes of its inputs alone.

Most of the cost of an op with options is checking and completing them, the same in every training step: the compiled
tape remembers the result of `attributes` for each set of options.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from graphs import dispatch, promotion
from graphs.op import Attrs, Op, is_ours
from graphs.ops.linalg import matmul
from graphs.ops.neural import linear


class UnlikeError(Exception):
    """A call depends on more than the shapes and dtypes of its inputs and options that are plain values."""


class _ShapeStandIn:
    """Stands for an operand in `prepare`: shape and dtype can be read, anything else raises UnlikeError."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.shape, self.dtype = shape, dtype

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise UnlikeError


def _refuse(*_: Any) -> NoReturn:
    raise UnlikeError


dispatch.interpret(_ShapeStandIn, _refuse)  # a prepare that runs ops on its operand


def attributes(op: Op) -> Callable[..., Attrs]:
    """Return `f(inputs, *args, **options)`, which computes attributes; `inputs` is shape, dtype number of each input.

    Nothing is cached. Raises UnlikeError, or the errors of `prepare`.
    """

    def work_out(inputs: Sequence[Any], *args: Any, **options: Any) -> Attrs:
        if not all(_is_plain(value) for value in (*args, *options.values())):
            raise UnlikeError
        pairs = zip(inputs[::2], inputs[1::2], strict=True)
        stand_ins = tuple([_ShapeStandIn(shape, promotion.dtype_of_number(num)) for shape, num in pairs])
        operands = (stand_ins,) if op.arity is None else stand_ins
        prepared, attrs = op.prepare(*operands, *args, **options)  # type: ignore[misc]  # has one
        if len(prepared) != len(stand_ins) or any(a is not b for a, b in zip(prepared, stand_ins, strict=True)):
            raise UnlikeError
        return attrs

    return work_out


def has_options(op: Op) -> bool:
    """Whether an op takes options beside its inputs."""
    return op.prepare is not None and op not in (linear, matmul)


def may_remember(op: Op) -> bool:
    """Whether attributes from `prepare` may be cached: not for a user's op, whose `prepare` may read anything."""
    return op.family not in ("custom", "control") and (op.prepare is None or is_ours(op.prepare))


def _is_plain(value: Any) -> bool:
    """Whether a value is immutable: None, Ellipsis, one of `_KINDS`, or a tuple or slice of such values."""
    if type(value) is tuple:
        return all(map(_is_plain, value))
    if type(value) is slice:
        return all(map(_is_plain, (value.start, value.stop, value.step)))
    return value is None or value is Ellipsis or isinstance(value, _KINDS)


_KINDS = int, float, str, type, np.dtype

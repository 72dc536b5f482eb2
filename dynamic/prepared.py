"""The attributes of a call, worked out once for each shape, dtype and choice of options.

Most of what an op with options costs is checking and completing them, the same ones in every step of a training.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from dynamic.pullback import Pullback, pullback
from graphs import dispatch, promotion
from graphs.op import Attrs, Op

Prepared = Callable[..., tuple[Attrs, Pullback | None]]


class UnlikeError(Exception):
    """A call hangs on more than the shape and dtype of its first operand and on options that are plain values."""


class _Shaped:
    """Stands for an operand in `prepare`, which so can look at nothing but shape and dtype."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.shape, self.dtype = shape, dtype


def _refuse(*_: Any) -> NoReturn:
    raise UnlikeError


dispatch.interpret(_Shaped, _refuse)  # a prepare that runs ops on its operand


def preparer(op: Op) -> Prepared:
    """`prepared(shape, number of the dtype, *args, **options)`: the attributes, and the pullback if there is one.

    Raises UnlikeError, or what `prepare` raises.
    """

    @functools.lru_cache(maxsize=4096, typed=True)
    def prepared(shape: tuple[int, ...], num: int, *args: Any, **options: Any) -> tuple[Attrs, Pullback | None]:
        if not all(map(_is_plain, (*args, *options.values()))):
            raise UnlikeError  # and is not remembered, or it would be held
        operand = _Shaped(shape, promotion.dtype_of_number(num))
        inputs, attrs = op.prepare(operand, *args, **options)  # type: ignore[misc]  # has one
        if len(inputs) != 1 or inputs[0] is not operand:
            raise UnlikeError
        return attrs, pullback(op, 1, 1, (len(shape),)) if op.rules else None

    return prepared


def _is_plain(value: Any) -> bool:
    """Whether equal values mean the same call."""
    if type(value) is tuple:
        return all(map(_is_plain, value))
    if type(value) is slice:
        return all(map(_is_plain, (value.start, value.stop, value.step)))
    return value is None or value is Ellipsis or isinstance(value, (int, str, type, np.dtype))

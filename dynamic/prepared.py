"""The attributes of a call, worked out once for each choice of options beside inputs of some shapes and dtypes.

Most of what an op with options costs is checking and completing them, the same ones in every step of a training.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from dynamic.pullback import Pullback, pullback
from graphs import dispatch, promotion
from graphs.op import Attrs, Op, is_ours

Prepared = Callable[..., tuple[Attrs, Pullback | None]]


class UnlikeError(Exception):
    """A call hangs on more than the shapes and dtypes of its inputs and on options that are plain values."""


class _Shaped:
    """Stands for an operand in `prepare`, which so can look at nothing but shape and dtype."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.shape, self.dtype = shape, dtype

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise UnlikeError


def _refuse(*_: Any) -> NoReturn:
    raise UnlikeError


dispatch.interpret(_Shaped, _refuse)  # a prepare that runs ops on its operand


def preparer(op: Op) -> Prepared:
    """`prepared(shape, number of the dtype, *args, **options)`: the attributes, and the pullback if there is one.

    Of an op of one input. Tuples among the options must be exact. Raises UnlikeError, or what `prepare` raises.
    """

    @functools.lru_cache(maxsize=4096, typed=True)
    def prepared(shape: tuple[int, ...], num: int, *args: Any, **options: Any) -> tuple[Attrs, Pullback | None]:
        if not all(_is_plain(value, _HASHED) for value in (*args, *options.values())):
            raise UnlikeError  # and is not remembered, or it would be held
        attrs = attributes(op)((shape, num), *args, **options)
        return attrs, pullback(op, 1, 1, (len(shape),)) if op.rules else None

    return prepared


def attributes(op: Op) -> Callable[..., Attrs]:
    """`attributes((shape, number of the dtype, of each input in turn), *args, **options)`, which remembers nothing.

    Raises UnlikeError, or what `prepare` raises.
    """

    def worked_out(inputs: Sequence[Any], *args: Any, **options: Any) -> Attrs:
        if not all(_is_plain(value, (*_HASHED, float)) for value in (*args, *options.values())):
            raise UnlikeError
        pairs = zip(inputs[::2], inputs[1::2], strict=True)
        given = tuple([_Shaped(shape, promotion.dtype_of_number(num)) for shape, num in pairs])
        operands = (given,) if op.arity is None else given
        found, attrs = op.prepare(*operands, *args, **options)  # type: ignore[misc]  # has one
        if len(found) != len(given) or any(a is not b for a, b in zip(found, given, strict=True)):
            raise UnlikeError
        return attrs

    return worked_out


def is_exact(parts: tuple[Any, ...]) -> bool:
    """Whether no other tuple is equal: `(1,) == (True,) == (1.0,)`, and a cache tells the types of options alone."""
    for part in parts:
        kind = type(part)
        if kind is not int and kind not in _EXACT and (kind is not tuple or not is_exact(part)):
            return False
    return True


def has_options(op: Op) -> bool:
    """Whether an op is told more than its inputs."""
    return op.prepare is not None and op.name != "matmul"


def may_remember(op: Op) -> bool:
    """Whether what `prepare` makes of options may be kept: not of a user's, which may read more than it is given."""
    return op.family not in ("custom", "control") and (op.prepare is None or is_ours(op.prepare))


def _is_plain(value: Any, kinds: tuple[type, ...]) -> bool:
    """Whether a value is of these kinds, or None, or made of such: nothing can change what it means."""
    if type(value) is tuple:
        return all(_is_plain(part, kinds) for part in value)
    if type(value) is slice:
        return all(_is_plain(part, kinds) for part in (value.start, value.stop, value.step))
    return value is None or value is Ellipsis or isinstance(value, kinds)


_EXACT = {int, str, type(None), type(...)}
_HASHED = int, str, type, np.dtype  # but no float: 0.0 and -0.0 are one key

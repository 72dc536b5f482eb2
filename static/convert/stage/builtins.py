"""Python's own functions on values that only the run knows. Each is that function where all values are known."""

from __future__ import annotations

import builtins
import dis
import functools
import heapq
import inspect
import itertools
import operator
import sys
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any

import numpy as np

from graphs.ops.effects import print as print_op
from graphs.ops.elementwise import round as round_op
from graphs.ops.elementwise import trunc
from graphs.ops.movement import astype, reshape, stop_gradient
from static.convert.stage import frames, raising
from static.convert.stage.branches import choose
from static.convert.stage.iterators import check_takes
from static.convert.stage.loops import CountedRange
from static.convert.stage.places import born, is_conditional
from static.convert.stage.sorting import (
    heapify,
    heappop,
    heappush,
    heappushpop,
    heapreplace,
    holds_symbols,
    nlargest,
    nsmallest,
    ordered,
)
from static.convert.stage.streams import (
    Streamed,
    TakenWhile,
    any_one,
    every_one,
    filtered,
    mapped,
    numbered,
    total,
    zipped,
)
from static.convert.stage.trees import leaves
from static.convert.stage.unknown import is_number, is_symbol, refuse, truth, weak
from static.trace.symbol import Symbol


def _scalar(value: Symbol) -> Any:
    """The one element of a symbol, apart from what is differentiated, as a Python number is."""
    return stop_gradient(reshape(value, ()) if value.shape else value)


def _int(value: Any = 0, *rest: Any) -> Any:
    if not is_symbol(value):
        return int(value, *rest)
    scalar = _scalar(value)
    return weak(astype(trunc(scalar) if scalar.dtype.kind == "f" else scalar, np.int64))


def _float(value: Any = 0.0) -> Any:
    return weak(astype(_scalar(value), np.float64)) if is_symbol(value) else float(value)


def _bool(value: Any = False) -> Any:
    return truth(value) if is_symbol(value) else bool(value)


def item_of(value: Symbol) -> Any:
    """`value.item()`: a number of the kind that the elements are."""
    return {"f": _float, "b": _bool}.get(value.dtype.kind, _int)(value)


def _round(value: Any, digits: int | None = None) -> Any:
    if is_symbol(value) and value.weak and digits is None:
        return _int(round_op(value))
    if is_symbol(value) and value.weak:
        refuse(
            "round() of a number that only the run knows takes no digits, since Python rounds the decimal form of a "
            "number; use graphs.round(number * 10) / 10, which rounds some halves the other way"
        )
    return round(value, digits)


def _pow(base: Any, exponent: Any, modulus: Any = None) -> Any:
    if modulus is None:
        return base**exponent
    if any(map(is_symbol, (base, exponent, modulus))):
        refuse("pow() with a modulus asks for numbers that only the run knows; write base**exponent % modulus")
    return pow(base, exponent, modulus)


def _extreme(plain: Callable[..., Any], better: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """`max` or `min`, which compare one pair after the other and keep the first of equals."""

    @functools.wraps(plain)
    def extreme(*args: Any, key: Callable[[Any], Any] | None = None, **options: Any) -> Any:
        items = args[0] if len(args) == 1 else args
        check_takes(items)
        pairs = [(item, item if key is None else key(item)) for item in items]
        if not holds_symbols([key for _, key in pairs]):
            return plain(pairs, key=lambda pair: pair[1], **_in_pair(options))[0]
        if not all(is_symbol(key) or is_number(key) for _, key in pairs):  # tuples: part by part
            return ordered(pairs, key=operator.itemgetter(1), reverse=plain is max)[0][0]
        best = pairs[0]
        for pair in pairs[1:]:
            best = choose(better(pair[1], best[1]), lambda pair=pair: pair, lambda best=best: best)  # type: ignore[misc]
        return best[0]

    return extreme


def _in_pair(options: dict[str, Any]) -> dict[str, Any]:
    return {name: (value,) for name, value in options.items()}


def _any(items: Iterable[Any]) -> Any:
    return any_one(items, _bool)


def _all(items: Iterable[Any]) -> Any:
    return every_one(items, _bool)


def _range(*args: Any) -> Any:
    if not any(map(is_symbol, args)):
        return range(*args)
    start, stop, step = (0, *args, 1) if len(args) == 1 else (*args, 1)[:3]
    return CountedRange(start, stop, step)


def _isinstance(value: Any, kinds: Any) -> bool:
    return issubclass(_type(value), kinds) if _stands_for_another(value) else isinstance(value, kinds)


def _type(value: Any, *rest: Any) -> Any:
    if not _stands_for_another(value):
        return type(value, *rest)
    return value.kind if isinstance(value, Streamed) else type(value.dtype.type(0).item())


def _stands_for_another(value: Any) -> bool:
    """Whether Python would have an object of another class: a number, or what gives items."""
    return isinstance(value, Streamed) or (is_symbol(value) and value.weak)


def _print(*values: Any, **options: Any) -> None:
    """Print; what only the run knows is printed by the run."""
    if not any(map(is_symbol, values)):
        if is_conditional():
            refuse("print(): only the run knows whether it is reached, and the text is known; use graphs.print")
        builtins.print(*values, **options)  # noqa: T201  (the user's own)
        return
    words = ""
    for value in values:
        if is_symbol(value):
            print_op(value, words.strip())
            words = ""
        else:
            words += f" {value}"
    if words:
        refuse(f"print(): the text{words!r} follows a value that only the run knows; put it before the value")


def shown(value: Any) -> Any:
    """A value that becomes text. Raises ControlFlowError where only the run knows it."""
    if any(map(is_symbol, leaves(value))) and any(map(_reads_object, _texts_of(value))):
        refuse("a text is made of a value that only the run knows; print the value itself, or return it")
    return value


def _texts_of(value: Any) -> list[Any]:
    return [inspect.getattr_static(type(value), name) for name in ("__format__", "__str__", "__repr__")]


def _reads_object(method: Any) -> bool:
    """Whether a text that a method makes depends on what its object holds."""
    if not isinstance(method, FunctionType):
        return method not in _TEXTS
    named = [step.argval for step in dis.get_instructions(method)]  # one instruction may load several variables
    return any(method.__code__.co_varnames[0] in (name if isinstance(name, tuple) else [name]) for name in named)


_TEXTS = _texts_of(object())
"""Of an object of no class of its own: its class and its address."""


def text_of(plain: Callable[..., Any]) -> Callable[..., Any]:
    """What makes a text, of values that are known."""

    def text(*args: Any, **options: Any) -> Any:
        return plain(*map(shown, args), **{name: shown(value) for name, value in options.items()})

    return text


def _divmod(dividend: Any, divisor: Any) -> Any:
    if is_symbol(dividend) or is_symbol(divisor):
        return dividend // divisor, dividend % divisor
    return divmod(dividend, divisor)


def _reduce(function: Callable[[Any, Any], Any], items: Iterable[Any], *start: Any) -> Any:
    check_takes(items)
    return functools.reduce(function, items, *start)


REPLACED: dict[Any, Callable[..., Any]] = {
    int: _int,
    float: _float,
    bool: _bool,
    round: _round,
    pow: _pow,
    max: _extreme(max, lambda item, best: item > best),
    min: _extreme(min, lambda item, best: item < best),
    any: _any,
    all: _all,
    range: _range,
    sum: total,
    sorted: ordered,
    heapq.heapify: heapify,
    heapq.heappush: heappush,
    heapq.heappop: heappop,
    heapq.heappushpop: heappushpop,
    heapq.heapreplace: heapreplace,
    heapq.nlargest: nlargest,
    heapq.nsmallest: nsmallest,
    map: mapped,
    filter: filtered,
    zip: zipped,
    enumerate: numbered,
    itertools.takewhile: lambda test, items: born(TakenWhile(test, items)),
    isinstance: _isinstance,
    type: _type,
    print: _print,
    divmod: _divmod,
    functools.reduce: _reduce,
    str: text_of(str),
    repr: text_of(repr),
    format: text_of(format),
    sys.exit: raising.exits,
    **frames.REPLACED,
}
"""What is called in place of a function of Python's."""

CALLING = frozenset(
    [max, min, sorted, heapq.nlargest, heapq.nsmallest, map, filter, itertools.takewhile, functools.reduce]
)
"""Those that call functions which they are given."""

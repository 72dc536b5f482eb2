"""Python's own functions on values that only the run knows; where all values are known, each calls the original.

The order: functions that look at the frame of their caller (a converted function has other frames and variables),
sorting and heaps (items are stacked, and taken in the order that only the run knows), then numbers, types and text. The
table `REPLACED` is at the end.
"""

from __future__ import annotations

import bisect
import builtins
import dis
import functools
import heapq
import inspect
import itertools
import math
import operator
import sys
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from graphs import tree
from graphs.errors import DTypeError
from graphs.ops.creation import asarray
from graphs.ops.effects import print as print_op
from graphs.ops.elementwise import abs as absolute
from graphs.ops.elementwise import ceil, cos, divide, exp, floor, log, sin, sqrt, tanh, trunc
from graphs.ops.elementwise import pow as pow_op
from graphs.ops.elementwise import round as round_op
from graphs.ops.indexing import take
from graphs.ops.movement import astype, reshape, stack, stop_gradient
from graphs.ops.sorting import argsort
from static.convert.stage import branches
from static.convert.stage.branches import choose
from static.convert.stage.loops import CountedRange
from static.convert.stage.places import (
    Contents,
    check_not_frozen,
    check_takes,
    is_conditional,
    journal,
    note_new,
    note_object,
)
from static.convert.stage.streams import (
    ItemStream,
    TakenWhile,
    any_one,
    enumerate_stream,
    every_one,
    filter_stream,
    map_stream,
    total,
    zip_stream,
)
from static.convert.stage.trees import MergedValue, StructureError, cast_leaf, leaves
from static.convert.stage.unknown import is_number, is_symbol, mark_chosen, refuse, truth, weak
from static.trace.symbol import Symbol
from static.trace.tracing import of_kind


def _refuse_frame(name: str) -> Callable[..., Any]:
    def of_frame(*_: Any, **__: Any) -> Any:
        refuse(f"{name}() looks at frames or variables, which a converted function keeps elsewhere; name what you need")

    return of_frame


OF_FRAMES: dict[Any, Callable[..., Any]] = {
    **{f: _refuse_frame(f.__name__) for f in (vars, dir, eval, exec, locals)},
    globals: _refuse_frame("another name of globals"),
    **{f: _refuse_frame(f"{f.__module__}.{f.__name__}") for f in (sys._getframe, inspect.currentframe, inspect.stack)},
}
"""Replacements for functions that look at frames.

`globals()` by its own name stays as it is: it returns the same everywhere.
"""


Key = Callable[[Any], Any]


def sort_items(items: Iterable[Any], *, key: Key | None = None, reverse: bool = False) -> list[Any]:
    """Return `sorted(items, key=key, reverse=reverse)`."""
    check_not_frozen(items)
    check_takes(items)
    unsorted = list(items)
    keys = [item if key is None else key(item) for item in unsorted]
    if not holds_symbols(keys):
        places = sorted(range(len(unsorted)), key=keys.__getitem__, reverse=reverse)
        return note_new([unsorted[place] for place in places])
    try:
        return note_new(_take_items(unsorted, _order(keys, bool(reverse))))
    except StructureError as error:
        return refuse(f"{error}; only the run knows the order of what is sorted, so that all items must be alike")


def holds_symbols(value: Any) -> bool:
    """Whether a container holds a value that only the run knows."""
    return any(map(is_symbol, tree.leaves(value)))


def _order(keys: Sequence[Any], reverse: bool) -> Any:
    """Return the positions of the keys in sorted order; tuples are sorted by their last parts first, stably."""
    order: Any = None
    for column in reversed(_columns("the key of a sort", keys)):
        values = _stack_values("the key of a sort", column if any(map(is_symbol, column)) else _ranks(column))
        by = argsort(values if order is None else take(values, order), descending=reverse, stable=True)
        order = by if order is None else take(order, by)
    return order


def _columns(name: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return the leaves of containers of one structure, grouped by their place in it."""
    flat = [tree.flatten(value) for value in values]
    if any(structure != flat[0][1] for _, structure in flat):
        raise StructureError(f"{name} differs from another in structure")
    return list(zip(*(leaves for leaves, _ in flat), strict=True))


def _ranks(column: Sequence[Any]) -> list[int]:
    """Return numbers in the order of values that Python can compare."""
    try:
        in_order = sorted(column)
    except TypeError as error:
        raise StructureError(f"parts of keys cannot be compared: {error}") from None
    return [bisect.bisect_left(in_order, value) for value in column]


def sort(items: list[Any], *, key: Key | None = None, reverse: bool = False) -> None:
    """Do `items.sort(key=key, reverse=reverse)`."""
    in_order = sort_items(items, key=key, reverse=reverse)
    journal(Contents(items))
    items[:] = in_order


def _stack_values(name: str, values: Sequence[Any]) -> Any:
    try:
        spec = MergedValue(name, values).spec
    except DTypeError as error:  # of text, for example
        raise StructureError(f"{name}: {error}") from None
    if name.startswith("the key") and spec.shape:
        raise StructureError(f"{name} is a tensor {spec}")
    return stack([cast_leaf(value, spec) for value in values])


def _take_items(items: Sequence[Any], order: Any) -> list[Any]:
    """Return the items in an order: each leaf is taken from a stack, unless it is the same in all items."""
    columns = _columns("an item of a sort", items)
    same = [not any(map(is_symbol, column)) and all(leaf == column[0] for leaf in column) for column in columns]
    stacks = [
        None if alike else take(_stack_values("an item of a sort", column), order)
        for column, alike in zip(columns, same, strict=True)
    ]

    def leaf(column: Sequence[Any], stacked: Any, place: int) -> Any:
        if stacked is None:
            return column[0]
        return weak(stacked[place]) if all(map(is_number, column)) else mark_chosen(stacked[place])

    structure = tree.flatten(items[0])[1]
    return [
        tree.unflatten(structure, [leaf(column, s, i) for column, s in zip(columns, stacks, strict=True)])
        for i in range(len(items))
    ]


def heapify(heap: list[Any]) -> None:
    """Do `heapq.heapify(heap)`; a sorted list is a heap."""
    journal(Contents(heap))
    if not holds_symbols(heap):
        heapq.heapify(heap)
    else:
        sort(heap)


def heappush(heap: list[Any], item: Any) -> None:
    """Do `heapq.heappush(heap, item)`."""
    journal(Contents(heap))
    if not holds_symbols([*heap, item]):
        heapq.heappush(heap, item)
    else:
        heap.append(item)
        sort(heap)


def heappop(heap: list[Any]) -> Any:
    """Do `heapq.heappop(heap)`."""
    journal(Contents(heap))
    if not holds_symbols(heap):
        return heapq.heappop(heap)
    sort(heap)
    return heap.pop(0)


def _scalar(value: Symbol) -> Any:
    """Return the one element of a symbol without its history, as a Python number has none."""
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
    """Return `value.item()`: a number of the same kind as the elements."""
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


def _of_number(plain: Callable[..., Any], op: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of `math` that takes a number which only the run knows too: NaN there where it would raise."""

    def of_number(*numbers: Any) -> Any:
        if not any(map(is_symbol, numbers)):
            return plain(*numbers)
        value = op(*(astype(_scalar(number), np.float64) if is_symbol(number) else number for number in numbers))
        return _int(value) if plain in (math.floor, math.ceil) else weak(value)

    return of_number


def _array_of(plain: Callable[..., Any]) -> Callable[..., Any]:
    """Return `np.array` or `np.asarray`, which takes lists of numbers that only the run knows too.

    A tensor in a list is left to NumPy: its gradient would be lost.
    """

    def array_of(values: Any, dtype: Any = None, **options: Any) -> Any:
        symbols = [leaf for leaf in leaves(values) if is_symbol(leaf)] if isinstance(values, (list, tuple)) else []
        if not symbols or not all(symbol.weak for symbol in symbols):
            return plain(values, dtype, **options)
        result = _stack_lists(values)
        return of_kind(result if dtype is None else astype(result, np.dtype(dtype)), is_tensor=False)

    return array_of


def _stack_lists(values: Any) -> Any:
    return stack([_stack_lists(row) for row in values]) if isinstance(values, (list, tuple)) else asarray(values)


def _log(number: Any, *base: Any) -> Any:
    return divide(log(number), *map(log, base)) if base else log(number)


OF_MATH: dict[Any, Callable[..., Any]] = {
    math.sqrt: sqrt, math.exp: exp, math.log: _log, math.pow: pow_op, math.sin: sin, math.cos: cos, math.tanh: tanh,
    math.floor: floor, math.ceil: ceil, math.fabs: absolute,
}  # fmt: skip
"""Functions of one number, or of two, each with the op that computes it in a graph."""


def _extreme(plain: Callable[..., Any], better: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Return `max` or `min`, which compare one pair after the other and keep the first of equals."""

    @functools.wraps(plain)
    def extreme(*args: Any, key: Callable[[Any], Any] | None = None, **options: Any) -> Any:
        items = args[0] if len(args) == 1 else args
        check_takes(items)
        pairs = [(item, item if key is None else key(item)) for item in items]
        if not holds_symbols([key for _, key in pairs]):
            return plain(pairs, key=lambda pair: pair[1], **{name: (value,) for name, value in options.items()})[0]
        if not all(is_symbol(key) or is_number(key) for _, key in pairs):  # tuples: part by part
            return sort_items(pairs, key=operator.itemgetter(1), reverse=plain is max)[0][0]
        best = pairs[0]
        for pair in pairs[1:]:
            best = choose(better(pair[1], best[1]), lambda pair=pair: pair, lambda best=best: best)  # type: ignore[misc]
        return best[0]

    return extreme


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
    return value.kind if isinstance(value, ItemStream) else type(value.dtype.type(0).item())


def _stands_for_another(value: Any) -> bool:
    """Whether a value stands for an object of another class in Python: a number, or an iterator."""
    return isinstance(value, ItemStream) or (is_symbol(value) and value.weak)


def _print(*values: Any, **options: Any) -> None:
    """Print; a value that only the run knows is printed by the run."""
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


def check_known(value: Any) -> Any:
    """Return a value that becomes text. Raises ControlFlowError where only the run knows it."""
    if any(map(is_symbol, leaves(value))) and any(map(_reads_object, _texts_of(value))):
        refuse("a text is made of a value that only the run knows; print the value itself, or return it")
    return value


def _texts_of(value: Any) -> list[Any]:
    return [inspect.getattr_static(type(value), name) for name in ("__format__", "__str__", "__repr__")]


def _reads_object(method: Any) -> bool:
    """Whether the text that a method makes depends on the contents of its object."""
    if not isinstance(method, FunctionType):
        return method not in _TEXTS
    named = [step.argval for step in dis.get_instructions(method)]  # one instruction may load several variables
    return any(method.__code__.co_varnames[0] in (name if isinstance(name, tuple) else [name]) for name in named)


_TEXTS = _texts_of(object())
"""The text methods of `object`: they show only the class and the address."""


def text_of(plain: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that makes a text from known values, and refuses others."""

    def text(*args: Any, **options: Any) -> Any:
        return plain(*map(check_known, args), **{name: check_known(value) for name, value in options.items()})

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
    sorted: sort_items,
    heapq.heapify: heapify,
    heapq.heappush: heappush,
    heapq.heappop: heappop,
    map: map_stream,
    filter: filter_stream,
    zip: zip_stream,
    enumerate: enumerate_stream,
    itertools.takewhile: lambda test, items: note_object(TakenWhile(test, items)),
    isinstance: _isinstance,
    type: _type,
    print: _print,
    **{f: _of_number(f, op) for f, op in OF_MATH.items()},
    **{f: _array_of(f) for f in (np.array, np.asarray)},
    divmod: _divmod,
    functools.reduce: _reduce,
    str: text_of(str),
    repr: text_of(repr),
    format: text_of(format),
    sys.exit: branches.exits,
    **OF_FRAMES,
}
"""The function that is called in place of each of Python's."""

CALLING = frozenset([max, min, sorted, map, filter, itertools.takewhile, functools.reduce])
"""The functions that call functions which they are given."""

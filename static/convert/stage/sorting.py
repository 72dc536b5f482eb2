"""`sorted`, `list.sort` and `heapq` where only the run knows the order: items are stacked, and taken in that order."""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from graphs import tree
from graphs.errors import DTypeError
from graphs.ops.movement import stack
from graphs.ops.picking import take
from graphs.ops.sorting import argsort
from static.convert.stage.columns import Merged, typed
from static.convert.stage.identity import chosen
from static.convert.stage.iterators import check_takes
from static.convert.stage.places import Contents, check_not_frozen, journal, made
from static.convert.stage.trees import StructureError
from static.convert.stage.unknown import is_number, is_symbol, refuse, weak

Key = Callable[[Any], Any]


def ordered(items: Iterable[Any], *, key: Key | None = None, reverse: bool = False) -> list[Any]:
    """`sorted(items, key=key, reverse=reverse)`."""
    check_not_frozen(items)
    check_takes(items)
    unsorted = list(items)
    keys = [item if key is None else key(item) for item in unsorted]
    if not holds_symbols(keys):
        places = sorted(range(len(unsorted)), key=keys.__getitem__, reverse=reverse)
        return made([unsorted[place] for place in places])
    try:
        return made(_taken(unsorted, _order(keys, bool(reverse))))
    except StructureError as error:
        return refuse(f"{error}; only the run knows the order of what is sorted, so that all items must be alike")


def holds_symbols(value: Any) -> bool:
    """Whether only the run knows something in a container."""
    return any(map(is_symbol, tree.leaves(value)))


def _order(keys: Sequence[Any], reverse: bool) -> Any:
    """The places of the keys in order. Of tuples the last parts are sorted first, and each sort keeps what is equal."""
    order: Any = None
    for column in reversed(_columns("the key of a sort", keys)):
        values = _stacked("the key of a sort", column if any(map(is_symbol, column)) else _ranks(column))
        by = argsort(values if order is None else take(values, order), descending=reverse, stable=True)
        order = by if order is None else take(order, by)
    return order


def _columns(name: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """The leaves of containers that are alike, each with those in its place in the others."""
    flat = [tree.flatten(value) for value in values]
    if any(structure != flat[0][1] for _, structure in flat):
        raise StructureError(f"{name} differs from another in structure")
    return list(zip(*(leaves for leaves, _ in flat), strict=True))


def _ranks(column: Sequence[Any]) -> list[int]:
    """Numbers in the order of values that Python compares."""
    try:
        in_order = sorted(column)
    except TypeError as error:
        raise StructureError(f"parts of keys cannot be compared: {error}") from None
    return [bisect.bisect_left(in_order, value) for value in column]


def sort(items: list[Any], *, key: Key | None = None, reverse: bool = False) -> None:
    """`items.sort(key=key, reverse=reverse)`."""
    in_order = ordered(items, key=key, reverse=reverse)
    journal(Contents(items))
    items[:] = in_order


def _stacked(name: str, values: Sequence[Any]) -> Any:
    try:
        spec = Merged(name, values).spec
    except DTypeError as error:  # of text, for example
        raise StructureError(f"{name}: {error}") from None
    if name.startswith("the key") and spec.shape:
        raise StructureError(f"{name} is a tensor {spec}")
    return stack([typed(value, spec) for value in values])


def _taken(items: Sequence[Any], order: Any) -> list[Any]:
    """The items in an order: each leaf of them is taken from a stack, unless it is the same in all."""
    columns = _columns("an item of a sort", items)
    same = [not any(map(is_symbol, column)) and all(leaf == column[0] for leaf in column) for column in columns]
    stacks = [
        None if alike else take(_stacked("an item of a sort", column), order)
        for column, alike in zip(columns, same, strict=True)
    ]

    def leaf(column: Sequence[Any], stacked: Any, place: int) -> Any:
        if stacked is None:
            return column[0]
        return weak(stacked[place]) if all(map(is_number, column)) else chosen(stacked[place])

    structure = tree.flatten(items[0])[1]
    return [
        tree.unflatten(structure, [leaf(column, s, i) for column, s in zip(columns, stacks, strict=True)])
        for i in range(len(items))
    ]


def heapify(heap: list[Any]) -> None:
    """`heapq.heapify(heap)`: a sorted list is a heap."""
    journal(Contents(heap))
    if not holds_symbols(heap):
        heapq.heapify(heap)
    else:
        sort(heap)


def heappush(heap: list[Any], item: Any) -> None:
    """`heapq.heappush(heap, item)`."""
    journal(Contents(heap))
    if not holds_symbols([*heap, item]):
        heapq.heappush(heap, item)
    else:
        heap.append(item)
        sort(heap)


def heappop(heap: list[Any]) -> Any:
    """`heapq.heappop(heap)`."""
    journal(Contents(heap))
    if not holds_symbols(heap):
        return heapq.heappop(heap)
    sort(heap)
    return heap.pop(0)


def heappushpop(heap: list[Any], item: Any) -> Any:
    """`heapq.heappushpop(heap, item)`."""
    heappush(heap, item)
    return heappop(heap)


def heapreplace(heap: list[Any], item: Any) -> Any:
    """`heapq.heapreplace(heap, item)`."""
    least = heappop(heap)
    heappush(heap, item)
    return least


def nlargest(n: int, iterable: Iterable[Any], key: Key | None = None) -> list[Any]:
    """`heapq.nlargest(n, iterable, key=key)`."""
    return ordered(iterable, key=key, reverse=True)[: max(n, 0)]


def nsmallest(n: int, iterable: Iterable[Any], key: Key | None = None) -> list[Any]:
    """`heapq.nsmallest(n, iterable, key=key)`."""
    return ordered(iterable, key=key)[: max(n, 0)]

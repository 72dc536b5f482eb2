"""`sorted`, `list.sort` and `heapq` where only the run knows the order: items are stacked, and taken in that order."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from graphs import tree
from graphs.ops.movement import stack
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
    if not any(map(is_symbol, keys)):
        places = sorted(range(len(unsorted)), key=keys.__getitem__, reverse=reverse)
        return made([unsorted[place] for place in places])
    try:
        order = argsort(_stacked("the key of a sort", keys), descending=bool(reverse), stable=True)
        return made(_taken(unsorted, order))
    except StructureError as error:
        return refuse(f"{error}; only the run knows the order of what is sorted, so that all items must be alike")


def sort(items: list[Any], *, key: Key | None = None, reverse: bool = False) -> None:
    """`items.sort(key=key, reverse=reverse)`."""
    in_order = ordered(items, key=key, reverse=reverse)
    journal(Contents(items))
    items[:] = in_order


def _stacked(name: str, values: Sequence[Any]) -> Any:
    spec = Merged(name, values).spec
    if name.startswith("the key") and spec.shape:
        raise StructureError(f"{name} is a tensor {spec}")
    return stack([typed(value, spec) for value in values])


def _taken(items: Sequence[Any], order: Any) -> list[Any]:
    """The items in an order: each leaf of them is taken from a stack."""
    flat = [tree.flatten(item) for item in items]
    structure = flat[0][1]
    if any(other != structure for _, other in flat):
        raise StructureError("an item of a sort differs from another in structure")
    columns = list(zip(*(leaves for leaves, _ in flat), strict=True))
    stacks = [_stacked("an item of a sort", column)[order] for column in columns]
    numbers = [all(map(is_number, column)) for column in columns]
    return [
        tree.unflatten(
            structure, [weak(s[i]) if number else chosen(s[i]) for s, number in zip(stacks, numbers, strict=True)]
        )
        for i in range(len(items))
    ]


def _is_known(items: list[Any]) -> bool:
    return not any(is_symbol(leaf) for item in items for leaf in tree.leaves(item))


def heapify(heap: list[Any]) -> None:
    """`heapq.heapify(heap)`: a sorted list is a heap."""
    journal(Contents(heap))
    if _is_known(heap):
        heapq.heapify(heap)
    else:
        sort(heap)


def heappush(heap: list[Any], item: Any) -> None:
    """`heapq.heappush(heap, item)`."""
    journal(Contents(heap))
    if _is_known([*heap, item]):
        heapq.heappush(heap, item)
    else:
        heap.append(item)
        sort(heap)


def heappop(heap: list[Any]) -> Any:
    """`heapq.heappop(heap)`."""
    journal(Contents(heap))
    if _is_known(heap):
        return heapq.heappop(heap)
    sort(heap)
    return heap.pop(0)

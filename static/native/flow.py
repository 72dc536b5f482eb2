"""Loops and branches among the kernels of a segment.

A piece of work is a recipe and the places that its kernel works on. A `Flow` is a piece too: it has lists of work of
its own, and the values at its places decide how often, or which of them, runs. `CallTable` turns work into structures
that machine code reads.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from static.native import layouts

Location = tuple[int, int]
Work = list[tuple[Any, list[Location]]]

DECIDING = ("b1", "i4", "i8")
"""The dtypes of the number that a branch can be chosen by."""


class Flow(NamedTuple):
    """A loop (`while`) or branches (`switch`), with the lists of work that it chooses from; or lists that cores share.

    A loop has two turns, so that a state lies in two places alternately. Each turn has three lists (the condition, the
    body, and the work after the condition fails) and the place of its truth. Branches have one list each, and the place
    of the number that chooses, of dtype `dtype`. All lists of a `parallel` flow run, in any order, on the threads of a
    `pool`.
    """

    kind: str
    lists: tuple[Work, ...]
    dtype: str = "b1"
    pool: Any = None


def calls(work: Work) -> Iterator[tuple[Any, list[Location]]]:
    """Yield all kernels with their places, as often as they are called; those of a loop once for each of two turns."""
    for recipe, places in work:
        if isinstance(recipe, Flow):
            for inner in recipe.lists:
                yield from calls(inner)
        else:
            yield recipe, places


def kernels(work: Work) -> Iterator[Any]:
    """Return the recipes of all kernels, as often as they are called."""
    return (recipe for recipe, _ in calls(work))


def has_flow(work: Work) -> bool:
    """Whether the work has a loop, a branch or parallel lists."""
    return any(isinstance(recipe, Flow) for recipe, _ in work)


def has_loop(work: Work) -> bool:
    """Whether the work has a loop, so that its duration is unknown."""
    flows = [recipe for recipe, _ in work if isinstance(recipe, Flow)]
    return any(flow.kind == "while" or any(map(has_loop, flow.lists)) for flow in flows)


def operations(work: Work) -> int:
    """Return the number of operations of all kernels; a loop counts two turns."""
    return sum(recipe.operations for recipe in kernels(work))


def further(first: Work, later: Work, turns: int) -> Work:
    """Return the work moved on: each place by `turns` times the distance between `first` and `later`."""
    moved_work: Work = []
    for (recipe, places), (other, others) in zip(first, later, strict=True):
        pairs = zip(places, others, strict=True)
        moved = [(which, at + turns * (end - at)) for (which, at), (_, end) in pairs]
        if isinstance(recipe, Flow):
            lists = zip(recipe.lists, other.lists, strict=True)
            recipe = recipe._replace(lists=tuple(further(a, b, turns) for a, b in lists))
        moved_work.append((recipe, moved))
    return moved_work


def sharers(work: Work) -> int:
    """Return the most lists that run at the same time."""
    flows = [recipe for recipe, _ in work if isinstance(recipe, Flow)]
    counts = (len(f.lists) if f.kind == "parallel" else max(map(sharers, f.lists), default=1) for f in flows)
    return max(counts, default=1)


def with_scratch(work: Work, scratch: Any, number: int = 0) -> Work:
    """Return the work with scratch places after the places of each kernel; parallel lists get separate scratch."""
    scratched: Work = []
    for recipe, places in work:
        if isinstance(recipe, Flow):
            numbers = range(len(recipe.lists)) if recipe.kind == "parallel" else [number] * len(recipe.lists)
            lists = tuple(with_scratch(inner, scratch, n) for inner, n in zip(recipe.lists, numbers, strict=True))
            scratched.append((recipe._replace(lists=lists), places))
        else:
            scratched.append((recipe, [*places, *scratch(recipe, number)]))
    return scratched


WHILE, SWITCH, PARALLEL, ATTEND, COUNT = "loop_while", "switch", "parallel", "attend", "count"
DRIVERS = {"while": WHILE, "switch": SWITCH, "parallel": PARALLEL}
LISTS = ("condition", "body", "after")
"""The lists of calls of each of a loop's two turns."""


class CallTable:
    """A segment's work as structures that machine code reads.

    `row` has an address for each place, `patches` say which addresses change with each call, and `calls` pairs
    functions with the place of their addresses. A flow is called with a header, which has lists of calls of its own.
    """

    def __init__(self, work: Work, address: Any, drivers: Any, context: layouts.StepContext) -> None:
        self.address, self.drivers, self.context = address, drivers, context
        self.row = np.zeros(_slots(work) or 1, np.int64)
        self.used = 0
        self.patches: list[tuple[int, int, int]] = []
        self.keeps: list[Any] = [self.row, context]
        self.calls = self.listed(work)

    def listed(self, work: Work) -> layouts.CallList:
        """Return the list of calls for this work."""
        pairs: list[tuple[int, int]] = []
        for recipe, places in work:
            if isinstance(recipe, Flow):
                driver = self.drivers[DRIVERS[recipe.kind]]
                pairs.append((driver, ctypes.addressof(self._flow(recipe, places))))
            else:
                pairs.append((self.address(recipe), self._places(places)))
        return layouts.CallList(len(pairs), self.array(layouts.KernelCall, pairs))

    def array(self, kind: type[Any], items: Sequence[Any]) -> int:
        """Return the address of an array of these structures, which this object keeps alive."""
        array = (kind * len(items))(*items)
        self.keeps.append(array)
        return ctypes.addressof(array)

    def _places(self, places: Sequence[Location]) -> int:
        """Return the address of the row entries for these places."""
        start = int(self.row.ctypes.data) + 8 * self.used
        for number, (which, offset) in enumerate(places, self.used):
            if which >= 0:
                self.patches.append((start + 8 * (number - self.used), which, offset))
            else:
                self.row[number] = offset
        self.used += len(places)
        return start

    def _flow(self, flow: Flow, places: Sequence[Location]) -> Any:
        """Return the header of a loop, of branches, or of parallel lists."""
        lists = self.array(layouts.CallList, [self.listed(work) for work in flow.lists])
        at = self._places(places)
        header: Any
        if flow.kind == "while":
            operated = sum(operations(work) for work in flow.lists) // 2 + 1
            header = layouts.LoopHeader(ctypes.addressof(self.context), at, operated, lists)
        elif flow.kind == "parallel":
            header = layouts.ParallelHeader(ctypes.addressof(flow.pool.state), len(flow.lists), lists)
            self.keeps.append(flow.pool)
        else:
            header = layouts.BranchHeader(at, DECIDING.index(flow.dtype), len(flow.lists), lists)
        self.keeps.append(header)
        return header


def _slots(work: Work) -> int:
    inner = (lists for recipe, _ in work if isinstance(recipe, Flow) for lists in recipe.lists)
    return sum(len(places) for _, places in work) + sum(map(_slots, inner))

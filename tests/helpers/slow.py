"""Long tables, many seeds and drawn examples: `make test` takes some of them, `make test-slow` all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import pytest
from hypothesis import settings


def spread(count: int, quick: int) -> set[int]:
    """The places of `quick` cases that lie evenly among `count`; all places where there are no more."""
    return {at * count // quick for at in range(quick)}


def some_of_each(keys: Iterable[Hashable], quick: int) -> set[int]:
    """The places of `quick` cases of each key, evenly spread; `keys` has the key of every case."""
    places = defaultdict(list)
    for at, key in enumerate(keys):
        places[key].append(at)
    return {each[at] for each in places.values() for at in spread(len(each), quick)}


def off_the_diagonals(table: Iterable[Sequence[int]]) -> Iterable[bool]:
    """Of each cell of a table, given by its index in each axis: is it off the diagonals that `make test` runs?

    The diagonals are as far apart as the second longest axis is long, which is how few have every index of every axis.
    """
    cells = list(table)
    lengths = sorted(max(column) + 1 for column in zip(*cells, strict=True))
    return [sum(cell) % lengths[-2] != 0 for cell in cells]


def mostly_slow(cases: Iterable[Any], quick: int) -> list[Any]:
    """Cases for `pytest.mark.parametrize` of one argument: all but `quick` of them have the mark `slow`."""
    cases = list(cases)
    kept = spread(len(cases), quick)
    return [case if at in kept else _slow(case) for at, case in enumerate(cases)]


def _slow(case: Any) -> Any:
    """A case with the mark, whether it is a value or has an id already."""
    if isinstance(case, type(pytest.param())):
        return pytest.param(*case.values, marks=[*case.marks, pytest.mark.slow], id=case.id)
    return pytest.param(case, marks=pytest.mark.slow)


def examples(times: float, slow: float | None = None) -> settings:
    """A property that tries this many times the examples that the profile of `tests/conftest.py` asks for.

    `slow` takes the place of `times` where the profile asks for more than that of `make test`.
    """
    asked = settings().max_examples
    if slow is not None and asked > settings.get_profile("ci").max_examples:
        times = slow
    return settings(max_examples=max(1, round(times * asked)))

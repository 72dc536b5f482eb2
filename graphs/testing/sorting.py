"""Samples of sorting and searching: any axis, both directions, ties, empty and size-1 axes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from graphs.op import Op
from graphs.testing.sample import Case, Maker, Sizes, Values, calls, joined, real

_SORTS: dict[str, tuple[Sizes, dict[str, Any]]] = {
    "vector": ((7,), {}),
    "first": ((4, 3), {"axis": 0}),
    "last": ((2, 5), {"axis": -1, "stable": False}),
    "descending": ((2, 3, 4), {"axis": 1, "descending": True}),
    "size-1": ((2, 1), {}),
    "empty": ((2, 0), {"descending": True}),
}
_TIES = {"ties": (False,), "ties-descending": (True,)}
_SORT = joined(
    calls(_SORTS, real), calls(_TIES, lambda v, descending: ((v.ints((3, 9), 0, 3),), {"descending": descending}))
)


def _searchsorted(op: Op, values: Values) -> Iterator[Case]:
    x = np.sort(values.real((6,)))
    for side in ("left", "right"):
        yield side, (x, values.real((2, 3))), {"side": side}
        yield f"ties-{side}", (np.array([0, 1, 1, 2]), np.array([1, 2, 0, 5])), {"side": side}
    yield "0-d", (x, values.real(())), {}
    yield "nothing-to-search", (x[:0], values.real((2,))), {}
    yield "nothing-to-find", (x, values.real((0, 2))), {}


SORTING: dict[str, Maker] = {"sort": _SORT, "argsort": _SORT, "searchsorted": _searchsorted}

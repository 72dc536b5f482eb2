"""Samples of reductions and scans: axes, keepdims, 0-d and zero-size.

Samples of sorting and searching: any axis, both directions, ties, empty and size-1 axes.

Samples of softmax and its relatives: one axis and several, ties, a single class, nothing but the classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from graphs.op import Op
from graphs.testing.sample import Array, Case, Maker, Sizes, Values, calls, joined, real

Cases = dict[str, tuple[Sizes, dict[str, Any]]]

_AXES: Cases = {
    "all": ((2, 3), {}),
    "all-kept": ((2, 3), {"keepdims": True}),
    "first": ((2, 3), {"axis": 0}),
    "last": ((2, 3), {"axis": -1}),
    "last-kept": ((2, 3), {"axis": -1, "keepdims": True}),
    "size-1": ((2, 1, 3), {"axis": 1}),
    "not-reduced-empty": ((0, 3), {"axis": 1}),
}
_SEVERAL: Cases = {
    "outer-two": ((2, 3, 4), {"axis": (0, -1)}),
    "outer-two-kept": ((2, 3, 4), {"axis": (-1, 0), "keepdims": True}),
    "none": ((2, 3), {"axis": ()}),
    "0-d": ((), {}),
}


def over_axes(op: Op, values: Values, *, of_bools: bool = False, of_nothing: bool = True) -> Iterator[Case]:
    """Reductions over any axes; those `of_nothing` have a value for no elements."""
    make = values.bools if of_bools else values.real
    cases = {**_AXES, **_SEVERAL}
    if of_nothing:
        cases["reduced-empty"] = ((0, 3), {"axis": 0})
    yield from calls(cases, lambda v, shape, options: ((make(shape),), options))(op, values)


def _sum(op: Op, values: Values) -> Iterator[Case]:
    yield from over_axes(op, values)
    yield "in-float64", (values.real((2, 3)),), {"axis": 0, "dtype": np.float64}
    yield "in-int8", (values.ints((2, 3)),), {"dtype": np.int8}


def _prod(op: Op, values: Values) -> Iterator[Case]:
    yield from _sum(op, values)
    yield "one-zero-a-row", (_with_zeros(values, (3, 4), [(0, 1), (2, 3)]),), {"axis": 1}
    yield "two-zeros-a-row", (_with_zeros(values, (2, 4), [(0, 1), (0, 3), (1, 0)]),), {"axis": -1}
    yield "zeros-over-two-axes", (_with_zeros(values, (2, 3, 2), [(0, 1, 1), (1, 0, 0)]),), {"axis": (0, 2)}


def _with_zeros(values: Values, shape: Sizes, places: list[Sizes]) -> Array:
    array = values.real(shape)
    for place in places:
        array[place] = 0
    return array


_SCANS: Cases = {
    "last": ((2, 3), {"axis": -1}),
    "first": ((2, 3), {"axis": 0}),
    "middle": ((2, 3, 4), {"axis": -2}),
    "size-1": ((2, 1), {"axis": -1}),
    "empty": ((2, 0), {"axis": -1}),
    "vector": ((4,), {}),
    "initial": ((2, 3), {"axis": 0, "include_initial": True}),
    "initial-of-empty": ((0,), {"include_initial": True}),
    "in-float64": ((2, 3), {"axis": 1, "dtype": np.float64}),
}
_RECURRENCES: dict[str, tuple[Sizes, int]] = {
    "vector": ((5,), -1),
    "rows": ((3, 2), 0),
    "middle": ((2, 3, 2), 1),
    "one": ((2, 1), -1),
    "empty": ((0,), 0),
}
_RUNNING: Cases = {
    "vector": ((4,), {}),
    "first": ((3, 2), {"axis": 0}),
    "middle": ((2, 3, 4), {"axis": -2}),
    "size-1": ((2, 1), {}),
    "empty": ((2, 0), {}),
}


def _scan(op: Op, values: Values) -> Iterator[Case]:
    yield from calls(_SCANS, real)(op, values)
    yield "zeros", (_with_zeros(values, (4, 3), [(1, 0), (1, 1), (3, 1)]),), {"axis": 0}
    yield "in-int8", (values.ints((2, 3)),), {"axis": 1, "dtype": np.int8}


def _ties(shape: Sizes, high: int, dtype: type, **options: Any) -> Maker:
    return calls({"ties": ()}, lambda v: ((v.ints(shape, 0, high).astype(dtype),), options))


_ONE_AXIS = joined(calls({**_AXES, "0-d": ((), {})}, real), _ties((3, 6), 3, int, axis=1))
_EXTREMES = joined(calls(_RUNNING, real), _ties((3, 5), 2, float))
REDUCTIONS: dict[str, Maker] = {
    "sum": _sum,
    "prod": _prod,
    **dict.fromkeys(("any", "all"), partial(over_axes, of_bools=True)),
    **dict.fromkeys(("max", "min", "mean"), partial(over_axes, of_nothing=False)),
    **dict.fromkeys(("argmax", "argmin"), _ONE_AXIS),
    **dict.fromkeys(("cumulative_sum", "cumulative_prod"), _scan),
    **dict.fromkeys(("cumulative_argmax", "cumulative_argmin", "logcumsumexp"), _EXTREMES),
    "linear_recurrence": calls(_RECURRENCES, lambda v, s, axis: ((v.real(s), v.real(s)), {"axis": axis})),
}


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


_SOFTMAX_AXES: dict[str, tuple[Sizes, dict[str, Any]]] = {
    "vector": ((4,), {}),
    "last": ((2, 3), {}),
    "first": ((3, 2), {"axis": 0}),
    "middle": ((2, 3, 4), {"axis": -2}),
    "two": ((2, 3, 4), {"axis": (0, 2)}),
    "all": ((2, 3), {"axis": None}),
    "none": ((2, 3), {"axis": ()}),
    "one-class": ((3, 1), {}),
    "no-row": ((0, 3), {}),
}
_LABELLED: dict[str, tuple[Sizes, int]] = {
    "rows": ((4,), 3),
    "one": ((), 3),
    "two-axes": ((2, 3), 4),
    "one-class": ((3,), 1),
}

_ALONG = joined(
    calls(_SOFTMAX_AXES, real), calls({"ties": ((3, 4), 0, 2)}, lambda v, *case: ((v.ints(*case).astype(float),), {}))
)
_GRADIENT = calls(_SOFTMAX_AXES, lambda v, shape, options: ((v.real(shape), v.real(shape)), options))
SOFTMAX: dict[str, Maker] = {
    "softmax": _ALONG,
    "log_softmax": _ALONG,
    "softmax_gradient": _GRADIENT,
    "log_softmax_gradient": _GRADIENT,
    "nll_loss": calls(_LABELLED, lambda v, shape, n: ((v.real((*shape, n)), v.ints(shape, 0, n)), {})),
}

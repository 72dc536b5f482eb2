"""Samples of indexing by arrays: negative and repeated indices, any axis, empty and 0-d indices."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from graphs.op import Op
from graphs.testing.sample import Array, Case, Given, Maker, Sizes, Values, calls, joined


def _indices(values: Values, shape: Sizes, size: int) -> Array:
    return values.ints(shape, -size, size)


# title -> (shape of x, shape of the indices, axis)
_TAKE: dict[str, tuple[Sizes, Sizes, int]] = {
    "rows": ((4, 3), (6,), 0),
    "columns": ((2, 3), (4,), -1),
    "matrix-of-indices": ((5, 2), (2, 3), 0),
    "one-index": ((4, 3), (), 0),
    "no-index": ((4, 3), (0,), 1),
}
_ALONG: dict[str, tuple[Sizes, Sizes, int]] = {
    "last": ((2, 3), (2, 5), -1),
    "first": ((4, 3), (2, 3), 0),
    "vector": ((4,), (3,), 0),
    "middle": ((2, 4, 3), (2, 1, 3), 1),
    "no-index": ((2, 3), (2, 0), 1),
}
_BROADCAST: dict[str, tuple[Sizes, Sizes, int]] = {
    "indices-broadcast": ((2, 4, 3), (1, 2, 1), 1),
    "values-broadcast": ((4, 1), (3, 2), 0),
}


def _picked(v: Values, shape: Sizes, picked: Sizes, axis: int) -> Given:
    return (v.real(shape), _indices(v, picked, shape[axis])), {"axis": axis}


def _scatter(op: Op, values: Values) -> Iterator[Case]:
    for title, (shape, picked, axis) in _TAKE.items():
        at, size = axis % len(shape), shape[axis]
        count = int(np.prod(picked))
        if count > size:
            continue  # which of two values for one place stays is no question of gradients
        once = np.random.default_rng(count).permutation(size)[:count].reshape(picked) - size
        updates = values.real((*shape[:at], *picked, *shape[at + 1 :]))
        yield title, (values.real(shape), once, updates), {"axis": axis}


def _scattered(v: Values, shape: Sizes, picked: Sizes, axis: int) -> Given:
    at = axis % len(shape)
    g = v.real((*shape[:at], *picked, *shape[at + 1 :]))
    return (g, _indices(v, picked, shape[at])), {"shape": shape, "axis": at}


def _added_along(v: Values, shape: Sizes, picked: Sizes, axis: int) -> Given:
    at = axis % len(shape)
    return (v.real(picked), _indices(v, picked, shape[at])), {"shape": shape, "axis": at}


def _extreme_along_axis(op: Op, values: Values) -> Iterator[Case]:
    for title, (shape, picked, axis) in _ALONG.items():
        for largest in (True, False):
            operands = values.real(shape), _indices(values, picked, shape[axis]), values.real(picked)
            yield f"{title}-{largest}", operands, {"axis": axis, "largest": largest}


_REPEATED = np.array([1, -2, 1, 1, 0], np.int32)


def _flat_index(op: Op, values: Values) -> Iterator[Case]:
    for title, shapes in {"pair": ((3,), (3,)), "broadcast": ((2, 1), (3,), ())}.items():
        sizes = tuple(range(2, 2 + len(shapes)))
        yield title, tuple(map(values.ints, shapes, [-s for s in sizes], sizes)), {"sizes": sizes}


INDEXING: dict[str, Maker] = {
    "take": joined(
        calls(_TAKE, _picked), calls({"repeated": (_REPEATED,)}, lambda v, at: ((v.real((3, 2)), at), {"axis": 0}))
    ),
    "scatter": _scatter,
    "scatter_add": calls(_TAKE, _scattered),
    "take_along_axis": calls({**_ALONG, **_BROADCAST}, _picked),
    "add_along_axis": calls(_ALONG, _added_along),
    "extreme_along_axis": _extreme_along_axis,
    "flat_index": _flat_index,
}

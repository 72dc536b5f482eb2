"""Steps that read and write parts of arrays: slices with any step, Ellipsis, None, arrays of ints, masks, in place."""

from __future__ import annotations

from typing import Any

import numpy as np

import graphs as g
from static import Symbol
from tests.fuzz.dtypes import ANY, drawn
from tests.helpers.random_ops import Array, Kind, Options, Random, Value, broadcastable

PARTS = (slice(None), slice(None, None, -1), slice(None, None, -2), slice(-1, None, -1), slice(2, None, -1),
         slice(1, -1), slice(None, None, 3), slice(0, 0), slice(5, None), 0, -1, None, None, Ellipsis)  # fmt: skip


# Options ----------------------------------------------------------------------------------------------------------


def any_key(random: Random, x: Array) -> Options | None:
    """A key of basic parts, in which one to three may be arrays of ints that broadcast, or one a mask."""
    if not x.ndim:
        return {"key": drawn(random, ((), Ellipsis, None, (None, Ellipsis)))}
    parts = [drawn(random, PARTS) for _ in range(random.integers(1, x.ndim + 2))]
    for place in random.integers(0, len(parts), random.integers(0, 3)):
        parts[place] = np.asarray(random.integers(-1, 1, drawn(random, ((), (2,), (3, 1), (1,), (0,)))))
    if random.random() < 0.15:
        parts[-1] = random.random(x.shape[-1]) < 0.6
        parts = [Ellipsis, *[p for p in parts if p is not Ellipsis][-1:]]
    return _valid(x, parts[0] if len(parts) == 1 and random.random() < 0.5 else tuple(parts))


def _valid(x: Array, key: Any) -> Options | None:
    try:
        x[key]
    except IndexError:
        return None
    return {"key": key}


def mask_key(random: Random, x: Array) -> Options | None:
    """A mask over the first axes."""
    count = int(random.integers(1, x.ndim + 1)) if x.ndim else 0
    return {"key": random.random(x.shape[:count]) < 0.6} if count else None


def write(random: Random, x: Array, y: Array) -> Options | None:
    """A key that names no element twice, and a value that broadcasts to what it names."""
    options = any_key(random, x)
    if options is None:
        return None
    named = np.arange(x.size).reshape(x.shape)[options["key"]]
    fits = (
        y.ndim <= named.ndim and np.broadcast_shapes(y.shape, named.shape) == named.shape if _meet(y, named) else False
    )
    return options if fits and np.unique(named).size == named.size else None


def write_part(random: Random, x: Array, y: Array) -> Options | None:
    """As `write`; what NumPy computes of arrays without axes is no array, which could be changed."""
    return write(random, x, y) if x.ndim else None


def _meet(x: Array, y: Array) -> bool:
    return broadcastable(None, x, y) is not None  # type: ignore[arg-type]


def into(random: Random, x: Array, y: Array) -> Options | None:
    """Whether y broadcasts to x."""
    return {} if _meet(x, y) and np.broadcast_shapes(x.shape, y.shape) == x.shape else None


def filled_first(random: Random, x: Array, i: Array) -> Options | None:
    return {} if x.ndim and x.shape[0] and i.size <= 12 else None


def slots(random: Random, x: Array) -> Options | None:
    """Rows to add to, some of them twice."""
    if not x.ndim:
        return None
    return {"indices": random.integers(0, 3, x.shape[0])}


def pairs(random: Random, x: Array) -> Options | None:
    """An index along an axis for each element of the others."""
    if not x.ndim or not x.size:
        return None
    axis = int(random.integers(-x.ndim, x.ndim))
    shape = list(x.shape)
    shape[axis] = int(random.integers(0, 4))
    return {"axis": axis, "indices": random.integers(0, x.shape[axis], shape)}


# Both sides -------------------------------------------------------------------------------------------------------


def written(x: Value, y: Value, key: Any) -> Value:
    return g.setitem(x, y, key)


def numpy_written(x: Array, y: Array, key: Any) -> Array:
    x = x.copy()
    x[key] = y
    return x


def in_place(x: Value, y: Value, key: Any) -> Value:
    """A change of a value of its own, before and after which it is read."""
    z = g.add(x * 1, g.sum(y) * 0)  # a tensor, if either is one
    before = g.sum(z)
    if isinstance(z, Symbol):
        z = g.setitem(z, g.astype(y, z.dtype), key)
    else:
        z[key] = y
    return z * 2 + before


def numpy_in_place(x: Array, y: Array, key: Any) -> Array:
    return numpy_written(x, y, key) * 2 + np.sum(x)


def added(x: Value, y: Value) -> Value:
    """`+=` and `*=`, which change a tensor and give a symbol another value."""
    z = g.add(x * 1, y * 0)
    z += g.astype(y, z.dtype)
    z *= 2
    return g.subtract(z, x)


def gathered(x: Value, i: Value) -> Value:
    """By indices that are computed; NumPy's arrays take none that are traced."""
    rows = g.remainder(i, x.shape[0])
    return g.take(x, rows, axis=0) if isinstance(x, np.ndarray) else x[rows]


def summed(x: Value, indices: Array) -> Value:
    return g.scatter_add(x, indices, shape=(3, *x.shape[1:]), axis=0)


def numpy_summed(x: Array, indices: Array) -> Array:
    result = np.zeros((3, *x.shape[1:]), x.dtype)
    np.add.at(result, indices, x)
    return result


# The kinds --------------------------------------------------------------------------------------------------------

INDEXING = [
    Kind("any_key", lambda x, key: x[key], lambda x, key: x[key], any_key, takes=ANY),
    Kind("key_again", lambda x, key: x[key], lambda x, key: x[key], any_key),
    Kind("mask", lambda x, key: x[key], lambda x, key: x[key], mask_key, takes=ANY),
    Kind("setitem", written, numpy_written, write, 2),
    Kind("in_place", in_place, numpy_in_place, write_part, 2, differs=True),
    Kind("added", added, lambda x, y: (x + y) * 2 - x, into, 2),
    Kind("gathered", gathered, lambda x, i: x[i % x.shape[0]], filled_first, 2, takes=(ANY, "i")),
    Kind("summed", summed, numpy_summed, slots),
    Kind("picked", lambda x, indices, axis: g.take_along_axis(x, indices, axis=axis), np.take_along_axis, pairs),
]  # fmt: skip

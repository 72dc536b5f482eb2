"""Calls of ops with one operand that is not what the others are made for: of other sizes, rank, dtype or values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from graphs.errors import GraphError
from graphs.op import registered_ops
from graphs.testing import samples
from graphs.testing.sample import Sample

Array = np.ndarray[Any, Any]
DTYPES = ("?", "i1", "u8", "i8", "f2", "f4", "f8")
EFFECTS = ("print", "breakpoint", "require")
OPS = [name for name, op in registered_ops().items() if op.family not in ("source", "control") and name not in EFFECTS]


def samples_of(name: str) -> list[Sample]:
    """The samples of an op; none of one that a test defines."""
    try:
        return samples(name)
    except GraphError:
        return []


def changes(array: Array) -> Iterator[tuple[str, Array]]:
    """The array longer and shorter along each axis, empty, of other rank and of other dtypes."""
    for axis, size in enumerate(array.shape):
        for new in dict.fromkeys((size + 1, 2 * size + 2, size - 1, 1, 0)):
            if new not in (size, -1):
                yield f"{new} along {axis}", resized(array, axis, new)
    yield "an axis before", array[None].copy()
    yield "an axis behind", array[..., None].copy()
    if array.ndim:
        yield "an axis less", np.zeros(array.shape[1:], array.dtype)
        yield "no axes", np.zeros((), array.dtype)
    for code in DTYPES:
        if np.dtype(code) != array.dtype:
            with np.errstate(all="ignore"):  # NaN has no integer; any will do
                yield code, np.abs(array).astype(code)


def wild_positions(array: Array) -> Iterator[tuple[str, Array]]:
    """Integers with some that no axis has."""
    if array.dtype.kind in "iu" and array.size:
        for number in (10**6, -(10**6), np.iinfo(array.dtype).max, np.iinfo(array.dtype).min):
            changed = array.copy()
            changed.flat[array.size // 2] = np.asarray(number).astype(array.dtype)
            yield f"a {number}", changed


def resized(array: Array, axis: int, size: int) -> Array:
    """The array with that size along an axis: its elements repeated, or zeros where it has none."""
    shape = (*array.shape[:axis], size, *array.shape[axis + 1 :])
    return np.resize(array, shape) if array.size and size else np.zeros(shape, array.dtype)


def variants(arrays: tuple[Array, ...], values: bool = False) -> Iterator[tuple[str, tuple[Array, ...]]]:
    """These arrays with one of them changed, in every way; with `values` in those that only the run can see, too."""
    for i, array in enumerate(arrays):
        for what, other in (*changes(array), *(wild_positions(array) if values else ())):
            yield f"operand {i}: {what}", (*arrays[:i], other, *arrays[i + 1 :])

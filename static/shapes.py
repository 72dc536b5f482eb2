"""Shape policies: which sizes a jitted function compiles for, and what it does to arrays of other sizes.

exact      the sizes that arrive; every new combination is compiled
symbolic   one graph for every value of the named sizes (or of those that were seen to change)
bucket     named axes padded to the next boundary: powers of two, or given ones
pad        named axes padded to the largest size: a given one, or the largest so far
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from graphs.errors import ShapeError
from graphs.spec import TensorSpec

Names = tuple[str | None, ...]


class Specialised(NamedTuple):
    """What one call compiles for and runs on: a spec and an array for each traced leaf; true and padded sizes."""

    specs: list[TensorSpec]
    arrays: list[Any]
    true: Mapping[str, int]
    padded: Mapping[str, int]


class Policy(Protocol):
    """Chooses the specs to compile for, and pads arrays to them."""

    def __call__(self, arrays: Sequence[Any], names: Sequence[Names]) -> Specialised:
        """Specialise one call; `names` gives the name of each axis of each array, None where it has none."""
        ...


class Exact:
    """Compile for the sizes as they are."""

    def __call__(self, arrays: Sequence[Any], names: Sequence[Names]) -> Specialised:  # noqa: ARG002  (a Policy)
        """The specs of the arrays."""
        return Specialised([TensorSpec(a.shape, a.dtype) for a in arrays], list(arrays), {}, {})


class Symbolic:
    """Compile once for every value of the symbolic sizes.

    Named axes are symbolic from the start. Without names an axis becomes symbolic when it is first seen to change,
    except for the size 1, which broadcasts and so is always a number. Axes share a symbol as long as they have had
    the same size in every call.
    """

    def __init__(self) -> None:
        self._seen: dict[Any, _Axes] = {}

    def __call__(self, arrays: Sequence[Any], names: Sequence[Names]) -> Specialised:
        """The specs with symbols in them; the arrays as they are."""
        if not any(name for axes in names for name in axes):
            kind = tuple((a.ndim, a.dtype) for a in arrays)
            names = self._seen.setdefault(kind, _Axes()).names([a.shape for a in arrays])
        specs = [
            TensorSpec([name or size for name, size in zip(axes, a.shape, strict=True)], a.dtype)
            for a, axes in zip(arrays, names, strict=True)
        ]
        return Specialised(specs, list(arrays), {}, {})


class _Axes:
    """What the calls so far tell about the axes of arrays of one kind, numbered in order.

    Axes that have had the same size in every call, apart from 1, are a group.
    """

    def __init__(self) -> None:
        self._group: dict[int, int] = {}  # by axis
        self._first: list[int] = []  # by group: the size seen first
        self._varies: set[int] = set()  # groups whose size has changed

    def names(self, shapes: Sequence[tuple[int, ...]]) -> list[Names]:
        """Take in one call; the symbol of each axis that is symbolic from now on."""
        sizes = [size for shape in shapes for size in shape]
        self._learn(sizes)
        groups = [None if size == 1 else self._group[axis] for axis, size in enumerate(sizes)]
        rest = iter([f"d{group}" if group in self._varies else None for group in groups])
        return [tuple([next(rest) for _ in shape]) for shape in shapes]

    def _learn(self, sizes: Sequence[int]) -> None:
        """Split the groups whose axes differ now; an axis that is new joins a group that has its size."""
        varied = frozenset(self._varies)
        parts: dict[int, dict[int, int]] = {}  # by group before: the group now, by size
        apart: dict[int, int] = {}  # the groups of axes seen before, by size
        for axis, size in sorted(enumerate(sizes), key=lambda pair: pair[0] not in self._group):
            if size == 1:
                continue
            before = self._group.get(axis)
            known = apart if before is None else parts.setdefault(before, {size: before})
            if size not in known:
                known[size] = len(self._first)
                self._first.append(size)
            group = self._group[axis] = known[size]
            apart.setdefault(size, group)
            if size != self._first[group] or before in varied:
                self._varies.add(group)


class Padded:
    """Pad named axes at their end, up to `boundary(name, size)`.

    Numbers are padded with zeros and bools, which are masks, with False.
    """

    def __init__(self, boundary: Callable[[str, int], int]) -> None:
        self._boundary = boundary

    def __call__(self, arrays: Sequence[Any], names: Sequence[Names]) -> Specialised:
        """The specs after padding, and the padded arrays."""
        true = named_sizes(arrays, names)
        padded = {name: self._boundary(name, size) for name, size in true.items()}
        wide = [pad_axes(a, axes, padded) for a, axes in zip(arrays, names, strict=True)]
        return Specialised([TensorSpec(a.shape, a.dtype) for a in wide], wide, true, padded)


def named_sizes(arrays: Sequence[Any], names: Sequence[Names]) -> dict[str, int]:
    """The size of each named axis. Raises ShapeError when one name has two sizes."""
    sizes: dict[str, int] = {}
    for array, axes in zip(arrays, names, strict=True):
        for name, size in zip(axes, array.shape, strict=True):
            if name is not None and sizes.setdefault(name, size) != size:
                raise ShapeError(f"dimension {name} is {sizes[name]} in one argument and {size} in another")
    return sizes


def pad_axes(array: Any, names: Names, padded: Mapping[str, int], fill: float = 0) -> Any:
    """An array with its named axes padded at the end; the array itself when nothing is missing."""
    widths = [(0, padded[n] - s if n is not None else 0) for n, s in zip(names, array.shape, strict=True)]
    if not any(after for _, after in widths):
        return array
    value = False if array.dtype == np.bool_ else fill
    return np.pad(array, widths, constant_values=value)


def power_of_two(name: str, size: int) -> int:  # noqa: ARG001  (a boundary may depend on the name)
    """The next power of two."""
    return 1 << max(size - 1, 0).bit_length()


class Boundaries:
    """The next of some given sizes. Raises ShapeError above the largest."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self._sizes = sorted(sizes)

    def __call__(self, name: str, size: int) -> int:
        """The boundary for a size."""
        for boundary in self._sizes:
            if size <= boundary:
                return boundary
        raise ShapeError(f"dimension {name} is {size}, above the largest bucket {self._sizes[-1]}; add a bucket")


class Largest:
    """The largest size seen so far."""

    def __init__(self) -> None:
        self._largest: dict[str, int] = {}

    def __call__(self, name: str, size: int) -> int:
        """The largest size of that name."""
        self._largest[name] = max(size, self._largest.get(name, 0))
        return self._largest[name]

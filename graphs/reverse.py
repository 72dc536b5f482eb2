"""Reverse-mode accumulation, written once: the tape runs it on arrays, a trace runs it on symbols.

Both engines visit recorded ops from the last to the first, apply rules by `graphs/pullback.py` and add contributions
in the order they arrive, so that the only difference between them is *when* this runs. The compiled tape repeats it
in C; tests compare the two bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np

from graphs import dims, dispatch
from graphs.cotangents import PartCotangents, SliceCotangent
from graphs.dims import Shape
from graphs.errors import NotDifferentiableError, located
from graphs.ops.elementwise import add
from graphs.ops.movement import astype, reshape
from graphs.ops.reductions import sum
from graphs.ops.shapes import dtype_of, shape_of
from graphs.ops.slicing import add_at, place

Value = Any
Entry = TypeVar("Entry", bound=Hashable)
PullNode = Callable[[Entry, Value], Iterator[tuple[Entry, Value]]]


def accumulate(entries: Iterable[Entry], cotangents: dict[Entry, Value], pull: PullNode[Entry]) -> None:
    """Carry cotangents from outputs to inputs.

    `entries` come last to first; `pull(entry, cotangent)` yields each input of the entry with its contribution.
    On return `cotangents` holds what reached the entries that were not visited: the sources.
    """
    own: set[Entry] = set()  # sources whose cotangent was made here of slices, so that nobody else sees it
    for entry in entries:
        if entry in cotangents:
            own.discard(entry)
            for source, contribution in pull(entry, cotangents.pop(entry)):
                if type(contribution) is SliceCotangent:
                    _arrive_at_slice(cotangents, source, contribution, own)
                else:
                    arrive(cotangents, source, contribution)
                del contribution  # while the next rule runs, nothing but `cotangents` holds it


def _arrive_at_slice(
    cotangents: dict[Entry, Value], source: Entry, contribution: SliceCotangent, own: set[Entry]
) -> None:
    """Add the cotangent of a slice to that of a source: on arrays in place, so that T slices do not cost T wholes."""
    held, g = cotangents.get(source), contribution.g
    is_plain = type(g) is np.ndarray and not dispatch.observers and not dispatch.detours
    if is_plain and type(held) is np.ndarray and held.dtype == g.dtype:
        cotangents[source] = add_at(held, g, contribution.key, own=source in own)
    else:
        arrive(cotangents, source, whole(contribution))
    if is_plain:
        own.add(source)


def whole(contribution: Value) -> Value:
    """A contribution to one value; that of a slice with the zeros around it."""
    if type(contribution) is not SliceCotangent:
        return contribution
    return place.apply((contribution.g,), {"shape": contribution.shape, "key": contribution.key})


def arrive(cotangents: dict[Entry, Value], source: Entry, contribution: Value) -> None:
    """Add a contribution to the cotangent of a source."""
    cotangents[source] = total(cotangents.pop(source), contribution) if source in cotangents else contribution


def total(held: Value, contribution: Value) -> Value:
    """The sum of two cotangents of one value; of several tensors at once, written into `held`."""
    if not isinstance(held, PartCotangents):
        return add(held, contribution)
    for i, g in contribution.items():
        held[i] = total(held[i], g) if i in held else g
    return held


def conform(cotangent: Value, shape: Shape, dtype: np.dtype[Any]) -> Value:
    """A cotangent summed over the axes that broadcasting added or stretched, and cast back to the input's dtype."""
    if dtype_of(cotangent) != dtype:
        cotangent = astype(cotangent, dtype)
    return unbroadcast(cotangent, shape)


def unbroadcast(cotangent: Value, shape: Shape) -> Value:
    """A cotangent summed over the axes that broadcasting added or stretched."""
    have = shape_of(cotangent)
    if dims.same_shape(have, shape):
        return cotangent
    axes = broadcast_axes(have, shape)
    summed = sum.apply((cotangent,), {"axis": axes, "keepdims": False})
    return summed if len(have) - len(axes) == len(shape) else reshape.apply((summed,), {"shape": shape})


def broadcast_axes(have: Shape, shape: Shape) -> tuple[int, ...]:
    """The axes of `have` that broadcasting a value of `shape` added or stretched."""
    added = len(have) - len(shape)
    stretched = (i + added for i, s in enumerate(shape) if dims.same(s, 1) and not dims.same(have[i + added], 1))
    return (*range(added), *stretched)


def check_seed(output: Value, seed: Value | None) -> None:
    """Refuse to start from an output that has no single gradient, or from a seed of another shape.

    Raises NotDifferentiableError.
    """
    shape, dtype = shape_of(output), dtype_of(output)
    if dtype.kind != "f":
        raise NotDifferentiableError(located(f"gradient of {dtype} values; only floating point outputs have gradients"))
    if seed is None and not all(dims.same(size, 1) for size in shape):
        raise NotDifferentiableError(
            located(
                f"gradient of an output of shape {shape}: only scalars have one gradient; "
                "reduce it (sum, mean), or give the cotangent"
            )
        )
    if seed is not None and not dims.same_shape(shape_of(seed), shape):
        raise NotDifferentiableError(
            located(f"the cotangent has shape {shape_of(seed)}, the output {shape}; make them equal")
        )

"""Sequences of tensors, which are lists, and values that may be missing, which are None then."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphs import ops
from graphs.onnx.ops.shapes import cut
from graphs.onnx.sizes import Sizes, numbers
from graphs.onnx.table import translates
from graphs.ops.shapes import positive_axis, shape_of


@translates("SequenceConstruct")
def construct(*values: Any) -> list[Any]:
    return list(values)


@translates("SequenceEmpty")
def empty(*, dtype: np.dtype[Any] | None = None) -> list[Any]:
    return []


@translates("SequenceLength")
def length(sequence: Any) -> Any:
    return np.asarray(len(sequence), np.int64)


@translates("SequenceAt")
def at(sequence: Any, position: Sizes) -> Any:
    return sequence[int(position[0])]


@translates("SequenceInsert")
def insert(sequence: Any, value: Any, position: Sizes | None = None) -> list[Any]:
    place = len(sequence) if position is None else int(position[0])
    return [*sequence[:place], value, *sequence[place:]]


@translates("SequenceErase")
def erase(sequence: Any, position: Sizes | None = None) -> list[Any]:
    place = int(position[0]) % len(sequence) if position else len(sequence) - 1
    return [*sequence[:place], *sequence[place + 1 :]]


@translates("ConcatFromSequence")
def joined(sequence: Any, *, axis: int, new_axis: bool = False) -> Any:
    return ops.stack(sequence, axis=axis) if new_axis else ops.concat(sequence, axis=axis)


@translates("SplitToSequence")
def taken_apart(x: Any, split: Any = None, *, axis: int = 0, keepdims: bool = True) -> list[Any]:
    """Parts of these sizes, or of one size, of which the last may be smaller; slices where none is given."""
    at = positive_axis(axis, len(shape_of(x)))
    whole = int(shape_of(x)[at])
    if split is None:
        parts = cut(x, at, [1] * whole)
        return parts if keepdims else [ops.squeeze(part, at) for part in parts]
    sizes = numbers(split)
    if not shape_of(split):
        sizes = [min(sizes[0], whole - first) for first in range(0, whole, sizes[0])]
    return cut(x, at, sizes)


@translates("Optional")
def optional(value: Any = None, *, type: Any = None) -> Any:
    return value


@translates("OptionalHasElement")
def has_element(value: Any = None) -> Any:
    return np.asarray(value is not None)


@translates("OptionalGetElement")
def element(value: Any) -> Any:
    return value

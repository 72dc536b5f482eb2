"""Sizes, as a model computes with them: vectors of ints, some of which may be symbolic.

An exported model takes the shape of a value apart and makes other shapes of it. Where all sizes are numbers, that is
arithmetic on arrays. A symbolic one has no value, so an array of objects holds it, and `ARITHMETIC` has what models do
with such: the result is sizes again. Any other op gets them as a tensor.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphs import dims, ops
from graphs.dims import Dim
from graphs.errors import ControlFlowError

Sizes = Sequence[int | Dim]
Objects = np.ndarray[Any, np.dtype[Any]]


class Decider(Objects):
    """In a translation: an input that decides about shapes, as an array; of objects where it is a symbolic size."""


def is_symbolic(value: Any) -> bool:
    """Whether a value is an array of sizes that are not all numbers."""
    return isinstance(value, np.ndarray) and value.dtype == object


def are_sizes(values: Sequence[Any]) -> bool:
    """Whether all of these are arrays, and some of them symbolic sizes."""
    return any(map(is_symbolic, values)) and all(isinstance(value, np.ndarray) for value in values)


def array_of(sizes: Any) -> Objects:
    """Sizes as an array: of objects where one is symbolic, of int64 otherwise."""
    held = np.asarray(sizes, object)
    return held if any(isinstance(size, Dim) for size in held.flat) else held.astype(np.int64)


def deciding_array(value: Any) -> Objects:
    """A value that decides about shapes, as an array. Raises ControlFlowError where it is not known yet."""
    try:
        return np.asarray(value)
    except ControlFlowError:
        raise ControlFlowError(
            "a size or an axis is computed from values, which are unknown while a graph is traced; give it as a number "
            "to the model that is exported, or run the model in the dynamic engine"
        ) from None


def numbers(value: Any) -> list[Any]:
    """The elements of a value that decides about shapes. Raises ControlFlowError where they are not known yet."""
    return deciding_array(value).reshape(-1).tolist()


def whole(sizes: Sizes) -> tuple[int, ...]:
    """Sizes that have to be numbers, such as axes. Raises ControlFlowError for a symbolic one."""
    return tuple(map(operator.index, sizes))


def tensor(sizes: Objects) -> Any:
    """Sizes as an int64 tensor of the graph that is traced."""
    zero = np.zeros((), np.int64)
    return ops.reshape(ops.stack([ops.add(zero, size) for size in sizes.flat]), sizes.shape)


def _cut(x: Objects, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Objects:
    key = slices(x.ndim, numbers(starts), numbers(ends), _listed(axes), _listed(steps))
    return x[key]


def _listed(value: Any) -> list[Any] | None:
    return None if value is None else numbers(value)


def slices(ndim: int, starts: Sizes, ends: Sizes, axes: Sizes | None, steps: Sizes | None) -> tuple[slice, ...]:
    """The key that ONNX's Slice means: an end beyond the axis, on either side, is its end."""
    key = [slice(None)] * ndim
    count = len(starts)
    for start, end, axis, step in zip(starts, ends, axes or range(count), steps or [1] * count, strict=True):
        backwards = isinstance(step, int) and step < 0
        whole = _is_far(start, 1) or (isinstance(start, int) and start == -1) if backwards else _is_far(start, -1)
        stop = None if _is_far(end, -1 if backwards else 1) else end
        key[int(axis)] = slice(None if whole else start, stop, None if step == 1 else step)
    return tuple(key)


def _is_far(position: int | Dim, side: int) -> bool:
    """Whether a position is beyond any axis: exporters write the largest integer, or this, for its end."""
    return isinstance(position, int) and position * side >= _FAR


_FAR = 10**9

# What is done with sizes, by the op's name, or NotImplemented; attributes are those of the op.
ARITHMETIC: dict[str, Callable[..., Any]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.floor_divide,  # sizes are not negative
    "Mod": np.remainder,
    "Max": np.frompyfunc(dims.maximum, 2, 1),
    "Min": np.frompyfunc(dims.minimum, 2, 1),
    "Identity": lambda x: x,
    "Cast": lambda x, to, **_: x if to.kind == "i" else NotImplemented,
    "Gather": lambda x, indices, axis=0: np.take(x, indices, axis=axis),
    "Slice": _cut,
    "Concat": lambda *parts, axis: np.concatenate(parts, axis=axis),
    "Squeeze": lambda x, axes=None: np.squeeze(x, None if axes is None else tuple(numbers(axes))),
    "Unsqueeze": lambda x, axes: np.expand_dims(x, tuple(numbers(axes))),
    "Reshape": lambda x, shape, allowzero=False: np.reshape(x, numbers(shape)),
    "ReduceProd": lambda x, axes=None, keepdims=True, noop_with_empty_axes=False: np.prod(x, keepdims=keepdims),
}

"""Values of several paths side by side: what is the same on every path, and what the graph has to carry.

`combine_values` takes containers apart where they differ; a container that is one and the same stays that object.
Tuples, lists, dicts and deques are taken apart, and objects of a user's class, attribute by attribute. `MergedValue` is
one result of a switch: a value for each branch, brought to one shape and dtype.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphs import promotion
from graphs.dims import is_symbolic, same_shape
from graphs.ops.creation import zeros
from graphs.ops.movement import astype
from graphs.ops.shapes import dtype_of, shape_of
from graphs.spec import TensorSpec
from static.convert.stage.unknown import Stand, Unset, describe_value, is_number, is_symbol, is_tensor
from static.trace.tracing import static_key

Left = Callable[[Sequence[Any]], Sequence[Any]]
Leaf = Callable[[str, Sequence[Any]], Any]
Joined = Callable[[Any, Sequence[Any]], None]
_COMPARED_BY_VALUE = (str, bytes, complex, range, slice, type(None), np.dtype)


class StructureError(Exception):
    """Values that no graph can merge; the message says how they differ."""


def is_same(values: Sequence[Any]) -> bool:
    """Whether values are one object, or equal constants."""
    first, *others = values
    if all(other is first for other in others):
        return True
    if isinstance(first, Stand) or any(type(other) is not type(first) for other in others):
        return False
    if is_symbol(first):
        return all(other.node is first.node and other.weak == first.weak for other in others)
    if is_number(first):
        return all(static_key(other) == static_key(first) for other in others)
    return isinstance(first, _COMPARED_BY_VALUE) and all(other == first for other in others)


def combine_values(
    name: str, values: Sequence[Any], leaf: Leaf, joined: Joined, left: Left, around: frozenset[int] = frozenset()
) -> Any:
    """Return one value of several: equal values stay, tensors and numbers become `leaf(name, values)`.

    Where one is Unset the others are taken, with leaves for all that the graph computes in them. `joined(new, values)`
    is called for each container that is made of several, and `left(values)` returns each value as its path left it.
    `around` has the ids of the enclosing containers. Raises StructureError for values that differ otherwise.
    """
    if all(value is values[0] for value in values):
        return values[0]
    values = left(values)
    present = [value for value in values if not isinstance(value, Unset)]
    if not present or (len(present) == len(values) and is_same(values)):
        return values[0]
    if all(map(is_leaf, present)):
        return leaf(name, values)
    parts = [pieces_of(value) for value in present]
    first = parts[0]
    if first is None and is_same(present):
        return present[0]
    if first is None or any(part is None or part.like != first.like for part in parts):
        raise StructureError(f"{name} is {' on one path and '.join(map(describe_value, present))} on the other")
    if not around.isdisjoint(map(id, present)):
        raise StructureError(f"{name} holds itself")
    inside = around.union(map(id, present))
    children = zip(*(_children(value, len(first.items)) for value in values), strict=True)
    items = [
        combine_values(f"{name}{at}", some, leaf, joined, left, inside)
        for at, some in zip(first.labels, children, strict=True)
    ]
    new = first.make(items)
    joined(new, values)
    return new


def _children(value: Any, count: int) -> list[Any]:
    parts = pieces_of(value)
    return [value] * count if parts is None else parts.items  # an unset value has no items


def is_leaf(value: Any) -> bool:
    """Whether the graph can carry a value: a tensor, or a number."""
    return is_tensor(value) or is_number(value)


class Pieces(NamedTuple):
    """A container taken apart: `like` is equal for two alike containers, and `make` builds one from other items."""

    like: Any
    items: list[Any]
    labels: list[str]
    make: Callable[[list[Any]], Any]


def pieces_of(value: Any) -> Pieces | None:
    """Return the pieces of a container, None for another value, or for one that stays whole."""
    kind = type(value)
    if isinstance(value, tuple):
        make = getattr(kind, "_make", kind)
        return Pieces((kind, len(value)), list(value), _index_labels(value), make)
    if kind in (list, deque):
        return Pieces((kind, len(value)), list(value), _index_labels(value), kind)
    if isinstance(value, dict):
        return Pieces((kind, _keys(value)), list(value.values()), [f"[{key!r}]" for key in value], _dict_like(value))
    if is_plain_object(value):
        held = vars(value)
        return Pieces((kind, tuple(held)), list(held.values()), [f".{name}" for name in held], _object_like(value))
    return None


def is_made_by_object(kind: type) -> bool:
    """Whether a class leaves the making of its objects to `object`."""
    return not any("__new__" in vars(base) for base in kind.__mro__[:-1])


def is_plain_object(value: Any) -> bool:
    """Whether an object consists of its attributes: its class is in Python, and it is no function, module or class."""
    kind = type(value)
    return (
        getattr(kind, "__flags__", 0) & 512 != 0  # made at run time, by a class statement
        and hasattr(value, "__dict__")
        and is_made_by_object(kind)
        and not callable(getattr(kind, "captured_array", None))
        and not hasattr(kind, "__slots__")
    )


def _index_labels(value: Any) -> list[str]:
    return [f"[{i}]" for i in range(len(value))]


def _keys(value: dict[Any, Any]) -> tuple[Any, ...]:
    return tuple([(type(key), key) for key in value])


def _dict_like(value: dict[Any, Any]) -> Callable[[list[Any]], Any]:
    def make(items: list[Any]) -> Any:
        new = copy.copy(value)  # a copy has the class, and the factory of a defaultdict
        new.update(zip(value, items, strict=True))
        return new

    return make


def _object_like(value: Any) -> Callable[[list[Any]], Any]:
    def make(items: list[Any]) -> Any:
        new = object.__new__(type(value))
        vars(new).update(zip(vars(value), items, strict=True))
        return new

    return make


def leaves(value: Any) -> Iterator[Any]:
    """Yield the values inside nested containers, visiting each container once."""
    todo, seen = [value], set()
    while todo:
        value = todo.pop()
        parts = pieces_of(value)
        if parts is None:
            yield value
        elif id(value) not in seen:
            seen.add(id(value))
            todo += reversed(parts.items)


class MergedValue:
    """One result: `values` by branch, some of which may stand for an unset variable."""

    def __init__(self, name: str, values: Sequence[Any]) -> None:
        self.values = values
        present = [value for value in values if not isinstance(value, Stand)]
        self.weak = all(map(is_number, present))
        self.spec = TensorSpec(_shape(name, present), _dtype(name, present))

    def typed(self, branch: int) -> Any:
        """Return a branch's value in the dtype of the result, traced in the branch's graph; zeros where it is unset."""
        return cast_leaf(self.values[branch], self.spec)


def cast_leaf(value: Any, spec: TensorSpec) -> Any:
    """Return a value in the dtype of a spec; zeros where the value is unset."""
    if isinstance(value, Stand):
        symbolic = any(is_symbolic(size) for size in spec.shape)
        return zeros(spec.shape, dtype=spec.dtype) if symbolic else np.zeros(spec.shape, spec.dtype)
    if promotion.is_scalar(value):
        return np.asarray(value, spec.dtype)
    return value if dtype_of(value) == spec.dtype else astype(value, spec.dtype)


def _shape(name: str, values: Sequence[Any]) -> Any:
    shapes = [shape_of(value) for value in values]
    if not all(same_shape(shape, shapes[0]) for shape in shapes):
        raise StructureError(_differing(name, values))
    return shapes[0]


def _dtype(name: str, values: Sequence[Any]) -> np.dtype[Any]:
    """Return the common dtype: a Python number takes the dtype of the tensors, if it has it beside them."""
    strong = [value for value in values if not is_number(value)]
    if not strong:
        return np.result_type(*map(dtype_of, values))
    dtype = dtype_of(strong[0])
    for value in values:
        if (number_dtype(value, strong) if is_number(value) else dtype_of(value)) != dtype:
            raise StructureError(_differing(name, values))
    return dtype


def number_dtype(value: Any, strong: Sequence[Any]) -> np.dtype[Any]:
    """Return the dtype that a Python number, or a weak symbol, takes beside tensors."""
    plain = value if promotion.is_scalar(value) else value.dtype.type(0).item()
    return promotion.scalar_dtype(plain, strong)


def _differing(name: str, values: Sequence[Any]) -> str:
    return f"{name} is {describe_value(values[0])} on one path and {describe_value(values[-1])} on the other"

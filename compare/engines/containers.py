"""Conversion of arguments and results to Python's own containers, and back to the user's classes.

Mappings, named tuples and dataclasses of any class become dicts. In a result that is compared, a leaf that is neither a
number nor text becomes None.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np
import optree

_PLAIN = (bool, int, float, complex, str, bytes, np.generic, np.ndarray)


def to_containers(value: Any, numbers: Callable[[Any], Any]) -> Any:
    """Return the value in dicts, lists and tuples; `numbers` gives NumPy's array for the framework's, else None."""
    array = numbers(value)
    if array is not None:
        return array
    inside = named_parts(value)
    if inside is not None:
        return {key: to_containers(part, numbers) for key, part in inside.items()}
    if isinstance(value, (list, tuple)):
        return (list if isinstance(value, list) else tuple)(to_containers(part, numbers) for part in value)
    if isinstance(value, Enum):
        return str(value)
    return value if isinstance(value, _PLAIN) else None


def named_parts(value: Any) -> dict[Any, Any] | None:
    """Return the parts of a mapping, a named tuple or a dataclass by name; None for any other value."""
    if isinstance(value, Mapping):
        return dict(value.items())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return dict(zip(value._fields, value, strict=False))
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value) if hasattr(value, field.name)}
    return None


# What a function is given --------------------------------------------------------------------------------------------


def is_container(value: Any) -> bool:
    """Return whether a value has named parts and is of a class that optree takes for a leaf."""
    return bool(optree.tree_is_leaf(value)) and named_parts(value) is not None


def apart(value: Any) -> Any:
    """Return the value with a dict in the place of each container of the user's own class."""
    return optree.tree_map(lambda leaf: apart(named_parts(leaf)) if is_container(leaf) else leaf, value)


def together(like: Any, value: Any, at_leaf: Callable[[Any, Any], Any] = lambda _, value: value) -> Any:
    """Undo `apart`: give a value the container classes of `like`, which has the same layout.

    `at_leaf(leaf of like, leaf of value)` makes each leaf.
    """

    def put(like: Any, value: Any) -> Any:
        if not is_container(like):
            return at_leaf(like, value)
        parts = named_parts(like) or {}
        return with_parts(like, {name: together(part, value[name], at_leaf) for name, part in parts.items()})

    return optree.tree_map(put, like, value)


def with_parts(like: Any, parts: Mapping[Any, Any]) -> Any:
    """Return a copy of a container with other parts. Its class is not called, except for an immutable mapping's."""
    if isinstance(like, Mapping) and not isinstance(like, MutableMapping):
        maker: Any = type(like)
        return maker(parts)
    made = copy.copy(like)
    for name, part in parts.items():
        if isinstance(made, MutableMapping):
            made[name] = part
        else:
            object.__setattr__(made, name, part)  # works for a frozen dataclass too
    return made


def of_class(kind: Any, parts: Mapping[Any, Any]) -> Any:
    """Make a container of a class from its parts. The code of a dataclass does not run: its fields are set."""
    if issubclass(kind, tuple):
        return kind(*parts.values())
    if issubclass(kind, Mapping):
        return kind(parts)
    return with_parts(object.__new__(kind), parts)


class CallContainers:
    """The containers of some calls; `plain` are the calls without the user's classes, by `apart` unless given."""

    def __init__(
        self,
        calls: Sequence[tuple[Any, ...]],
        at_leaf: Callable[[Any, Any], Any] = lambda _, value: value,
        plain: Sequence[tuple[Any, ...]] | None = None,
    ) -> None:
        self.at_leaf = at_leaf
        self.plain = list(map(apart, calls)) if plain is None else plain
        layouts = [_layout(args) for args in self.plain]
        self._likes = dict(reversed(list(zip(layouts, calls, strict=True))))

    def __call__(self, args: Sequence[Any]) -> Sequence[Any]:
        """Return arguments in the classes of the first call with their layout; unchanged if no call has it."""
        like = self._likes.get(_layout(tuple(args)))
        if like is None:
            return args
        made: Sequence[Any] = together(like, tuple(args), self.at_leaf)
        return made


def _layout(args: Any) -> optree.PyTreeSpec:
    return optree.tree_structure(args)

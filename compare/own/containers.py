"""Dataclasses among the arguments of a function: to our engines they are dicts of their fields.

The function is given its own class again, with what the engine has put in the fields.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

import optree

from graphs import tree

Function = Callable[..., Any]


def over_dicts(f: Function, inputs: Any) -> tuple[Function, Any]:
    """The function over dicts and its calls; as they are where no argument of the first call holds a dataclass."""
    calls = list(inputs)
    if not any(map(_is_container, tree.leaves(calls[:1]))):
        return f, calls
    likes = calls[0]

    @functools.wraps(f)
    def over(*args: Any) -> Any:
        return f(*map(_closed, likes, args))

    return over, opened(calls)


def opened(value: Any) -> Any:
    """The containers with a dict in the place of each dataclass."""
    return tree.tree_map(lambda leaf: opened(_parts(leaf)) if _is_container(leaf) else leaf, value)


def _closed(like: Any, value: Any) -> Any:
    """The containers with dataclasses where another call has them."""
    if _is_container(like):
        return replace(like, **{name: _closed(part, value[name]) for name, part in _parts(like).items()})
    if not any(map(_is_container, tree.leaves(like))):
        return value
    return tree.tree_map(_closed, like, value)


def _parts(value: Any) -> dict[str, Any]:
    """What it is made of: other fields are of its `__post_init__`."""
    return {field.name: getattr(value, field.name) for field in fields(value) if field.init}


def _is_container(value: Any) -> bool:
    """Whether it is a dataclass, and no container as it is."""
    return bool(optree.tree_is_leaf(value)) and is_dataclass(value) and not isinstance(value, type)

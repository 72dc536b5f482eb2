"""Nested containers (dicts, lists, tuples, named tuples) of tensors, through optree; None is an empty container."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import optree

Tree = Any
Structure = optree.PyTreeSpec


def flatten(tree: Tree) -> tuple[list[Any], Structure]:
    """The leaves in a fixed order (dict keys sorted), and the structure that puts them back."""
    return optree.tree_flatten(tree)


def unflatten(structure: Structure, leaves: list[Any]) -> Tree:
    """The container of that structure with these leaves."""
    return optree.tree_unflatten(structure, leaves)


def leaves(tree: Tree) -> list[Any]:
    """The leaves in a fixed order."""
    return optree.tree_leaves(tree)


def tree_map(function: Callable[..., Any], tree: Tree, *others: Tree) -> Tree:
    """The function applied leaf by leaf to containers of one structure."""
    return optree.tree_map(function, tree, *others)


def paths(tree: Tree) -> list[str]:
    """A readable name for each leaf: `[0]['w']`."""
    return ["".join(f"[{key!r}]" for key in path) for path in optree.tree_paths(tree)]

"""Nested containers (dicts, lists, tuples, named tuples) of tensors, through optree; None is an empty container."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
import optree

Tree = Any
Structure = optree.PyTreeSpec


def flatten(tree: Tree) -> tuple[list[Any], Structure]:
    """The leaves in a fixed order (dict keys sorted), and the structure from which `unflatten` rebuilds the tree."""
    if type(tree) is dict and set(map(type, tree.values())) == _ARRAYS:  # the parameters of most models
        names = tuple(tree)
        entries = _of_arrays.get(names) or _remember(names, tree)
        return [tree[name] for name in entries[0]], entries[1]
    return optree.tree_flatten(tree)


_ARRAYS = {np.ndarray}
_of_arrays: dict[tuple[Any, ...], tuple[list[Any], Structure]] = {}  # by the keys of a dict, as inserted


def _remember(names: tuple[Any, ...], tree: Tree) -> tuple[list[Any], Structure]:
    """The keys of a dict of arrays in the order of its leaves, and its structure; cached, as optree is slower."""
    structure = optree.tree_structure(tree)
    entries = structure.entries(), structure
    if all(type(name) is str for name in names):  # 1 and True are one key
        if len(_of_arrays) >= _MOST:
            _of_arrays.clear()
        _of_arrays[names] = entries
    return entries


_MOST = 1024


def register(kind: type, apart: Callable[[Any], Any], together: Callable[[Any, Any], Any]) -> None:
    """Let everyone's trees take values of a type apart: as `optree.register_pytree_node`, in no namespace."""
    optree.register_pytree_node(kind, apart, together, namespace=optree.registry.__dict__["__GLOBAL_NAMESPACE"])


def partition(tree: Tree) -> tuple[list[Any], Callable[[list[Any]], Tree]]:
    """The leaves in an order of their own, and the function that puts as many others in their places.

    Faster than `flatten` where no structures are compared: a dict of arrays, or one array, needs no optree.
    """
    if type(tree) is dict and set(map(type, tree.values())) == _ARRAYS:
        keys = tuple(tree)
        return [*tree.values()], lambda leaves: dict(zip(keys, leaves, strict=True))
    if type(tree) is np.ndarray:
        return [tree], operator.itemgetter(0)
    leaves, structure = optree.tree_flatten(tree)
    return leaves, structure.unflatten


def layout(tree: Tree) -> Structure:
    """The structure that keeps the order of dict keys, on which a function that loops over a dict may depend."""
    return optree.tree_structure(tree, namespace=_AS_INSERTED)


_AS_INSERTED = "graphduel: dicts as inserted"
_for_good = optree.dict_insertion_ordered(True, namespace=_AS_INSERTED)  # nobody else uses the name
_for_good.__enter__()


def flatten_as_inserted(tree: Tree) -> tuple[list[Any], Structure]:
    """The leaves in the insertion order of dict keys, and the structure that keeps this order."""
    return optree.tree_flatten(tree, namespace=_AS_INSERTED)


def unflatten(structure: Structure, leaves: list[Any]) -> Tree:
    """The container of that structure with these leaves."""
    return optree.tree_unflatten(structure, leaves)


def leaves(tree: Tree) -> list[Any]:
    """The leaves in a fixed order."""
    return optree.tree_leaves(tree)


def describe(structure: Structure) -> str:
    """The containers of a structure with `*` for each leaf: `({'w': *}, *)`."""
    return str(structure).removeprefix("PyTreeSpec(").removesuffix(")")


def tree_map(function: Callable[..., Any], tree: Tree, *others: Tree) -> Tree:
    """The function applied leaf by leaf to containers of one structure."""
    return optree.tree_map(function, tree, *others)


def paths(f: Callable[..., Any], args: tuple[Any, ...]) -> list[str]:
    """A readable name for each leaf of positional arguments of `f`: `params['w']`, or `arg0['w']` of `*args`."""
    tree: Tree = args
    labels = argument_names(f, len(args))
    return [labels[path[0]] + "".join(f"[{key!r}]" for key in path[1:]) for path in optree.tree_paths(tree)]


def argument_names(f: Callable[..., Any], count: int) -> list[str]:
    """A name for each positional argument: its parameter's, or `arg0` where Python cannot tell."""
    if type(f) is FunctionType and not f.__dict__:  # with no signature of another's: a fifth of a small trace
        names = [*f.__code__.co_varnames[: min(count, f.__code__.co_argcount)]]
    else:
        names = _positional(f)[:count]
    return [*names, *(f"arg{i}" for i in range(len(names), count))]


def _positional(f: Callable[..., Any]) -> list[str]:
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]

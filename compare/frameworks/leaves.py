"""Arguments taken apart: arrays go into a compiled function, and it is specialised to all else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import optree


class Specialised:
    """A function compiled once for each structure of its arguments and each value in them that is no array."""

    def __init__(self, function: Callable[..., Any], compile_: Callable[..., Any], array: type) -> None:
        self.function = function
        self.compile = compile_
        self.array = array
        self.made: dict[Any, Any] = {}

    def __call__(self, *args: Any) -> Any:
        """What the function returns."""
        given: Any = args
        leaves, structure = optree.tree_flatten(given, none_is_leaf=True)
        at = [i for i, leaf in enumerate(leaves) if isinstance(leaf, self.array)]
        static = [None if isinstance(leaf, self.array) else leaf for leaf in leaves]
        key = (structure, tuple(at), tuple(map(repr, static)))
        if key not in self.made:
            self.made[key] = self.compile(self._of_arrays(static, structure, at))
        return self.made[key](*(leaves[i] for i in at))

    def _of_arrays(self, static: list[Any], structure: Any, at: list[int]) -> Callable[..., Any]:
        def run(*arrays: Any) -> Any:
            leaves = list(static)
            for i, array in zip(at, arrays, strict=True):
                leaves[i] = array
            return self.function(*optree.tree_unflatten(structure, leaves))

        return run

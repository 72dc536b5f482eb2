"""The tensors that a function and its calls hold, in an order that is the same in every engine with PyTorch's names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import optree

from compare.engines.reached import ReachedCode, outermost

PLAIN = ":plain"
"""Ends the name of a tensor that is an attribute of a module, and neither a parameter nor a buffer."""


@dataclass(frozen=True)
class Kinds:
    """The classes of an engine that hold numbers."""

    tensor: type
    module: type

    def leaves(self, tree: Any) -> list[Any]:
        """What a container holds; a module is one leaf, also where it is a container itself."""
        return list(optree.tree_leaves(tree, is_leaf=self._is_module, none_is_leaf=True))

    def mapped(self, f: Any, tree: Any) -> Any:
        """A container with `f` of each leaf."""
        return optree.tree_map(f, tree, is_leaf=self._is_module, none_is_leaf=True)

    def _is_module(self, value: Any) -> bool:
        return isinstance(value, self.module)

    def arguments(self, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The tensors among the arguments of calls."""
        return [leaf for leaf in self.leaves(list(calls)) if isinstance(leaf, self.tensor)]

    def held(self, function: Any, calls: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
        """The tensors of the modules that function and calls reach, and those that the function reaches by itself."""
        reached = ReachedCode(function).values
        values = [*self.leaves(list(calls)), *reached]
        modules = outermost([value for value in values if isinstance(value, self.module)])
        inside = {f"{i}.{name}": tensor for i, module in enumerate(modules) for name, tensor in self._of(module)}
        theirs = {id(tensor) for tensor in inside.values()}
        alone = {id(value): value for value in reached if isinstance(value, self.tensor) and id(value) not in theirs}
        return {**inside, **{str(i): tensor for i, tensor in enumerate(alone.values())}}

    def state(self, function: Any, calls: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
        """Of these the floats that a training step changes: parameters, buffers, and what else requires a gradient."""
        held = self.held(function, calls)
        registered = {name for name in held if "." in name and not name.endswith(PLAIN)}
        return {
            name: tensor
            for name, tensor in held.items()
            if tensor.dtype.kind == "f" and (name in registered or tensor.requires_grad)
        }

    def _of(self, module: Any) -> Iterator[tuple[str, Any]]:
        """Parameters, buffers, and tensors that are plain attributes of a module or of one inside it."""
        registered = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        yield from registered.items()
        theirs = {id(tensor) for tensor in registered.values()}
        for path, inner in module.named_modules():
            for name, value in vars(inner).items():
                if isinstance(value, self.tensor) and id(value) not in theirs:
                    yield f"{path}.{name}{PLAIN}", value

"""The tensors that a function and its calls hold, in an order that all engines with PyTorch's names share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import optree

from compare.engines.containers import is_container, named_parts, with_parts
from compare.engines.reach import ReachedCode, is_users_class, outermost

PLAIN = ":plain"
"""The suffix of the name of a tensor that is a module's plain attribute, neither a parameter nor a buffer."""


def names_in(function: Callable[..., Any], calls: Sequence[tuple[Any, ...]], code: ReachedCode) -> dict[int, str]:
    """Return a name for each value's id: its global, outer variable, attribute of a user's object, or parameter."""
    names: dict[int, str] = {}
    for value in code.values:
        if is_users_class(type(value)):
            names |= {id(inner): name for name, inner in getattr(value, "__dict__", {}).items()}
    for place in code.places:
        value = place.read()
        names |= {id(value): place.name}
        if type(value) in (list, tuple, dict):
            inside = zip(optree.tree_paths(value), optree.tree_leaves(value), strict=True)
            names |= {id(leaf): place.name + "".join(f"[{key!r}]" for key in path) for path, leaf in inside}
    try:
        parameters = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return names
    return {**{id(value): name for name, value in zip(parameters, calls[0], strict=False)}, **names}


@dataclass(frozen=True)
class Kinds:
    """An engine's classes of tensors and modules."""

    tensor: type
    module: type

    def leaves(self, tree: Any) -> list[Any]:
        """Return the leaves of a container of any class; a module is one leaf, even if it is a container."""
        leaves = list[Any]()

        def note(leaf: Any) -> Any:
            leaves.append(leaf)
            return leaf

        self.mapped(note, tree)
        return leaves

    def mapped(self, f: Any, tree: Any) -> Any:
        """Return a container with `f` applied to each leaf; unchanged inner containers of other classes stay."""

        def change(leaf: Any) -> Any:
            if self._is_module(leaf) or not is_container(leaf):
                return f(leaf)
            parts = named_parts(leaf) or {}
            changed = self.mapped(f, parts)
            return leaf if all(changed[name] is part for name, part in parts.items()) else with_parts(leaf, changed)

        return optree.tree_map(change, tree, is_leaf=self._is_module, none_is_leaf=True)

    def _is_module(self, value: Any) -> bool:
        return isinstance(value, self.module)

    def arguments(self, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Return the tensors among the arguments of calls."""
        return [leaf for leaf in self.leaves(list(calls)) if isinstance(leaf, self.tensor)]

    def held(self, function: Any, calls: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
        """Return, by name, the tensors of all reached modules, and those that the function reaches by itself."""
        reached = ReachedCode(function).values
        modules = self._outermost(calls, reached)
        named = [(i, *pair) for i, module in enumerate(modules) for pair in self._of(module)]
        theirs = {id(tensor) for _, _, tensor in named}
        alone = {id(value): value for value in reached if isinstance(value, self.tensor) and id(value) not in theirs}
        width = len(str(len(modules) + len(alone)))  # zero-padded, so that sorting keeps this order
        inside = {f"{i:0{width}}.{name}": tensor for i, name, tensor in named}
        return {**inside, **{f"{i:0{width}}": tensor for i, tensor in enumerate(alone.values(), len(modules))}}

    def state(self, function: Any, calls: Sequence[tuple[Any, ...]], changed: Collection[int] = ()) -> dict[str, Any]:
        """Return the tensors that training changes: floats of modules, those that require gradients, ids `changed`."""
        held = self.held(function, calls)
        registered = {name for name in held if "." in name and not name.endswith(PLAIN)}
        return {
            name: tensor
            for name, tensor in held.items()
            if (tensor.dtype.kind == "f" and (name in registered or tensor.requires_grad)) or id(tensor) in changed
        }

    def labels(self, function: Any, calls: Sequence[tuple[Any, ...]], state: Mapping[str, Any]) -> dict[str, str]:
        """Return the label of each tensor of a state for messages, by its key: ``the parameter `net.fc.weight` ``."""
        code = ReachedCode(function)
        names = names_in(function, calls, code)
        modules = self._outermost(calls, code.values)
        labels = {}
        for key, tensor in state.items():
            place, _, path = key.partition(".")
            if not path:
                labels[key] = f"the tensor `{names.get(id(tensor), key)}`"
                continue
            whole = ".".join(filter(None, (names.get(id(modules[int(place)])), path.removesuffix(PLAIN))))
            labels[key] = f"the {'parameter' if tensor.requires_grad else 'buffer'} `{whole}`"
        return labels

    def _outermost(self, calls: Sequence[tuple[Any, ...]], reached: Sequence[Any]) -> list[Any]:
        return outermost([value for value in (*self.leaves(list(calls)), *reached) if isinstance(value, self.module)])

    def _of(self, module: Any) -> Iterator[tuple[str, Any]]:
        """Yield a module's parameters and buffers, and tensors that are plain attributes of it or of its submodules."""
        registered = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        yield from registered.items()
        theirs = {id(tensor) for tensor in registered.values()}
        for path, inner in module.named_modules():
            for name, value in vars(inner).items():
                if isinstance(value, self.tensor) and id(value) not in theirs:
                    yield f"{path}.{name}{PLAIN}", value

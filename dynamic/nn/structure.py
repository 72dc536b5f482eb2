"""Modules as containers of arrays: what transforms and traces see of one, and calls with other values in it.

A module among the arguments of a function holds its parameters as leaves, as a dict of arrays would; its buffers stay
what they are, tensors that the function reads.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import optree

from dynamic.tensor import Tensor
from graphs.errors import GraphError, located

_GLOBAL = optree.registry.__dict__["__GLOBAL_NAMESPACE"]


class Skeleton:
    """A module without its parameters: the same for the same module in the same mode."""

    def __init__(self, module: Any, names: tuple[str, ...]) -> None:
        self.module, self.names = module, names
        self._key = (id(module), names, tuple(submodule._training for submodule in module.modules()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Skeleton) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"{type(self.module).__name__}({', '.join(self.names)})"


def register(kind: type) -> None:
    """Let modules of this class be containers."""
    optree.register_pytree_node(kind, _flattened, _unflattened, namespace=_GLOBAL)


def _flattened(module: Any) -> tuple[list[Any], Skeleton, tuple[str, ...]]:
    named = dict(module.named_parameters())
    names = tuple(named)
    values = [value._data if type(value) is Tensor else value for value in named.values()]
    return values, Skeleton(module, names), names


def _unflattened(skeleton: Any, values: Any) -> Any:
    """A copy of the module, of all in it but parameters the same objects, that holds other values."""
    made = _copied(skeleton.module, {})
    _put(list(_replacements(made, dict(zip(skeleton.names, values, strict=True)))))
    return made


def _copied(module: Any, memo: dict[int, Any]) -> Any:
    if id(module) not in memo:
        made: Any = copy.copy(module)
        memo[id(module)] = made
        vars(made).update({name: _copied(child, memo) for name, child in module._of("module") if child is not None})
    return memo[id(module)]


Place = tuple[Any, str, Any]  # a module, the name of an attribute, and the value that it gets


def _put(places: list[Place]) -> None:
    for module, name, value in places:
        module.__dict__[name] = value


def _replacements(module: Any, values: Mapping[str, Any], tied: bool = True) -> Iterator[Place]:
    """Where these values belong; those of tied parameters in every place of theirs."""
    places: dict[str, tuple[Any, str]] = {}
    replaced: dict[int, Any] = {}
    for path, submodule in module.named_modules(remove_duplicate=False):
        for name, value in submodule._of("parameter", "buffer", "buffer that is not saved"):
            full = f"{path}.{name}" if path else name
            places[full] = submodule, name
            if full in values and value is not None:
                replaced[id(value)] = values[full]
    unknown = [name for name in values if name not in places]
    if unknown:
        raise GraphError(
            located(f"functional_call: the module has no {', '.join(map(repr, unknown))}; see state_dict()")
        )
    for full, (submodule, name) in places.items():
        if full in values:
            yield submodule, name, values[full]
        elif tied and id(vars(submodule)[name]) in replaced:
            yield submodule, name, replaced[id(vars(submodule)[name])]


@contextmanager
def holding(module: Any, values: Mapping[str, Any], tied: bool = True) -> Iterator[None]:
    """Inside, parameters and buffers of these names have these values."""
    places = list(_replacements(module, values, tied))
    before = [(owner, name, vars(owner)[name]) for owner, name, _ in places]
    try:
        _put(places)
        yield
    finally:
        _put(before)


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """What the module gives when parameters and buffers have these values: a dict by name, or several.

    Values are arrays, tensors, or symbols of a trace, so that the call is a function of them. Raises GraphError for
    names that the module does not have, and with `strict` for names that are not given.
    """
    parts = parameter_and_buffer_dicts
    values = dict(parts) if isinstance(parts, Mapping) else {k: v for part in parts for k, v in part.items()}
    if strict:
        missing = [n for n, _ in (*module.named_parameters(), *module.named_buffers()) if n not in values]
        if missing:
            raise GraphError(located(f"functional_call: no value is given for {', '.join(missing)}"))
    call_args = () if args is None else args if isinstance(args, tuple) else (args,)
    with holding(module, values, tie_weights):
        return module(*call_args, **(kwargs or {}))

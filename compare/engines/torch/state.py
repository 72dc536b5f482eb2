"""The state that a call of PyTorch leaves, by the names of messages: buffers, counters, and trained tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import optree

from compare.engines.kinds import names_in
from compare.engines.reach import ReachedCode, is_users_class
from compare.engines.step import Function, StateReader


class _Place(NamedTuple):
    """A place with a value that a call may change or replace."""

    space: Mapping[str, Any]
    name: str
    label: str


def state_reader(
    function: Function, calls: Sequence[tuple[Any, ...]], changed: Sequence[Any], *, trains: bool
) -> StateReader:
    """Return a reader of buffers, of numbers in which modules count, and of tensors that a call `changed`.

    For a step that `trains` it also reads parameters, the gradients that the step leaves, and optimizers' state.
    """
    import torch

    code = ReachedCode(function)
    arguments: Any = list(calls)
    values: list[Any] = [*optree.tree_leaves(arguments), *code.values]
    names = names_in(function, calls, code)
    modules = _modules(values, names)
    loose = [value for value in values if isinstance(value, torch.Tensor) and value.requires_grad and value.is_leaf]
    loose += [piece.of for piece in changed if not piece.is_argument and isinstance(piece.of, torch.Tensor)]
    alone = [_Place({"": value}, "", f"the tensor `{names.get(id(value), k)}`") for k, value in enumerate(loose)]
    places = list(_once([*_places(modules, trains=trains), *(alone if trains else _plain(alone))]))
    optimizers = [value for value in values if trains and isinstance(value, torch.optim.Optimizer)]

    def read() -> dict[str, Any]:
        now = {place.label: place.space.get(place.name) for place in places}
        kept = _optimizer_state({id(value): label for label, value in now.items()}, optimizers)
        return {**now, **(_gradients_left(now) if trains else {}), **kept}

    return StateReader({place.label: place.space[place.name] for place in places}, read)


def _modules(values: Sequence[Any], names: Mapping[int, str]) -> list[tuple[str, Any]]:
    """Return each module with its path, and modules inside others as well."""
    import torch

    outer = [value for value in values if isinstance(value, torch.nn.Module)]
    paths: dict[int, tuple[str, Any]] = {}
    for module in sorted(outer, key=lambda module: -len(list(module.modules()))):
        for path, inner in module.named_modules():
            paths.setdefault(id(inner), (".".join(filter(None, (names.get(id(module)), path))), inner))
    return list(paths.values())


def _places(modules: Sequence[tuple[str, Any]], *, trains: bool) -> Iterator[_Place]:
    import torch

    for path, module in modules:
        spaces = {"the buffer": vars(module)["_buffers"]}
        if trains:
            spaces["the parameter"] = vars(module)["_parameters"]
        for what, space in spaces.items():
            yield from (_Place(space, name, _label(what, path, name)) for name in space if space[name] is not None)
        for name, value in vars(module).items():
            number = isinstance(value, (int, float)) and is_users_class(type(module)) and name != "training"
            if isinstance(value, torch.Tensor) or (number and not name.startswith("_")):
                yield _Place(vars(module), name, _label("the attribute", path, name))


def _label(what: str, path: str, name: str) -> str:
    return f"{what} `{'.'.join(filter(None, (path, name)))}`"


def _once(places: Sequence[_Place]) -> Iterator[_Place]:
    """Yield the first place of each tensor, and the places of all other values."""
    import torch

    seen: set[int] = set()
    for place in places:
        value = place.space[place.name]
        if id(value) not in seen or not isinstance(value, torch.Tensor):
            seen.add(id(value))
            yield place


def _plain(places: Sequence[_Place]) -> list[_Place]:
    """Return the places whose tensor does not require gradients: a loss changes no other."""
    return [place for place in places if not place.space[place.name].requires_grad]


def _gradients_left(now: Mapping[str, Any]) -> dict[str, Any]:
    """Return the gradients that a step has left; an empty container where there is none."""
    return {f"the gradient of {label}": _gradient(value) for label, value in now.items() if _is_leaf(value)}


def _is_leaf(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor) and value.is_leaf and value.requires_grad


def _gradient(tensor: Any) -> Any:
    return () if tensor.grad is None else tensor.grad


def _optimizer_state(labels: Mapping[int, str], optimizers: Sequence[Any]) -> dict[str, Any]:
    """Return the tensors that optimizers keep for parameters."""
    import torch

    return {
        f"`{name}` of {labels[id(tensor)]}": value
        for optimizer in optimizers
        for tensor, state in optimizer.state.items()
        for name, value in state.items()
        if id(tensor) in labels and isinstance(value, torch.Tensor)
    }

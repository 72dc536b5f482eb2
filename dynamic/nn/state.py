"""State dicts: the values of a module by name, and how they come back into one."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dynamic.grad_mode import no_grad
from dynamic.nn.parameter import Parameter
from dynamic.tensor import Tensor, as_array

SAVED = ("parameter", "buffer")


class Loaded(NamedTuple):
    """The names that a state dict lacked, and those that the module lacks."""

    missing_keys: list[str]
    unexpected_keys: list[str]


EXTRA = "_extra_state"


def state_dict(module: Any, prefix: str, keep_vars: bool, destination: Any) -> dict[str, Any]:
    """Parameters and persistent buffers by name, detached unless `keep_vars`, and what modules save themselves."""
    saved: dict[str, Any] = OrderedDict() if destination is None else destination
    module._save_to_state_dict(saved, prefix, keep_vars)
    for name, child in module._of("module"):
        if child is not None:
            child.state_dict(destination=saved, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
    return saved


def save_own(module: Any, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
    """What one module saves, without those in it."""
    for name, value in module._of(*SAVED):
        if value is not None:
            destination[prefix + name] = value if keep_vars else value.detach()
    if _overrides(module, "get_extra_state"):
        destination[prefix + EXTRA] = module.get_extra_state()


def load_state_dict(module: Any, values: Mapping[str, Any], strict: bool, assign: bool) -> Loaded:
    """Copy values into the tensors of the same names, or with `assign` put them in their places; all or nothing."""
    loaded = Loaded([], [])
    wrong: list[str] = []
    copies: list[Callable[[], Any]] = []
    options = {"assign_to_params_buffers": assign, "copies": copies}
    for prefix, part in _parts(module, ""):
        part._load_from_state_dict(values, prefix, options, True, loaded.missing_keys, loaded.unexpected_keys, wrong)
    if strict:
        wrong += [f"{what}: {', '.join(keys)}" for what, keys in loaded._asdict().items() if keys]
    if wrong:
        raise RuntimeError(f"load_state_dict for {type(module).__name__}: " + "; ".join(wrong))
    with no_grad():
        for load in copies:
            load()
    return loaded


def load_own(
    module: Any, values: Mapping[str, Any], prefix: str, options: dict[str, Any], missing: list[str],
    unexpected: list[str], wrong: list[str],
) -> None:  # fmt: skip
    """Note what one module takes of a state dict, which is copied once nothing is `wrong` in any."""
    own = {prefix + name: (name, value) for name, value in module._of(*SAVED) if value is not None}
    if _overrides(module, "set_extra_state"):
        own[prefix + EXTRA] = EXTRA, None
    children = {name for name, _ in module._of("module")}
    missing += [key for key in own if key not in values]
    unexpected += [
        key for key in values if key.startswith(prefix) and key not in own and _first(key, prefix) not in children
    ]
    for key, (name, value) in own.items():
        if key not in values:
            continue
        if name == EXTRA:
            options["copies"].append(partial(module.set_extra_state, values[key]))
        elif (shape := tuple(np.shape(values[key]))) != value.shape:
            wrong.append(f"size mismatch for {key}: {shape} in the state dict, {value.shape} in the module")
        else:
            assign = options.get("assign_to_params_buffers", False)
            options["copies"].append(partial(_load, module, name, value, values[key], assign))


def _first(key: str, prefix: str) -> str:
    """The name of the module that a key leads into; the empty one of none."""
    name, dot, _ = key.removeprefix(prefix).partition(".")
    return name if dot else ""


def _overrides(module: Any, name: str) -> bool:
    return any(name in vars(kind) for kind in type(module).__mro__ if kind.__module__ != "dynamic.nn.module")


def _parts(module: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """A module and those in it, each with what its names begin with; one that is held twice comes twice."""
    yield prefix, module
    for name, child in module._of("module"):
        if child is not None:
            yield from _parts(child, f"{prefix}{name}.")


def _load(owner: Any, attribute: str, value: Tensor, data: Any, assign: bool) -> None:
    if not assign:
        value.copy_(as_array(data, None).astype(value.dtype, copy=False))
    elif owner._kinds[attribute] == "parameter":
        setattr(owner, attribute, Parameter(as_array(data, None), value.requires_grad))
    else:
        setattr(owner, attribute, Tensor(data))

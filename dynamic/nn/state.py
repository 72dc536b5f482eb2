"""State dicts: the values of a module by name, and how they come back into one."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
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


def state_dict(module: Any, prefix: str, keep_vars: bool) -> dict[str, Any]:
    """Parameters and persistent buffers by name, detached unless `keep_vars`."""
    places = _places(module, prefix)
    return OrderedDict((name, value if keep_vars else value.detach()) for name, _, _, value in places)


def load_state_dict(module: Any, values: Mapping[str, Any], strict: bool, assign: bool) -> Loaded:
    """Copy values into the tensors of the same names, or with `assign` put them in their places."""
    places = list(_places(module, ""))
    names = {name for name, *_ in places}
    loaded = Loaded([name for name, *_ in places if name not in values], [name for name in values if name not in names])
    wrong = [
        f"size mismatch for {name}: {tuple(np.shape(values[name]))} in the state dict, {value.shape} in the module"
        for name, _, _, value in places
        if name in values and tuple(np.shape(values[name])) != value.shape
    ]
    if strict:
        wrong += [f"{what}: {', '.join(keys)}" for what, keys in loaded._asdict().items() if keys]
    if wrong:
        raise RuntimeError(f"load_state_dict for {type(module).__name__}: " + "; ".join(wrong))
    with no_grad():
        for name, owner, attribute, value in places:
            if name in values:
                _load(owner, attribute, value, values[name], assign)
    return loaded


def _load(owner: Any, attribute: str, value: Tensor, data: Any, assign: bool) -> None:
    if not assign:
        value.copy_(as_array(data, None).astype(value.dtype, copy=False))
    elif owner._kinds[attribute] == "parameter":
        setattr(owner, attribute, Parameter(as_array(data, None), value.requires_grad))
    else:
        setattr(owner, attribute, Tensor(data))


def _places(module: Any, prefix: str) -> Iterator[tuple[str, Any, str, Any]]:
    """The name of each saved value, its module, its attribute there, and the value; tied ones under every name."""
    for name, value in module._of(*SAVED):
        if value is not None:
            yield prefix + name, module, name, value
    for name, child in module._of("module"):
        if child is not None:
            yield from _places(child, f"{prefix}{name}.")

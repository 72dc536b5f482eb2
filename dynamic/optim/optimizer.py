"""Optimizer: groups of parameters with their options, and a state that is kept between steps.

Then checks of the option values that PyTorch's optimizers accept.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from dynamic.tensor import Tensor, wrap
from graphs import capture
from graphs.errors import ArgumentError, MissingKeyError, OptionError, OutOfRangeError, locate
from graphs.frontends.torch.names import guard_construction
from graphs.op import is_ours

Group = dict[str, Any]
ParamsT = Any  # PyTorch's name, for annotations


class _RequiredOption:
    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredOption()
"""The default of an option that every group must have."""


class Optimizer:
    """Changes parameters in place by their gradients. Optimizers, also of users, derive from it and define `step`."""

    def __init__(self, params: Any, defaults: Group) -> None:
        """Make the groups. Raises OptionError for no parameters, ArgumentError for a parameter that is no tensor."""
        # A user's own may give an option of the same name another meaning.
        self.defaults = plain_options(type(self).__name__, defaults) if is_ours(type(self)) else defaults
        self.param_groups: list[Group] = []
        self.state: dict[Any, dict[str, Any]] = defaultdict(dict)
        if issubclass(type(params), Tensor) or not isinstance(params, Iterable):
            kind = type(params).__name__
            raise ArgumentError(
                locate(f"parameters are an iterable of tensors or of dicts, not one {kind}; write [param]")
            )
        groups = list(params)
        if not groups:
            raise OptionError(locate("an optimizer takes one parameter or more; has the module any?"))
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Take over all attributes, as unpickling does; users extend it with options that older states lack."""
        vars(self).update(state)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        guard_construction(cls)

    def add_param_group(self, param_group: Any) -> None:
        """Add parameters with options of their own, and with whatever else a program notes beside them.

        Raises OptionError for a parameter that is there already, and for an option that has no default.
        """
        if not isinstance(param_group, dict) or "params" not in param_group:
            raise ArgumentError(locate("a group of parameters is a dict with 'params'; write {'params': [param]}"))
        group = {**self.defaults, **param_group, **self._make_group(param_group["params"])}
        lacking = [name for name, value in group.items() if value is required]
        if lacking:
            raise OptionError(locate(f"a group of parameters lacks {', '.join(lacking)}, without a default; add it"))
        self.check(group)
        self.param_groups.append(group)

    def _make_group(self, params: Any) -> Group:
        """The tensors of a new group, and their names where they come with names."""
        members = [params] if issubclass(type(params), Tensor) else list(params)
        named = {isinstance(param, tuple) for param in members} | {
            "param_names" in group for group in self.param_groups
        }
        if len(named) > 1:
            raise OptionError(locate("either all parameters have names or none has; give named_parameters() alone"))
        listed = [param[1] if isinstance(param, tuple) else param for param in members]
        elsewhere = {id(p) for group in self.param_groups for p in group["params"]}
        for param in listed:
            if not issubclass(type(param), Tensor):
                raise ArgumentError(locate(f"an optimizer changes tensors, no {type(param).__name__}; give tensors"))
            if not param.is_leaf:
                raise OptionError(locate("an optimizer changes leaves, and an op has made this tensor; detach() it"))
            if id(param) in elsewhere:
                raise OptionError(locate("some parameters appear in more than one parameter group; give each once"))
        if len({*map(id, listed)}) < len(listed):
            warnings.warn(locate("a parameter is twice in a group, and changes twice in a step"), stacklevel=4)
        names = {"param_names": [param[0] for param in members]} if True in named else {}
        return {"params": listed, **names}

    def check(self, group: Group) -> None:
        """Check the options of a group; a subclass raises for invalid ones."""

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change every parameter that has a gradient; returns the result of the closure, which is called first."""
        raise NotImplementedError(locate(f"{type(self).__name__} defines no step; write step(self, closure=None)"))

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set all gradients to None, or with `set_to_none=False` to 0."""
        if (trace := capture.step_trace()) is not None:
            trace.zero_grad(self)
            return
        for group in self.param_groups:
            for param in group["params"]:
                param.grad = None if set_to_none or param.grad is None else wrap(np.zeros_like(param.grad._data))

    def state_dict(self) -> dict[str, Any]:
        """The state by the number of the parameter, and the options of the groups."""
        numbers = {id(p): i for i, p in enumerate(p for group in self.param_groups for p in group["params"])}
        groups = [{**group, "params": [numbers[id(p)] for p in group["params"]]} for group in self.param_groups]
        state = {numbers[id(param)]: dict(values) for param, values in self.state.items() if values}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore state and options. Raises ValueError for groups of other sizes."""
        if "param_groups" not in state_dict:
            raise MissingKeyError(locate("a state dict has 'state' and 'param_groups'; take that of state_dict()"))
        groups = state_dict["param_groups"]
        sizes = [[len(group["params"]) for group in some] for some in (groups, self.param_groups)]
        if sizes[0] != sizes[1]:
            raise OptionError(
                locate(f"groups of {sizes[0]} parameters for an optimizer of {sizes[1]}; make it of the same groups")
            )
        params: dict[int, Any] = {}
        for mine, theirs in zip(self.param_groups, groups, strict=True):
            params.update(zip(theirs["params"], mine["params"], strict=True))
            mine.update({name: value for name, value in theirs.items() if name != "params"})
        self.state = defaultdict(dict)
        for number, values in state_dict["state"].items():
            self.state[params[number]] = {k: _copy_state(v, params[number]) for k, v in values.items() if v is not None}

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines += [f"Parameter Group {i}", *(f"    {k}: {group[k]}" for k in sorted(group) if k != "params")]
        return "\n".join([*lines, ")"])


def _copy_state(value: Any, param: Tensor) -> Any:
    """Copy a value of the state; tensors of the parameter's shape are cast to its dtype."""
    if isinstance(value, list):
        return [_copy_state(part, param) for part in value]
    if not hasattr(value, "shape"):
        return value
    array = np.array(value)
    return wrap(array.astype(param.dtype) if array.shape == param.shape and array.ndim else array)


class _Limit(NamedTuple):
    """A condition on a number, in words and as a function."""

    words: str
    holds: Callable[[float], bool]


_POSITIVE = _Limit("0 or more", lambda value: value >= 0)
_SHARE = _Limit("from 0 to 1", lambda value: 0 <= value <= 1)
_DECAY = _Limit("from 0 up to but without 1", lambda value: 0 <= value < 1)

_LIMITS = {
    "lr": _POSITIVE, "eps": _POSITIVE, "weight_decay": _POSITIVE, "momentum": _POSITIVE, "alpha": _POSITIVE,
    "lr_decay": _POSITIVE, "initial_accumulator_value": _POSITIVE, "momentum_decay": _POSITIVE, "rho": _SHARE,
    "betas": _DECAY,
}  # fmt: skip


def plain_options(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of an optimizer, tensors as numbers. Raises OptionError for a value that it does not take."""
    if "betas" in options:
        _check_pair(f"{name}: betas", options["betas"])
    return {option: _plain(f"{name}: {option}", value, _LIMITS.get(option)) for option, value in options.items()}


def _check_pair(what: str, value: Any) -> None:
    if not isinstance(value, (tuple, list)):
        raise ArgumentError(locate(f"{what} are two numbers, not {value}; give both"))
    if len(value) != 2:
        raise OutOfRangeError(locate(f"{what} are two numbers, not {value}; give both"))


def _plain(what: str, value: Any, limit: _Limit | None) -> Any:
    if isinstance(value, (tuple, list)):
        if len({issubclass(type(part), Tensor) for part in value}) > 1:
            raise OptionError(locate(f"{what} are all numbers or all tensors; use .item()"))
        return tuple([_plain(what, part, limit) for part in value])
    if issubclass(type(value), Tensor):
        if value.numel() != 1:
            raise OptionError(locate(f"{what} is one number, not a tensor of shape {value.shape}; use .item()"))
        value = value.item()
    if limit is not None and value is not None and not limit.holds(value):
        raise OptionError(locate(f"{what} is {limit.words}, not {value}; choose another"))
    return value

"""Optimizer: what PyTorch's classes keep between steps, over the pure functions of `graphs.optim`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from dynamic.grad_mode import enable_grad, no_grad
from dynamic.guarding import guard_construction
from dynamic.inplace import assign
from dynamic.optim.limits import plain_options
from dynamic.tensor import Tensor
from graphs import optim
from graphs.errors import ArgumentError, GraphError, MissingKeyError, OptionError, located
from graphs.op import is_ours

Group = dict[str, Any]
Unused = Any  # how PyTorch runs it: `foreach`, `fused`, `capturable` change no number here


class Optimizer:
    """Changes parameters in place by their gradients.

    `rule` is the update of a group, and `slots` says what PyTorch calls each part of its state.
    """

    slots: Mapping[str, str] = {}
    counts = True  # whether the state of a parameter knows how many steps it has seen

    def __init__(self, params: Any, defaults: Group) -> None:
        """Raises OptionError for no parameters, ArgumentError for what is no tensor."""
        # A user's own may give an option of the same name another meaning.
        self.defaults = plain_options(type(self).__name__, defaults) if is_ours(type(self)) else defaults
        self.param_groups: list[Group] = []
        self.state: dict[Any, dict[str, Any]] = defaultdict(dict)
        if isinstance(params, Tensor) or not isinstance(params, Iterable):
            kind = type(params).__name__
            raise ArgumentError(
                located(f"parameters are an iterable of tensors or of dicts, not one {kind}; write [param]")
            )
        groups = list(params)
        if not groups:
            raise OptionError(located("an optimizer takes one parameter or more; has the module any?"))
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        guard_construction(cls)

    @staticmethod
    def rule(group: Group) -> optim.Optimizer:
        """The update of a group by its options."""
        raise NotImplementedError

    def add_param_group(self, param_group: Any) -> None:
        """Add parameters with options of their own. Raises OptionError for one that is there already."""
        if not isinstance(param_group, dict) or "params" not in param_group:
            raise ArgumentError(located("a group of parameters is a dict with 'params'; write {'params': [param]}"))
        unknown = param_group.keys() - self.defaults.keys() - {"params", "param_names", "initial_lr"}
        if unknown:
            raise OptionError(located(f"there is no option {', '.join(unknown)}; leave it out"))
        group = {**self.defaults, **param_group, **self._listed(param_group["params"])}
        self.check(group)
        self.param_groups.append(group)

    def _listed(self, params: Any) -> Group:
        """The tensors of a new group, and their names where they come with names."""
        given = [params] if isinstance(params, Tensor) else list(params)
        named = {isinstance(param, tuple) for param in given} | {"param_names" in group for group in self.param_groups}
        if len(named) > 1:
            raise OptionError(located("either all parameters have names or none has; give named_parameters() alone"))
        listed = [param[1] if isinstance(param, tuple) else param for param in given]
        known = {id(p) for group in self.param_groups for p in group["params"]}
        for param in listed:
            if not isinstance(param, Tensor):
                raise ArgumentError(located(f"an optimizer changes tensors, no {type(param).__name__}; give tensors"))
            if not param.is_leaf:
                raise OptionError(located("an optimizer changes leaves, and an op has made this tensor; detach() it"))
            if id(param) in known:
                raise OptionError(located("some parameters appear in more than one parameter group; give each once"))
            known.add(id(param))
        names = {"param_names": [param[0] for param in given]} if True in named else {}
        return {"params": listed, **names}

    def check(self, group: Group) -> None:
        """Raise for options that do not fit."""
        self.rule(group)

    def slots_of(self, param: Any) -> Mapping[str, str]:
        """What PyTorch calls each part of the state of a parameter."""
        return self.slots

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Take all gradients away, or with `set_to_none=False` make them 0."""
        for group in self.param_groups:
            for param in group["params"]:
                param.grad = None if set_to_none or param.grad is None else Tensor(np.zeros_like(param.grad._data))

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change every parameter that has a gradient; what the closure, called first, returns."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with no_grad():
            for group in self.param_groups:
                rule = self.rule(group)
                for (count, _), params in self._together(group).items():
                    self._update(rule, group, count, params)
        return loss

    def _together(self, group: Group) -> Mapping[tuple[int, tuple[str, ...]], list[Any]]:
        """The parameters that have gradients; those with the same number of steps and the same slots together."""
        found: dict[tuple[int, tuple[str, ...]], list[Any]] = defaultdict(list)
        for param in group["params"]:
            if param.grad is not None:
                state = self.state[param]
                count = int(state.get("step", 1 if state else 0))
                found[count, tuple(self.slots_of(param).values())].append(param)
        return found

    def _update(self, rule: optim.Optimizer, group: Group, count: int, params: list[Any]) -> None:
        arrays = [param._data for param in params]
        sign = -1 if group.get("maximize") else 1
        grads = [param.grad._data if sign == 1 else -param.grad._data for param in params]
        states = [self.state[param] for param in params]
        slots = self.slots_of(params[0])
        if count == 0:
            state = rule.init(arrays)
        else:
            names = [slot for slot, name in slots.items() if name in states[0]]
            state = {slot: [one[slots[slot]]._data for one in states] for slot in names}
            state["count"] = np.asarray(count)
        new, state = rule.update(grads, state, arrays)
        for i, (param, one) in enumerate(zip(params, states, strict=True)):
            assign(param, Tensor(new[i]))
            if self.counts:
                one["step"] = Tensor(np.asarray(count + 1, np.float32))
            one.update({name: Tensor(state[slot][i]) for slot, name in slots.items() if slot in state})

    def state_dict(self) -> dict[str, Any]:
        """The state by the number of the parameter, and the options of the groups."""
        numbers = {id(p): i for i, p in enumerate(p for group in self.param_groups for p in group["params"])}
        groups = [{**group, "params": [numbers[id(p)] for p in group["params"]]} for group in self.param_groups]
        state = {numbers[id(param)]: dict(values) for param, values in self.state.items() if values}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over state and options. Raises ValueError for groups of other sizes."""
        if "param_groups" not in state_dict:
            raise MissingKeyError(located("a state dict has 'state' and 'param_groups'; take that of state_dict()"))
        groups = state_dict["param_groups"]
        sizes = [[len(group["params"]) for group in some] for some in (groups, self.param_groups)]
        if sizes[0] != sizes[1]:
            raise OptionError(
                located(f"groups of {sizes[0]} parameters for an optimizer of {sizes[1]}; make it of the same groups")
            )
        params: dict[int, Any] = {}
        for mine, theirs in zip(self.param_groups, groups, strict=True):
            params.update(zip(theirs["params"], mine["params"], strict=True))
            mine.update({name: value for name, value in theirs.items() if name != "params"})
        self.state = defaultdict(dict)
        for number, values in state_dict["state"].items():
            self.state[params[number]] = {k: _copied(v, params[number]) for k, v in values.items() if v is not None}

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines += [f"Parameter Group {i}", *(f"    {k}: {group[k]}" for k in sorted(group) if k != "params")]
        return "\n".join([*lines, ")"])


def _copied(value: Any, param: Tensor) -> Any:
    """A copy of what a state holds; tensors of the parameter's shape take its dtype."""
    if isinstance(value, list):
        return [_copied(part, param) for part in value]
    if not hasattr(value, "shape"):
        return value
    array = np.array(value)
    return Tensor(array.astype(param.dtype) if array.shape == param.shape and array.ndim else array)


def options(name: str, given: Mapping[str, Any], supported: Iterable[str] = ()) -> None:
    """Raise GraphError for an option about how PyTorch runs that would change the numbers or the gradient."""
    for option, value in given.items():
        if value and option not in supported:
            raise GraphError(located(f"{name}: {option}={value!r} is not supported; leave it out"))

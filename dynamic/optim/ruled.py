"""Optimizers whose steps are the pure functions of `graphs.optim`, with the state that PyTorch's classes keep."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from dynamic.grad_mode import enable_grad, no_grad
from dynamic.inplace import assign
from dynamic.optim.optimizer import Group, Optimizer
from dynamic.tensor import Tensor
from graphs import optim
from graphs.errors import GraphError, located

Unused = Any  # how PyTorch runs it: `foreach`, `fused`, `capturable` change no number here


class RuledOptimizer(Optimizer):
    """`rule` is the update of a group, and `slots` says what PyTorch calls each part of its state."""

    slots: Mapping[str, str] = {}
    counts = True  # whether the state of a parameter knows how many steps it has seen

    @staticmethod
    def rule(group: Group) -> optim.Optimizer:
        """The update of a group by its options."""
        raise NotImplementedError

    def check(self, group: Group) -> None:
        """Raise for options that do not fit."""
        self.rule(group)

    def slots_of(self, param: Any) -> Mapping[str, str]:
        """What PyTorch calls each part of the state of a parameter."""
        return self.slots

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
        groups: dict[tuple[int, tuple[str, ...]], list[Any]] = defaultdict(list)
        for param in group["params"]:
            if param.grad is not None:
                state = self.state[param]
                count = int(state.get("step", 1 if state else 0))
                groups[count, tuple(self.slots_of(param).values())].append(param)
        return groups

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
            state = {slot: [param_state[slots[slot]]._data for param_state in states] for slot in names}
            state["count"] = np.asarray(count)
        new, state = rule.update(grads, state, arrays)
        for i, (param, param_state) in enumerate(zip(params, states, strict=True)):
            assign(param, Tensor(new[i]))
            if self.counts:
                param_state["step"] = Tensor(np.asarray(count + 1, np.float32))
            param_state.update({name: Tensor(state[slot][i]) for slot, name in slots.items() if slot in state})


def options(name: str, chosen: Mapping[str, Any], supported: Iterable[str] = ()) -> None:
    """Raise GraphError for an option about how PyTorch runs that would change the numbers or the gradient."""
    for option, value in chosen.items():
        if value and option not in supported:
            raise GraphError(located(f"{name}: {option}={value!r} is not supported; leave it out"))

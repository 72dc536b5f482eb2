"""Optimizers whose steps are the pure functions of `graphs.optim`, with the state that PyTorch's classes keep.

Adam, and what was made of it: AdamW, Adamax, NAdam and RAdam.

Steps along the gradient, its average or its sign: SGD, ASGD and Rprop.

Steps over the sizes of earlier gradients: Adadelta, RMSprop, Adagrad and Adafactor. Steps of matrices: Muon.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from dynamic.grad_mode import enable_grad, no_grad
from dynamic.inplace import assign, note_change
from dynamic.optim.optimizer import Group, Optimizer
from dynamic.tensor import wrap
from graphs import capture, optim
from graphs.errors import GraphError, ShapeError, locate
from graphs.frontends.torch.words import as_dtype

Unused = Any  # how PyTorch runs it: `foreach`, `fused`, `capturable` change no number here


class RuledOptimizer(Optimizer):
    """Base of optimizers with a pure update: `rule` makes it for a group, `slots` maps its state to PyTorch's names."""

    slots: Mapping[str, str] = {}
    counts = True  # whether the state of a parameter knows how many steps it has seen

    @staticmethod
    def rule(group: Group) -> optim.Optimizer:
        """The update for a group with these options."""
        raise NotImplementedError

    def check(self, group: Group) -> None:
        """Raise for options that the rule does not accept."""
        self.rule(group)

    def slots_of(self, param: Any) -> Mapping[str, str]:
        """PyTorch's names for the parts of a parameter's state."""
        return self.slots

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change every parameter that has a gradient; returns the result of the closure, which is called first."""
        if (trace := capture.step_trace()) is not None:
            return trace.step(self, closure)
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with no_grad():
            for group in self.param_groups:
                rule = self.rule(group)
                rounds = map(self._together, _rounds(group["params"]))
                for together in rounds if self.counts else [*rounds]:  # SGD reads all averages before it changes one
                    for (count, _), params in together.items():
                        self._update(rule, group, count, params)
        return loss

    def _together(self, members: list[Any]) -> Mapping[tuple[int, tuple[str, ...]], list[Any]]:
        """Group the parameters that have gradients by their number of steps and their slots."""
        groups: dict[tuple[int, tuple[str, ...]], list[Any]] = defaultdict(list)
        for param in members:
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
        new, state = (rule.change or rule.update)(grads, state, arrays)
        for i, (param, param_state) in enumerate(zip(params, states, strict=True)):
            if new[i] is arrays[i]:
                note_change(param)
            else:
                assign(param, wrap(np.asarray(new[i])))
            if self.counts:
                param_state["step"] = wrap(np.asarray(count + 1, np.promote_types(as_dtype(None), np.float32)))
            for slot, name in slots.items():
                if slot in state and state[slot][i] is not getattr(param_state.get(name), "_data", None):
                    param_state[name] = wrap(np.asarray(state[slot][i]))


def _rounds(params: list[Any]) -> Iterator[list[Any]]:
    """The parameters in lists in which each is once: one that is there twice changes twice, as in PyTorch."""
    if len({*map(id, params)}) == len(params):
        yield params
        return
    left = list(params)
    while left:
        first = {id(param): i for i, param in reversed([*enumerate(left)])}
        yield [left[i] for i in sorted(first.values())]
        left = [param for i, param in enumerate(left) if first[id(param)] != i]


def group_options(name: str, arguments: dict[str, Any]) -> Group:
    """The options of a group: all that a constructor is given but what says how PyTorch runs.

    Raises GraphError for `differentiable`, which would change the gradient.
    """
    if arguments.pop("differentiable", False):
        raise GraphError(locate(f"{name}: differentiable=True is not supported; leave it out"))
    return {option: value for option, value in arguments.items() if option not in _NO_OPTIONS}


_NO_OPTIONS = {"self", "params", "foreach", "fused", "capturable", "__class__"}


class Adam(RuledOptimizer):
    """Adam; the weight decay is part of the gradient."""

    slots = {"mean": "exp_avg", "variance": "exp_avg_sq", "largest": "max_exp_avg_sq"}  # noqa: RUF012
    decoupled = False

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: Unused = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: Unused = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        decoupled_weight_decay = self.decoupled or decoupled_weight_decay
        super().__init__(params, group_options(type(self).__name__, locals()))

    @staticmethod
    def rule(group: Group) -> optim.Optimizer:
        """The update for a group with these options."""
        numbers = (group["lr"], *group["betas"], group["eps"], group["weight_decay"])
        return optim.adam(*numbers, decoupled=group["decoupled_weight_decay"], amsgrad=group["amsgrad"])


class AdamW(Adam):
    """Adam with decoupled weight decay."""

    decoupled = True

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        **more: Any,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, **more)


class Adamax(RuledOptimizer):
    """Adam with the decaying maximum of the gradient in place of the root of its squares."""

    slots = {"mean": "exp_avg", "largest": "exp_inf"}  # noqa: RUF012

    def __init__(
        self,
        params: Any,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: Unused = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(params, group_options("Adamax", locals()))

    @staticmethod
    def rule(group: Group) -> optim.Optimizer:
        """The update for a group with these options."""
        numbers = (group["lr"], *group["betas"], group["eps"], group["weight_decay"])
        return optim.adamax(*numbers)


class RAdam(RuledOptimizer):
    """Adam that uses the mean alone while the variance rests on few steps."""

    slots = {"mean": "exp_avg", "variance": "exp_avg_sq"}  # noqa: RUF012

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: Unused = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, group_options("RAdam", locals()))

    @staticmethod
    def rule(group: Group) -> optim.Optimizer:
        """The update for a group with these options."""
        numbers = (group["lr"], *group["betas"], group["eps"], group["weight_decay"])
        return optim.radam(*numbers, decoupled=group["decoupled_weight_decay"])


class NAdam(RuledOptimizer):
    """Adam whose step looks ahead."""

    slots = {"mean": "exp_avg", "variance": "exp_avg_sq", "product": "mu_product"}  # noqa: RUF012

    def __init__(
        self,
        params: Any,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: Unused = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, group_options("NAdam", locals()))

    @staticmethod
    def rule(group: Group) -> optim.Optimizer:
        """The update for a group with these options."""
        numbers = (group["lr"], *group["betas"], group["eps"], group["weight_decay"], group["momentum_decay"])
        return optim.nadam(*numbers, decoupled=group["decoupled_weight_decay"])


class SGD(RuledOptimizer):
    """Stochastic gradient descent, with momentum and Nesterov's step."""

    slots = {"velocity": "momentum_buffer"}  # noqa: RUF012  (read alone)
    counts = False

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: Unused = None,
        differentiable: bool = False,
        fused: Unused = None,
    ) -> None:
        super().__init__(params, group_options("SGD", locals()))

    rule = staticmethod(
        lambda group: optim.sgd(
            group["lr"], group["momentum"], group["nesterov"], group["weight_decay"], group["dampening"]
        )
    )


class ASGD(RuledOptimizer):
    """Averaged stochastic gradient descent; the state holds the average as "ax"."""

    slots = {"average": "ax", "rate": "eta", "share": "mu"}  # noqa: RUF012

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: Unused = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(params, group_options("ASGD", locals()))

    rule = staticmethod(
        lambda group: optim.asgd(group["lr"], group["lambd"], group["alpha"], group["t0"], group["weight_decay"])
    )


class Rprop(RuledOptimizer):
    """Steps by the sign of the gradient, of a length for each element."""

    slots = {"before": "prev", "step": "step_size"}  # noqa: RUF012

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: Unused = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, group_options("Rprop", locals()))

    rule = staticmethod(lambda group: optim.rprop(group["lr"], group["etas"], group["step_sizes"]))


class Adadelta(RuledOptimizer):
    """The gradient scaled by the sizes of earlier steps and gradients."""

    slots = {"square": "square_avg", "steps": "acc_delta"}  # noqa: RUF012

    def __init__(
        self,
        params: Any,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: Unused = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, group_options("Adadelta", locals()))

    rule = staticmethod(lambda group: optim.adadelta(group["lr"], group["rho"], group["eps"], group["weight_decay"]))


class RMSprop(RuledOptimizer):
    """The gradient over the root of the average of its squares."""

    slots = {"square": "square_avg", "velocity": "momentum_buffer", "average": "grad_avg"}  # noqa: RUF012

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: Unused = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, group_options("RMSprop", locals()))

    @staticmethod
    def rule(group: Group) -> optim.Optimizer:
        """The update for a group with these options."""
        numbers = (group["lr"], group["alpha"], group["eps"], group["weight_decay"], group["momentum"])
        return optim.rmsprop(*numbers, group["centered"])


class Adagrad(RuledOptimizer):
    """The gradient over the root of the sum of its squares."""

    slots = {"sum": "sum"}  # noqa: RUF012

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: Unused = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: Unused = None,
    ) -> None:
        super().__init__(params, group_options("Adagrad", locals()))

    @staticmethod
    def rule(group: Group) -> optim.Optimizer:
        """The update for a group with these options."""
        start = group["initial_accumulator_value"]
        return optim.adagrad(group["lr"], group["lr_decay"], group["weight_decay"], start, group["eps"])


class Adafactor(RuledOptimizer):
    """Steps relative to the parameter's size; for a matrix it keeps row and column means of the squares alone."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: Unused = None,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, group_options("Adafactor", locals()))

    rule = staticmethod(
        lambda group: optim.adafactor(
            group["lr"], group["beta2_decay"], group["eps"], group["d"], group["weight_decay"]
        )
    )

    def slots_of(self, param: Any) -> Mapping[str, str]:
        """The slots of a parameter: one variance for fewer than two axes, else rows and columns."""
        return {"rows": "row_var", "columns": "col_var"} if param.ndim > 1 else {"rows": "variance"}


class Muon(RuledOptimizer):
    """Steps along the momentum made orthogonal, for matrices; other parameters take another optimizer."""

    slots = {"velocity": "momentum_buffer"}  # noqa: RUF012
    counts = False

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = optim.NEWTON_SCHULZ,
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        super().__init__(params, group_options("Muon", locals()))

    rule = staticmethod(
        lambda group: optim.muon(
            group["lr"], group["momentum"], group["nesterov"], group["weight_decay"], group["ns_coefficients"],
            group["ns_steps"], group["eps"], group["adjust_lr_fn"] or "original",
        )
    )  # fmt: skip

    def add_param_group(self, param_group: Group) -> None:
        """Add a group. Raises ShapeError for a parameter that is no matrix."""
        super().add_param_group(param_group)
        for param in self.param_groups[-1]["params"]:
            if param.ndim != 2:
                raise ShapeError(locate(f"takes matrices, no {list(param.shape)}; give that one to AdamW"))

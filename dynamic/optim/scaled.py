"""Steps over the sizes of earlier gradients: Adadelta, RMSprop, Adagrad and Adafactor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynamic.optim.optimizer import Group
from dynamic.optim.ruled import RuledOptimizer, Unused, options
from graphs import optim

__all__ = ["Adadelta", "Adafactor", "Adagrad", "RMSprop"]


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
        options("Adadelta", {"differentiable": differentiable})
        defaults = {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, {**defaults, "maximize": maximize})

    @staticmethod
    def rule(group: Group) -> optim.Optimizer:
        """The update of a group by its options."""
        return optim.adadelta(group["lr"], group["rho"], group["eps"], group["weight_decay"])


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
        options("RMSprop", {"differentiable": differentiable})
        defaults = {"lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered}
        super().__init__(params, {**defaults, "weight_decay": weight_decay, "maximize": maximize})

    @staticmethod
    def rule(group: Group) -> optim.Optimizer:
        """The update of a group by its options."""
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
        options("Adagrad", {"differentiable": differentiable})
        defaults = {"lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay}
        defaults["initial_accumulator_value"] = initial_accumulator_value
        super().__init__(params, {**defaults, "maximize": maximize})

    @staticmethod
    def rule(group: Group) -> optim.Optimizer:
        """The update of a group by its options."""
        start = group["initial_accumulator_value"]
        return optim.adagrad(group["lr"], group["lr_decay"], group["weight_decay"], start, group["eps"])


class Adafactor(RuledOptimizer):
    """Steps as long as the parameter is large; of a matrix's variance it keeps the means of rows and columns."""

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
        defaults = {"lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d, "weight_decay": weight_decay}
        super().__init__(params, {**defaults, "maximize": maximize})

    @staticmethod
    def rule(group: Group) -> optim.Optimizer:
        """The update of a group by its options."""
        return optim.adafactor(group["lr"], group["beta2_decay"], group["eps"], group["d"], group["weight_decay"])

    def slots_of(self, param: Any) -> Mapping[str, str]:
        """A variance alone for what has fewer than two axes."""
        return {"rows": "row_var", "columns": "col_var"} if param.ndim > 1 else {"rows": "variance"}

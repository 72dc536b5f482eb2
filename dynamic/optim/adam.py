"""Adam, and what was made of it: AdamW, Adamax, NAdam and RAdam."""

from __future__ import annotations

from typing import Any

from dynamic.optim.optimizer import Group
from dynamic.optim.ruled import RuledOptimizer, Unused, options
from graphs import optim

__all__ = ["Adam", "AdamW", "Adamax", "NAdam", "RAdam"]


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
        options(type(self).__name__, {"differentiable": differentiable})
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad}
        decoupled = self.decoupled or decoupled_weight_decay
        super().__init__(params, {**defaults, "maximize": maximize, "decoupled_weight_decay": decoupled})

    @staticmethod
    def rule(group: Group) -> optim.Optimizer:
        """The update of a group by its options."""
        numbers = (group["lr"], *group["betas"], group["eps"], group["weight_decay"])
        return optim.adam(*numbers, decoupled=group["decoupled_weight_decay"], amsgrad=group["amsgrad"])


class AdamW(Adam):
    """Adam whose weight decay is apart from the gradient."""

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
    """Adam with the largest gradient, which decays, in place of the root of the squares."""

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
        options("Adamax", {"differentiable": differentiable})
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, {**defaults, "maximize": maximize})

    @staticmethod
    def rule(group: Group) -> optim.Optimizer:
        """The update of a group by its options."""
        numbers = (group["lr"], *group["betas"], group["eps"], group["weight_decay"])
        return optim.adamax(*numbers)


class RAdam(RuledOptimizer):
    """Adam that goes along the mean alone while few steps tell of the variance."""

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
        options("RAdam", {"differentiable": differentiable})
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, {**defaults, "decoupled_weight_decay": decoupled_weight_decay})

    @staticmethod
    def rule(group: Group) -> optim.Optimizer:
        """The update of a group by its options."""
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
        options("NAdam", {"differentiable": differentiable})
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        defaults["momentum_decay"] = momentum_decay
        super().__init__(params, {**defaults, "decoupled_weight_decay": decoupled_weight_decay})

    @staticmethod
    def rule(group: Group) -> optim.Optimizer:
        """The update of a group by its options."""
        numbers = (group["lr"], *group["betas"], group["eps"], group["weight_decay"], group["momentum_decay"])
        return optim.nadam(*numbers, decoupled=group["decoupled_weight_decay"])

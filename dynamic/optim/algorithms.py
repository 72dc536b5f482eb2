"""The optimizers: their options, and which function of `graphs.optim` they are."""

from __future__ import annotations

from typing import Any, Never

from dynamic.optim.optimizer import Group, Optimizer, options
from graphs import optim

__all__ = ["SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "RAdam", "RMSprop"]

Unused = Any  # how PyTorch runs it: `foreach`, `fused`, `capturable` change no number here


def _check(lr: Any) -> float:
    if lr < 0:
        raise ValueError(f"Invalid learning rate: {lr}")
    return float(lr)


class SGD(Optimizer):
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
        options("SGD", {"dampening": dampening, "differentiable": differentiable})
        given = {"lr": _check(lr), "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay}
        super().__init__(params, {**given, "nesterov": nesterov, "maximize": maximize})

    @staticmethod
    def rule(group: Group) -> optim.Optimizer:
        """The update of a group by its options."""
        return optim.sgd(group["lr"], group["momentum"], group["nesterov"], group["weight_decay"])


class Adam(Optimizer):
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
        given = {"lr": _check(lr), "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad}
        decoupled = self.decoupled or decoupled_weight_decay
        super().__init__(params, {**given, "maximize": maximize, "decoupled_weight_decay": decoupled})

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


class Adamax(Optimizer):
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
        given = {"lr": _check(lr), "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, {**given, "maximize": maximize})

    @staticmethod
    def rule(group: Group) -> optim.Optimizer:
        """The update of a group by its options."""
        numbers = (group["lr"], *group["betas"], group["eps"], group["weight_decay"])
        return optim.adamax(*numbers)


class RAdam(Optimizer):
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
        given = {"lr": _check(lr), "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, {**given, "decoupled_weight_decay": decoupled_weight_decay})

    @staticmethod
    def rule(group: Group) -> optim.Optimizer:
        """The update of a group by its options."""
        numbers = (group["lr"], *group["betas"], group["eps"], group["weight_decay"])
        return optim.radam(*numbers, decoupled=group["decoupled_weight_decay"])


class Adadelta(Optimizer):
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
        given = {"lr": _check(lr), "rho": rho, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, {**given, "maximize": maximize})

    @staticmethod
    def rule(group: Group) -> optim.Optimizer:
        """The update of a group by its options."""
        return optim.adadelta(group["lr"], group["rho"], group["eps"], group["weight_decay"])


class RMSprop(Optimizer):
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
        given = {"lr": _check(lr), "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered}
        super().__init__(params, {**given, "weight_decay": weight_decay, "maximize": maximize})

    @staticmethod
    def rule(group: Group) -> optim.Optimizer:
        """The update of a group by its options."""
        numbers = (group["lr"], group["alpha"], group["eps"], group["weight_decay"], group["momentum"])
        return optim.rmsprop(*numbers, group["centered"])


class Adagrad(Optimizer):
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
        given = {"lr": _check(lr), "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay}
        given["initial_accumulator_value"] = initial_accumulator_value
        super().__init__(params, {**given, "maximize": maximize})

    @staticmethod
    def rule(group: Group) -> optim.Optimizer:
        """The update of a group by its options."""
        start = group["initial_accumulator_value"]
        return optim.adagrad(group["lr"], group["lr_decay"], group["weight_decay"], start, group["eps"])


def missing(name: str) -> Never:
    """Raise AttributeError for an optimizer that is not there."""
    raise AttributeError(f"optim has no {name!r}; there are {', '.join(__all__)}")

"""Steps along the gradient, its average or its sign: SGD, ASGD and Rprop."""

from __future__ import annotations

from typing import Any

from dynamic.optim.optimizer import Group
from dynamic.optim.ruled import RuledOptimizer, Unused, options
from graphs import optim

__all__ = ["ASGD", "SGD", "Rprop"]


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
        options("SGD", {"differentiable": differentiable})
        defaults = {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay}
        super().__init__(params, {**defaults, "nesterov": nesterov, "maximize": maximize})

    @staticmethod
    def rule(group: Group) -> optim.Optimizer:
        """The update of a group by its options."""
        return optim.sgd(group["lr"], group["momentum"], group["nesterov"], group["weight_decay"], group["dampening"])


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
        options("ASGD", {"differentiable": differentiable})
        defaults = {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay}
        super().__init__(params, {**defaults, "maximize": maximize})

    @staticmethod
    def rule(group: Group) -> optim.Optimizer:
        """The update of a group by its options."""
        return optim.asgd(group["lr"], group["lambd"], group["alpha"], group["t0"], group["weight_decay"])


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
        options("Rprop", {"differentiable": differentiable})
        super().__init__(params, {"lr": lr, "etas": etas, "step_sizes": step_sizes, "maximize": maximize})

    @staticmethod
    def rule(group: Group) -> optim.Optimizer:
        """The update of a group by its options."""
        return optim.rprop(group["lr"], group["etas"], group["step_sizes"])

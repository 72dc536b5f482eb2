"""Schedules of the learning rate, with PyTorch's names and formulas."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dynamic.optim.optimizer import Optimizer

__all__ = [
    "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "ExponentialLR", "LRScheduler", "LambdaLR",
    "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR",
    "StepLR",
]  # fmt: skip


class LRScheduler:
    """Sets the `lr` of every group of an optimizer; `step` after each of its steps, or after each epoch."""

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        """Raises KeyError for an earlier epoch to go on from in an optimizer that knows no first rates."""
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError("last_epoch goes on from an earlier schedule, but a group has no 'initial_lr'")
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._last_lr = [group["lr"] for group in optimizer.param_groups]
        self.step()

    def get_lr(self) -> list[float]:
        """The rates of this epoch, from those of the groups now."""
        raise NotImplementedError

    def get_last_lr(self) -> list[float]:
        """The rates that were set last."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Go on to the next epoch, or with 0 start again from the first rates. Raises ValueError for another epoch."""
        if epoch:
            raise ValueError(f"step({epoch}): a schedule goes on one epoch at a time; call step() as often")
        if epoch == 0:
            self._set(self.base_lrs)
        self.last_epoch = self.last_epoch + 1 if epoch is None else 0
        self._set(self.get_lr())

    def _set(self, rates: Iterable[float]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    @property
    def _now(self) -> list[float]:
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """All but the optimizer and functions."""
        return {k: v for k, v in vars(self).items() if k not in ("optimizer", "lr_lambdas", "_schedulers")}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a state dict."""
        vars(self).update(state_dict)


def _functions(given: Any, count: int) -> list[Callable[[int], float]]:
    functions = list(given) if isinstance(given, (list, tuple)) else [given] * count
    if len(functions) != count:
        raise ValueError(f"{len(functions)} functions for {count} groups")
    return functions


class LambdaLR(LRScheduler):
    """The first rate times a function of the epoch."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        self.lr_lambdas = _functions(lr_lambda, len(optimizer.param_groups))
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of this epoch."""
        return [base * f(self.last_epoch) for base, f in zip(self.base_lrs, self.lr_lambdas, strict=True)]


class MultiplicativeLR(LambdaLR):
    """The rate so far times a function of the epoch."""

    def get_lr(self) -> list[float]:
        """The rates of this epoch."""
        if self.last_epoch == 0:
            return self._now
        return [now * f(self.last_epoch) for now, f in zip(self._now, self.lr_lambdas, strict=True)]


class StepLR(LRScheduler):
    """Times `gamma` every `step_size` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of this epoch."""
        falls = self.last_epoch > 0 and self.last_epoch % self.step_size == 0
        return [now * (self.gamma if falls else 1) for now in self._now]


class MultiStepLR(LRScheduler):
    """Times `gamma` at each milestone."""

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of this epoch."""
        return [now * self.gamma ** self.milestones[self.last_epoch] for now in self._now]


class ExponentialLR(LRScheduler):
    """Times `gamma` every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of this epoch."""
        return [now * (self.gamma if self.last_epoch > 0 else 1) for now in self._now]


class ConstantLR(LRScheduler):
    """A share of the rate for the first epochs, then all of it."""

    def __init__(self, optimizer: Optimizer, factor: float = 1 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        if not 0 <= factor <= 1:
            raise ValueError(f"factor is from 0 to 1, not {factor}")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of this epoch."""
        factor = {0: self.factor, self.total_iters: 1 / self.factor if self.factor else 1}.get(self.last_epoch, 1)
        return [now * factor for now in self._now]


class LinearLR(LRScheduler):
    """A share of the rate that goes from one to another along a line."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1 or not 0 <= end_factor <= 1:
            raise ValueError(f"factors are from 0 to 1, the first above 0; not {start_factor} and {end_factor}")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of this epoch."""
        if self.last_epoch == 0:
            return [now * self.start_factor for now in self._now]
        if self.last_epoch > self.total_iters:
            return self._now
        rise = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * rise
        return [now * (1 + rise / before) for now in self._now]


class PolynomialLR(LRScheduler):
    """The rate times a power of the share of epochs that are left."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of this epoch."""
        if self.last_epoch == 0 or self.last_epoch > self.total_iters:
            return self._now
        left = (1 - self.last_epoch / self.total_iters) / (1 - (self.last_epoch - 1) / self.total_iters)
        return [now * left**self.power for now in self._now]


class CosineAnnealingLR(LRScheduler):
    """Half a wave of the cosine from the rate down to `eta_min`, in `T_max` epochs (Loshchilov and Hutter, 2017)."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:  # noqa: N803
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of this epoch."""
        if self.last_epoch == 0:
            return self._now
        low, epoch, count = self.eta_min, self.last_epoch, self.T_max
        if (epoch - 1 - count) % (2 * count) == 0:
            rise = (1 - math.cos(math.pi / count)) / 2
            return [now + (base - low) * rise for now, base in zip(self._now, self.base_lrs, strict=True)]
        share = (1 + math.cos(math.pi * epoch / count)) / (1 + math.cos(math.pi * (epoch - 1) / count))
        return [share * (now - low) + low for now in self._now]


class CosineAnnealingWarmRestarts(LRScheduler):
    """The same again and again, each time `T_mult` times as long."""

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,  # noqa: N803
        T_mult: int = 1,  # noqa: N803
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of this epoch."""
        left, length = float(self.last_epoch), self.T_0
        while left >= length:
            left, length = left - length, length * self.T_mult
        wave = (1 + math.cos(math.pi * left / length)) / 2
        return [self.eta_min + (base - self.eta_min) * wave for base in self.base_lrs]


class OneCycleLR(LRScheduler):
    """Up to `max_lr` and down to almost nothing, once (Smith and Topin, 2017); the momentum stays as it is."""

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float = 0.85,
        max_momentum: float = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if cycle_momentum or three_phase:
            raise ValueError("OneCycleLR: cycle_momentum and three_phase are not supported; write cycle_momentum=False")
        if total_steps is None and (epochs is None or steps_per_epoch is None):
            raise ValueError("give total_steps, or epochs and steps_per_epoch")
        self.total_steps = total_steps if total_steps is not None else (epochs or 0) * (steps_per_epoch or 0)
        self.pct_start, self.anneal_strategy = pct_start, anneal_strategy
        count = len(optimizer.param_groups)
        self.max_lrs = list(max_lr) if isinstance(max_lr, (list, tuple)) else [max_lr] * count
        for group, high in zip(optimizer.param_groups, self.max_lrs, strict=True):
            group["lr"] = group["initial_lr"] = high / div_factor
        self.final_div_factor = final_div_factor
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of this step. Raises ValueError after the last."""
        if self.last_epoch > self.total_steps:
            raise ValueError(f"step {self.last_epoch} of a schedule of {self.total_steps}")
        top, end = self.pct_start * self.total_steps - 1, self.total_steps - 1
        rates = []
        for first, high in zip(self.base_lrs, self.max_lrs, strict=True):
            rising = self.last_epoch <= top
            start, stop = (first, high) if rising else (high, first / self.final_div_factor)
            share = self.last_epoch / top if rising else (self.last_epoch - top) / (end - top)
            wave = share if self.anneal_strategy == "linear" else (1 - math.cos(math.pi * share)) / 2
            rates.append(start + (stop - start) * wave)
        return rates


class SequentialLR(LRScheduler):
    """One schedule after another, the next from each milestone on."""

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[Any], milestones: Sequence[int], last_epoch: int = -1
    ) -> None:
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                f"{len(milestones)} milestones for {len(schedulers)} schedules; there is one between each two"
            )
        self._schedulers, self._milestones = list(schedulers), list(milestones)
        self.optimizer, self.last_epoch = optimizer, last_epoch + 1
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        for scheduler in self._schedulers:
            scheduler.last_epoch -= 1
        self._schedulers[0].step()
        self._last_lr = self._schedulers[0].get_last_lr()

    def step(self, epoch: int | None = None) -> None:
        """Go on to the next epoch."""
        self.last_epoch += 1
        number = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[number]
        if number > 0 and self._milestones[number - 1] == self.last_epoch:
            scheduler.step(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ReduceLROnPlateau(LRScheduler):
    """Times `factor` when a metric has not become better for more than `patience` epochs."""

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: Any = 0.0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1 or mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ValueError(f"factor is below 1, not {factor}; mode 'min' or 'max'; threshold_mode 'rel' or 'abs'")
        self.optimizer, self.mode, self.factor, self.patience = optimizer, mode, factor, patience
        self.threshold, self.threshold_mode, self.cooldown, self.eps = threshold, threshold_mode, cooldown, eps
        count = len(optimizer.param_groups)
        self.min_lrs = list(min_lr) if isinstance(min_lr, (list, tuple)) else [min_lr] * count
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = self.last_epoch = 0
        self._last_lr = self._now

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Go on to the next epoch, after this metric."""
        value = float(metrics)
        self.last_epoch += 1
        if self._is_better(value):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._now

    def _reduce(self) -> None:
        for group, least in zip(self.optimizer.param_groups, self.min_lrs, strict=True):
            new = max(group["lr"] * self.factor, least)
            if group["lr"] - new > self.eps:
                group["lr"] = new

    def _is_better(self, value: float) -> bool:
        sign = 1 if self.mode == "min" else -1
        if self.threshold_mode == "abs":
            return sign * value < sign * self.best - self.threshold
        return sign * value < sign * self.best * (1 - sign * self.threshold)

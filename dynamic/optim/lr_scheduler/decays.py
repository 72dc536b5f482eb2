"""Schedules whose rate falls, or rises, by the number of the epoch."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable

from dynamic.optim.lr_scheduler.base import Function, LRScheduler, for_each_group
from dynamic.optim.optimizer import Optimizer
from graphs.errors import OptionError


class LambdaLR(LRScheduler):
    """The first rate times a function of the epoch."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Function | list[Function], last_epoch: int = -1) -> None:
        self.lr_lambdas: list[Function] = for_each_group(optimizer, lr_lambda, "lr_lambda")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of this epoch."""
        return [base * f(self.last_epoch) for base, f in zip(self.base_lrs, self.lr_lambdas, strict=True)]


class MultiplicativeLR(LambdaLR):
    """The rate so far times a function of the epoch."""

    def get_lr(self) -> list[float]:
        """The rates of this epoch."""
        if self._is_initial:
            return self._now
        return [now * f(self.last_epoch) for now, f in zip(self._now, self.lr_lambdas, strict=True)]


class StepLR(LRScheduler):
    """Times `gamma` every `step_size` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        if step_size < 1:
            raise OptionError(f"step_size is 1 or more, not {step_size}; else no epoch is a multiple of it")
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of this epoch."""
        falls = self.last_epoch > 0 and self.last_epoch % self.step_size == 0
        return [now * (self.gamma if falls else 1) for now in self._now]

    def get_lr_at(self) -> list[float]:
        """The rates of this epoch, from the first ones."""
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


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

    def get_lr_at(self) -> list[float]:
        """The rates of this epoch, from the first ones."""
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * self.gamma**passed for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Times `gamma` every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of this epoch."""
        return [now if self._is_initial else now * self.gamma for now in self._now]

    def get_lr_at(self) -> list[float]:
        """The rates of this epoch, from the first ones."""
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """A share of the rate for the first epochs, then all of it."""

    def __init__(self, optimizer: Optimizer, factor: float = 1 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        if not 0 <= factor <= 1:
            raise OptionError(f"factor is from 0 to 1, not {factor}")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of this epoch."""
        factor = {0: self.factor, self.total_iters: 1 / self.factor if self.factor else 1}.get(self.last_epoch, 1)
        return [now * factor for now in self._now]

    def get_lr_at(self) -> list[float]:
        """The rates of this epoch, from the first ones."""
        share = 1 if self.last_epoch >= self.total_iters else self.factor
        return [base * share for base in self.base_lrs]


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
            raise OptionError(f"factors are from 0 to 1, the first above 0; not {start_factor} and {end_factor}")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of this epoch."""
        if self.last_epoch == 0:
            return [now * self.start_factor for now in self._now]
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._now
        rise = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * rise
        return [now * (1 + rise / before) for now in self._now]

    def get_lr_at(self) -> list[float]:
        """The rates of this epoch, from the first ones."""
        done = min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * (self.start_factor + (self.end_factor - self.start_factor) * done) for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """The rate times a power of the share of epochs that are left."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of this epoch."""
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._now
        left = (1 - self.last_epoch / self.total_iters) / (1 - (self.last_epoch - 1) / self.total_iters)
        return [now * left**self.power for now in self._now]

    def get_lr_at(self) -> list[float]:
        """The rates of this epoch, from the first ones."""
        left = 1 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * left**self.power for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """Half a wave of the cosine from the rate down to `eta_min`, in `T_max` epochs (Loshchilov and Hutter, 2017)."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:  # noqa: N803
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of this epoch."""
        if self._is_initial:
            return self._now
        low, epoch, count = self.eta_min, self.last_epoch, self.T_max
        if (epoch - 1 - count) % (2 * count) == 0:
            rise = (1 - math.cos(math.pi / count)) / 2
            return [now + (base - low) * rise for now, base in zip(self._now, self.base_lrs, strict=True)]
        share = (1 + math.cos(math.pi * epoch / count)) / (1 + math.cos(math.pi * (epoch - 1) / count))
        return [share * (now - low) + low for now in self._now]

    def get_lr_at(self) -> list[float]:
        """The rates of this epoch, from the first ones."""
        wave = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * wave for base in self.base_lrs]

"""Schedules whose rate falls, or rises, by the number of the epoch.

Schedules whose rate rises and falls, once or again and again, and the momentum against it.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from dynamic.optim.lr_scheduler.base import Function, LRScheduler, for_each_group
from dynamic.optim.optimizer import Group, Optimizer
from graphs.errors import OptionError


class LambdaLR(LRScheduler):
    """The initial rate times a function of the epoch."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Function | list[Function], last_epoch: int = -1) -> None:
        self.lr_lambdas: list[Function] = for_each_group(optimizer, lr_lambda, "lr_lambda")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of this epoch."""
        return [base * f(self.last_epoch) for base, f in zip(self.base_lrs, self.lr_lambdas, strict=True)]


class MultiplicativeLR(LambdaLR):
    """The current rate times a function of the epoch."""

    def get_lr(self) -> list[float]:
        """The rates of this epoch."""
        if self._is_initial:
            return self._now
        return [now * f(self.last_epoch) for now, f in zip(self._now, self.lr_lambdas, strict=True)]


class StepLR(LRScheduler):
    """Multiplies the rate by `gamma` every `step_size` epochs."""

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
        """The rates of this epoch, from the initial rates."""
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Multiplies the rate by `gamma` at each milestone."""

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of this epoch."""
        return [now * self.gamma ** self.milestones[self.last_epoch] for now in self._now]

    def get_lr_at(self) -> list[float]:
        """The rates of this epoch, from the initial rates."""
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * self.gamma**passed for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Multiplies the rate by `gamma` every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of this epoch."""
        return [now if self._is_initial else now * self.gamma for now in self._now]

    def get_lr_at(self) -> list[float]:
        """The rates of this epoch, from the initial rates."""
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """The rate times `factor` for the first epochs, then the full rate."""

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
        """The rates of this epoch, from the initial rates."""
        share = 1 if self.last_epoch >= self.total_iters else self.factor
        return [base * share for base in self.base_lrs]


class LinearLR(LRScheduler):
    """The rate times a factor that changes linearly from `start_factor` to `end_factor`."""

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
        """The rates of this epoch, from the initial rates."""
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
        """The rates of this epoch, from the initial rates."""
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
        """The rates of this epoch, from the initial rates."""
        wave = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * wave for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a wave of the cosine down to `eta_min` (Loshchilov and Hutter, 2017), again and again.

    Each is `T_mult` times as long as the one before.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,  # noqa: N803
        T_mult: int = 1,  # noqa: N803
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if T_0 < 1 or T_mult < 1:
            raise OptionError(f"T_0 and T_mult are 1 or more, not {T_0} and {T_mult}")
        self.T_0, self.T_i, self.T_mult, self.eta_min = T_0, T_0, T_mult, eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of this epoch."""
        wave = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * wave for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Go on to the next epoch, or to any, which may be a fraction. Raises OptionError for a negative one."""
        if epoch is None:
            self.last_epoch, self.T_cur = self.last_epoch + 1, self.T_cur + 1
            if self.T_cur >= self.T_i:
                self.T_cur, self.T_i = self.T_cur % self.T_i, self.T_i * self.T_mult
        else:
            if epoch < 0:
                raise OptionError(f"epoch is 0 or more, not {epoch}")
            self.last_epoch, self.T_cur = math.floor(epoch), epoch % self.T_0 if self.T_mult == 1 else epoch
            self.T_i = self.T_0
            while self.T_cur >= self.T_i:
                self.T_cur, self.T_i = self.T_cur - self.T_i, self.T_i * self.T_mult
        self._set(self.get_lr())


class _Cycle(LRScheduler):
    """Base of schedules that may also move the momentum, or the first of Adam's `betas`."""

    cycle_momentum: bool

    def _take_momentum(self, optimizer: Optimizer, lowest: Any, highest: Any, begins: bool) -> None:
        """Store the limits of the momentum, which starts at the highest. Raises OptionError where there is none."""
        if not {"momentum", "betas"} & set(optimizer.defaults):
            raise OptionError(
                f"{type(self).__name__}: {type(optimizer).__name__} has no momentum; write cycle_momentum=False"
            )
        limits = (
            for_each_group(optimizer, lowest, "base_momentum"), for_each_group(optimizer, highest, "max_momentum")
        )  # fmt: skip
        for group, low, high in zip(optimizer.param_groups, *limits, strict=True):
            if begins:
                group["base_momentum"], group["max_momentum"] = low, high
                _put_momentum(group, high)


def _put_momentum(group: Group, value: float) -> None:
    if "betas" in group:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


class CyclicLR(_Cycle):
    """Up from `base_lr` to `max_lr` and down again, along lines, again and again (Smith, 2017).

    `mode` "triangular" keeps the height, "triangular2" halves it after each cycle, and "exp_range" multiplies it by
    `gamma` in each step; or `scale_fn` of the cycle's number, or of the step's with `scale_mode` "iterations".
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: Any,
        max_lr: Any,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ) -> None:
        """Make the schedule. Raises OptionError for an unknown mode."""
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise OptionError(f"mode is 'triangular', 'triangular2' or 'exp_range', not {mode!r}; or give a scale_fn")
        first = for_each_group(optimizer, base_lr, "base_lr")
        self.max_lrs = for_each_group(optimizer, max_lr, "max_lr")
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, first, strict=True):
                group["lr"] = rate
        self.total_size = float(step_size_up + (step_size_up if step_size_down is None else step_size_down))
        self.step_ratio = step_size_up / self.total_size
        self.mode, self.gamma, self.scale_fn = mode, gamma, scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._take_momentum(optimizer, base_momentum, max_momentum, last_epoch == -1)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = first

    def _scale(self, number: float) -> float:
        if self.scale_fn is not None:
            return self.scale_fn(number)
        return {"triangular": 1.0, "triangular2": 0.5 ** (number - 1), "exp_range": self.gamma**number}[self.mode]

    def get_lr(self) -> list[float]:
        """The rates of this step."""
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        place = 1.0 + self.last_epoch / self.total_size - cycle
        rising = place <= self.step_ratio
        height = place / self.step_ratio if rising else (place - 1) / (self.step_ratio - 1)
        height *= self._scale(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group in self.optimizer.param_groups:
                low, high = group["base_momentum"], group["max_momentum"]
                _put_momentum(group, high - (high - low) * height)
        return [low + (high - low) * height for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]


_UP = "initial_lr", "max_lr", "max_momentum", "base_momentum"  # rates and momentum at the ends of a phase of OneCycleLR
_DOWN = "max_lr", "initial_lr", "base_momentum", "max_momentum"
_OUT = "initial_lr", "min_lr", "max_momentum", "max_momentum"
_DOWN_AND_OUT = "max_lr", "min_lr", "base_momentum", "max_momentum"


class OneCycleLR(_Cycle):
    """Up to `max_lr` and down to almost nothing, once (Smith and Topin, 2017), the momentum down and up.

    With `three_phase` first as far down as it went up, and then to almost nothing.
    """

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
        base_momentum: Any = 0.85,
        max_momentum: Any = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        """Make the schedule. Raises OptionError where the number of steps is unknown, or an option is invalid."""
        if total_steps is None and (epochs is None or steps_per_epoch is None):
            raise OptionError("give total_steps, or epochs and steps_per_epoch")
        self.total_steps = total_steps if total_steps is not None else (epochs or 0) * (steps_per_epoch or 0)
        if self.total_steps < 1 or not 0 <= pct_start <= 1:
            raise OptionError(
                f"{self.total_steps} steps, of which a share of {pct_start} rises; give 1 or more, 0 to 1"
            )
        if anneal_strategy not in ("cos", "linear"):
            raise OptionError(f"anneal_strategy is 'cos' or 'linear', not {anneal_strategy!r}")
        self.anneal_strategy, self.cycle_momentum = anneal_strategy, cycle_momentum
        rise, last = pct_start * self.total_steps, self.total_steps - 1
        middle = [(2 * rise - 2, _DOWN), (last, _OUT)] if three_phase else [(last, _DOWN_AND_OUT)]
        self._phases: list[tuple[float, tuple[str, ...]]] = [(rise - 1, _UP), *middle]
        if last_epoch == -1:
            for group, high in zip(optimizer.param_groups, for_each_group(optimizer, max_lr, "max_lr"), strict=True):
                first = high / div_factor
                group.update(lr=first, initial_lr=first, max_lr=high, min_lr=first / final_div_factor)
        if cycle_momentum:
            self._take_momentum(optimizer, base_momentum, max_momentum, last_epoch == -1)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates of this step. Raises OptionError after the last."""
        if self.last_epoch > self.total_steps:
            raise OptionError(f"step {self.last_epoch} of a schedule of {self.total_steps}")
        begin, (end, names) = 0.0, self._phases[0]
        for after, its_names in self._phases[1:]:
            if self.last_epoch > end:
                begin, end, names = end, after, its_names
        share = (self.last_epoch - begin) / (end - begin) if self.last_epoch != begin else 0.0
        wave = share if self.anneal_strategy == "linear" else (1 - math.cos(math.pi * share)) / 2
        rates = []
        for group in self.optimizer.param_groups:
            start, stop, *momenta = (group[name] for name in names if self.cycle_momentum or name.endswith("lr"))
            rates.append(start + (stop - start) * wave)
            if momenta:
                _put_momentum(group, momenta[0] + (momenta[1] - momenta[0]) * wave)
        return rates

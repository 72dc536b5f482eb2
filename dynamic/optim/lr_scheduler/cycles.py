"""Schedules whose rate rises and falls, once or again and again, and the momentum against it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from dynamic.optim.lr_scheduler.base import LRScheduler, for_each_group
from dynamic.optim.optimizer import Group, Optimizer
from graphs.errors import OptionError


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
    """A schedule that may move the momentum, or the first of Adam's `betas`, too."""

    cycle_momentum: bool

    def _take_momentum(self, optimizer: Optimizer, lowest: Any, highest: Any, begins: bool) -> None:
        """Keep the limits of the momentum, which starts at the highest. Raises OptionError where there is none."""
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
        """Raises OptionError for another mode."""
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
        """Raises OptionError where the number of steps is not known, and for a strategy or a share that is none."""
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

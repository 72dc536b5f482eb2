"""Base of learning rate schedules.

Then schedules of schedules, one after another or all at once, and a schedule that watches a metric.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dynamic.optim.optimizer import Optimizer
from graphs.errors import ArgumentError, OptionError
from graphs.frontends.torch.names import guard_construction

_UNSAVED = ("optimizer", "lr_lambdas", "scale_fn")


class LRScheduler:
    """Sets the `lr` of every group of an optimizer; `step` after each of its steps, or after each epoch."""

    optimizer: Optimizer
    base_lrs: list[float]
    last_epoch: int
    _is_initial = False  # while the first rates are set

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        """Raises KeyError for `last_epoch` >= 0 where the optimizer has no initial rates."""
        if not isinstance(optimizer, Optimizer):
            raise ArgumentError(f"{type(optimizer).__name__} is no optimizer; give one of optim")
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError("last_epoch goes on from an earlier schedule, but a group has no 'initial_lr'")
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._last_lr = self._now
        self._start()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        guard_construction(cls)

    def _start(self) -> None:
        """Set the rates of the first epoch."""
        self._is_initial = True
        try:
            self.step()
        finally:
            del self._is_initial

    def get_lr(self) -> list[float]:
        """The rates of this epoch, computed from the current rates of the groups."""
        raise NotImplementedError(f"{type(self).__name__} defines no get_lr; write one")

    def get_lr_at(self) -> list[float]:
        """The rates of this epoch, computed from the initial rates where there is a formula."""
        return self.get_lr()

    def get_last_lr(self) -> list[float]:
        """The rates that were set last."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Advance to the next epoch, or to `epoch`, whose rates are computed from the initial rates."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self._set(self.get_lr() if epoch is None else self.get_lr_at())

    def _set(self, rates: Iterable[float]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        self._last_lr = self._now

    @property
    def _now(self) -> list[float]:
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimizer and functions."""
        return {name: value for name, value in vars(self).items() if name not in _UNSAVED}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the attributes from a state dict."""
        vars(self).update(state_dict)


def for_each_group(optimizer: Optimizer, value: Any, what: str) -> list[Any]:
    """A value, or a list of them, for each group of the optimizer. Raises OptionError for another number of them."""
    count = len(optimizer.param_groups)
    values = list(value) if isinstance(value, (list, tuple)) else [value] * count
    if len(values) != count:
        raise OptionError(f"{len(values)} values of {what} for {count} groups; give one for each")
    return values


Function = Callable[[int], float]


class _Several(LRScheduler):
    """Base of schedules that combine several schedules of one optimizer."""

    def _take(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None) -> None:
        """Store the schedules. Raises OptionError for none, one that takes a metric, or one of another optimizer."""
        name = type(self).__name__
        if not schedulers:
            raise OptionError(f"{name}: there is no schedule; give at least one")
        self.optimizer = schedulers[0].optimizer if optimizer is None else optimizer
        for scheduler in schedulers:
            if isinstance(scheduler, ReduceLROnPlateau):
                raise OptionError(f"{name}: ReduceLROnPlateau takes a metric in each step; call its step yourself")
            if scheduler.optimizer is not self.optimizer:
                raise OptionError(
                    f"{name}: a {type(scheduler).__name__} belongs to another optimizer; make it for this"
                )
        self._schedulers = list(schedulers)

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimizer and functions, also of the inner schedules."""
        return {**super().state_dict(), "_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the attributes from a state dict, also of the inner schedules."""
        super().load_state_dict({name: value for name, value in state_dict.items() if name != "_schedulers"})
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(state)


class SequentialLR(_Several):
    """One schedule after another, the next from each milestone on."""

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[Any], milestones: Sequence[int], last_epoch: int = -1
    ) -> None:
        self._take(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise OptionError(
                f"{len(milestones)} milestones for {len(schedulers)} schedules; there is one between each two"
            )
        self._milestones, self.last_epoch = list(milestones), last_epoch + 1
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        _undo(self)
        first = self._schedulers[bisect_right(self._milestones, 0)]
        first._start()
        self._last_lr = first.get_last_lr()

    def step(self, epoch: int | None = None) -> None:
        """Advance to the next epoch. Raises OptionError for an explicit epoch."""
        _check_next(self, epoch)
        self.last_epoch += 1
        number = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[number]
        begins = number > 0 and self._milestones[number - 1] == self.last_epoch
        scheduler.step(0) if begins else scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Several):
    """Applies all schedules in each step; each continues from the rates of the one before."""

    def __init__(self, schedulers: Sequence[Any], optimizer: Optimizer | None = None) -> None:
        self._take(schedulers, optimizer)
        self._last_lr = self._now

    def step(self, epoch: int | None = None) -> None:
        """Advance to the next epoch. Raises OptionError for an explicit epoch."""
        _check_next(self, epoch)
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._now


def _check_next(scheduler: LRScheduler, epoch: int | None) -> None:
    if epoch is not None:
        raise OptionError(f"{type(scheduler).__name__}.step({epoch}): it goes on one epoch at a time; call step()")


def _undo(scheduler: Any) -> None:
    """Undo the first step that each schedule has made at its construction."""
    if hasattr(scheduler, "_schedulers"):
        for part in scheduler._schedulers:
            _undo(part)
    elif hasattr(scheduler, "last_epoch"):
        scheduler.last_epoch -= 1


class ReduceLROnPlateau(LRScheduler):
    """Multiplies the rate by `factor` when a metric has not improved for more than `patience` epochs."""

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
            raise OptionError(f"factor is below 1, not {factor}; mode 'min' or 'max'; threshold_mode 'rel' or 'abs'")
        self.optimizer, self.mode, self.factor, self.patience = optimizer, mode, factor, patience
        self.threshold, self.threshold_mode, self.cooldown, self.eps = threshold, threshold_mode, cooldown, eps
        self.min_lrs = for_each_group(optimizer, min_lr, "min_lr")
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = self.last_epoch = 0
        self._last_lr = self._now

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Advance to the next epoch, with the metric of this one."""
        value = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
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

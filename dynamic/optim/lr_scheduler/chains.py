"""Schedules made of others: one after another, or all at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from dynamic.optim.lr_scheduler.base import LRScheduler
from dynamic.optim.lr_scheduler.plateau import ReduceLROnPlateau
from dynamic.optim.optimizer import Optimizer
from graphs.errors import OptionError


class _Several(LRScheduler):
    """Schedules of one optimizer."""

    def _take(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None) -> None:
        """Raises OptionError for no schedules, for one that takes a metric, and for those of another optimizer."""
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
        """All but the optimizer and functions, of the schedules inside too."""
        return {**super().state_dict(), "_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a state dict."""
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
        """Go on to the next epoch. Raises OptionError for an epoch."""
        _check_next(self, epoch)
        self.last_epoch += 1
        number = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[number]
        begins = number > 0 and self._milestones[number - 1] == self.last_epoch
        scheduler.step(0) if begins else scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Several):
    """All schedules in each step, each of which goes on from the rates of the one before."""

    def __init__(self, schedulers: Sequence[Any], optimizer: Optimizer | None = None) -> None:
        self._take(schedulers, optimizer)
        self._last_lr = self._now

    def step(self, epoch: int | None = None) -> None:
        """Go on to the next epoch. Raises OptionError for an epoch."""
        _check_next(self, epoch)
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._now


def _check_next(scheduler: LRScheduler, epoch: int | None) -> None:
    if epoch is not None:
        raise OptionError(f"{type(scheduler).__name__}.step({epoch}): it goes on one epoch at a time; call step()")


def _undo(scheduler: Any) -> None:
    """Take back the step that each schedule has made of itself."""
    if hasattr(scheduler, "_schedulers"):
        for part in scheduler._schedulers:
            _undo(part)
    elif hasattr(scheduler, "last_epoch"):
        scheduler.last_epoch -= 1

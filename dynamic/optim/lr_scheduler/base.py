"""What schedules of the learning rate have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dynamic.optim.optimizer import Optimizer
from graphs.errors import ArgumentError, OptionError
from graphs.torch.construction import guard_construction

_UNSAVED = ("optimizer", "lr_lambdas", "scale_fn")


class LRScheduler:
    """Sets the `lr` of every group of an optimizer; `step` after each of its steps, or after each epoch."""

    optimizer: Optimizer
    base_lrs: list[float]
    last_epoch: int
    _is_initial = False  # while the first rates are set

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        """Raises KeyError for an earlier epoch to go on from in an optimizer that knows no first rates."""
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
        """The rates of this epoch, from those of the groups now."""
        raise NotImplementedError(f"{type(self).__name__} defines no get_lr; write one")

    def get_lr_at(self) -> list[float]:
        """The rates of this epoch, from the first ones alone where there is a formula for that."""
        return self.get_lr()

    def get_last_lr(self) -> list[float]:
        """The rates that were set last."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Go on to the next epoch, or to one of any number, whose rates come from the first ones by a formula."""
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
        """All but the optimizer and functions."""
        return {name: value for name, value in vars(self).items() if name not in _UNSAVED}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a state dict."""
        vars(self).update(state_dict)


def for_each_group(optimizer: Optimizer, value: Any, what: str) -> list[Any]:
    """A value, or a list of them, for each group of the optimizer. Raises OptionError for another number of them."""
    count = len(optimizer.param_groups)
    values = list(value) if isinstance(value, (list, tuple)) else [value] * count
    if len(values) != count:
        raise OptionError(f"{len(values)} values of {what} for {count} groups; give one for each")
    return values


Function = Callable[[int], float]

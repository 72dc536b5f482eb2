"""Averages of the parameters of a model over its training, with PyTorch's names."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from dynamic.creation import tensor
from dynamic.grad_mode import no_grad
from dynamic.nn.module import Module
from dynamic.nn.normalization import _BatchNorm
from dynamic.optim.lr_scheduler.base import LRScheduler, for_each_group
from dynamic.optim.optimizer import Optimizer
from graphs.errors import OptionError

__all__ = [
    "SWALR", "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn", "get_swa_multi_avg_fn",
    "update_bn",
]  # fmt: skip

Average = Callable[[Any, Any, Any], Any]  # of the average, the present value, and how many the average is of


def get_swa_avg_fn() -> Average:
    """The mean of all."""
    return lambda average, value, count: average + (value - average) / (count + 1)


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """A mean in which earlier values count less and less. Raises OptionError for a decay outside of 0 to 1."""
    if not 0 <= decay <= 1:
        raise OptionError(f"decay is from 0 to 1, not {decay}; give a share such as 0.999")
    return lambda average, value, _: decay * average + (1 - decay) * value


def _of_lists(average: Average) -> Callable[[Any, Any, Any], None]:
    def update(averages: Any, values: Any, count: Any) -> None:
        for held, value in zip(averages, values, strict=True):
            held.copy_(average(held, value, count) if held.is_floating_point() else value)

    return update


def get_swa_multi_avg_fn() -> Callable[[Any, Any, Any], None]:
    """The mean of all, of lists of tensors, in place."""
    return _of_lists(get_swa_avg_fn())


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[[Any, Any, Any], None]:
    """The mean in which earlier values count less and less, of lists of tensors, in place."""
    return _of_lists(get_ema_avg_fn(decay))


class AveragedModel(Module):
    """A copy of a model whose parameters, and with `use_buffers` buffers, are averages over calls of the update."""

    n_averaged: Any

    def __init__(
        self, model: Any, device: Any = None, avg_fn: Any = None, multi_avg_fn: Any = None, use_buffers: bool = False
    ) -> None:
        """Raises OptionError for two functions that average."""
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise OptionError("AveragedModel takes avg_fn or multi_avg_fn, and not both")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module.to(device)
        self.register_buffer("n_averaged", tensor(0))
        self._update = multi_avg_fn or _of_lists(avg_fn or get_swa_avg_fn())
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **options: Any) -> Any:
        """The result of the averaged model."""
        return self.module(*args, **options)

    def update_parameters(self, model: Any) -> None:
        """Take the values of a model into the averages."""
        with no_grad():
            ours, theirs = list(self._averages(self.module)), list(self._averages(model))
            if int(self.n_averaged) == 0:
                for held, value in zip(ours, theirs, strict=True):
                    held.copy_(value)
            else:
                self._update(ours, [value.detach() for value in theirs], self.n_averaged)
            self.n_averaged.add_(1)
            if not self.use_buffers:
                for held, value in zip(self.module.buffers(), model.buffers(), strict=True):
                    held.copy_(value)

    def _averages(self, model: Any) -> Iterator[Any]:
        buffers = model.buffers() if self.use_buffers else ()
        return itertools.chain((p.detach() for p in model.parameters()), buffers)


def update_bn(loader: Iterable[Any], model: Any, device: Any = None) -> None:
    """Compute the running statistics of batch norm anew, as means over the inputs of a loader."""
    norms = [module for module in model.modules() if isinstance(module, _BatchNorm)]
    if not norms:
        return
    momenta = [norm.momentum for norm in norms]
    was_training = model.training
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
    model.train()
    with no_grad():
        for batch in loader:
            inputs = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(inputs if device is None else inputs.to(device))
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """From the present rate to `swa_lr`, along a cosine or a line, in `anneal_epochs` epochs."""

    def __init__(
        self, optimizer: Optimizer, swa_lr: float | list[float], anneal_epochs: int = 10,
        anneal_strategy: str = "cos", last_epoch: int = -1,
    ) -> None:  # fmt: skip
        """Raises OptionError for another strategy, or epochs below 0."""
        if anneal_strategy not in ("cos", "linear") or anneal_epochs < 0:
            raise OptionError("SWALR: anneal_strategy is 'cos' or 'linear', and anneal_epochs is 0 or more")
        for group, rate in zip(optimizer.param_groups, for_each_group(optimizer, swa_lr, "swa_lr"), strict=True):
            group["swa_lr"] = rate
        self.anneal_epochs, self.anneal_strategy = anneal_epochs, anneal_strategy
        super().__init__(optimizer, last_epoch)

    def _share(self, epoch: int) -> float:
        """How far the way to `swa_lr` is done at an epoch."""
        done = max(0.0, min(1.0, epoch / max(1, self.anneal_epochs)))
        return (1 - math.cos(math.pi * done)) / 2 if self.anneal_strategy == "cos" else done

    def get_lr(self) -> list[float]:
        """The rates of this epoch."""
        epoch = self.last_epoch if self.anneal_epochs else max(1, self.last_epoch)
        before, now = self._share(epoch - 1), self._share(epoch)
        rates = []
        for group in self.optimizer.param_groups:
            last, end = group["lr"], group["swa_lr"]
            first = end if before == 1 else (last - before * end) / (1 - before)
            rates.append(end * now + first * (1 - now))
        return rates

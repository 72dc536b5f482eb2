"""PyTorch's optimizers, which change parameters in place, over the pure functions of `graphs.optim`."""

from dynamic.optim import lr_scheduler
from dynamic.optim.lbfgs import LBFGS
from dynamic.optim.optimizer import Optimizer
from dynamic.optim.optimizers import (
    ASGD,
    SGD,
    Adadelta,
    Adafactor,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    NAdam,
    RAdam,
    RMSprop,
    Rprop,
)
from dynamic.paths import submodule

__all__ = [
    "ASGD", "LBFGS", "SGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "Optimizer",
    "RAdam", "RMSprop", "Rprop", "lr_scheduler",
]  # fmt: skip


def __getattr__(name: str) -> object:
    return submodule(__name__, name)

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
    Muon,
    NAdam,
    RAdam,
    RMSprop,
    Rprop,
)
from dynamic.paths import file_of, submodule

__all__ = [
    "ASGD", "LBFGS", "SGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Muon", "NAdam", "Optimizer",
    "RAdam", "RMSprop", "Rprop", "lr_scheduler",
]  # fmt: skip

_ONE_IN_A_FILE = (ASGD, SGD, Adadelta, Adagrad, Adam, Adamax, AdamW, NAdam, RAdam, RMSprop, Rprop)
globals().update(
    {(file := kind.__name__.lower()): file_of(__name__, file, {kind.__name__: kind}) for kind in _ONE_IN_A_FILE}
)


def __getattr__(name: str) -> object:
    return submodule(__name__, name)

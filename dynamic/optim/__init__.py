"""PyTorch's optimizers, which change parameters in place, over the pure functions of `graphs.optim`."""

from dynamic.optim import lr_scheduler
from dynamic.optim.algorithms import SGD, Adadelta, Adagrad, Adam, Adamax, AdamW, RAdam, RMSprop, missing
from dynamic.optim.optimizer import Optimizer

__all__ = ["SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "Optimizer", "RAdam", "RMSprop", "lr_scheduler"]


def __getattr__(name: str) -> object:
    missing(name)

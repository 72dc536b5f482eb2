"""Schedules of the learning rate, with PyTorch's names and formulas."""

from dynamic.optim.lr_scheduler.base import ChainedScheduler, LRScheduler, ReduceLROnPlateau, SequentialLR
from dynamic.optim.lr_scheduler.formulas import (
    ConstantLR,
    CosineAnnealingLR,
    CosineAnnealingWarmRestarts,
    CyclicLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    OneCycleLR,
    PolynomialLR,
    StepLR,
)

_LRScheduler = LRScheduler  # the older name, which programs derive from

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR",
    "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR", "PolynomialLR",
    "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip

"""Optimisers and gradient clipping: pure functions over nested containers, the same in both engines.

A training step (loss, gradient, clipping, update) is one function: `dynamic` runs it as it is, `static.jit` compiles
it once, update included. Nothing is changed in place and nothing is hidden: the state goes in and comes out.

The formulas are PyTorch's (`torch.optim.SGD`, `Adam`, `AdamW`, `torch.nn.utils.clip_grad_*`). An update is made of
ops, so that it can be differentiated too; with tensors that require gradients, call it under `dynamic.no_grad`.
"""

from graphs.optim.base import TINY, Optimizer, State, clip_by_global_norm, clip_by_value, global_norm
from graphs.optim.rules import (
    NEWTON_SCHULZ,
    adadelta,
    adafactor,
    adagrad,
    adam,
    adamax,
    asgd,
    muon,
    nadam,
    radam,
    rmsprop,
    rprop,
    sgd,
)

__all__ = [
    "NEWTON_SCHULZ", "TINY", "Optimizer", "State", "adadelta", "adafactor", "adagrad", "adam", "adamax", "asgd",
    "clip_by_global_norm", "clip_by_value", "global_norm", "muon", "nadam", "radam", "rmsprop", "rprop", "sgd",
]  # fmt: skip

"""The dynamic engine: operations are recorded on a tape while they run, as PyTorch does.

`import dynamic as torch` runs small PyTorch programs; every function of `graphs` is here too.
"""

from numpy import bool_ as bool  # the names PyTorch gives its dtypes
from numpy import float16, float32, float64, int8, int16, int32, int64, uint8

from graphs.ops import *  # noqa: F403  (the op library is part of this engine's surface; graphs/ops lists it)
from graphs.ops import public as _ops

# These replace the op library's functions of the same name: they also know PyTorch's word `dim`, or make tensors.
from graphs.torch import linalg  # isort: skip
from graphs.torch.functions import *  # type: ignore[assignment]  # isort: skip  # noqa: F403
from graphs.torch.functions import __all__ as _torch  # isort: skip
from dynamic.creation import *  # type: ignore[assignment]  # isort: skip  # noqa: F403
from dynamic.creation import __all__ as _creation  # isort: skip
from dynamic.anomaly import detect_anomaly
from dynamic.batching import batched, cell
from dynamic.checkpoint import checkpoint
from dynamic.functional import grad, hessian, hvp, jacobian, jvp, value_and_grad, vjp
from dynamic.gradients import backward, grad_of
from dynamic.inspect import Tape, TapeStats, tape_of, tape_stats
from dynamic.mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from dynamic.node import Node
from dynamic.pool import PoolStats, pool
from dynamic.recorder import record
from dynamic.tensor import Tensor

Entry = Node  # the older name
_LATER = ("nn", "optim", "utils")


def __getattr__(name: str) -> object:
    """What PyTorch has in packages of its own, loaded when it is asked for."""
    from importlib import import_module

    if name in _LATER:
        return import_module(f"dynamic.{name}")
    raise AttributeError(f"module 'dynamic' has no attribute {name!r}")


__all__ = [  # noqa: PLE0604  (the last three are lists of names)
    "Entry", "Node", "PoolStats", "Tape", "TapeStats", "Tensor", "record", "tape_of", "tape_stats",
    "backward", "checkpoint", "grad", "grad_of", "hessian", "hvp", "jacobian", "jvp", "value_and_grad", "vjp",
    "enable_grad", "inference_mode", "is_grad_enabled", "is_inference_mode_enabled", "no_grad", "set_grad_enabled",
    "batched", "cell", "detect_anomaly", "linalg", "pool",
    "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8",
    *_creation, *_torch, *_ops,
]  # fmt: skip

"""The dynamic engine: operations are recorded on a tape while they run, as PyTorch does.

`import dynamic as torch` runs small PyTorch programs; every function of `graphs` is here too.
"""

from numpy import bool_ as bool  # the names PyTorch gives its dtypes
from numpy import float16, float32, float64, int8, int16, int32, int64, uint8

from graphs.ops import *  # noqa: F403  (the op library is part of this engine's surface; graphs/ops lists it)
from graphs.ops import public as _ops

# These replace the op library's functions of the same name: they make tensors, or also know PyTorch's word `dim`.
from dynamic.creation import (  # type: ignore[assignment]  # isort: skip
    arange,
    as_tensor,
    eye,
    from_numpy,
    full,
    full_like,
    linspace,
    ones,
    ones_like,
    tensor,
    zeros,
    zeros_like,
)
from dynamic import linalg
from dynamic.anomaly import detect_anomaly
from dynamic.batching import batched, cell
from dynamic.gradients import backward, grad_of

from dynamic.torch_functions import (  # type: ignore[assignment]  # isort: skip  # noqa: F401  (named in _ops)
    all,
    any,
    argmax,
    argmin,
    cat,
    cross,
    cummax,
    cummin,
    log_softmax,
    logcumsumexp,
    logsumexp,
    mean,
    mm,
    mul,
    neg,
    prod,
    scatter_reduce,
    softmax,
    stack,
    sub,
    sum,
    unsqueeze,
)
from dynamic.checkpoint import checkpoint
from dynamic.entry import Entry
from dynamic.functional import grad, hessian, hvp, jacobian, jvp, value_and_grad, vjp
from dynamic.inspect import TapeStats, tape_stats
from dynamic.listing import Tape, tape_of
from dynamic.mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from dynamic.pool import PoolStats, pool
from dynamic.recorder import record
from dynamic.tensor import Tensor

__all__ = [  # noqa: PLE0604  (_ops is a list of names)
    "Entry",
    "PoolStats",
    "Tape",
    "TapeStats",
    "Tensor",
    "arange",
    "as_tensor",
    "backward",
    "batched",
    "bool",
    "cell",
    "checkpoint",
    "detect_anomaly",
    "enable_grad",
    "eye",
    "float16",
    "float32",
    "float64",
    "from_numpy",
    "full",
    "full_like",
    "grad",
    "grad_of",
    "hessian",
    "hvp",
    "inference_mode",
    "int16",
    "int32",
    "int64",
    "int8",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "jacobian",
    "jvp",
    "linalg",
    "linspace",
    "no_grad",
    "ones",
    "ones_like",
    "pool",
    "record",
    "set_grad_enabled",
    "tape_of",
    "tape_stats",
    "tensor",
    "uint8",
    "value_and_grad",
    "vjp",
    "zeros",
    "zeros_like",
    "cat",
    "mm",
    "mul",
    "neg",
    "sub",
    "unsqueeze",
    *_ops,
]

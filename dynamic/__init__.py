"""The dynamic engine: operations are recorded on a tape while they run, as PyTorch does.

`import dynamic as torch` runs PyTorch programs; every function of `graphs` is here too. Where the two differ, names
here mean what they mean in PyTorch: docs/torch-names.md.
"""

from typing import Any as _Any

from graphs import interpreter as _interpreter  # isort: skip  # noqa: F401  (first: it may refuse to load the others)

from graphs.ops import *  # noqa: F403  (the op library is part of this engine's surface; graphs/ops lists it)
from graphs.ops import public as _ops

from graphs.frontends.torch.dtypes import (  # isort: skip
    bfloat16, bool, cdouble, cfloat, complex64, complex128, double, dtype, float, float16, float32, float64, half, int,  # noqa: F401  (`float` and `int` not for `import *`)
    int8, int16, int32, int64, long, short, uint8,
)  # fmt: skip

# These replace the op library's functions of the same name: they do what PyTorch does, or make tensors.
from graphs.frontends.torch import linalg  # isort: skip
from graphs.frontends.torch.complexes import FOURIER as _FOURIER  # isort: skip
from graphs.frontends.torch.functions import *  # isort: skip  # noqa: F403
from graphs.frontends.torch.functions import __all__ as _torch  # isort: skip
from dynamic.creation import *  # type: ignore[assignment]  # isort: skip  # noqa: F403
from dynamic.creation import __all__ as _creation  # isort: skip
from dynamic.random import *  # type: ignore[assignment]  # isort: skip  # noqa: F403
from dynamic.random import __all__ as _random  # isort: skip
from dynamic import paths as _paths
from dynamic import tapes as _tapes
from dynamic.anomaly import Tape, TapeStats, detect_anomaly, record, tape_of, tape_stats
from dynamic.batching import batched, cell
from dynamic.checkpoint import checkpoint
from dynamic.functional import (
    elementwise_grad,
    grad,
    hessian,
    hessian_vector_product,
    hvp,
    jacobian,
    jvp,
    value_and_grad,
    vjp,
)
from dynamic.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from dynamic.gradients import backward, grad_of
from dynamic.node import Node
from dynamic.pool import PoolStats, pool
from dynamic.pytorch.saving import load, save
from dynamic.tensor import Tensor
from graphs.frontends.torch.printing import set_printoptions
from graphs.frontends.torch.words import Size, device

Entry = Node  # the older name
__version__ = "2.13.0+graphduel"  # of the PyTorch whose names these are: programs ask for it

_NEURAL = (
    "avg_pool1d", "batch_norm", "binary_cross_entropy_with_logits", "conv1d", "conv2d", "conv3d", "conv_transpose1d",
    "conv_transpose2d", "conv_transpose3d", "dropout", "embedding", "group_norm", "instance_norm", "kl_div",
    "layer_norm", "max_pool1d", "max_pool2d", "max_pool3d", "rms_norm",
)  # fmt: skip
_LAYERS = (
    "adaptive_avg_pool1d", "adaptive_max_pool1d", "alpha_dropout", "bilinear", "channel_shuffle",
    "feature_alpha_dropout", "grid_sampler", "hardshrink", "native_channel_shuffle", "pairwise_distance",
    "pixel_shuffle", "pixel_unshuffle", "prelu", "rrelu", "selu",
)  # fmt: skip
for _name in _NEURAL:
    del globals()[_name]  # the op library's, of other arguments: PyTorch's are in dynamic/pytorch/neural.py
globals().update(_tapes.functions)
_library = [name for name in _ops if name not in _NEURAL]

_LATER = ("amp", "autograd", "distributions", "func", "nn", "optim", "special", "utils")
_paths.install()
globals().update(fft=_paths.file_of(__name__, "fft", _FOURIER))


def __getattr__(name: str) -> _Any:
    """Load a rarely used submodule or function. Raises AttributeError with the remedy for other names."""
    import importlib

    from dynamic.pytorch import seldom, switches

    if name in _LATER or switches.is_place(name):
        return importlib.import_module(f"dynamic.{name}")
    if name in (*_NEURAL, *_LAYERS) and name not in seldom.REMEDIES:
        return getattr(importlib.import_module("dynamic.pytorch.neural"), name)
    if name in seldom.__all__:
        return getattr(seldom, name)
    if name.startswith("_foreach_") and hasattr(Tensor, name[9:]):
        return seldom.foreach(name[9:])
    if ("", name) in switches.NAMES:
        return switches.make("", name)
    if name.endswith("_") and not name.startswith("_") and hasattr(Tensor, name):  # `torch.exp_(x)` is `x.exp_()`
        return getattr(Tensor, name)
    raise AttributeError(seldom.explain_absence(name))


__all__ = [  # noqa: PLE0604  (the last three are lists of names)
    "Entry", "Node", "PoolStats", "Tape", "TapeStats", "Tensor", "record", "tape_of", "tape_stats",
    "backward", "checkpoint", "elementwise_grad", "grad", "grad_of", "hessian", "hessian_vector_product", "hvp",
    "jacobian", "jvp", "value_and_grad", "vjp",
    "enable_grad", "inference_mode", "is_grad_enabled", "is_inference_mode_enabled", "no_grad", "set_grad_enabled",
    "batched", "cell", "detect_anomaly", "linalg", "pool",
    "bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint8",
    "Size", "device", "double", "dtype", "half", "load", "long", "save", "set_printoptions", "short",
    *_creation, *_random, *_torch, *_library,
]  # fmt: skip

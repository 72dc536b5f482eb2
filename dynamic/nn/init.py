"""Initial values of parameters, with PyTorch's names and distributions; the numbers differ from PyTorch's."""

from __future__ import annotations

import functools
import math
import warnings
from typing import Any

import numpy as np

from dynamic.grad_mode import no_grad
from dynamic.nn import draws
from dynamic.nn.parameter import check_untraced
from graphs.errors import ShapeError, locate
from graphs.frontends.torch.names import guard

__all__ = [
    "calculate_gain", "constant_", "dirac_", "eye_", "kaiming_normal_", "kaiming_uniform_", "normal_", "ones_",
    "orthogonal_", "sparse_", "trunc_normal_", "uniform_", "xavier_normal_", "xavier_uniform_", "zeros_",
]  # fmt: skip


def _fill(tensor: Any, values: Any) -> Any:
    check_untraced()
    with no_grad():
        return tensor.copy_(np.asarray(values).astype(tensor.dtype))


def uniform_(tensor: Any, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Any:
    """Fill with uniform numbers from a to b."""
    return _fill(tensor, draws.uniform(tensor.shape, a, b, generator))


def normal_(tensor: Any, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Any:
    """Fill with normal numbers."""
    return _fill(tensor, draws.normal(tensor.shape, mean, std, generator))


def trunc_normal_(
    tensor: Any, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Any:
    """Fill with normal numbers from a to b: numbers outside are drawn again."""
    values = draws.normal(tensor.shape, mean, std, generator)
    while (outside := (values < a) | (values > b)).any():
        values[outside] = draws.normal((int(outside.sum()),), mean, std, generator)
    return _fill(tensor, values)


def constant_(tensor: Any, val: float) -> Any:
    """Fill with one value."""
    return _fill(tensor, np.full(tensor.shape, val))


def ones_(tensor: Any) -> Any:
    """Fill with ones."""
    return constant_(tensor, 1)


def zeros_(tensor: Any) -> Any:
    """Fill with zeros."""
    return constant_(tensor, 0)


def eye_(tensor: Any) -> Any:
    """Fill with the identity matrix. Raises ShapeError for a tensor that is no matrix."""
    if len(tensor.shape) != 2:
        raise ShapeError(locate(f"eye_: a matrix has two axes, not the shape {tensor.shape}"))
    return _fill(tensor, np.eye(*tensor.shape))


def dirac_(tensor: Any, groups: int = 1) -> Any:
    """Fill the weight of a convolution so that it passes channels on unchanged. Raises ShapeError for other tensors."""
    if len(tensor.shape) not in (3, 4, 5) or tensor.shape[0] % groups:
        raise ShapeError(locate(f"dirac_: a weight of a convolution in {groups} groups, not the shape {tensor.shape}"))
    values = np.zeros(tensor.shape)
    each = tensor.shape[0] // groups
    middle = tuple(size // 2 for size in tensor.shape[2:])
    for group in range(groups):
        for i in range(min(each, tensor.shape[1])):
            values[(group * each + i, i, *middle)] = 1
    return _fill(tensor, values)


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor for initial values before a nonlinearity. Raises ValueError for an unknown nonlinearity."""
    gains = {"tanh": 5 / 3, "relu": math.sqrt(2), "selu": 3 / 4}
    plain = ("linear", "sigmoid", "conv1d", "conv2d", "conv3d", *(f"conv_transpose{i}d" for i in (1, 2, 3)))
    if nonlinearity == "leaky_relu":
        return math.sqrt(2 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity not in gains and nonlinearity not in plain:
        raise ValueError(f"no gain is known for {nonlinearity!r}; one of {', '.join((*gains, *plain, 'leaky_relu'))}")
    return gains.get(nonlinearity, 1.0)


def fans(tensor: Any) -> tuple[int, int]:
    """The number of inputs of an output, and of outputs of an input. Raises ValueError for less than two axes."""
    if len(tensor.shape) < 2:
        raise ValueError(f"fans need a tensor of two axes or more, not the shape {tensor.shape}")
    window = math.prod(tensor.shape[2:])
    return tensor.shape[1] * window, tensor.shape[0] * window


_calculate_fan_in_and_fan_out = fans  # PyTorch's name, which layers of programs call


def xavier_uniform_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Fill with uniform numbers of variance 2 * gain ** 2 / (inputs + outputs) (Glorot and Bengio, 2010)."""
    bound = gain * math.sqrt(6 / sum(fans(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Fill with normal numbers of variance 2 * gain ** 2 / (inputs + outputs)."""
    return normal_(tensor, 0.0, gain * math.sqrt(2 / sum(fans(tensor))), generator)


def _he(tensor: Any, a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"mode is 'fan_in' or 'fan_out', not {mode!r}")
    return calculate_gain(nonlinearity, a) / math.sqrt(fans(tensor)[mode == "fan_out"])


def kaiming_uniform_(
    tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Any:
    """Fill with uniform numbers of variance gain ** 2 / fan (He et al., 2015)."""
    bound = math.sqrt(3) * _he(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Any:
    """Fill with normal numbers of variance gain ** 2 / fan."""
    return normal_(tensor, 0.0, _he(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor: Any, gain: float = 1, generator: Any = None) -> Any:
    """Fill with a matrix of orthogonal rows or columns (Saxe et al., 2013)."""
    if len(tensor.shape) < 2:
        raise ValueError(f"orthogonal_: needs two axes or more, not the shape {tensor.shape}")
    rows = tensor.shape[0]
    flat = draws.normal((rows, math.prod(tensor.shape) // rows), 0.0, 1.0, generator)
    q, r = np.linalg.qr(flat.T if flat.shape[0] < flat.shape[1] else flat)
    q = q * np.sign(np.diag(r))
    return _fill(tensor, gain * (q.T if flat.shape[0] < flat.shape[1] else q).reshape(tensor.shape))


def sparse_(tensor: Any, sparsity: float, std: float = 0.01, generator: Any = None) -> Any:
    """Fill a matrix with normal numbers, and set a share of each column to 0. Raises ShapeError for other tensors."""
    if len(tensor.shape) != 2:
        raise ShapeError(locate(f"sparse_: a matrix has two axes, not the shape {tensor.shape}"))
    rows, columns = tensor.shape
    values = draws.normal(tensor.shape, 0.0, std, generator)
    for column in range(columns):
        values[draws.permutation(rows, generator)[: math.ceil(sparsity * rows)], column] = 0
    return _fill(tensor, values)


guard(globals(), __all__)


def _older(name: str) -> Any:
    """The older name of a function, without the `_`, which warns as PyTorch's does."""
    function = globals()[f"{name}_"]

    @functools.wraps(function)
    def fill(*args: Any, **options: Any) -> Any:
        warnings.warn(f"nn.init.{name} is deprecated; use nn.init.{name}_", FutureWarning, stacklevel=2)
        return function(*args, **options)

    return fill


_OLDER = ("constant", "dirac", "eye", "kaiming_normal", "kaiming_uniform", "normal", "orthogonal", "sparse", "uniform")
globals().update({name: _older(name) for name in (*_OLDER, "xavier_normal", "xavier_uniform")})

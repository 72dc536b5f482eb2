"""Clipping of gradients, parameters as one vector, and padding of sequences, with PyTorch's names."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dynamic.grad_mode import no_grad
from dynamic.nn.parameter import functional_call
from dynamic.nn.utils import rnn, weights
from dynamic.nn.utils.weights import *  # noqa: F403
from dynamic.paths import file_of, submodule
from dynamic.tensor import Tensor, wrap
from graphs import ops, optim
from graphs.errors import GraphError, locate
from graphs.frontends.torch.names import guard
from graphs.frontends.torch.words import as_dtype
from graphs.ops.scans import round_to_dtype

__all__ = [  # noqa: PLE0604  (a list of names)
    "clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "get_total_norm", "parameters_to_vector", "rnn",
    "stateless", "vector_to_parameters", *weights.__all__,
]  # fmt: skip

stateless = file_of(__name__, "stateless", {"functional_call": functional_call})  # its older path
parametrize = file_of(__name__, "parametrize", weights.PARAMETRIZE)
parametrizations = file_of(__name__, "parametrizations", weights.PARAMETRIZATIONS)


def _grads(parameters: Any) -> list[np.ndarray[Any, Any]]:
    listed = [parameters] if isinstance(parameters, Tensor) else parameters
    return [param.grad._data for param in listed if param.grad is not None]


def _norm(arrays: Sequence[np.ndarray[Any, Any]], kind: float) -> Any:
    """The norm of arrays as one vector, in their dtype; the powers of float16, which end at 256 squared, in float32."""
    if not arrays:
        return np.zeros((), as_dtype(None))
    wide = [array.astype(np.promote_types(array.dtype, np.float32), copy=False).ravel() for array in arrays]
    total = np.linalg.norm(np.stack([np.linalg.norm(array, kind) for array in wide]), kind)
    return round_to_dtype(np.asarray(total), np.result_type(*arrays), None)


def get_total_norm(
    tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """The norm of all tensors as one vector. Raises RuntimeError where it is not finite and that is asked for."""
    listed = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    norm = _norm([tensor._data for tensor in listed], float(norm_type))
    if error_if_nonfinite and not math.isfinite(norm):
        raise RuntimeError(
            f"the norm of order {norm_type} of the gradients is {norm}; look for the first that is not finite"
        )
    return wrap(np.asarray(norm))


def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale all gradients together, in place, so that their norm is at most `max_norm`; returns the old norm."""
    listed = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    with_gradient = [param for param in listed if param.grad is not None]
    if any(not issubclass(type(param), Tensor) for param in with_gradient):  # symbols of a trace, which nothing changes
        if norm_type != 2:
            raise GraphError(locate(f"clip_grad_norm_: in a trace the norm is of order 2, not {norm_type}"))
        gradients = [param.grad for param in with_gradient]
        for param, gradient in zip(with_gradient, optim.clip_by_global_norm(gradients, float(max_norm)), strict=True):
            param.grad = gradient
        return optim.global_norm(gradients)
    grads = _grads(listed)
    norm = get_total_norm([wrap(grad) for grad in grads], norm_type, error_if_nonfinite)
    factor = np.minimum(float(max_norm) / (norm._data + 1e-6), 1.0)
    for grad in grads:
        np.multiply(grad, factor.astype(grad.dtype), out=grad)
    return norm


clip_grad_norm = clip_grad_norm_


def clip_grad_value_(parameters: Any, clip_value: float, foreach: bool | None = None) -> None:
    """Limit every element of the gradients, in place, to the range from -clip_value to clip_value."""
    for grad in _grads(parameters):
        np.clip(grad, -float(clip_value), float(clip_value), out=grad)


def parameters_to_vector(parameters: Iterable[Any]) -> Any:
    """All parameters as one vector, a recorded op."""
    return ops.concat([ops.reshape(param, (-1,)) for param in parameters])


def vector_to_parameters(vec: Any, parameters: Iterable[Any]) -> None:
    """Write a vector into parameters, in place. Raises GraphError for another number of elements."""
    listed = list(parameters)
    total = sum(param._data.size for param in listed)
    if vec._data.size != total:
        raise GraphError(locate(f"vector_to_parameters: {vec._data.size} elements for parameters of {total}"))
    first = 0
    with no_grad():
        for param in listed:
            param.copy_(vec._data[first : first + param._data.size].reshape(param.shape))
            first += param._data.size


guard(globals(), __all__)


def __getattr__(name: str) -> object:
    return submodule(__name__, name)

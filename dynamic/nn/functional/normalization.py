"""Normalisation with PyTorch's names and options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dynamic.checkpoint import one_op
from dynamic.grad_mode import no_grad
from dynamic.inplace import assign, is_view
from dynamic.nn.functional.common import Array, check_dtypes, in_single
from dynamic.tensor import Tensor
from graphs import dims, ops
from graphs.errors import GraphError, OptionError, ShapeError, locate
from graphs.frontends.torch.words import floats
from graphs.ops.neural import inverse_root_mean_square, less, normalized_batch
from graphs.ops.shapes import dtype_of, shape_of
from graphs.ops.windows import window_of

__all__ = [
    "batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm", "normalize", "rms_norm",
]  # fmt: skip


def batch_norm(
    input: Array,
    running_mean: Array | None,
    running_var: Array | None,
    weight: Array | None = None,
    bias: Array | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Array:
    """Each channel of f[N, C, ...] brought to mean 0 and variance 1, then scaled and shifted.

    In training by the statistics of the batch, which running ones, if given, take a share of in place; else by those.
    Raises ValueError for a single value per channel in training, GraphError for running ones in a trace.
    """
    _check_channels(input, running_mean, running_var, weight, bias)
    if not training:
        if running_mean is None or running_var is None:
            raise GraphError(locate("batch_norm: outside of training it needs running_mean and running_var"))
        return ops.batch_norm(input, weight, bias, mean=running_mean, variance=running_var, eps=eps)
    if not eps > 0:
        raise OptionError(f"eps is above 0 in training, not {eps}; else a channel of one value is divided by 0")
    count = dims.product(size for i, size in enumerate(shape_of(input)) if i != 1)
    if dims.same(count, 1):
        raise ValueError(
            f"batch_norm: one value per channel in training, of shape {shape_of(input)}; use a larger batch"
        )
    if dims.same(count, 0):  # there is nothing to bring anywhere, and nothing to learn for the running statistics
        nothing = np.zeros(shape_of(input)[1].__index__(), dtype_of(input))
        return ops.batch_norm(input, weight, bias, mean=nothing, variance=nothing, eps=eps)
    if running_mean is None or running_var is None:
        return normalized_batch(input, weight, bias, eps)[0]
    with one_op():
        result, mean, variance = normalized_batch(input, weight, bias, eps)
        _move("batch_norm", running_mean, mean, momentum, lambda: 1.0)
        _move("batch_norm", running_var, variance, momentum, lambda: int(count) / (int(count) - 1))
    return result


def _check_channels(x: Array, *vectors: Array | None) -> None:
    """Raise unless vectors have the dtype of x and one element for each channel."""
    if dtype_of(x) != np.float16:  # beside which parameters are float32 as well
        check_dtypes(x, *vectors)
    for vector in vectors:
        if vector is not None and not dims.same_shape(shape_of(vector), shape_of(x)[1:2]):
            raise ShapeError(f"a vector of shape {shape_of(vector)} for {shape_of(x)[1]} channels; give one for each")


def _move(name: str, running: Array, now: Array, share: float, factor: Callable[[], float]) -> None:
    if issubclass(type(running), Tensor) and issubclass(type(now), Tensor | np.ndarray):
        with no_grad():
            value = (now._data if issubclass(type(now), Tensor) else now) * factor()
            assign(running, Tensor((1 - share) * running._data + (share * value).astype(running.dtype)))
        return
    try:
        _no_tensor(running)._assign(ops.add(ops.multiply(running, 1 - share), ops.multiply(now, share * factor())))
    except GraphError as error:
        raise GraphError(
            locate(
                f"{name}: in a trace running statistics cannot change, since a graph changes no tensor; call eval() "
                "on the module, or make it with track_running_stats=False"
            )
        ) from error


def _no_tensor(running: Array) -> Any:
    if issubclass(type(running), Tensor | np.ndarray):
        raise GraphError("it is no value of the graph")
    return running


@in_single
def layer_norm(
    input: Array,
    normalized_shape: Sequence[int],
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-5,
) -> Array:
    """The last axes together brought to mean 0 and variance 1, then scaled and shifted. Raises ShapeError."""
    check_dtypes(input, weight, bias)
    axes = _last(input, normalized_shape, "layer_norm")
    centred = less(input, ops.mean(input, axis=axes, keepdims=True))
    return _affine(ops.multiply(centred, inverse_root_mean_square(centred, axes, eps)), weight, bias)


@in_single
def rms_norm(
    input: Array, normalized_shape: Sequence[int], weight: Array | None = None, eps: float | None = None
) -> Array:
    """The last axes divided by their root mean square, then scaled. Raises ShapeError."""
    axes = _last(input, normalized_shape, "rms_norm")
    eps = float(np.finfo(dtype_of(input)).eps) if eps is None else eps
    return _affine(ops.multiply(input, inverse_root_mean_square(input, axes, eps)), weight, None)


def _last(x: Array, sizes: Sequence[int], name: str) -> tuple[int, ...]:
    count = len(sizes)
    if tuple(shape_of(x)[-count:]) != tuple(sizes):
        raise ShapeError(locate(f"{name}: normalized_shape {tuple(sizes)} for an input of shape {shape_of(x)}"))
    return tuple(range(-count, 0))


def _affine(x: Array, weight: Array | None, bias: Array | None) -> Array:
    scaled = x if weight is None else ops.multiply(x, weight)
    return scaled if bias is None else ops.add(scaled, bias)


@in_single
def group_norm(
    input: Array, num_groups: int, weight: Array | None = None, bias: Array | None = None, eps: float = 1e-5
) -> Array:
    """Each group of channels of each example of f[N, C, ...] brought to mean 0 and variance 1."""
    check_dtypes(input, weight, bias)
    return _owning(ops.group_norm(input, num_groups, weight, bias, eps=eps))


def instance_norm(
    input: Array,
    running_mean: Array | None = None,
    running_var: Array | None = None,
    weight: Array | None = None,
    bias: Array | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Array:
    """Each channel of each example of f[N, C, ...] brought to mean 0 and variance 1, then scaled and shifted.

    With `use_input_stats=False` by running statistics; else these, if given, take a share, in place, of the means of
    the examples' statistics. Raises ValueError for a single value per channel, GraphError for running ones in a trace.
    """
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    axes = tuple(range(2, len(shape_of(input))))
    count = dims.product(shape_of(input)[2:])
    if dims.same(count, 1):
        raise ValueError(
            f"instance_norm: one value per channel of an example, of shape {shape_of(input)}; use a larger input"
        )
    result = _owning(in_single(ops.instance_norm)(input, weight, bias, eps=eps))
    if running_mean is not None and running_var is not None:  # which may lie in the memory of what was just read
        mean, variance = (ops.mean(f(input, axis=axes), axis=0) for f in (ops.mean, ops.var))
        _move("instance_norm", running_mean, mean, momentum, lambda: 1.0)
        _move("instance_norm", running_var, variance, momentum, lambda: int(count) / (int(count) - 1))
    return result


def _owning(result: Array) -> Array:
    """Copy a view: results own their memory, as in PyTorch, since an activation may change them in place."""
    return ops.identity(result) if issubclass(type(result), Tensor) and is_view(result._data) else result


def normalize(input: Array, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Array:
    """Vectors along an axis divided by their p-norm, or by `eps` where that is larger."""
    norm = ops.vector_norm(input, axis=dim, keepdims=True, ord=p)
    return ops.divide(input, ops.maximum(norm, eps))


def local_response_norm(input: Array, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Array:
    """x / (k + alpha * m) ** beta, m the mean of squares of `size` channels around each (Krizhevsky et al., 2012).

    f[N, C, ...]; what lies beyond the channels counts as 0. Raises ShapeError for fewer than three axes.
    """
    if len(shape_of(input)) < 3:
        raise ShapeError(locate(f"local_response_norm: takes f[N, C, ...], not shape {shape_of(input)}; add axes"))
    if any(dims.same(length, 0) for length in shape_of(input)):
        return input
    input = floats(input)
    window = window_of([size], 1, [(size // 2, (size - 1) // 2)], 1)
    squares = ops.moveaxis(ops.square(input), 1, -1)
    means = ops.divide(ops.moveaxis(ops.window_sum(squares, window=window), -1, 1), size)
    return ops.divide(input, ops.pow(ops.add(ops.multiply(means, alpha), k), beta))

"""Layers as functions with PyTorch's names and options, in this order.

Products and attention. Dropout: elements, or whole channels, that are replaced at random in training. Table look-ups:
rows by index, each or joined in bags; and indices as one-hot rows. Normalization: over batches, channels or groups.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dynamic.checkpoint import one_op
from dynamic.grad_mode import no_grad
from dynamic.inplace import assign, is_view
from dynamic.nn import draws
from dynamic.nn.functional.common import Array, check_dtypes, check_indices, concrete, refuse, write_result
from dynamic.random import DrawnNumbers, default_generator
from dynamic.tensor import Tensor, wrap
from graphs import dims, ops
from graphs.errors import GraphError, OptionError, ShapeError, locate
from graphs.frontends.torch.functions import scatter_add
from graphs.frontends.torch.picking import check_places
from graphs.frontends.torch.shapes import laid_as_images, laid_in_rows, memory_of
from graphs.frontends.torch.words import floats, of_floats
from graphs.ops import neural
from graphs.ops.movement import cast, in_single
from graphs.ops.neural import by_rows, inverse_root_mean_square, less, normalized_batch
from graphs.ops.shapes import dtype_of, lay, shape_of
from graphs.ops.windows import window_of

__all__ = [
    "alpha_dropout", "batch_norm", "bilinear", "dropout", "dropout1d", "dropout2d", "dropout3d", "embedding",
    "embedding_bag", "feature_alpha_dropout", "group_norm", "instance_norm", "layer_norm", "linear",
    "local_response_norm", "normalize", "one_hot", "rms_norm", "scaled_dot_product_attention",
]  # fmt: skip


def linear(input: Array, weight: Array, bias: Array | None = None) -> Array:
    """x @ weight.T + bias: f[..., in], f[out, in], f[out] -> f[..., out]."""
    check_dtypes(input, weight, bias)
    return by_rows(input, weight) if bias is None else ops.linear(input, weight, bias)


def bilinear(input1: Array, input2: Array, weight: Array, bias: Array | None = None) -> Array:
    """x1 @ weight @ x2 + bias for each output: f[..., m], f[..., n], f[out, m, n] -> f[..., out]."""
    check_dtypes(input1, input2, weight, bias)
    product = ops.einsum("...m,omn,...n->...o", input1, weight, input2)
    return product if bias is None else ops.add(product, bias)


@in_single
def scaled_dot_product_attention(
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Array | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Array:
    """softmax(query @ key.T * scale + mask) @ value; a mask of bools is True where attention is allowed."""
    check_dtypes(query, key, value)
    refuse("scaled_dot_product_attention", "repeat the heads of key and value", enable_gqa=(enable_gqa, False))
    if is_causal:
        if attn_mask is not None:
            raise GraphError(locate("scaled_dot_product_attention: is_causal and attn_mask; give one of them"))
        rows, columns = (ops.arange(shape_of(x)[-2]) for x in (query, key))
        attn_mask = ops.less_equal(columns, ops.expand_dims(rows, -1))
    if scale is not None:
        query = ops.multiply(query, scale * math.sqrt(shape_of(query)[-1]))
    if dropout_p == 0:
        return ops.attention(query, key, value, mask=attn_mask)
    weights = attention_weights(query, key, attn_mask)
    return ops.matmul(dropout(weights, dropout_p), value)


def attention_weights(query: Array, key: Array, mask: Array | None) -> Array:
    """softmax(query @ key.T / sqrt(D)), masked: f[..., T, D], f[..., S, D] -> f[..., T, S]."""
    return neural.attention_weights(query, key, mask)


_LOWEST = 1.6732632423543772848170429916717 * 1.0507009873554804934193349852946  # minus this is selu(-inf)


@of_floats
def dropout(input: Array, p: float = 0.5, training: bool = True, inplace: bool = False) -> Array:
    """In training, zero each element with probability p and divide the others by 1 - p."""
    return _drop("dropout", input, p, training, inplace, ())


@of_floats
def dropout1d(input: Array, p: float = 0.5, training: bool = True, inplace: bool = False) -> Array:
    """dropout of whole channels of f[N, C, L] or f[C, L]."""
    return _drop("dropout1d", input, p, training, inplace, (-1,))


@of_floats
def dropout2d(input: Array, p: float = 0.5, training: bool = True, inplace: bool = False) -> Array:
    """dropout of whole channels of f[N, C, H, W], or of f[N, C, L]."""
    return _drop("dropout2d", input, p, training, inplace, tuple(range(2 - len(shape_of(input)), 0)))


@of_floats
def dropout3d(input: Array, p: float = 0.5, training: bool = True, inplace: bool = False) -> Array:
    """dropout of whole channels of f[N, C, D, H, W] or f[C, D, H, W]."""
    return _drop("dropout3d", input, p, training, inplace, (-3, -2, -1))


def alpha_dropout(input: Array, p: float = 0.5, training: bool = False, inplace: bool = False) -> Array:
    """dropout to the least value of selu, scaled and shifted so that mean 0 and variance 1 stay (Klambauer, 2017)."""
    return _alpha_drop("alpha_dropout", input, p, training, inplace, ())


def feature_alpha_dropout(input: Array, p: float = 0.5, training: bool = False, inplace: bool = False) -> Array:
    """alpha_dropout of whole channels of f[N, C, ...]. Raises ShapeError for fewer axes."""
    axes = len(shape_of(input))
    if training and axes < 2:
        raise ShapeError(locate(f"feature_alpha_dropout: takes f[N, C, ...], not shape {shape_of(input)}; add axes"))
    return _alpha_drop("feature_alpha_dropout", input, p, training, inplace, tuple(range(2 - axes, 0)))


def _drop(name: str, x: Array, p: float, training: bool, inplace: bool, together: tuple[int, ...]) -> Array:
    _check(name, p)
    if not training or p == 0:
        return x
    if p == 1:
        return write_result(x, ops.multiply(x, 0), inplace)
    return write_result(x, ops.where(_keep_mask(x, p, together), ops.multiply(x, 1 / (1 - p)), 0), inplace)


def _alpha_drop(name: str, x: Array, p: float, training: bool, inplace: bool, together: tuple[int, ...]) -> Array:
    _check(name, p)
    if not training or p == 0:
        return x
    if p == 1:
        return write_result(x, ops.multiply(x, 0) if dtype_of(x).kind == "f" else ops.zeros_like(x), inplace)
    scale = 1 / math.sqrt((1 - p) * (1 + p * _LOWEST**2))
    low, shift = -_LOWEST * scale, _LOWEST * scale * p
    return write_result(x, ops.add(ops.where(_keep_mask(x, p, together), ops.multiply(x, scale), low), shift), inplace)


def _check(name: str, p: float) -> None:
    if not 0 <= p <= 1:
        raise OptionError(locate(f"{name}: p is a probability, not {p}; choose one from 0 to 1"))


def _keep_mask(x: Array, p: float, together: tuple[int, ...]) -> Array:
    """The bool mask of elements to keep; it is constant along the axes `together`."""
    shape = tuple(1 if i - len(shape_of(x)) in together else size for i, size in enumerate(shape_of(x)))
    if isinstance(numbers := default_generator.numpy, DrawnNumbers):
        return numbers.kept(tuple(map(int, shape)), p)
    kept = ops.bernoulli(draws.key_for(x), 1 - p, shape)
    if (memory := memory_of(x)) is not None:
        kept = lay(kept, [memory])
    return wrap(kept) if issubclass(type(x), Tensor) else kept  # of a tensor, so that a pass back frees it


def embedding(
    input: Array,
    weight: Array,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Array:
    """Rows of a table; that of `padding_idx` gets no gradient. Raises OutOfRangeError for other indices.

    The gradient has all rows, 0 where none is looked up, and `sparse` changes nothing: SGD and Adagrad step alike.
    With `scale_grad_by_freq`, the gradient of a row is divided by how often it is looked up.
    With `max_norm`, rows that are looked up and whose `norm_type` norm is larger are first brought to it, in the table.
    """
    del sparse
    rows = _rows(input, weight)
    check_indices("embedding", input, rows)
    if max_norm is not None:
        _shorten("embedding", weight, input, max_norm, norm_type)
    vectors = ops.embedding(weight, input)
    if scale_grad_by_freq:
        flat = ops.reshape(input, (-1,))
        counts = scatter_add(ops.zeros((rows,), dtype=dtype_of(weight)), 0, flat, ops.ones_like(flat, dtype_of(weight)))
        share = ops.expand_dims(ops.divide(1, ops.reshape(counts[flat], shape_of(input))), -1)
        held = ops.stop_gradient(vectors)
        vectors = ops.add(held, ops.multiply(ops.subtract(vectors, held), share))
    if padding_idx is None:
        return vectors
    padding = ops.equal(input, padding_idx + rows if padding_idx < 0 else padding_idx)
    return ops.where(ops.expand_dims(padding, -1), ops.stop_gradient(vectors), vectors)


def _rows(indices: Array, table: Array) -> Any:
    """The number of rows of the table. Raises ShapeError for a table that is no matrix, DTypeError for no indices."""
    if len(shape_of(table)) != 2:
        raise ShapeError(f"the table is a matrix, not of shape {shape_of(table)}; reshape it")
    check_places(indices)
    return shape_of(table)[0]


def _shorten(name: str, table: Array, indices: Array, max_norm: float, norm_type: float) -> None:
    """Bring the rows at the indices to a norm of at most `max_norm`, in place and without a gradient."""
    places = concrete(indices)
    if not issubclass(type(table), Tensor) or places is None:
        raise GraphError(locate(f"{name}: max_norm changes the table, which a trace cannot; divide the rows before"))
    with no_grad():
        looked_up = np.unique(places)
        rows = ops.take(table, looked_up, axis=0)
        norms = ops.vector_norm(rows, axis=-1, keepdims=True, ord=norm_type)
        shorter = ops.multiply(rows, ops.divide(max_norm, ops.add(norms, 1e-7)))
        table[looked_up] = ops.where(ops.greater(norms, max_norm), shorter, rows)


def embedding_bag(
    input: Array,
    weight: Array,
    offsets: Array | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Array | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Array:
    """The sum, mean or max of the rows in each bag: i[B, L], or i[n] with the first place of each bag -> f[B, width].

    Rows of `padding_idx` count for nothing; an empty bag is 0. The rows of a sum may have weights. With
    `include_last_offset` the last of the offsets is the end of the last bag. Raises OptionError, ShapeError and
    OutOfRangeError.
    """
    del sparse
    refuse("embedding_bag", "leave it out", scale_grad_by_freq=(scale_grad_by_freq, False))
    if mode not in ("sum", "mean", "max"):
        raise OptionError(locate(f"embedding_bag: mode is 'sum', 'mean' or 'max', not {mode!r}; choose one"))
    rows = _rows(input, weight)
    check_indices("embedding_bag", input, rows)
    if max_norm is not None:
        _shorten("embedding_bag", weight, input, max_norm, norm_type)
    numbers, bags, count = _bags(input, offsets, include_last_offset)
    if padding_idx is not None:  # what counts for nothing goes where what is past the last bag goes
        bags = ops.where(ops.equal(numbers, padding_idx + rows if padding_idx < 0 else padding_idx), count, bags)
    vectors = ops.embedding(weight, numbers)
    if per_sample_weights is not None:
        if mode != "sum" or tuple(shape_of(per_sample_weights)) != tuple(shape_of(input)):
            raise OptionError(
                locate("embedding_bag: per_sample_weights go with mode='sum', one for each index; leave them out")
            )
        vectors = ops.multiply(vectors, ops.reshape(per_sample_weights, (-1, 1)))
    return _join_bags(vectors, bags, count, mode)[:count]


def _bags(input: Array, offsets: Array | None, include_last: bool) -> tuple[Array, Array, Any]:
    """All indices as a vector, the bag number of each, and the number of bags."""
    shape = shape_of(input)
    if len(shape) == 2 and offsets is None:
        bags = ops.add(ops.expand_dims(ops.arange(shape[0]), 1), ops.zeros((1, shape[1]), dtype=np.int64))
        return ops.reshape(input, (-1,)), ops.reshape(bags, (-1,)), shape[0]
    if len(shape) != 1 or offsets is None or len(shape_of(offsets)) != 1:
        raise ShapeError(locate("embedding_bag: takes i[B, L] without offsets, or i[n] with offsets of one axis"))
    _check_offsets(concrete(offsets), shape[0], include_last)
    bags = ops.subtract(ops.searchsorted(offsets, ops.arange(shape[0], dtype=dtype_of(offsets)), side="right"), 1)
    return input, bags, shape_of(offsets)[0] - (1 if include_last else 0)


def _check_offsets(starts: np.ndarray[Any, Any] | None, count: Any, include_last: bool) -> None:
    if starts is None or not starts.size or not isinstance(count, int):
        return
    if starts[0] != 0 or starts[-1] > count or np.any(np.diff(starts) < 0):
        rule = f"offsets are 0 and then no less than the one before, up to {count}"
        raise OptionError(locate(f"embedding_bag: {rule}, not {starts.tolist()}; sort them"))
    if include_last and starts[-1] != count:
        raise OptionError(locate(f"embedding_bag: the last of the offsets is the number of indices, {count}; add it"))


def _join_bags(rows: Array, bags: Array, count: Any, mode: str) -> Array:
    """The joined rows of each bag; last, the row for indices that belong to no bag."""
    shape = (count + 1, shape_of(rows)[1])
    if mode == "max":
        places = ops.broadcast_to(ops.expand_dims(bags, 1), shape_of(rows))
        return ops.scatter_reduce(ops.zeros(shape, dtype_of(rows)), 0, places, rows, "amax", include_self=False)
    total = ops.scatter_add(rows, bags, shape, 0)
    if mode == "sum":
        return total
    sizes = ops.scatter_add(ops.ones(shape_of(bags), dtype_of(rows)), bags, (count + 1,), 0)
    return ops.divide(total, ops.expand_dims(ops.maximum(sizes, 1), 1))


@laid_in_rows
def one_hot(tensor: Array, num_classes: int = -1) -> Array:
    """1 at each index along a new last axis, 0 elsewhere, as int64; a trace needs num_classes."""
    check_places(tensor)
    if num_classes == -1:
        array = concrete(tensor)
        if array is None:
            raise GraphError(locate("one_hot: the number of classes depends on values here; give num_classes"))
        if not array.size:
            raise ShapeError("no index tells the number of classes; give num_classes")
        num_classes = int(array.max()) + 1
    if num_classes < 1:
        raise OptionError(f"there are 1 class or more, not {num_classes}; give their number")
    check_indices("one_hot", tensor, num_classes)
    return ops.one_hot(tensor, num_classes, np.int64)


# Normalization --------------------------------------------------------------------------------------------------------


@laid_as_images
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
            assign(running, wrap((1 - share) * running._data + (share * value).astype(running.dtype)))
        return
    try:
        moved = cast(ops.multiply(now, share * factor()), dtype_of(running))
        _no_tensor(running)._assign(ops.add(ops.multiply(running, 1 - share), moved))
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


@laid_in_rows
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


@laid_as_images
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


@laid_as_images
@in_single
def group_norm(
    input: Array, num_groups: int, weight: Array | None = None, bias: Array | None = None, eps: float = 1e-5
) -> Array:
    """Each group of channels of each example of f[N, C, ...] brought to mean 0 and variance 1."""
    check_dtypes(input, weight, bias)
    return _owning(ops.group_norm(input, num_groups, weight, bias, eps=eps))


@laid_in_rows
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

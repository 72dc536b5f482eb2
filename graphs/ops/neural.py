"""Neural network functions made of ops: activations, normalisation, dropout and attention; then the op `linear`.

`linear` is a product with the rows of a matrix and a shift, as one op. Last, resizing of images, as PyTorch's
`interpolate`: from the nearest elements, linearly along each axis, or by a kernel of weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphs import dims
from graphs.dims import Shape, Size
from graphs.errors import DTypeError, ShapeError
from graphs.op import Array, Op, Prepared
from graphs.ops.composites import var
from graphs.ops.elementwise import (
    add,
    divide,
    expm1,
    greater,
    less_equal,
    multiply,
    negative,
    not_equal,
    sqrt,
    square,
    tanh,
    where,
)
from graphs.ops.families import composite
from graphs.ops.indexing import take
from graphs.ops.linalg import BLAS, SMALL, matmul, matrix_product, rows, transpose_matrix
from graphs.ops.movement import astype, cast, in_single, matrix_transpose, reshape, wider
from graphs.ops.pooling import window_spread
from graphs.ops.random import bernoulli
from graphs.ops.reductions import mean
from graphs.ops.reductions import sum as _sum
from graphs.ops.shapes import as_operand, check_groups, dtype_of, holds_half, shape_of
from graphs.ops.softmax import softmax
from graphs.ops.special import by_size, gelu_op
from graphs.spec import TensorSpec

__all__ = [
    "attention", "batch_norm", "batch_statistics", "dropout", "elu", "gelu", "group_norm", "instance_norm",
    "interpolate", "leaky_relu", "linear", "rms_norm",
]  # fmt: skip


# Activations ------------------------------------------------------------------------------------------------------


@in_single
def gelu(x: Array, /, approximate: bool = False) -> Array:
    """x times the normal distribution function of x (Hendrycks and Gimpel, 2016), or its approximation by tanh."""
    if not approximate:
        return by_size(gelu_op, x)
    cubic = multiply(x, add(multiply(square(x), 0.044715), 1))
    return multiply(multiply(x, 0.5), add(tanh(multiply(cubic, math.sqrt(2 / math.pi))), 1))


@in_single
def leaky_relu(x: Array, /, slope: float = 0.01) -> Array:
    """x where it is positive, else `slope` * x; gradient `slope` at 0."""
    # As a product with 1 or the slope, since then its gradient is a product too, without a selection.
    is_positive = greater(x, 0)
    kind = np.result_type(dtype_of(x), float(slope)).type
    return multiply(x, where(is_positive, kind(1), kind(slope)))


@in_single
def elu(x: Array, /, alpha: float = 1.0) -> Array:
    """x where it is positive, else alpha * (exp(x) - 1) (Clevert, Unterthiner and Hochreiter, 2015)."""
    below = less_equal(x, 0)  # so that NaN is x, with the gradient 1
    return where(below, multiply(expm1(where(below, x, 0)), alpha), x)  # no overflow in what is not chosen


# Normalisation ----------------------------------------------------------------------------------------------------


@composite
def batch_norm(
    x: Array, scale: Array = None, shift: Array = None, /, mean: Array = None, variance: Array = None, eps: float = 1e-5
) -> Array:
    """Normalise each channel of f[N, C, ...] to mean 0 and variance 1; scale and shift it by f[C] (Ioffe, Szegedy).

    The statistics are those of the batch, as in training, unless both are given as f[C], as in evaluation.
    `batch_statistics` computes them, to be averaged over the steps. Raises ShapeError for less than two axes.
    """
    if mean is None or variance is None:
        return normalized_batch(x, scale, shift, eps)[0]
    result = _standardise(less(wider(x), _per_channel(mean, x)), _per_channel(wider(variance), x), scale, shift, eps)
    return astype(result, dtype_of(x)) if holds_half(x) else result  # beside float32 too, as parameters may be


def normalized_batch(x: Array, scale: Array, shift: Array, eps: float) -> tuple[Array, Array, Array]:
    """`batch_norm` by the statistics of the batch, and these: the mean f[C] and the variance f[C].

    It makes few passes over x and its cotangent: x is centred once, and one factor per channel combines scale and
    spread.
    """
    if holds_half(x):  # a variance may be more than float16 has: the statistics stay in float32
        result, *statistics = normalized_batch(wider(x), wider(scale), wider(shift), eps)
        return astype(result, dtype_of(x)), *statistics
    axes = tuple(i for i in range(_channel_count(shape_of(x))) if i != 1)
    means = mean(x, axis=axes)
    centred = less(x, _per_channel(means, x))
    variances = mean(square(centred), axis=axes)
    return _standardise(centred, _per_channel(variances, x), scale, shift, eps), means, variances


def _standardise(centred: Array, variance: Array, scale: Array, shift: Array, eps: float) -> Array:
    unit = 1 if scale is None else _per_channel(scale, centred)
    scaled = multiply(centred, divide(unit, sqrt(add(variance, eps))))
    return scaled if shift is None else add(scaled, _per_channel(shift, centred))


def batch_statistics(x: Array, /) -> tuple[Array, Array]:
    """The mean f[C] and variance f[C] of each channel of f[N, C, ...], over all other axes."""
    axes = tuple(i for i in range(_channel_count(shape_of(x))) if i != 1)
    return mean(x, axis=axes), var(x, axis=axes)


@composite
def group_norm(x: Array, groups: Size, scale: Array = None, shift: Array = None, /, eps: float = 1e-5) -> Array:
    """Normalise each group of channels of each example of f[N, C, ...] to mean 0, variance 1 (Wu and He, 2018).

    Scale and shift are f[C]. Raises ShapeError when the groups do not divide the channels.
    """
    shape = shape_of(x)
    _channel_count(shape)
    check_groups(shape[1], groups)
    grouped = reshape(x, (shape[0], groups, dims.product(shape[1:]) // groups))
    centred = less(grouped, mean(grouped, axis=-1, keepdims=True))
    x = reshape(multiply(centred, inverse_root_mean_square(centred, -1, eps)), shape)
    scaled = x if scale is None else multiply(x, _per_channel(scale, x))
    return scaled if shift is None else add(scaled, _per_channel(shift, x))


def instance_norm(x: Array, scale: Array = None, shift: Array = None, /, eps: float = 1e-5) -> Array:
    """Normalise each channel of each example of f[N, C, ...] to mean 0 and variance 1 (Ulyanov et al., 2016)."""
    return group_norm(x, shape_of(x)[1], scale, shift, eps=eps)


def rms_norm(x: Array, scale: Array, /, eps: float = 1e-6) -> Array:
    """The last axis divided by its root mean square, then scaled (Zhang and Sennrich, 2019)."""
    return multiply(multiply(x, inverse_root_mean_square(x, -1, eps)), scale)


def less(x: Array, smaller: Array) -> Array:
    """x - smaller, for an array that broadcasts to x. Its gradient sums before it negates, with fewer negations."""
    return add(x, negative(smaller))


def inverse_root_mean_square(x: Array, axis: int | tuple[int, ...], eps: float) -> Array:
    """1 / sqrt(mean of squares + eps) along the axes, which are kept with size 1.

    A factor, since x times it has a cheaper gradient than x divided by its inverse.
    """
    return divide(1, sqrt(add(mean(square(x), axis=axis, keepdims=True), eps)))


def _channel_count(shape: Shape) -> int:
    if len(shape) < 2:
        raise ShapeError(f"needs axes for the batch and the channels, got {len(shape)}; add one with expand_dims")
    return len(shape)


def _per_channel(values: Array, x: Array) -> Array:
    """f[C] with axes of size 1 after it, so that it broadcasts along the channels of f[N, C, ...]."""
    return reshape(values, (-1, *(1,) * (len(shape_of(x)) - 2)))


# Dropout and attention --------------------------------------------------------------------------------------------


@composite
def dropout(x: Array, rate: float, key: Array, /) -> Array:
    """Zero each element with probability `rate`, else divide it by 1 - rate; x itself when the key is None.

    Raises ValueError for a rate outside 0 to 1.
    """
    if not 0 <= rate <= 1:
        raise ValueError(f"dropout: the rate is a probability, not {rate}")
    if key is None or rate == 0:
        return x
    if rate == 1:
        return multiply(x, 0)
    kept = bernoulli(key, 1 - rate, shape_of(x))
    return where(kept, multiply(x, 1 / (1 - rate)), 0)


@composite
def attention(query: Array, key: Array, value: Array, /, mask: Array = None) -> Array:
    """softmax(query @ key.T / sqrt(D)) @ value: f[..., T, D], f[..., S, D], f[..., S, E] -> f[..., T, E].

    A bool `mask` [..., T, S] is True where attention is allowed. A float mask is added to the argument of softmax, so
    that -inf forbids attention, and has a gradient. Both are as in PyTorch (Vaswani et al., 2017). A row that allows
    nothing gives 0. Raises DTypeError for a mask of ints, which could mean either.
    """
    return matmul(attention_weights(query, key, mask), value)


def attention_weights(query: Array, key: Array, mask: Array = None) -> Array:
    """The weights by which `attention` multiplies the values: softmax(query @ key.T / sqrt(D)), f[..., T, S]."""
    width = shape_of(query)[-1]
    scores = matmul(multiply(query, _inverse_root(width, query)), matrix_transpose(key))
    if mask is None:
        return softmax(scores)
    scores, mask = _mask_scores(scores, as_operand(mask))
    # The lowest number, not -inf: a row of -inf alone would give NaN. The masked elements are set to 0 afterwards.
    lowest = float(np.finfo(scores.dtype).min)
    return where(mask, softmax(where(mask, scores, lowest)), 0)


def _mask_scores(scores: Array, mask: Array) -> tuple[Array, Array]:
    """The scores with a float mask added, and a bool mask of where attention is allowed. Raises DTypeError."""
    kind = dtype_of(mask).kind
    if kind not in "bf":
        raise DTypeError("a mask is bool, or float and added; convert it with astype(mask, 'bool')")
    if kind == "b":
        return scores, mask
    scores = add(scores, cast(mask, scores.dtype))
    return scores, not_equal(scores, -math.inf)


def _inverse_root(width: Size, like: Array) -> Any:
    if isinstance(width, int):
        return 1 / math.sqrt(width)
    return divide(1, sqrt(astype(multiply(width, 1.0), dtype_of(like))))


def _linear(x: Array, weight: Array, bias: Array, *, out: Array = None) -> Array:
    """x @ weight.T + bias: f[..., n], f[m, n], f[m] -> f[..., m]."""
    if bias.shape != weight.shape[:1]:  # NumPy would broadcast it, and its gradient would have another shape
        raise ShapeError("the bias has one element for each row of the weight; reshape it")
    kind = x.dtype
    plain = out is None and x.ndim == 2 and kind is weight.dtype is bias.dtype and kind.num in BLAS
    if plain and len(x) * len(weight) <= SMALL:
        product = x.dot(weight.T)  # as `matrix_product` has it, in one call less
        return np.add(product, bias, product)
    if x.ndim > 2:  # the rows of all matrices at once: for one product, since BLAS takes half as long again for many
        product = matrix_product(x.reshape(math.prod(x.shape[:-1]), x.shape[-1]), weight.T)
        return np.add(product.reshape(*x.shape[:-1], len(weight)), bias, out)
    product = matrix_product(x, weight.T, out)
    if product.dtype is bias.dtype or out is not None:
        return np.add(product, bias, product)
    return np.add(product, bias)


def _infer(x: TensorSpec, weight: TensorSpec, bias: TensorSpec) -> TensorSpec:
    if not x.ndim or weight.ndim != 2 or bias.ndim != 1:
        raise ShapeError("linear takes f[..., n], a matrix f[m, n] and a vector f[m]; reshape the operands")
    if not dims.same(x.shape[-1], weight.shape[1]):
        raise ShapeError("the last size of the input is not that of the weight's rows; transpose the weight?")
    if not dims.same(bias.shape[0], weight.shape[0]):
        raise ShapeError("the bias has one element for each row of the weight; reshape it")
    return TensorSpec((*x.shape[:-1], weight.shape[0]), np.result_type(x.dtype, weight.dtype, bias.dtype))


def _parts(x: Array, weight: Array, bias: Array) -> Array:
    return add(by_rows(x, weight), bias)


def by_rows(x: Array, weight: Array) -> Array:
    """x @ weight.T: f[..., n], f[m, n] -> f[..., m]."""
    if len(x.shape) < 3:
        return matmul(x, transpose_matrix(weight))
    product = matmul(rows(x), transpose_matrix(weight))
    return reshape.apply((product,), {"shape": (*x.shape[:-1], weight.shape[0])})


def _input_rule(g: Array, x_shape: Shape, y: Array) -> Array:
    if len(x_shape) < 3:
        return matmul(g, y)
    return reshape.apply((matmul(rows(g), y),), {"shape": x_shape})


def _weight_rule(g: Array, x: Array) -> Array:
    if len(x.shape) == 1:
        x, g = (reshape.apply((value,), {"shape": (1, value.shape[0])}) for value in (x, g))
    elif len(x.shape) > 2:
        x, g = rows(x), rows(g)
    return matmul(transpose_matrix(g), x)


def _bias_rule(g: Array) -> Array:
    return _sum(g, axis=tuple(range(len(g.shape) - 1))) if len(g.shape) > 1 else g


def _cost(x: TensorSpec, weight: TensorSpec, bias: TensorSpec, *, out: TensorSpec) -> Size:
    return out.size * x.shape[-1] * 2 + out.size


def _prepare(x: Any, weight: Any, bias: Any, /) -> Prepared:
    values = as_operand(x), as_operand(weight), as_operand(bias)
    return values, {}


linear: Op = Op(
    "linear",
    _linear,
    _infer,
    rules=(_input_rule, _weight_rule, _bias_rule),
    prepare=_prepare,
    cost=_cost,
    family="linalg",
    parts=_parts,
)


# Resizing -------------------------------------------------------------------------------------------------------------

PerAxis = float | Sequence[float] | None

_SMOOTH = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2}  # the number of axes that each is about
_MODES = ("nearest", "nearest-exact", *_SMOOTH)


@composite
def interpolate(
    x: Array,
    size: PerAxis = None,
    scale_factor: PerAxis = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Array:
    """Resize the last one to three axes of x f[N, C, ...] to `size`, or by `scale_factor`, rounded down.

    `mode` is "nearest", "nearest-exact" (by the centres of elements), for one, two and three axes "linear", "bilinear"
    and "trilinear", and for two "bicubic" (Keys, 1981). In the smooth modes `align_corners` aligns the first and last
    elements with those of x; otherwise the outer edges are aligned. With `antialias` two axes that shrink are averaged
    over what a result stands for. All as in PyTorch. Raises ShapeError, and DTypeError for integers in a smooth mode.
    """
    x = as_operand(x)
    sizes = _concrete_sizes(shape_of(x)[2:])
    _check_mode(x, mode, align_corners, antialias)
    wanted, scales = output_sizes(sizes, size, scale_factor)
    steps = []
    for have, want, scale in zip(sizes, wanted, scales, strict=True):
        # PyTorch resizes images in mode "nearest" by their sizes where these stay or double, whatever the factor was.
        by_sizes = mode == "nearest" and len(sizes) == 2 and want in (have, 2 * have)
        steps.append(have / want if recompute_scale_factor or by_sizes or scale is None else 1 / scale)
    each = list(zip(sizes, wanted, steps, strict=True))
    if antialias or mode == "bicubic":
        return _weigh(x, [_resizing(*axis, align_corners, mode, antialias) for axis in each])
    if mode in _SMOOTH:
        return _between(x, [_sources(*axis, align_corners) for axis in each])
    for number, (have, want, step) in enumerate(each, 2):
        x = _take_places(x, number, have, _nearest(have, want, step, mode == "nearest-exact", dtype_of(x)))
    return x


def _check_mode(x: Array, mode: str, align_corners: bool | None, antialias: bool) -> None:
    rank = len(shape_of(x)) - 2
    if mode not in _MODES:
        raise ShapeError(f"mode is one of {', '.join(map(repr, _MODES))}, not {mode!r}; choose one")
    if _SMOOTH.get(mode, rank) != rank:
        raise ShapeError(f"mode {mode!r} is for {_SMOOTH[mode]} axes after batch and channels, not {rank}")
    if mode not in _SMOOTH and align_corners is not None:
        raise ShapeError("align_corners is for smooth modes; leave it out")
    if antialias and _SMOOTH.get(mode) != 2:
        raise ShapeError(f"antialias is for modes 'bilinear' and 'bicubic', not {mode!r}; leave it out")
    if mode in _SMOOTH and dtype_of(x).kind != "f":
        raise DTypeError(f"{mode!r} takes floating point values; convert with astype(x, 'float32')")


def _take_places(x: Array, axis: int, have: int, places: Any) -> Array:
    """Take the elements at `places` along an axis; where each is repeated equally often, by `window_spread`."""
    times = len(places) // have
    if not np.array_equal(places, np.repeat(np.arange(have), times)):
        return take(x, places, axis=axis)
    others = shape_of(x)[axis + 1 :]
    window = ((times, times, 0, 0, 1), *((1, 1, 0, 0, 1),) * len(others))
    return window_spread(x, sizes=(len(places), *others), window=window)  # whose gradient is a sum, and no scattering


def _concrete_sizes(sizes: Shape) -> list[int]:
    numbers = [size for size in sizes if isinstance(size, int)]
    if len(numbers) < len(sizes):
        raise ShapeError(f"the sizes that change are numbers, not {sizes}; only batch and channels may be symbolic")
    if not 1 <= len(sizes) <= 3:
        raise ShapeError(f"takes one to three axes after batch and channels, not {len(sizes)}; reshape them")
    if min(numbers) < 1:
        raise ShapeError("there is nothing between no elements; check the size first")
    return numbers


def output_sizes(sizes: Sequence[Any], size: PerAxis, scale: PerAxis) -> tuple[list[int], list[float | None]]:
    """The output sizes, and the scale factors where these were given. Raises ShapeError."""
    if (size is None) == (scale is None):
        raise ShapeError("give either size or scale_factor")
    each = _each(size if scale is None else scale, len(sizes))
    factors: list[float | None] = [None] * len(sizes) if scale is None else [*each]
    wanted = each if scale is None else [have * by for have, by in zip(sizes, each, strict=True)]
    whole = [math.floor(want) for want in wanted]
    if min(whole) < 1:
        raise ShapeError(f"sizes of {whole} hold nothing; ask for 1 or more")
    return whole, factors


def _each(value: Any, rank: int) -> list[float]:
    values: list[float] = [value] * rank if np.ndim(value) == 0 else list(value)
    if len(values) != rank:
        raise ShapeError(f"{len(values)} sizes for {rank} axes; give one, or one for each")
    return values


def _nearest(have: int, want: int, step: float, exact: bool, dtype: np.dtype[Any]) -> Any:
    """The places of the nearest elements, computed in the dtype of x and then in float32, as PyTorch does.

    So a place just below a whole number may be rounded up to it, depending on the dtype.
    """
    kind = dtype.type if dtype.kind == "f" and dtype.itemsize > 2 else np.float32
    places = np.arange(want, dtype=kind)
    places = np.maximum((places + kind(0.5)) * kind(step) - kind(0.5), 0) + kind(0.5) if exact else places * kind(step)
    return np.minimum(np.floor(places.astype(np.float32)).astype(np.intp), have - 1)


def _sources(have: int, want: int, step: float, align_corners: bool | None) -> Any:
    """The position of each result among the elements of x; a whole number is an element's own position."""
    if align_corners:
        return np.linspace(0, have - 1, want)
    if have == want:
        return np.arange(float(want))
    return np.clip((np.arange(want) + 0.5) * step - 0.5, 0, have - 1)


@in_single
def _between(x: Array, sources: list[Any]) -> Array:
    """Interpolate linearly along every axis after batch and channels, at its positions."""
    for axis, positions in enumerate(sources, 2):
        x = _interpolate_axis(x, axis, positions)
    return x


def _interpolate_axis(x: Array, axis: int, sources: Any) -> Array:
    """Interpolate linearly between the elements on both sides of each position along an axis."""
    left = np.floor(sources).astype(np.intp)
    after = np.arange(x.ndim) == axis
    share = (sources - left).astype(dtype_of(x)).reshape(np.where(after, -1, 1))
    right = left + (sources > left)
    return add(multiply(take(x, left, axis=axis), 1 - share), multiply(take(x, right, axis=axis), share))


Weight = tuple[Callable[[Any], Any], int]
"""The weight of an element as a function of its distance from a place, and the largest distance that has one."""

linear_weight: Weight = (lambda d: np.maximum(1 - d, 0), 1)


def cubic_weight(a: float) -> Weight:
    """The weights of cubic convolution (Keys, 1981), with the slope `a` at the distance 1."""

    def weigh(d: Any) -> Any:
        near = (a + 2) * d**3 - (a + 3) * d**2 + 1
        far = a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a
        return np.where(d <= 1, near, np.where(d < 2, far, 0.0))

    return weigh, 2


def resizing(places: Any, have: int, kernel: Weight, width: float, exclude_outside: bool) -> Any:
    """The matrix [places, have] that resizes an axis; positions beyond the ends read the end elements.

    The kernel is 1 / `width` times as wide as it is given. With `exclude_outside` elements inside alone have weights.
    """
    weigh, support = kernel
    reach = math.ceil(support / width)
    matrix = np.zeros((len(places), have))
    for row, place in zip(matrix, places, strict=True):
        taps = np.arange(math.floor(place) - reach, math.floor(place) + reach + 2)
        shares = weigh(np.abs(taps - place) * width)
        if exclude_outside:
            shares = np.where((taps >= 0) & (taps < have), shares, 0.0)
        if exclude_outside or width < 1:
            shares = shares / shares.sum()
        np.add.at(row, np.clip(taps, 0, have - 1), shares)
    return matrix


def _resizing(have: int, want: int, step: float, align_corners: bool | None, mode: str, antialias: bool) -> Any:
    """The matrix of an axis in mode "bicubic", or with antialias, which takes another cubic, as PyTorch and Pillow."""
    step = step if not align_corners else (have - 1) / (want - 1) if want > 1 else 0.0
    places = np.arange(want) * step
    places = places if align_corners and not antialias else places + step / 2 - 0.5
    kernel = linear_weight if mode == "bilinear" else cubic_weight(-0.5 if antialias else -0.75)
    return resizing(places, have, kernel, 1 / max(step, 1) if antialias else 1, antialias)


@in_single
def _weigh(x: Array, matrices: list[Any]) -> Array:
    """The last two axes resized, each by its matrix."""
    down, across = (matrix.astype(dtype_of(x)) for matrix in matrices)
    return matmul(matmul(down, x), across.T)

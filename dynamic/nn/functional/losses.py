"""Losses with PyTorch's names and options.

Losses by margins between classes, and between distances.
"""

from __future__ import annotations

import functools
import math
import typing
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from dynamic.nn.functional.common import (
    Array,
    check_dtypes,
    check_indices,
    check_shares,
    concrete,
    reduction_of,
    refuse,
)
from graphs import ops
from graphs.errors import DTypeError, GraphError, OptionError, ShapeError, locate
from graphs.frontends.torch import functions as torch
from graphs.frontends.torch.products import cosine_similarity
from graphs.frontends.torch.words import cast, of_floats, of_one_dtype
from graphs.ops.losses import reduce_losses
from graphs.ops.shapes import dtype_of, holds_half, shape_of

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss", "cosine_similarity",
    "cross_entropy", "gaussian_nll_loss", "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss",
    "margin_ranking_loss", "mse_loss", "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss",
    "nll_loss", "pairwise_distance", "poisson_nll_loss", "smooth_l1_loss", "soft_margin_loss", "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]  # fmt: skip


Loss = TypeVar("Loss", bound=Callable[..., Any])

IGNORED = -100  # the label that costs nothing by default


@of_floats
def mse_loss(
    input: Array,
    target: Array,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Array | None = None,
) -> Array:
    """The mean of (input - target) ** 2; with weights, divided by their sum."""
    reduction = reduction_of(reduction, size_average, reduce)
    if weight is not None:
        refuse("mse_loss", "multiply the result of reduction='none'", weight=(weight, None))
    if reduction == "mean" and not holds_half(input):  # what most steps call: three ops, no more
        return ops.mean(ops.square(ops.subtract(input, target)))
    return ops.mse_loss(input, target, reduction=reduction)


@of_floats
def l1_loss(
    input: Array,
    target: Array,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    weight: Array | None = None,
) -> Array:
    """The mean of |input - target|."""
    refuse("l1_loss", "multiply the result of reduction='none'", weight=(weight, None))
    return ops.l1_loss(input, target, reduction=reduction_of(reduction, size_average, reduce))


@of_floats
def smooth_l1_loss(
    input: Array,
    target: Array,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Array:
    """d * d / (2 * beta) for |d| < beta, else |d| - beta / 2."""
    if not beta >= 0:
        raise OptionError(f"beta is 0 or more, not {beta}; change its sign")
    return ops.smooth_l1_loss(input, target, beta, reduction=reduction_of(reduction, size_average, reduce))


def _in_dtype_of(operand: str) -> Callable[[Loss], Loss]:
    """Wrap a loss of an input and a target to compute in the wider of their dtypes, and to round to that of one.

    Raises DTypeError where that one is no float, as PyTorch does.
    """

    def decorate(function: Loss) -> Loss:
        promoted = of_floats(function)

        @functools.wraps(function)
        def wrapper(input: Array, target: Array, *args: Any, **options: Any) -> Array:
            dtype, other = dtype_of(input), dtype_of(target)
            if operand == "target":
                dtype, other = other, dtype
            if dtype.kind != "f":
                raise DTypeError(locate(f"{function.__name__}: the {operand} is of {dtype}; convert with .float()"))
            compute = function if dtype == other else promoted
            return cast(compute(input, target, *args, **options), dtype)

        return typing.cast(Loss, wrapper)

    return decorate


@_in_dtype_of("input")
def huber_loss(
    input: Array, target: Array, reduction: str = "mean", delta: float = 1.0, weight: Array | None = None
) -> Array:
    """d * d / 2 for |d| < delta, else delta * (|d| - delta / 2)."""
    if not delta > 0:
        raise OptionError(f"delta is above 0, not {delta}; use l1_loss for 0")
    refuse("huber_loss", "multiply the result of reduction='none'", weight=(weight, None))
    return ops.huber_loss(input, target, delta, reduction=reduction)


def _classes(x: Array) -> int:
    return 1 if len(shape_of(x)) > 1 else 0


def cross_entropy(
    input: Array,
    target: Array,
    weight: Array | None = None,
    size_average: Any = None,
    ignore_index: int = IGNORED,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Array:
    """-log softmax(input)[target], the classes along axis 1; the target may hold probabilities too."""
    check_dtypes(input, weight)
    axis = _classes(input)
    ignored = _ignored_label("cross_entropy", input, target, ignore_index, axis)
    axis = -1 if axis == len(shape_of(input)) - 1 else axis
    return ops.cross_entropy(
        input,
        target,
        weight,
        ignore_index=ignored,
        reduction=reduction_of(reduction, size_average, reduce),
        label_smoothing=label_smoothing,
        axis=axis,
    )


def _ignored_label(name: str, x: Array, labels: Array, ignore_index: int, axis: int) -> int | None:
    """The label whose loss is 0; None if there is none, or the target holds probabilities."""
    if dtype_of(labels).kind == "f":
        if ignore_index >= 0:
            raise OptionError(f"probabilities name no label {ignore_index} to ignore; give labels, or leave it out")
        return None
    return None if check_indices(name, labels, shape_of(x)[axis], ignore_index) and ignore_index < 0 else ignore_index


def nll_loss(
    input: Array,
    target: Array,
    weight: Array | None = None,
    size_average: Any = None,
    ignore_index: int = IGNORED,
    reduce: Any = None,
    reduction: str = "mean",
) -> Array:
    """Minus the log probabilities at their labels, the classes along axis 1."""
    check_dtypes(input, weight)
    axis = _classes(input)
    ignored = _ignored_label("nll_loss", input, target, ignore_index, axis)
    return ops.nll_loss(
        input, target, weight, ignore_index=ignored, reduction=reduction_of(reduction, size_average, reduce), axis=axis
    )


def binary_cross_entropy(
    input: Array,
    target: Array,
    weight: Array | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Array:
    """-target * log(input) - (1 - target) * log(1 - input) for probabilities. Raises GraphError for another shape."""
    _check_same("binary_cross_entropy", input, target)
    check_dtypes(input, target)
    check_shares("the input", input)
    check_shares("the target", target)
    return ops.binary_cross_entropy(input, target, weight, reduction=reduction_of(reduction, size_average, reduce))


@_in_dtype_of("target")
def binary_cross_entropy_with_logits(
    input: Array,
    target: Array,
    weight: Array | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    pos_weight: Array | None = None,
) -> Array:
    """binary_cross_entropy of sigmoid(input), without overflow. Raises GraphError for another shape."""
    _check_same("binary_cross_entropy_with_logits", input, target)
    return ops.binary_cross_entropy_with_logits(
        input, target, weight, pos_weight=pos_weight, reduction=reduction_of(reduction, size_average, reduce)
    )


def _check_same(name: str, x: Array, target: Array) -> None:
    if tuple(shape_of(x)) != tuple(shape_of(target)):
        raise GraphError(
            locate(f"{name}: a target of shape {shape_of(target)} for an input of {shape_of(x)}; reshape one")
        )


@of_one_dtype
@of_floats
def kl_div(
    input: Array,
    target: Array,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Array:
    """target * (log(target) - input) for log probabilities."""
    reduction = reduction_of(reduction, size_average, reduce)
    if reduction == "batchmean" and not shape_of(input):  # a batch of one
        reduction = "sum"
    return ops.kl_div(input, target, reduction=reduction, log_target=log_target)


def poisson_nll_loss(
    input: Array,
    target: Array,
    log_input: bool = True,
    full: bool = False,
    size_average: Any = None,
    eps: float = 1e-8,
    reduce: Any = None,
    reduction: str = "mean",
) -> Array:
    """exp(input) - target * input, or of rates input - target * log(input); `full` adds Stirling's term."""
    log = input if log_input else torch.log(torch.add(input, eps))
    losses = torch.sub(torch.exp(input) if log_input else input, torch.mul(target, log))
    if full:
        safe = ops.where(ops.less_equal(target, 1), 1, target)
        half = torch.mul(torch.log(torch.mul(safe, 2 * math.pi)), 0.5)
        stirling = torch.add(torch.sub(torch.mul(safe, torch.log(safe)), safe), half)
        losses = torch.add(losses, ops.where(ops.less_equal(target, 1), 0, stirling))
    return reduce_losses(losses, reduction_of(reduction, size_average, reduce))


@of_floats
def gaussian_nll_loss(
    input: Array, target: Array, var: Array, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Array:
    """(log(var) + (input - target) ** 2 / var) / 2, the variance at least `eps`, without gradient in that."""
    var = ops.multiply(ops.add(ops.multiply(input, 0), 1), var) if not hasattr(var, "shape") else var
    array = concrete(var)
    if array is not None and np.any(array < 0):
        raise OptionError("a variance is 0 or more; give its exponential or its square")
    if len(shape_of(var)) == len(shape_of(input)) - 1:
        var = ops.expand_dims(var, -1)
    bounded = ops.add(var, ops.stop_gradient(ops.subtract(ops.maximum(var, eps), var)))
    losses = ops.multiply(ops.add(ops.log(bounded), ops.divide(ops.square(ops.subtract(input, target)), bounded)), 0.5)
    return reduce_losses(ops.add(losses, 0.5 * math.log(2 * math.pi)) if full else losses, reduction)


def margin_ranking_loss(
    input1: Array,
    input2: Array,
    target: Array,
    margin: float = 0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Array:
    """max(0, -target * (input1 - input2) + margin)."""
    if not len(shape_of(input1)) == len(shape_of(input2)) == len(shape_of(target)):
        raise ShapeError("inputs and target have as many axes; use unsqueeze")
    lead = torch.mul(ops.negative(target), torch.sub(input1, input2))
    losses = torch.clamp_min(torch.add(lead, float(margin)), 0)
    return reduce_losses(losses, reduction_of(reduction, size_average, reduce))


@_in_dtype_of("input")
def hinge_embedding_loss(
    input: Array,
    target: Array,
    margin: float = 1.0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Array:
    """input where the target is 1, max(0, margin - input) where it is -1."""
    far = ops.where(ops.not_equal(target, 1), torch.clamp_min(torch.rsub(input, float(margin)), 0), 0)
    near = ops.where(ops.not_equal(target, -1), input, 0)
    return reduce_losses(torch.add(far, near), reduction_of(reduction, size_average, reduce))


@_in_dtype_of("input")
def soft_margin_loss(
    input: Array, target: Array, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Array:
    """log(1 + exp(-target * input))."""
    return reduce_losses(
        ops.softplus(torch.mul(ops.negative(target), input)), reduction_of(reduction, size_average, reduce)
    )


def pairwise_distance(x1: Array, x2: Array, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Array:
    """The p-norm of x1 - x2 + eps along the last axis."""
    return ops.vector_norm(torch.add(torch.sub(x1, x2), float(eps)), axis=-1, ord=p, keepdims=keepdim)


def cosine_embedding_loss(
    input1: Array,
    input2: Array,
    target: Array,
    margin: float = 0,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Array:
    """1 - cos where the target is 1, max(0, cos - margin) where it is -1."""
    axes = len(shape_of(target))
    if axes > 1 or not len(shape_of(input1)) == len(shape_of(input2)) == axes + 1:
        raise ShapeError("inputs are rows with a target for each, or two vectors with one target; reshape them")
    product = torch.sum(torch.mul(input1, input2), -1)
    squares = [torch.add(torch.sum(torch.mul(x, x), -1), 1e-12) for x in (input1, input2)]
    cosine = torch.div(product, torch.sqrt(torch.mul(*squares)))
    near = ops.where(ops.equal(target, 1), ops.subtract(1, cosine), 0)
    far = ops.where(ops.equal(target, -1), torch.clamp_min(ops.subtract(cosine, margin), 0), 0)
    return reduce_losses(ops.add(near, far), reduction_of(reduction, size_average, reduce))


def triplet_margin_loss(
    anchor: Array,
    positive: Array,
    negative: Array,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Array:
    """max(0, margin + distance to the positive - distance to the negative)."""
    if not margin > 0:
        raise OptionError(f"margin is above 0, not {margin}; without one all distances may be 0")
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = ops.minimum(far, pairwise_distance(positive, negative, p, eps))
    near = pairwise_distance(anchor, positive, p, eps)
    losses = torch.clamp_min(ops.add(ops.subtract(near, far), margin), 0)
    return reduce_losses(losses, reduction_of(reduction, size_average, reduce))


def multi_margin_loss(
    input: Array,
    target: Array,
    p: int = 1,
    margin: float = 1.0,
    weight: Array | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Array:
    """The mean over classes j but the target y of max(0, margin - x[y] + x[j]) ** p, times the weight of y.

    f[N, C] or f[C], and i[N] or i[]. Raises OptionError unless p is 1 or 2.
    """
    if p not in (1, 2):
        raise OptionError(locate(f"multi_margin_loss: p is 1 or 2, not {p}; choose one"))
    if len(shape_of(input)) < 2:
        input = ops.reshape(input, (1, -1) if shape_of(target) else (-1,))
    classes = shape_of(input)[-1]
    check_indices("multi_margin_loss", target, classes)
    places = ops.expand_dims(target, -1)
    lead = ops.subtract(input, ops.take_along_axis(input, places, axis=-1))
    costs = ops.relu(ops.add(lead, margin))
    costs = ops.where(ops.equal(ops.arange(classes), places), 0, ops.square(costs) if p == 2 else costs)
    if weight is not None:
        costs = ops.multiply(costs, ops.take(weight, places))
    return reduce_losses(ops.mean(costs, axis=-1), reduction_of(reduction, size_average, reduce))


def multilabel_margin_loss(
    input: Array, target: Array, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Array:
    """The sum over targets y and other classes j of max(0, 1 - x[y] + x[j]), divided by the number of classes.

    f[N, C] or f[C], and as many labels, of which those before the first -1 are targets. Raises GraphError.
    """
    if tuple(shape_of(input)) != tuple(shape_of(target)):
        shapes = f"{shape_of(target)} for an input of {shape_of(input)}"
        raise GraphError(locate(f"multilabel_margin_loss: a target of shape {shapes}; fill it up with -1"))
    input, target = (ops.reshape(x, shape_of(x) or (1,)) for x in (input, target))
    classes = shape_of(input)[-1]
    is_target = ops.equal(ops.cumulative_sum(ops.astype(ops.less(target, 0), "int64"), axis=-1), 0)
    labels = ops.where(is_target, target, 0)
    check_indices("multilabel_margin_loss", labels, classes)
    hits = ops.logical_and(ops.equal(ops.expand_dims(labels, -1), ops.arange(classes)), ops.expand_dims(is_target, -1))
    counted = ops.logical_and(ops.expand_dims(is_target, -1), ops.logical_not(ops.any(hits, axis=-2, keepdims=True)))
    wanted = ops.expand_dims(ops.take_along_axis(input, labels, axis=-1), -1)
    costs = ops.relu(ops.add(ops.subtract(ops.expand_dims(input, -2), wanted), 1))
    total = ops.sum(ops.where(counted, costs, 0), axis=(-2, -1))
    return reduce_losses(ops.divide(total, max(classes, 1)), reduction_of(reduction, size_average, reduce))


def multilabel_soft_margin_loss(
    input: Array,
    target: Array,
    weight: Array | None = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Array:
    """The mean over classes of -y * log(sigmoid(x)) - (1 - y) * log(sigmoid(-x)), times the weights of classes."""
    left = torch.mul(torch.rsub(target, 1), ops.softplus(input))
    costs = torch.add(torch.mul(target, ops.softplus(ops.negative(input))), left)
    costs = costs if weight is None else torch.mul(costs, weight)
    classes = len(shape_of(input)) - 1
    total = ops.sum(costs, axis=classes)
    return reduce_losses(ops.divide(total, shape_of(input)[classes]), reduction_of(reduction, size_average, reduce))


def triplet_margin_with_distance_loss(
    anchor: Array,
    positive: Array,
    negative: Array,
    *,
    distance_function: Callable[[Array, Array], Array] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Array:
    """max(0, margin + distance to the positive - distance to the negative), by any distance."""
    if not margin > 0:
        raise OptionError(f"margin is above 0, not {margin}; without one all distances may be 0")
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = ops.minimum(far, distance(positive, negative))
    return reduce_losses(torch.clamp_min(ops.add(ops.subtract(near, far), margin), 0), reduction)

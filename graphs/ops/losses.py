"""Losses with PyTorch's names and options: the loss of each element, and the mean or sum of these."""

from __future__ import annotations

import math

from graphs import dims
from graphs.errors import ShapeError
from graphs.op import Array
from graphs.ops.composites import softplus
from graphs.ops.elementwise import (
    abs,
    add,
    divide,
    equal,
    exp,
    greater,
    greater_equal,
    less,
    log,
    log1p,
    logical_and,
    multiply,
    negative,
    not_equal,
    square,
    subtract,
    where,
)
from graphs.ops.families import composite
from graphs.ops.indexing import take, take_along_axis
from graphs.ops.movement import astype, cast, expand_dims, in_single, moveaxis, squeeze
from graphs.ops.reductions import mean
from graphs.ops.reductions import sum as _sum
from graphs.ops.shapes import as_operand, dtype_of, integral, positive_axis, shape_of
from graphs.ops.softmax import check_labels, log_softmax
from graphs.ops.softmax import nll_loss as _nll_loss
from graphs.spec import spec_of

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cross_entropy", "huber_loss", "kl_div", "l1_loss",
    "mse_loss", "nll_loss", "smooth_l1_loss",
]  # fmt: skip


def reduce_losses(losses: Array, reduction: str, shares: Array = None) -> Array:
    """Reduce losses: "none", "sum", or "mean", which divides by the sum of `shares` where these are given.

    Raises ShapeError for any other reduction.
    """
    if reduction not in ("none", "mean", "sum"):
        raise ShapeError(f"reduction is 'none', 'mean' or 'sum', not {reduction!r}; choose one")
    if reduction == "none":
        return losses
    if reduction == "mean" and shares is None:
        return mean(losses)
    total = _sum(losses)
    return total if reduction == "sum" else divide(total, _sum(shares))


def _weight_losses(losses: Array, weight: Array) -> Array:
    """Losses times weights, in the dtype of the losses."""
    return losses if weight is None else multiply(losses, cast(as_operand(weight), dtype_of(losses)))


# Distances --------------------------------------------------------------------------------------------------------


@composite
@in_single
def mse_loss(x: Array, target: Array, /, *, reduction: str = "mean") -> Array:
    """(x - target) ** 2: the mean, or by `reduction` the "sum" or, with "none", each."""
    return reduce_losses(square(subtract(x, target)), reduction)


@composite
@in_single
def l1_loss(x: Array, target: Array, /, *, reduction: str = "mean") -> Array:
    """|x - target|: the mean, or by `reduction` the "sum" or, with "none", each."""
    return reduce_losses(abs(subtract(x, target)), reduction)


@composite
@in_single
def huber_loss(x: Array, target: Array, /, delta: float = 1.0, *, reduction: str = "mean") -> Array:
    """d * d / 2 for |d| <= delta, else delta * (|d| - delta / 2), where d = x - target (Huber, 1964).

    The mean, or by `reduction` the "sum" or, with "none", each.
    """
    difference = subtract(x, target)
    size = abs(difference)
    is_near = less(size, delta)
    far = multiply(subtract(size, delta / 2), delta)
    return reduce_losses(where(is_near, multiply(square(where(is_near, difference, 0)), 0.5), far), reduction)


@composite
@in_single
def smooth_l1_loss(x: Array, target: Array, /, beta: float = 1.0, *, reduction: str = "mean") -> Array:
    """d * d / (2 * beta) for |d| < beta, else |d| - beta / 2, where d = x - target (Girshick, 2015).

    The mean, or by `reduction` the "sum" or, with "none", each. Raises ShapeError for a negative beta.
    """
    if beta < 0:
        raise ShapeError(f"beta is 0 or more, not {beta}; 0 makes it l1_loss")
    difference = subtract(x, target)
    size = abs(difference)
    if beta == 0:
        return reduce_losses(size, reduction)
    is_near = less(size, beta)
    near = multiply(square(where(is_near, difference, 0)), 0.5 / beta)
    return reduce_losses(where(is_near, near, subtract(size, beta / 2)), reduction)


# Probabilities ----------------------------------------------------------------------------------------------------

_LEAST_LOG = -100.0  # as in PyTorch: the logarithm of 0 would be no loss that a mean can hold


@composite
def binary_cross_entropy(x: Array, target: Array, /, weight: Array = None, *, reduction: str = "mean") -> Array:
    """-target * log(x) - (1 - target) * log(1 - x) for probabilities x, times `weight`.

    The mean, or by `reduction` the "sum" or, with "none", each. Outside 0 to 1 the loss is NaN. No logarithm is less
    than -100; the gradient of one that would be is 0.
    """
    return reduce_losses(_weight_losses(_of_probabilities(x, target), weight), reduction)


@in_single
def _of_probabilities(x: Array, target: Array) -> Array:
    hit, miss = multiply(target, _log_of(x)), multiply(subtract(1, target), _log_of_rest(x))
    return negative(add(hit, miss))


def _log_of(x: Array) -> Array:
    least = logical_and(greater_equal(x, 0), less(x, math.exp(_LEAST_LOG)))
    return where(least, _LEAST_LOG, log(where(least, 1, x)))


def _log_of_rest(x: Array) -> Array:
    """log(1 - x), also for x so small that 1 - x is 1."""
    least = equal(x, 1)
    return where(least, _LEAST_LOG, log1p(negative(where(least, 0, x))))


@composite
def binary_cross_entropy_with_logits(
    logits: Array, target: Array, /, weight: Array = None, *, pos_weight: Array = None, reduction: str = "mean"
) -> Array:
    """-target * log(p) - (1 - target) * log(1 - p), p = sigmoid(logits), without overflow: the mean, "sum" or "none".

    Each is multiplied by `weight`, and the part of positive targets by `pos_weight`, where these are given.
    """
    return reduce_losses(_weight_losses(_of_logits(logits, target, pos_weight), weight), reduction)


@in_single
def _of_logits(logits: Array, target: Array, pos_weight: Array) -> Array:
    # By log(1 + exp(-abs(logits))), to which a line is added: so neither side of 0 subtracts what is all but equal.
    above, miss = greater(logits, 0), subtract(1, target)
    curve, slope = softplus(where(above, negative(logits), logits)), negative(target)
    if pos_weight is not None:
        hit = cast(as_operand(add(multiply(subtract(pos_weight, 1), target), 1)), dtype_of(curve))
        curve, slope = multiply(curve, hit), subtract(miss, hit)
    return add(multiply(where(above, miss, slope), logits), curve)


@composite
@in_single
def kl_div(x: Array, target: Array, /, *, reduction: str = "mean", log_target: bool = False) -> Array:
    """target * (log(target) - x) for log probabilities x: the mean, "sum", "none" or "batchmean".

    "batchmean" is the sum divided by the size of the first axis, which is the Kullback-Leibler divergence of each
    example. With `log_target` the target is a logarithm too. A target of 0 has the loss 0, and its gradient is -x.
    """
    if log_target:
        losses = multiply(exp(target), subtract(target, x))
    else:
        none = equal(target, 0)
        losses = subtract(where(none, 0, multiply(target, log(where(none, 1, target)))), multiply(target, x))
    if reduction != "batchmean":
        return reduce_losses(losses, reduction)
    if not shape_of(losses):
        raise ShapeError("'batchmean' divides by the size of the first axis, and there is none; use 'sum'")
    return mean(_sum(losses, axis=tuple(range(1, len(shape_of(losses))))))


# Classes ----------------------------------------------------------------------------------------------------------


@composite
def nll_loss(
    x: Array,
    labels: Array,
    /,
    weight: Array = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
    axis: int = -1,
) -> Array:
    """Minus the log probabilities at their labels: f[..., classes], i[...] -> a scalar, or f[...] with "none".

    `axis` is the axis of the classes. `weight` f[classes] has one element per class. Labels equal to `ignore_index`
    have the loss 0. The mean divides by the sum of the weights of the other labels, and is NaN where there are none. In
    PyTorch's function the classes lie along axis 1, and -100 is ignored by default.
    """
    x = _classes_last(x, axis)
    if weight is None and ignore_index is None and reduction == "mean":
        return _nll_loss(x, labels)
    return reduce_losses(*_pick_losses(x, labels, weight, ignore_index, reduction))


@composite
def cross_entropy(
    logits: Array,
    labels: Array,
    /,
    weight: Array = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> Array:
    """-log softmax(logits)[label]: logits f[..., classes], labels i[...] -> the mean, "sum", or each with "none".

    Options as in `nll_loss`. The labels may be probabilities f[..., classes] too. `label_smoothing` is the share of
    each label that is spread equally over all classes (Szegedy et al., 2016).
    """
    options = ignore_index, reduction, label_smoothing, axis
    if weight is None and options == _PLAIN and dtype_of(labels).kind != "f":  # what most steps call: two ops, no more
        return _nll_loss(log_softmax(logits), labels)
    if not 0 <= label_smoothing <= 1:
        raise ShapeError(f"label_smoothing is a share from 0 to 1, not {label_smoothing}; choose one")
    x = log_softmax(_classes_last(logits, axis))
    if dtype_of(labels).kind == "f" and dims.same_shape(shape_of(labels), shape_of(logits)):
        if ignore_index is not None:
            raise ShapeError("ignore_index is for labels that are integers; give probabilities a weight of 0")
        targets = _classes_last(labels, axis)
        losses = negative(_sum(multiply(_by_class(x, weight), targets), axis=-1))
        return reduce_losses(_smooth_losses(losses, x, weight, label_smoothing), reduction)
    if label_smoothing == 0:
        return nll_loss(x, labels, weight, ignore_index=ignore_index, reduction=reduction)
    losses, reduction, shares = _pick_losses(x, labels, weight, ignore_index, reduction)
    losses = _smooth_losses(losses, x, weight, label_smoothing)
    kept = losses if ignore_index is None else where(not_equal(labels, ignore_index), losses, 0)
    return reduce_losses(kept, reduction, shares)


_PLAIN = (None, "mean", 0.0, -1)


def _classes_last(x: Array, axis: int) -> Array:
    ndim = len(shape_of(x))
    return x if axis == -1 or positive_axis(axis, ndim) == ndim - 1 else moveaxis(x, axis, -1)


def _by_class(x: Array, weight: Array) -> Array:
    """Log probabilities times the weights of their classes."""
    _check_weight(x, weight)
    return _weight_losses(x, weight)


def _check_weight(x: Array, weight: Array) -> None:
    if weight is not None and not dims.same_shape(shape_of(weight), shape_of(x)[-1:]):
        raise ShapeError(f"weights of shape {shape_of(weight)} for {shape_of(x)[-1]} classes; give one for each class")


def _pick_losses(
    x: Array, labels: Array, weight: Array, ignore_index: int | None, reduction: str
) -> tuple[Array, str, Array]:
    """The loss of each label, the reduction, and the weight of each loss in a mean; None where all weights are 1."""
    integral(spec_of(labels), "labels")
    check_labels(shape_of(x), shape_of(labels))
    _check_weight(x, weight)
    kept = None if ignore_index is None else not_equal(labels, ignore_index)
    safe = labels if kept is None else where(kept, labels, 0)
    losses = negative(squeeze(take_along_axis(x, expand_dims(safe, -1), axis=-1), -1))
    shares = None if weight is None else take(cast(as_operand(weight), dtype_of(losses)), safe)
    losses = _weight_losses(losses, shares)
    if kept is None:
        return losses, reduction, shares
    # `where`, not a product with 0: the loss of an ignored label may be infinite.
    shares = astype(kept, dtype_of(losses)) if shares is None else where(kept, shares, 0)
    return where(kept, losses, 0), reduction, shares


def _smooth_losses(losses: Array, x: Array, weight: Array, share: float) -> Array:
    """Mix the losses with the mean loss over all classes, which has the weight `share`."""
    if share == 0:
        return losses
    alike = negative(mean(_by_class(x, weight), axis=-1))
    return add(multiply(losses, 1 - share), multiply(alike, share))

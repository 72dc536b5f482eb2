"""Losses by margins between classes, and between distances."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dynamic.nn.functional.common import Array, check_indices, reduction_of
from dynamic.nn.functional.losses import pairwise_distance
from graphs import ops
from graphs.errors import GraphError, OptionError, located
from graphs.ops.losses import reduced
from graphs.ops.shapes import shape_of
from graphs.torch import functions as torch

__all__ = [
    "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss", "triplet_margin_with_distance_loss",
]  # fmt: skip


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
        raise OptionError(located(f"multi_margin_loss: p is 1 or 2, not {p}; choose one"))
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
    return reduced(ops.mean(costs, axis=-1), reduction_of(reduction, size_average, reduce))


def multilabel_margin_loss(
    input: Array, target: Array, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Array:
    """The sum over targets y and other classes j of max(0, 1 - x[y] + x[j]), divided by the number of classes.

    f[N, C] or f[C], and as many labels, of which those before the first -1 are targets. Raises GraphError.
    """
    if tuple(shape_of(input)) != tuple(shape_of(target)):
        shapes = f"{shape_of(target)} for an input of {shape_of(input)}"
        raise GraphError(located(f"multilabel_margin_loss: a target of shape {shapes}; fill it up with -1"))
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
    return reduced(ops.divide(total, max(classes, 1)), reduction_of(reduction, size_average, reduce))


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
    return reduced(ops.divide(total, shape_of(input)[classes]), reduction_of(reduction, size_average, reduce))


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
    return reduced(torch.clamp_min(ops.add(ops.subtract(near, far), margin), 0), reduction)

"""Losses of classes: scores f[N, C, ...] and labels i[N, ...]."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphs import ops
from graphs.onnx.table import translates
from graphs.ops.losses import reduced
from graphs.ops.shapes import dtype_of


@translates("NegativeLogLikelihoodLoss")
def negative_log_likelihood(
    x: Any, labels: Any, weight: Any = None, *, ignore_index: int | None = None, reduction: str = "mean"
) -> Any:
    """Minus the log probability of each label times the weight of its class; the mean is over the weights."""
    counted = None if ignore_index is None else ops.not_equal(labels, ignore_index)
    places = labels if counted is None else ops.where(counted, labels, 0)
    picked = ops.squeeze(ops.take_along_axis(x, ops.expand_dims(places, 1), axis=1), 1)
    shares = ops.full_like(picked, 1) if weight is None else ops.take(weight, places)
    if counted is not None:
        shares = ops.where(counted, shares, np.zeros((), dtype_of(x)))
    return reduced(ops.multiply(ops.negative(picked), shares), reduction, shares)


@translates("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy(
    x: Any, labels: Any, weight: Any = None, *, ignore_index: int | None = None, reduction: str = "mean", outputs: int
) -> Any:
    """The same of log softmax(x), which is the second output."""
    logs = ops.log_softmax(x, axis=1)
    loss = negative_log_likelihood(logs, labels, weight, ignore_index=ignore_index, reduction=reduction)
    return (loss, logs)[:outputs]

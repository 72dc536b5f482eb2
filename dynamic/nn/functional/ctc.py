"""The loss of connectionist temporal classification (Graves, Fernandez, Gomez and Schmidhuber, 2006)."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynamic.nn.functional.common import Array, check_indices, concrete
from graphs import dims, ops
from graphs.errors import OptionError, OutOfRangeError, ShapeError, locate
from graphs.ops.losses import reduce_losses
from graphs.ops.shapes import dtype_of, shape_of

__all__ = ["ctc_loss"]


def ctc_loss(
    log_probs: Array,
    targets: Array,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Array:
    """Minus the log probability of all alignments of labels to steps, with repeats and blanks between.

    f[T, N, C] of log probabilities and labels i[N, S], or all one after another; or f[T, C] and i[S]. Lengths are
    i[N], or numbers. The mean is of losses divided by the lengths of their targets. An example that has no alignment
    costs infinity, or with `zero_infinity` nothing. The gradient takes the log probabilities for those of
    log_softmax, as PyTorch's does: it is exp(log_probs) minus the share of alignments that go there.
    Raises ShapeError for lengths that do not fit, OutOfRangeError for labels that are no class.
    """
    if len(shape_of(log_probs)) == 2:
        taken, wanted = (ops.reshape(ops.asarray(lengths), (1,)) for lengths in (input_lengths, target_lengths))
        frames, labels = ops.expand_dims(log_probs, 1), ops.reshape(targets, (1, -1))
        apart = "mean" if reduction == "mean" else "none"
        losses = ctc_loss(frames, labels, taken, wanted, blank, apart, zero_infinity)
        return losses if reduction == "mean" else reduce_losses(ops.squeeze(losses, 0), reduction)
    steps, batch, classes = shape_of(log_probs)
    if not 0 <= blank < classes:
        raise OptionError(locate(f"ctc_loss: blank is one of {classes} classes, not {blank}; choose another"))
    taken, wanted = (_lengths(lengths, batch) for lengths in (input_lengths, target_lengths))
    _check_most("input_lengths", taken, steps)
    labels = _labels(targets, wanted, blank)
    check_indices("ctc_loss", labels, classes)
    losses, used = _losses(log_probs, labels, taken, wanted, blank)
    losses = _with_pytorchs_gradient(losses, used, zero_infinity)
    if reduction == "mean":
        return ops.mean(ops.divide(losses, ops.astype(ops.maximum(wanted, 1), dtype_of(losses))))
    return reduce_losses(losses, reduction)


def _lengths(sizes: Any, batch: Any) -> Array:
    lengths = ops.astype(ops.asarray(sizes), np.int64)
    if len(shape_of(lengths)) != 1 or not dims.same(shape_of(lengths)[0], batch):
        raise ShapeError(locate(f"ctc_loss: lengths of shape {shape_of(lengths)} for {batch} examples; give one each"))
    return lengths


def _check_most(name: str, lengths: Array, most: Any) -> None:
    numbers = concrete(lengths)
    if (
        numbers is not None
        and numbers.size
        and isinstance(most, int)
        and not 0 <= numbers.min() <= numbers.max() <= most
    ):
        raise OutOfRangeError(locate(f"ctc_loss: {name} are from 0 to {most}, not {numbers.tolist()}"))


def _labels(targets: Array, lengths: Array, blank: int) -> Array:
    """The labels i[N, S], with blanks after the last of each example."""
    if len(shape_of(targets)) == 1:
        total, counts = shape_of(targets)[0], concrete(lengths)
        longest = total if counts is None else int(counts.max(initial=0))
        if counts is not None and isinstance(total, int) and counts.sum() != total:
            raise ShapeError(locate(f"ctc_loss: {total} labels for target_lengths that add up to {counts.sum()}"))
        first = ops.subtract(ops.cumulative_sum(lengths), lengths)
        places = ops.add(ops.expand_dims(first, 1), ops.arange(longest))
        targets = ops.take(ops.concat([targets, ops.asarray([blank], dtype=dtype_of(targets))]),
                           ops.minimum(places, total))  # fmt: skip
    count = shape_of(targets)[1]
    _check_most("target_lengths", lengths, count)
    return ops.where(ops.less(ops.arange(count), ops.expand_dims(lengths, 1)), targets, blank)


def _losses(log_probs: Array, labels: Array, taken: Array, wanted: Array, blank: int) -> tuple[Array, Array]:
    """The loss of each example, f[N], and the log probabilities of the steps within its length, else -inf."""
    batch, count = shape_of(labels)
    steps = ops.arange(shape_of(log_probs)[0])
    blanks = ops.multiply(labels, 0) + blank
    path = ops.reshape(ops.stack([blanks, labels], axis=-1), (batch, 2 * count))  # a blank before each label ...
    path = ops.pad(path, [(0, 0), (0, 1)], blank)  # ... and after the last
    may_skip = ops.not_equal(path, ops.pad(path, [(0, 0), (2, 0)], blank)[:, : 2 * count + 1])
    here = ops.take_along_axis(log_probs, ops.expand_dims(path, 0), axis=-1)

    def step(reached: Array, frame: tuple[Array, Array]) -> tuple[Array, Array]:
        """The log probability of reaching each place of the path, one step later."""
        emitted, number = frame
        before = ops.pad(reached, [(0, 0), (2, 0)], -np.inf)
        ways = [reached, before[:, 1:-1], ops.where(may_skip, before[:, :-2], -np.inf)]
        on = ops.add(_log_sum(ops.stack(ways, axis=0)), emitted)
        reached = ops.where(ops.expand_dims(ops.less(number, taken), 1), on, reached)
        return reached, number

    places = ops.arange(2 * count + 1)
    start = ops.where(ops.expand_dims(ops.equal(places, 0), 0), ops.multiply(here[0], 0), -np.inf)
    reached, _ = ops.scan(step, start, (here, steps))
    last = ops.expand_dims(ops.multiply(wanted, 2), 1)
    is_end = ops.logical_or(ops.equal(places, last), ops.equal(places, ops.subtract(last, 1)))
    losses = ops.negative(_log_sum(ops.where(is_end, reached, -np.inf), axis=1))
    used = ops.expand_dims(ops.expand_dims(steps, 1) < taken, -1)
    return losses, ops.where(used, log_probs, -np.inf)


def _log_sum(x: Array, axis: int = 0) -> Array:
    """log(sum(exp(x))), with gradient 0 where all x are -inf."""
    top = ops.stop_gradient(ops.max(x, axis=axis, keepdims=True))
    top = ops.where(ops.isinf(top), 0, top)
    total = ops.sum(ops.exp(ops.subtract(x, top)), axis=axis)
    none = ops.equal(total, 0)
    return ops.where(none, -np.inf, ops.add(ops.log(ops.where(none, 1, total)), ops.squeeze(top, axis)))


def _with_pytorchs_gradient(losses: Array, log_probs: Array, zero_infinity: bool) -> Array:
    """The losses with exp(log_probs) added to their gradient; that of an infinite loss is NaN, or 0 like the loss."""
    lost = ops.isinf(losses)
    total = ops.sum(ops.exp(log_probs), axis=(0, 2))
    losses = ops.add(losses, ops.subtract(total, ops.stop_gradient(total)))
    if zero_infinity:
        return ops.where(lost, 0, losses)
    # A power of 1 is 1, also to NaN, which only the gradient sees.
    exponent = ops.astype(ops.where(lost, np.nan, 0), dtype_of(total))
    steep = ops.pow(ops.add(ops.multiply(total, 0), 1), exponent)
    return ops.add(losses, ops.subtract(steep, 1))

"""softmax and functions of its logarithm: one op each, in fewer passes over memory than the ops they are made of.

Each op also has `parts`, simpler ops with the same bits, which a compiler fuses with its neighbours.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from graphs import dims
from graphs.dims import Shape
from graphs.errors import DTypeError, ShapeError
from graphs.op import Array, Kernel, Op, Prepared
from graphs.ops.elementwise import divide, exp, log, multiply, negative, subtract
from graphs.ops.families import check_specs, refuse_empty, ufunc_dtype
from graphs.ops.indexing import add_along_axis, take_along_axis
from graphs.ops.movement import astype, broadcast_to, expand_dims, stop_gradient
from graphs.ops.reductions import max as _max
from graphs.ops.reductions import mean, reducer, share_cotangent
from graphs.ops.reductions import sum as _sum
from graphs.ops.scans import round_to_dtype, sum_sorted_axes
from graphs.ops.shapes import (
    HALF,
    SINGLE,
    Axis,
    as_operand,
    dtype_of,
    floating,
    integral,
    is_half,
    positive_axes,
    shape_of,
)
from graphs.spec import TensorSpec

__all__ = ["log_softmax", "log_softmax_gradient", "softmax", "softmax_gradient"]


_largest = reducer(np.maximum, np.dtype(np.float64))
_float = ufunc_dtype(np.exp)


_BUFFERED, _MANY = 128, 1 << 15  # elements of such a row and of a buffer that holds not two of them, and of an array


def _row_by_row(kernel: Kernel) -> Kernel:
    """Wrap a kernel to take long rows one by one, and to compute float16 in float32.

    NumPy processes as many rows at once as its buffer holds, and copies the maximum or sum of each row into the buffer
    once per element: for rows of 256 that takes as long again as the subtraction, for rows of 1,000 twice as long.
    """

    @functools.wraps(kernel)
    def quicker(*arrays: Array, axis: tuple[int, ...], out: Array = None) -> Array:
        x = arrays[0]
        if x.dtype.num == HALF:  # the sum may be more than float16 has
            return round_to_dtype(quicker(*[a.astype(SINGLE) for a in arrays], axis=axis), x.dtype, out)
        if x.size < _MANY or x.shape[-1] < _BUFFERED or axis != (x.ndim - 1,) or x.dtype.char not in "fd":
            return kernel(*arrays, axis=axis, out=out)
        before = np.setbufsize(_BUFFERED)
        try:
            return kernel(*arrays, axis=axis, out=out)
        finally:
            np.setbufsize(before)

    return quicker


def _in_single(parts: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `parts` to compute float16 in float32, as the kernel does."""

    @functools.wraps(parts)
    def wider(*args: Array, axis: tuple[int, ...]) -> Array:
        dtype = dtype_of(args[0])
        if is_half(dtype):
            return astype(parts(*[astype(a, SINGLE) for a in args], axis=axis), dtype)
        return parts(*args, axis=axis)

    return wider


def _along(name: str, kernel: Kernel, parts: Callable[..., Any], rule: Callable[..., Any]) -> Op:
    """Make an op `op(x, axis=-1)` of a function along one axis, or several."""

    def infer(x: TensorSpec, *, axis: tuple[int, ...]) -> TensorSpec:
        floating(x)
        refuse_empty(x, axis)
        return x

    # An exponential counts as ten operations.
    return Op(
        name, _row_by_row(kernel), infer, rules=(rule,), prepare=_prepare, cost=14, family="composed",
        parts=_in_single(parts),
    )  # fmt: skip


def _prepare(x: Array, /, axis: Axis = -1) -> Prepared:
    return (_floating(x),), {"axis": positive_axes(axis, len(shape_of(x)))}


def _floating(x: Array) -> Array:
    x = as_operand(x)
    dtype = dtype_of(x)
    return x if dtype.kind == "f" else astype(x, _float(dtype))


def _subtract_max(x: Array, axis: tuple[int, ...], out: Array) -> Array:
    """x less its maximum along `axis`, so that no exponential overflows."""
    return np.asarray(np.subtract(x, _largest(x, axis, None, None, True), out))


def _shifted_parts(x: Array, axis: tuple[int, ...]) -> Array:
    return subtract(x, stop_gradient(_max(x, axis=axis, keepdims=True)))


def _total(x: Array, axis: tuple[int, ...]) -> Array:
    return _sum(x, axis=axis, keepdims=True)


def _softmax(x: Array, *, axis: tuple[int, ...], out: Array = None) -> Array:
    """exp(x) / sum(exp(x)) along an axis, without overflow."""
    weights = _subtract_max(x, axis, out)
    np.exp(weights, weights)
    return np.divide(weights, sum_sorted_axes(weights, axis, keepdims=True), weights)


def _softmax_parts(x: Array, axis: tuple[int, ...]) -> Array:
    weights = exp(_shifted_parts(x, axis))
    return divide(weights, _total(weights, axis))


def _log_softmax(x: Array, *, axis: tuple[int, ...], out: Array = None) -> Array:
    """The logarithm of softmax, without overflow."""
    shifted = _subtract_max(x, axis, out)
    # Not x - logsumexp(x), which loses the digits of a small difference of two large numbers.
    return np.subtract(shifted, np.log(sum_sorted_axes(np.exp(shifted), axis, keepdims=True)), shifted)


def _log_softmax_parts(x: Array, axis: tuple[int, ...]) -> Array:
    shifted = _shifted_parts(x, axis)
    return subtract(shifted, log(_total(exp(shifted), axis)))


softmax: Op = _along(
    "softmax", _softmax, _softmax_parts, lambda g, out, axis: softmax_gradient.apply((g, out), {"axis": axis})
)
log_softmax: Op = _along(
    "log_softmax",
    _log_softmax,
    _log_softmax_parts,
    lambda g, out, axis: log_softmax_gradient.apply((g, out), {"axis": axis}),
)


# The gradients of these ops
# --------------------------------------------------------------------------------------------


def _prepare_gradient(g: Array, y: Array, /, axis: Axis = -1) -> Prepared:
    return (_floating(g), _floating(y)), {"axis": positive_axes(axis, len(shape_of(y)))}


def _infer_gradient(g: TensorSpec, y: TensorSpec, *, axis: tuple[int, ...]) -> TensorSpec:
    if not dims.same_shape(g.shape, y.shape):
        raise ShapeError("a cotangent has the shape of what it is the cotangent of; broadcast it first")
    if g.dtype != y.dtype:
        raise DTypeError("a cotangent has the dtype of what it is the cotangent of; convert it with astype")
    return y


def _softmax_gradient(g: Array, y: Array, *, axis: tuple[int, ...], out: Array = None) -> Array:
    """The cotangent of x from that of y = softmax(x): (g - sum(g y)) y, in one new array."""
    product = np.asarray(np.multiply(g, y, out))
    np.subtract(g, sum_sorted_axes(product, axis, keepdims=True), product)
    return np.multiply(product, y, product)


def _log_softmax_gradient(g: Array, y: Array, *, axis: tuple[int, ...], out: Array = None) -> Array:
    """The cotangent of x from that of y = log_softmax(x): g - exp(y) sum(g), in one new array."""
    total = sum_sorted_axes(g, axis, keepdims=True)
    share = np.asarray(np.exp(y, out))
    return np.subtract(g, np.multiply(share, total, share), share)


def _gradient(name: str, kernel: Kernel, parts: Callable[..., Any], *rules: Callable[..., Any], flops: int) -> Op:
    """Make an op `op(g, y, axis=-1)` of a cotangent g and the result y that it belongs to."""
    return Op(
        name, _row_by_row(kernel), _infer_gradient, rules=rules, prepare=check_specs(_prepare_gradient,
        _infer_gradient),
        cost=flops, family="composed", parts=_in_single(parts),
    )  # fmt: skip


softmax_gradient: Op = _gradient(
    "softmax_gradient",
    _softmax_gradient,
    lambda g, y, axis: multiply(subtract(g, _total(multiply(g, y), axis)), y),
    lambda g, y, axis: softmax_gradient.apply((g, y), {"axis": axis}),  # it is linear in g, and symmetric
    lambda g, x, y, axis: subtract(
        multiply(g, subtract(x, _total(multiply(x, y), axis))), multiply(x, _total(multiply(g, y), axis))
    ),
    flops=4,
)
log_softmax_gradient: Op = _gradient(
    "log_softmax_gradient",
    _log_softmax_gradient,
    lambda g, y, axis: subtract(g, multiply(exp(y), _total(g, axis))),
    lambda g, y, axis: subtract(g, _total(multiply(g, exp(y)), axis)),
    lambda g, x, y, axis: negative(multiply(multiply(g, exp(y)), _total(x, axis))),
    flops=13,
)


# nll_loss ---------------------------------------------------------------------------------------------------------


def _infer_nll(x: TensorSpec, labels: TensorSpec) -> TensorSpec:
    integral(labels, "labels")
    check_labels(x.shape, labels.shape)
    return mean.infer(x, axis=tuple(range(x.ndim)), keepdims=False)


def check_labels(shape: Shape, labels: Shape) -> None:
    """Raise ShapeError unless there is a label for each row of log probabilities."""
    if not shape or not dims.same_shape(shape[:-1], labels):
        raise ShapeError("labels have the shape of the log probabilities without the last axis; reshape them")


def _nll(x: Array, labels: Array, *, out: Array = None) -> Array:
    """Minus the mean of log probabilities at their labels: f[..., classes], i[...] -> a scalar."""
    check_labels(x.shape, labels.shape)  # or they would broadcast
    if x.ndim == 2:  # as elsewhere, without the axes of size 1
        picked = x[np.arange(len(x)), labels]
    else:
        picked = take_along_axis.kernel(x, labels[..., None], axis=x.ndim - 1)
    return np.negative(mean.kernel(picked, axis=tuple(range(picked.ndim)), keepdims=False), out)


def _nll_gradient(g: Array, x_shape: Shape, y: Array) -> Array:
    count, labels = dims.product(x_shape[:-1]), expand_dims(y, -1)
    return add_along_axis(
        broadcast_to(negative(share_cotangent(g, count)), shape_of(labels)), labels, x_shape, len(x_shape) - 1
    )


nll_loss: Op = Op(
    "nll_loss",
    _nll,
    _infer_nll,
    rules=(_nll_gradient, None),
    cost=lambda x, labels, *, out: labels.size,
    family="composed",
    zero_safe=True,
    fails="raises",
    parts=lambda x, labels: negative(mean(take_along_axis(x, expand_dims(labels, -1), axis=-1))),
)

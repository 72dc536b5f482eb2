"""Scans along one axis: running sums and products, and the linear recurrence that differentiates them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from graphs import dims
from graphs.errors import ShapeError
from graphs.op import Array, Op, Prepared
from graphs.ops.elementwise import multiply
from graphs.ops.families import checked
from graphs.ops.movement import cast, flip, pad
from graphs.ops.shapes import accumulator, as_operand, is_half, positive_axis, shape_of
from graphs.ops.slicing import cut
from graphs.ops.sums import rounded
from graphs.spec import TensorSpec

__all__ = ["cumulative_prod", "cumulative_sum", "linear_recurrence"]


def _running(name: str, ufunc: np.ufunc, initial: int, rule: Any, doc: str) -> Op:
    def prepare(
        x: Array,
        /,
        axis: int | None = None,
        dtype: npt.DTypeLike | None = None,
        include_initial: bool = False,
    ) -> Prepared:
        x = as_operand(x)
        ndim = len(shape_of(x))
        if axis is None and ndim > 1:
            raise ShapeError(f"needs an axis for {ndim} axes; pass axis=, or flatten first")
        at = positive_axis(-1 if axis is None else axis, ndim)
        # The first result of a scan that starts from its identity is that of x with the identity before it.
        values = pad(x, in_front(ndim, at), initial) if include_initial else x
        return (values,), {"axis": at} | ({} if dtype is None else {"dtype": TensorSpec((), dtype).dtype})

    def kernel(x: Array, *, axis: int, dtype: Any = None, out: Array = None) -> Array:
        kind = accumulator(x.dtype, dtype)
        if is_half(kind):
            return rounded(ufunc.accumulate(x, axis=axis, dtype=np.float32), kind, out)
        return ufunc.accumulate(x, axis=axis, out=out, dtype=kind)

    def infer(x: TensorSpec, *, axis: int, dtype: Any = None) -> TensorSpec:
        return TensorSpec(x.shape, accumulator(x.dtype, dtype))

    return Op(name, kernel, infer, rules=(rule,), prepare=prepare, cost=1, family="reduction", doc=doc)


cumulative_sum: Op = _running(
    "cumulative_sum",
    np.add,
    0,
    lambda g, x_dtype, axis: cast(flip(cumulative_sum(flip(g, axis=axis), axis=axis), axis=axis), x_dtype),
    "The running sum along one axis, in `dtype`; `include_initial` puts a 0 first and adds to that.",
)
cumulative_prod: Op = _running(
    "cumulative_prod",
    np.multiply,
    1,
    lambda g, x, axis: _running_product_rule(cast(g, x.dtype), x, axis),
    "The running product along one axis, in `dtype`; `include_initial` puts a 1 first and multiplies that.",
)


def _running_product_rule(g: Array, x: Array, axis: int) -> Array:
    """The sum over k >= i of g[k] * x[0] * ... * x[k] / x[i], without dividing: right for any number of zeros."""
    return multiply(but_last(cumulative_prod(x, axis=axis, include_initial=True), axis), from_behind(x, g, axis))


def _prepare_recurrence(x: Array, y: Array, /, axis: int = -1) -> Prepared:
    x = as_operand(x)
    return (x, as_operand(y)), {"axis": positive_axis(axis, len(shape_of(x)))}


def _infer_recurrence(x: TensorSpec, y: TensorSpec, *, axis: int) -> TensorSpec:
    if not dims.same_shape(x.shape, y.shape):
        raise ShapeError("factors and terms have one shape; broadcast them first")
    return TensorSpec(x.shape, np.result_type(x.dtype, y.dtype))


def _recurrence(x: Array, y: Array, *, axis: int, out: Array = None) -> Array:
    """r[i] = x[i] * r[i - 1] + y[i] along one axis, with r[0] = y[0]."""
    if out is None:
        out = np.empty(x.shape, np.result_type(x, y))
    factors, terms, results = (np.moveaxis(a, axis, 0) for a in (x, y, out))
    if len(results):
        results[0] = terms[0]
    # Step by step, since a product of many factors may overflow where no result does.
    for i in range(1, len(results)):
        np.multiply(factors[i : i + 1], results[i - 1 : i], out=results[i : i + 1])
        results[i] += terms[i]
    return out


linear_recurrence: Op = Op(
    "linear_recurrence",
    _recurrence,
    _infer_recurrence,
    rules=(
        lambda g, x, out, axis: multiply(from_behind(x, g, axis), _shifted(out, axis)),
        lambda g, x, axis: from_behind(x, g, axis),
    ),
    prepare=checked(_prepare_recurrence, _infer_recurrence),
    cost=2,
    family="reduction",
    broadcasts=True,
)


def from_behind(x: Array, g: Array, axis: int) -> Array:
    """r[i] = g[i] + x[i + 1] * r[i + 1]: the recurrence from the other end, which carries cotangents."""
    factors = _shifted(flip(x, axis=axis), axis)
    return flip(linear_recurrence(factors, flip(g, axis=axis), axis=axis), axis=axis)


def _shifted(x: Array, axis: int) -> Array:
    """x moved one place along an axis, with a 0 in front."""
    return but_last(pad(x, in_front(len(x.shape), axis)), axis)


def in_front(ndim: int, axis: int) -> list[tuple[int, int]]:
    """The widths of a pad of one element before those along an axis."""
    return [(int(i == axis), 0) for i in range(ndim)]


def but_last(x: Array, axis: int) -> Array:
    """x without its last element along an axis."""
    return cut(x, axis % len(x.shape), None, -1)

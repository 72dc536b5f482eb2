"""Statistics, interpolation and signals in the table of NumPy functions, with NumPy's parameters."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from graphs import dims, ops
from graphs.errors import ShapeError
from graphs.op import Array
from graphs.ops.shapes import as_operand, dtype_of, positive_axes, shape_of

Axis = Any

# Averages -----------------------------------------------------------------------------------------------------------


def _average(a: Array, axis: Axis = None, weights: Array | None = None, *, keepdims: bool = False) -> Array:
    if weights is None:
        return ops.mean(a, axis=axis, keepdims=keepdims)
    shares = as_operand(weights)
    if shape_of(shares) != shape_of(a):  # one for each place along the axis
        place = positive_axes(axis, len(shape_of(a)))[0]
        shares = ops.reshape(shares, [-1 if i == place else 1 for i in range(len(shape_of(a)))])
    over: dict[str, Any] = {"axis": axis, "keepdims": keepdims}
    total = ops.sum(ops.broadcast_to(shares, shape_of(a)), **over)
    return ops.divide(ops.sum(ops.multiply(a, shares), **over), total)


def _cov(m: Array, y: Array | None = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None) -> Array:
    rows = [_rows(part, rowvar) for part in (m, y) if part is not None]
    x = rows[0] if len(rows) == 1 else ops.concat(rows, axis=0)
    gaps = ops.subtract(x, ops.mean(x, axis=1, keepdims=True))
    freedom = dims.maximum(shape_of(x)[1] - (int(not bias) if ddof is None else ddof), 0)
    return ops.squeeze(ops.divide(ops.matmul(gaps, ops.matrix_transpose(gaps)), freedom), _ones(shape_of(x)[0]))


def _rows(x: Array, rowvar: bool) -> Array:
    matrix = ops.atleast_2d(x)
    return matrix if rowvar or shape_of(matrix)[0] == 1 else ops.matrix_transpose(matrix)


def _ones(count: Any) -> tuple[int, ...]:
    return (0, 1) if count == 1 else ()


def _corrcoef(x: Array, y: Array | None = None, rowvar: bool = True) -> Array:
    spread = _cov(x, y, rowvar)
    if not shape_of(spread):
        return ops.divide(spread, spread)
    root = ops.sqrt(ops.diagonal(spread))
    return ops.clip(ops.divide(ops.divide(spread, ops.expand_dims(root, 1)), root), -1, 1)


def _trapezoid(y: Array, x: Array | None = None, dx: Any = 1.0, axis: int = -1) -> Array:
    last = ops.moveaxis(y, axis, -1)
    means = ops.divide(ops.add(last[..., 1:], last[..., :-1]), 2)
    if x is None:
        return ops.sum(ops.multiply(means, dx), axis=-1)
    places = as_operand(x)
    places = places if len(shape_of(places)) == 1 else ops.moveaxis(places, axis, -1)
    return ops.sum(ops.multiply(means, ops.diff(places, axis=-1)), axis=-1)


# Reductions that skip NaN
# ---------------------------------------------------------------------------------------------


def _without_nan(reduction: Callable[..., Any]) -> Callable[..., Any]:
    """Make a sum or product of the elements that are not NaN."""

    def call(a: Array, axis: Axis = None, *, keepdims: bool = False) -> Array:
        return reduction(a, axis=axis, keepdims=keepdims, where=_there(a))

    return call


def _nanextreme(reduction: Callable[..., Any], other: float) -> Callable[..., Any]:
    """Make an extreme of the elements that are not NaN; NaN where all are."""

    def call(a: Array, axis: Axis = None, *, keepdims: bool = False) -> Array:
        there, over = _there(a), {"axis": axis, "keepdims": keepdims}
        return ops.where(ops.any(there, **over), reduction(ops.where(there, a, other), **over), math.nan)

    return call


def _nanmean(a: Array, axis: Axis = None, *, keepdims: bool = False) -> Array:
    there, over = _there(a), {"axis": axis, "keepdims": keepdims}
    return ops.divide(ops.sum(a, **over, where=there), _number(there, a, over))


def _nanvar(a: Array, axis: Axis = None, *, ddof: int = 0, keepdims: bool = False) -> Array:
    there, over = _there(a), {"axis": axis, "keepdims": keepdims}
    gaps = ops.where(there, ops.subtract(ops.where(there, a, 0), _nanmean(a, axis, keepdims=True)), 0)
    return ops.divide(ops.sum(ops.square(gaps), **over), ops.subtract(_number(there, a, over), ddof))


def _nanstd(a: Array, axis: Axis = None, *, ddof: int = 0, keepdims: bool = False) -> Array:
    return ops.sqrt(_nanvar(a, axis, ddof=ddof, keepdims=keepdims))


def _there(a: Array) -> Array:
    return ops.logical_not(ops.isnan(a))


def _number(there: Array, a: Array, over: dict[str, Any]) -> Array:
    return ops.sum(ops.astype(there, dtype_of(a)), **over)


# Order --------------------------------------------------------------------------------------------------------------


def _ptp(a: Array, axis: Axis = None, *, keepdims: bool = False) -> Array:
    over: dict[str, Any] = {"axis": axis, "keepdims": keepdims}
    return ops.subtract(ops.max(a, **over), ops.min(a, **over))


def _quantile(a: Array, q: Any, axis: Axis = None, *, keepdims: bool = False) -> Array:
    """Quantiles by linear interpolation; `q` holds numbers."""
    shares = np.asarray(q, np.float64)
    axes = positive_axes(axis, len(shape_of(a)))
    flat = _last(a, axes)
    ranked, size = ops.sort(flat, axis=-1), shape_of(flat)[-1]
    ranked = ops.astype(ranked, np.result_type(dtype_of(ranked), 0.5), copy=False)  # what lies between ints is none
    places = shares.reshape(-1) * (int(size) - 1)
    low = np.floor(places).astype(np.int64)
    below, above = (ops.take(ranked, at, axis=-1) for at in (low, np.minimum(low + 1, int(size) - 1)))
    quantiles = ops.add(below, ops.multiply(ops.subtract(above, below), (places - low).astype(dtype_of(ranked))))
    quantiles = ops.where(ops.isnan(ranked[..., -1:]), math.nan, quantiles)
    quantiles = ops.reshape(ops.moveaxis(quantiles, -1, 0), (*shares.shape, *shape_of(flat)[:-1]))
    return ops.expand_dims(quantiles, [shares.ndim + i for i in axes]) if keepdims else quantiles


def _last(a: Array, axes: tuple[int, ...]) -> Array:
    """Merge the axes into one, the last."""
    rest = [i for i in range(len(shape_of(a))) if i not in axes]
    return ops.reshape(ops.permute_dims(a, (*rest, *axes)), (*[shape_of(a)[i] for i in rest], -1))


def _percentile(a: Array, q: Any, axis: Axis = None, *, keepdims: bool = False) -> Array:
    return _quantile(a, np.asarray(q) / 100, axis, keepdims=keepdims)


def _median(a: Array, axis: Axis = None, *, keepdims: bool = False) -> Array:
    return _quantile(a, 0.5, axis, keepdims=keepdims)


# Functions of one variable ------------------------------------------------------------------------------------------


def _interp(x: Array, xp: Array, fp: Array, left: Any = None, right: Any = None) -> Array:
    xp, fp = as_operand(xp), as_operand(fp)
    last = shape_of(xp)[0] - 1
    at = ops.clip(
        ops.subtract(ops.searchsorted(ops.stop_gradient(xp), ops.stop_gradient(x), side="right"), 1),
        0,
        dims.maximum(last - 1, 0),
    )
    after = ops.minimum(ops.add(at, 1), last)
    (start, end), (low, high) = [(ops.take(points, at), ops.take(points, after)) for points in (xp, fp)]
    gap = ops.subtract(end, start)
    slope = ops.divide(ops.subtract(high, low), ops.where(ops.equal(gap, 0), 1, gap))
    values = ops.add(low, ops.multiply(slope, ops.subtract(x, start)))
    # Beside an infinity: the value from the other end; where both ends are equal, or at a point, the value there.
    values = ops.where(ops.isnan(values), ops.add(high, ops.multiply(slope, ops.subtract(x, end))), values)
    is_there = ops.logical_or(ops.equal(low, high), ops.equal(x, start))
    values = ops.where(ops.logical_and(ops.isnan(values), is_there), low, values)
    values = ops.where(ops.less(x, xp[0]), fp[0] if left is None else left, values)
    return ops.where(ops.greater(x, xp[-1]), fp[-1] if right is None else right, values)


def _polyval(p: Array, x: Array) -> Array:
    total: Any = ops.zeros_like(x)
    for number in p:
        total = ops.add(ops.multiply(total, x), number)
    return total


def _vander(x: Array, N: int | None = None, increasing: bool = False) -> Array:  # noqa: N803  (NumPy's name)
    count = int(shape_of(x)[0]) if N is None else N
    powers = np.arange(count) if increasing else np.arange(count)[::-1]
    return ops.prod(ops.where(np.arange(count - 1) < powers[:, None], ops.expand_dims(x, (1, 2)), 1.0), axis=-1)


def _convolve(a: Array, v: Array, mode: str = "full") -> Array:
    a, v = as_operand(a), as_operand(v)
    if len(shape_of(a)) != 1 or len(shape_of(v)) != 1:
        raise ShapeError("convolve is for vectors; use conv1d or conv2d for arrays of more axes")
    long, short = (a, v) if shape_of(a)[0] >= shape_of(v)[0] else (v, a)
    n, m = int(shape_of(long)[0]), int(shape_of(short)[0])
    padded = ops.pad(long, [(m - 1, m - 1)])
    windows = ops.take(padded, np.arange(n + m - 1)[:, None] + np.arange(m)[::-1])
    whole = ops.matmul(windows, short)
    if mode not in _CUTS:
        raise ShapeError(f"there is no mode {mode!r}; use 'full', 'same' or 'valid'")
    first, last = _CUTS[mode](n, m)
    return whole[first:last]


_CUTS: dict[str, Callable[[int, int], tuple[int, int]]] = {
    "full": lambda n, m: (0, n + m - 1),
    "same": lambda n, m: ((m - 1) // 2, (m - 1) // 2 + n),
    "valid": lambda n, m: (m - 1, n),
}


def _correlate(a: Array, v: Array, mode: str = "valid") -> Array:
    return _convolve(a, ops.flip(as_operand(v)), mode)


FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.average: _average,
    np.cov: _cov,
    np.corrcoef: _corrcoef,
    np.trapezoid: _trapezoid,
    np.nansum: _without_nan(ops.sum),
    np.nanprod: _without_nan(ops.prod),
    np.nanmax: _nanextreme(ops.max, -math.inf),
    np.nanmin: _nanextreme(ops.min, math.inf),
    np.nanmean: _nanmean,
    np.nanvar: _nanvar,
    np.nanstd: _nanstd,
    np.ptp: _ptp,
    np.quantile: _quantile,
    np.percentile: _percentile,
    np.median: _median,
    np.interp: _interp,
    np.polyval: _polyval,
    np.vander: _vander,
    np.convolve: _convolve,
    np.correlate: _correlate,
}

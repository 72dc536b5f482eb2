"""NumPy functions called on tensors and symbols: which op each one is. No function falls back to plain arrays."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

import numpy as np

from graphs import ops
from graphs.errors import GraphError, located

Function = Callable[..., Any]


def _clip(x: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    return ops.clip(x, min if a_min is None else a_min, max if a_max is None else a_max)


def _pad(x: Any, pad_width: Any, mode: str = "constant", *, constant_values: float = 0) -> Any:
    if mode != "constant":
        raise TypeError(f"there is no mode {mode!r}")
    # NumPy takes one pair for all axes too; graphs.pad does not.
    return ops.pad(x, np.broadcast_to(pad_width, (x.ndim, 2)).tolist(), constant_values)


# NumPy names that differ from the array API standard's are listed; the rest are found under their own name.
_UFUNC_NAMES = {
    "absolute": "abs",
    "arccos": "acos",
    "arcsin": "asin",
    "arctan": "atan",
    "arctan2": "atan2",
    "invert": "bitwise_invert",
    "power": "pow",
    "rint": "round",
}
_FUNCTIONS: dict[Function, Function] = {
    np.sum: ops.sum,
    np.mean: ops.mean,
    np.prod: ops.prod,
    np.max: ops.max,
    np.min: ops.min,
    np.amax: ops.max,
    np.amin: ops.min,
    np.any: ops.any,
    np.all: ops.all,
    np.argmax: ops.argmax,
    np.argmin: ops.argmin,
    np.cumsum: lambda x, axis=None: ops.cumulative_sum(ops.flatten(x) if axis is None else x, axis=axis or 0),
    np.var: lambda x, axis=None, ddof=0, keepdims=False: ops.var(x, axis=axis, correction=ddof, keepdims=keepdims),
    np.std: lambda x, axis=None, ddof=0, keepdims=False: ops.std(x, axis=axis, correction=ddof, keepdims=keepdims),
    np.reshape: ops.reshape,
    np.ravel: ops.flatten,
    np.transpose: ops.permute_dims,
    np.matrix_transpose: ops.matrix_transpose,
    np.moveaxis: ops.moveaxis,
    np.broadcast_to: ops.broadcast_to,
    np.expand_dims: ops.expand_dims,
    np.squeeze: ops.squeeze,
    np.flip: ops.flip,
    np.concatenate: ops.concat,
    np.stack: ops.stack,
    np.take: lambda x, indices, axis=None: ops.take(ops.flatten(x) if axis is None else x, indices, axis=axis or 0),
    np.take_along_axis: ops.take_along_axis,
    np.where: ops.where,
    np.clip: _clip,
    np.pad: _pad,
    np.round: ops.round,
    np.zeros_like: ops.zeros_like,
    np.ones_like: ops.ones_like,
    np.full_like: ops.full_like,
    np.shape: lambda x: x.shape,
    np.ndim: lambda x: x.ndim,
    np.size: lambda x: x.size,
}


def call_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`np.tanh(x)` as `ops.tanh(x)`. Raises TypeError naming the nearest op when there is none."""
    if method != "__call__":
        raise TypeError(
            located(f"np.{ufunc.__name__}.{method} has no counterpart in graphs; use graphs.sum and the like")
        )
    function = getattr(ops, _UFUNC_NAMES.get(ufunc.__name__, ufunc.__name__), None)
    if function is None:
        raise _no_counterpart(ufunc.__name__)
    if kwargs:
        raise TypeError(located(f"np.{ufunc.__name__} takes no {', '.join(kwargs)} here; use the operator alone"))
    return function(*inputs)


def call_function(func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`np.concatenate([...])` as `ops.concat([...])`. Raises TypeError naming the nearest op when there is none."""
    function = _FUNCTIONS.get(func)
    name = f"{func.__module__}.{func.__name__}".removeprefix("numpy.")
    if function is None:
        raise _no_counterpart(name)
    try:
        return function(*args, **kwargs)
    except GraphError:
        raise
    except TypeError as error:  # an option of NumPy's that the op does not have
        raise TypeError(located(f"np.{name}: {error}; its counterpart in graphs has fewer options")) from None


def _no_counterpart(name: str) -> TypeError:
    near = difflib.get_close_matches(name, ops.__all__, n=1, cutoff=0.5)
    hint = f"; the nearest is graphs.{near[0]}" if near else "; write it with the functions in graphs"
    return TypeError(located(f"np.{name} has no counterpart in graphs, and would lose the graph{hint}"))

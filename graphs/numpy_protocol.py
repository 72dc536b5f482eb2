"""NumPy functions called on tensors and symbols: which op each one is. No function falls back to plain arrays."""

from __future__ import annotations

import difflib
from typing import Any

import numpy as np

from graphs import ops
from graphs.errors import GraphError, located
from graphs.numpy_functions import FUNCTIONS, UFUNC_NAMES, Function


def call_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`np.tanh(x)` as `ops.tanh(x)`. Raises TypeError naming the nearest op when there is none."""
    if method != "__call__":
        raise TypeError(
            located(f"np.{ufunc.__name__}.{method} has no counterpart in graphs; use graphs.sum and the like")
        )
    function = getattr(ops, UFUNC_NAMES.get(ufunc.__name__, ufunc.__name__), None)
    if function is None:
        raise _no_counterpart(ufunc.__name__)
    if kwargs and function is not ops.vecdot:
        raise TypeError(located(f"np.{ufunc.__name__} takes no {', '.join(kwargs)} here; use the operator alone"))
    return function(*inputs, **kwargs)


def call_function(func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`np.concatenate([...])` as `ops.concat([...])`. Raises TypeError naming the nearest op when there is none."""
    function = FUNCTIONS.get(func)
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

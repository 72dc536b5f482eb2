"""Checks of results for NaN and infinity, with an error that names the op that made them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphs import dispatch
from graphs.errors import AnomalyError, GraphError
from graphs.op import Op


def anomaly(
    op: Op, inputs: Sequence[Any], out: Any, *, infinite: bool, where: str = "", line: str = ""
) -> GraphError | None:
    """Return the error for an op whose result holds NaN, or infinity that no input holds; None without either.

    Infinity that an input holds already, as in a mask of -inf, is no anomaly; with `infinite=False` no infinity is.
    `where` is appended to the rule in the message, and `line` is the user's line.
    """
    values, operands = _floats(out), _floats(inputs)
    if all(np.isfinite(value).all() for value in values):
        return None
    if any(np.isnan(value).any() for value in values):
        rule = "passes NaN on" if any(np.isnan(value).any() for value in operands) else "makes NaN"
    elif infinite and all(np.isfinite(value).all() for value in operands):
        rule = "makes infinity"
    else:
        return None
    return dispatch.explain_error(op, inputs, AnomalyError(f"{rule}{where}; {_ranges(inputs)}"), line)


def _ranges(inputs: Sequence[Any]) -> str:
    """Describe the range of values of each floating point input, for an error message."""
    held = [f"input {i} {_describe_values(values)}" for i, operand in enumerate(inputs) if (values := _floats(operand))]
    return ", ".join(held) or "it has no floating point input"


def _describe_values(values: list[Any]) -> str:
    flat = np.concatenate([np.ravel(value).astype(np.float64) for value in values])
    if np.isnan(flat).any():
        return "holds NaN"
    return f"lies in [{flat.min():.3g}, {flat.max():.3g}]" if flat.size else "is empty"


def _floats(value: Any) -> list[Any]:
    """The floating point arrays in a value. Tuples and lists, as control-flow ops compute, are searched."""
    if isinstance(value, (tuple, list)):
        return [leaf for part in value for leaf in _floats(part)]
    array = np.asarray(value)
    return [array] if array.dtype.kind == "f" else []

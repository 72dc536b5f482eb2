"""Anomalies: NaN and infinity, put down to the op that made them."""

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
    """The error of an op whose result holds NaN, or infinity that none of its inputs held; None where all is well.

    Infinity that is only passed on, as in a mask of minus infinity, is meant; with `infinite=False` so is all of it.
    `where` follows the rule in the message, and `line` is the user's.
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
    """What each input holds, in words."""
    held = [f"input {i} {_describe_values(values)}" for i, operand in enumerate(inputs) if (values := _floats(operand))]
    return ", ".join(held) or "it has no floating point input"


def _describe_values(values: list[Any]) -> str:
    flat = np.concatenate([np.ravel(value).astype(np.float64) for value in values])
    if np.isnan(flat).any():
        return "holds NaN"
    return f"lies in [{flat.min():.3g}, {flat.max():.3g}]" if flat.size else "is empty"


def _floats(value: Any) -> list[Any]:
    """The floating point arrays in a value, or in several: a control-flow op computes a tuple."""
    if isinstance(value, (tuple, list)):
        return [leaf for part in value for leaf in _floats(part)]
    array = np.asarray(value)
    return [array] if array.dtype.kind == "f" else []

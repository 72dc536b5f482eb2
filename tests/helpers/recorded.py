"""Operands, and all that the tape keeps of a result."""

from __future__ import annotations

from typing import Any

import numpy as np

import dynamic
from dynamic.node import Node
from graphs import op

NO_SAMPLES = {"source", "control", "custom"}  # of a graph alone, or of a test


def elementwise() -> list[op.Op]:
    return [o for o in op.registered_ops().values() if o.family == "elementwise" and o.arity in (1, 2)]


def described(tensor: dynamic.Tensor) -> Any:
    """All that is kept of a result."""
    edge = tensor._edge
    history_of = None
    if isinstance(edge, Node):
        saved = [v.tobytes() if isinstance(v, np.ndarray) else v for v in edge.saved or ()]
        kinds = [type(e).__name__ for e in edge.edges]
        history_of = (
            edge.op,
            edge.pullback.wanted,
            edge.attrs,
            kinds,
            saved,
            edge.shape,
            edge.dtype,
            edge.hooks,
            edge.name(),
        )
    return tensor.shape, tensor.dtype, tensor._data.tobytes(), history_of


def operand(array: Any, requires_grad: bool) -> Any:
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf":
        return array
    return dynamic.tensor(array, requires_grad=requires_grad and array.dtype.kind == "f")

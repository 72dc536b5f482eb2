"""Columns: what each branch gives for one result of a switch, brought to one shape and dtype."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphs import promotion
from graphs.dims import is_symbolic, same_shape
from graphs.ops.creation import zeros
from graphs.ops.movement import astype
from graphs.ops.shapes import dtype_of, shape_of
from graphs.spec import TensorSpec
from static.convert.stage.trees import StructureError
from static.convert.stage.unknown import Stand, described, is_number


class Merged:
    """One result: `values` by branch, some of which may stand for what is not set."""

    def __init__(self, name: str, values: Sequence[Any]) -> None:
        self.values = values
        present = [value for value in values if not isinstance(value, Stand)]
        self.weak = all(map(is_number, present))
        self.spec = TensorSpec(_shape(name, present), _dtype(name, present))

    def typed(self, branch: int) -> Any:
        """What a branch gives, of the column's dtype: traced in the graph of the branch. Zeros where it is not set."""
        return typed(self.values[branch], self.spec)


def typed(value: Any, spec: TensorSpec) -> Any:
    """A value in the dtype of a spec; zeros of it where the value is not set."""
    if isinstance(value, Stand):
        symbolic = any(is_symbolic(size) for size in spec.shape)
        return zeros(spec.shape, dtype=spec.dtype) if symbolic else np.zeros(spec.shape, spec.dtype)
    if promotion.is_scalar(value):
        return np.asarray(value, spec.dtype)
    return value if dtype_of(value) == spec.dtype else astype(value, spec.dtype)


def _shape(name: str, values: Sequence[Any]) -> Any:
    shapes = [shape_of(value) for value in values]
    if not all(same_shape(shape, shapes[0]) for shape in shapes):
        raise StructureError(_differing(name, values))
    return shapes[0]


def _dtype(name: str, values: Sequence[Any]) -> np.dtype[Any]:
    """The dtype of all: a Python number takes that of the tensors, if it has it beside them."""
    strong = [value for value in values if not is_number(value)]
    if not strong:
        return np.result_type(*map(dtype_of, values))
    dtype = dtype_of(strong[0])
    for value in values:
        if (number_dtype(value, strong) if is_number(value) else dtype_of(value)) != dtype:
            raise StructureError(_differing(name, values))
    return dtype


def number_dtype(value: Any, strong: Sequence[Any]) -> np.dtype[Any]:
    """The dtype that a Python number, or what stands for one, takes beside tensors."""
    plain = value if promotion.is_scalar(value) else value.dtype.type(0).item()
    return promotion.scalar_dtype(plain, strong)


def _differing(name: str, values: Sequence[Any]) -> str:
    return f"{name} is {described(values[0])} on one path and {described(values[-1])} on the other"

"""Matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphs import dims
from graphs.dims import Shape, Size
from graphs.errors import ShapeError
from graphs.op import Attrs, Op
from graphs.ops.elementwise import multiply
from graphs.ops.movement import expand_dims, matrix_transpose, squeeze
from graphs.ops.shapes import as_operand
from graphs.spec import TensorSpec, broadcast_shapes

Array = Any


def _prepare(x: Array, y: Array, /) -> tuple[tuple[Any, ...], Attrs]:
    return (as_operand(x), as_operand(y)), {}


def _infer(x: TensorSpec, y: TensorSpec) -> TensorSpec:
    if not x.ndim or not y.ndim:
        raise ShapeError("needs at least one axis on each side; use multiply for scalars")
    inner = y.shape[-2] if y.ndim > 1 else y.shape[0]
    if not dims.same(x.shape[-1], inner):
        raise ShapeError(f"inner dimensions differ{_remedy(x, y)}")
    batch = broadcast_shapes(x.shape[:-2], y.shape[:-2])
    rows = x.shape[-2:-1] if x.ndim > 1 else ()
    columns = y.shape[-1:] if y.ndim > 1 else ()
    return TensorSpec((*batch, *rows, *columns), np.result_type(x.dtype, y.dtype))


def _remedy(x: TensorSpec, y: TensorSpec) -> str:
    if y.ndim > 1 and dims.same(x.shape[-1], y.shape[-1]):
        return "; transpose the second?"
    if x.ndim > 1 and dims.same(x.shape[-2], y.shape[-2 if y.ndim > 1 else 0]):
        return "; transpose the first?"
    return "; make the last size of the first equal the last but one of the second"


def _left_rule(g: Array, x_shape: Shape, y: Array) -> Array:
    if len(y.shape) == 1:
        return multiply(g if len(x_shape) == 1 else expand_dims(g, -1), y)
    if len(x_shape) == 1:
        return squeeze(matmul(y, expand_dims(g, -1)), -1)
    return matmul(g, matrix_transpose(y))


def _right_rule(g: Array, x: Array, y_shape: Shape) -> Array:
    if len(x.shape) == 1:
        return multiply(expand_dims(g, -2), expand_dims(x, -1)) if len(y_shape) > 1 else multiply(g, x)
    if len(y_shape) == 1:
        return squeeze(matmul(matrix_transpose(x), expand_dims(g, -1)), -1)
    return matmul(matrix_transpose(x), g)


def _cost(x: TensorSpec, y: TensorSpec, *, out: TensorSpec) -> Size:
    return out.size * x.shape[-1] * 2


matmul: Op = Op(
    "matmul",
    np.matmul,
    _infer,
    rules=(_left_rule, _right_rule),
    prepare=_prepare,
    cost=_cost,
    family="linalg",
    arity=2,
    broadcasts=True,
    infix=" @ ",
    doc="The matrix product x @ y over the last two axes, broadcasting the others; vectors are rows or columns.",
)

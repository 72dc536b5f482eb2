"""`linear`: a product with the rows of a matrix and a shift, what layers of networks are made of, as one op."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphs import dims
from graphs.dims import Shape, Size
from graphs.errors import ShapeError
from graphs.op import Array, Op, Prepared
from graphs.ops.elementwise import add
from graphs.ops.linalg import BLAS, SMALL, matmul, matrix_product, rows, transposed
from graphs.ops.movement import reshape
from graphs.ops.reductions import sum as _sum
from graphs.ops.shapes import as_operand
from graphs.spec import TensorSpec

__all__ = ["linear"]


def _linear(x: Array, weight: Array, bias: Array, *, out: Array = None) -> Array:
    """x @ weight.T + bias: f[..., n], f[m, n], f[m] -> f[..., m]."""
    if bias.shape != weight.shape[:1]:  # NumPy would broadcast it, and its gradient would have another shape
        raise ShapeError("the bias has one element for each row of the weight; reshape it")
    kind = x.dtype
    plain = out is None and x.ndim == 2 and kind is weight.dtype is bias.dtype and kind.num in BLAS
    if plain and len(x) * len(weight) <= SMALL:
        product = x.dot(weight.T)  # as `matrix_product` has it, in one call less
        return np.add(product, bias, product)
    if x.ndim > 2:  # the rows of all matrices at once: for one product, since BLAS takes half as long again for many
        product = matrix_product(x.reshape(math.prod(x.shape[:-1]), x.shape[-1]), weight.T)
        return np.add(product.reshape(*x.shape[:-1], len(weight)), bias, out)
    product = matrix_product(x, weight.T, out)
    if product.dtype is bias.dtype or out is not None:
        return np.add(product, bias, product)
    return np.add(product, bias)


def _infer(x: TensorSpec, weight: TensorSpec, bias: TensorSpec) -> TensorSpec:
    if not x.ndim or weight.ndim != 2 or bias.ndim != 1:
        raise ShapeError("linear takes f[..., n], a matrix f[m, n] and a vector f[m]; reshape the operands")
    if not dims.same(x.shape[-1], weight.shape[1]):
        raise ShapeError("the last size of the input is not that of the weight's rows; transpose the weight?")
    if not dims.same(bias.shape[0], weight.shape[0]):
        raise ShapeError("the bias has one element for each row of the weight; reshape it")
    return TensorSpec((*x.shape[:-1], weight.shape[0]), np.result_type(x.dtype, weight.dtype, bias.dtype))


def _parts(x: Array, weight: Array, bias: Array) -> Array:
    return add(by_rows(x, weight), bias)


def by_rows(x: Array, weight: Array) -> Array:
    """x @ weight.T: f[..., n], f[m, n] -> f[..., m]."""
    if len(x.shape) < 3:
        return matmul(x, transposed(weight))
    product = matmul(rows(x), transposed(weight))
    return reshape.apply((product,), {"shape": (*x.shape[:-1], weight.shape[0])})


def _input_rule(g: Array, x_shape: Shape, y: Array) -> Array:
    if len(x_shape) < 3:
        return matmul(g, y)
    return reshape.apply((matmul(rows(g), y),), {"shape": x_shape})


def _weight_rule(g: Array, x: Array) -> Array:
    if len(x.shape) == 1:
        x, g = (reshape.apply((value,), {"shape": (1, value.shape[0])}) for value in (x, g))
    elif len(x.shape) > 2:
        x, g = rows(x), rows(g)
    return matmul(transposed(g), x)


def _bias_rule(g: Array) -> Array:
    return _sum(g, axis=tuple(range(len(g.shape) - 1))) if len(g.shape) > 1 else g


def _cost(x: TensorSpec, weight: TensorSpec, bias: TensorSpec, *, out: TensorSpec) -> Size:
    return out.size * x.shape[-1] * 2 + out.size


def _prepare(x: Any, weight: Any, bias: Any, /) -> Prepared:
    values = as_operand(x), as_operand(weight), as_operand(bias)
    return values, {}


linear: Op = Op(
    "linear",
    _linear,
    _infer,
    rules=(_input_rule, _weight_rule, _bias_rule),
    prepare=_prepare,
    cost=_cost,
    family="linalg",
    parts=_parts,
)

"""What is computed element by element."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from graphs import linalg, ops
from graphs.frontends.onnx.table import translates
from graphs.ops.elementwise import fmod as truncated
from graphs.ops.movement import cast
from graphs.ops.shapes import dtype_of, highest, lowest, shape_of

_SAME: dict[str, Callable[..., Any]] = {
    "Abs": ops.abs,
    "Acos": ops.acos,
    "Acosh": ops.acosh,
    "Add": ops.add,
    "And": ops.logical_and,
    "Asin": ops.asin,
    "Asinh": ops.asinh,
    "Atan": ops.atan,
    "Atanh": ops.atanh,
    "BitwiseAnd": ops.bitwise_and,
    "BitwiseNot": ops.bitwise_invert,
    "BitwiseOr": ops.bitwise_or,
    "BitwiseXor": ops.bitwise_xor,
    "Ceil": ops.ceil,
    "Cos": ops.cos,
    "Cosh": ops.cosh,
    "Det": linalg.det,
    "Equal": ops.equal,
    "Erf": ops.erf,
    "Exp": ops.exp,
    "Floor": ops.floor,
    "Greater": ops.greater,
    "GreaterOrEqual": ops.greater_equal,
    "IsNaN": ops.isnan,
    "Less": ops.less,
    "LessOrEqual": ops.less_equal,
    "Log": ops.log,
    "MatMul": ops.matmul,
    "Mul": ops.multiply,
    "Neg": ops.negative,
    "Not": ops.logical_not,
    "Or": ops.logical_or,
    "Reciprocal": ops.reciprocal,
    "Relu": ops.relu,
    "Round": ops.round,
    "Sigmoid": ops.sigmoid,
    "Sign": ops.sign,
    "Sin": ops.sin,
    "Sinh": ops.sinh,
    "Softplus": ops.softplus,
    "Sqrt": ops.sqrt,
    "Sub": ops.subtract,
    "Tan": ops.tan,
    "Tanh": ops.tanh,
    "Where": ops.where,
    "Xor": ops.logical_xor,
}
for name, function in _SAME.items():
    translates(name)(function)


@translates("Identity")
def identity(x: Any) -> Any:
    return x


@translates("Div")
def divide(x: Any, y: Any) -> Any:
    """Of integers the quotient without its fraction: towards 0, as in C."""
    if dtype_of(x).kind == "f":
        return ops.divide(x, y)
    down = ops.floor_divide(x, y)
    if dtype_of(x).kind == "u":
        return down
    rest = ops.not_equal(ops.multiply(down, y), x)
    return ops.where(ops.logical_and(rest, ops.less(down, 0)), ops.add(down, 1), down)


@translates("Mod")
def remainder(x: Any, y: Any, *, fmod: bool = False) -> Any:
    """With the sign of the divisor, or with `fmod` that of the dividend."""
    if not fmod:
        return ops.remainder(x, y)
    if dtype_of(x).kind == "u":
        return ops.remainder(x, y)
    return truncated(x, y)


@translates("Pow")
def power(x: Any, y: Any) -> Any:
    return cast(ops.pow(x, y), dtype_of(x))


@translates("BitShift")
def shift(x: Any, y: Any, *, direction: Literal["LEFT", "RIGHT"]) -> Any:
    return (ops.bitwise_left_shift if direction == "LEFT" else ops.bitwise_right_shift)(x, y)


@translates("IsInf")
def is_infinite(x: Any, *, detect_negative: bool = True, detect_positive: bool = True) -> Any:
    signs = [sign for sign, wanted in ((-1, detect_negative), (1, detect_positive)) if wanted]
    if len(signs) == 2:
        return ops.isinf(x)
    return ops.equal(x, signs[0] * math.inf) if signs else ops.not_equal(ops.isinf(x), ops.isinf(x))


@translates("Clip")
def clip(x: Any, low: Any = None, high: Any = None) -> Any:
    if low is None and high is None:
        return x
    kind = dtype_of(x)
    return ops.clip(x, lowest(kind) if low is None else low, highest(kind) if high is None else high)


@translates("Max")
def maximum(*values: Any) -> Any:
    return functools.reduce(ops.maximum, values)


@translates("Min")
def minimum(*values: Any) -> Any:
    return functools.reduce(ops.minimum, values)


@translates("Sum")
def total(*values: Any) -> Any:
    return functools.reduce(ops.add, values)


@translates("Mean")
def mean(*values: Any) -> Any:
    return ops.divide(total(*values), len(values))


@translates("LeakyRelu")
def leaky_relu(x: Any, *, alpha: float = 0.01) -> Any:
    return ops.where(ops.greater_equal(x, 0), x, ops.multiply(x, alpha))


@translates("PRelu")
def prelu(x: Any, slope: Any) -> Any:
    return ops.where(ops.greater_equal(x, 0), x, ops.multiply(x, slope))


@translates("Elu")
def elu(x: Any, *, alpha: float = 1.0) -> Any:
    return ops.elu(x, alpha)


@translates("Selu")
def selu(x: Any, *, alpha: float = 1.6732632423543772, gamma: float = 1.0507009873554805) -> Any:
    return ops.multiply(ops.elu(x, alpha), gamma)


@translates("Gelu")
def gelu(x: Any, *, approximate: Literal["none", "tanh"] = "none") -> Any:
    return ops.gelu(x, approximate == "tanh")


@translates("Swish")
def swish(x: Any, *, alpha: float = 1.0) -> Any:
    return ops.multiply(x, ops.sigmoid(ops.multiply(x, alpha)))


@translates("HardSigmoid")
def hard_sigmoid(x: Any, *, alpha: float = 0.2, beta: float = 0.5) -> Any:
    return ops.clip(ops.add(ops.multiply(x, alpha), beta), 0, 1)


@translates("Shrink")
def shrink(x: Any, *, bias: float = 0.0, lambd: float = 0.5) -> Any:
    inwards = ops.subtract(x, ops.multiply(ops.sign(x), _same_kind(bias, x)))
    return ops.where(ops.greater(ops.abs(x), lambd), inwards, ops.multiply(x, 0))


def _same_kind(value: float, x: Any) -> Any:
    return np.asarray(value, dtype_of(x))


@translates("Cast")
def convert(x: Any, *, to: np.dtype[Any], saturate: bool = True, round_mode: str = "up") -> Any:
    """`saturate` and `round_mode` are about types that no tensor has here."""
    return ops.astype(x, to)


@translates("CastLike")
def convert_like(x: Any, like: Any, *, saturate: bool = True, round_mode: str = "up") -> Any:
    return ops.astype(x, dtype_of(like))


@translates("Einsum")
def einsum(*values: Any, equation: str) -> Any:
    return ops.einsum(equation.replace(" ", ""), *values)


@translates("Gemm")
def gemm(
    a: Any, b: Any, c: Any = None, *, alpha: float = 1.0, beta: float = 1.0, transA: bool = False, transB: bool = False
) -> Any:  # fmt: skip
    """alpha * a @ b + beta * c."""
    product = ops.matmul(ops.matrix_transpose(a) if transA else a, ops.matrix_transpose(b) if transB else b)
    scaled = product if alpha == 1 else ops.multiply(product, _same_kind(alpha, a))
    if c is None:
        return scaled
    return ops.add(scaled, c if beta == 1 else ops.multiply(c, _same_kind(beta, a)))


@translates("Trilu")
def triangle(x: Any, k: Any = None, *, upper: bool = True) -> Any:
    diagonal = 0 if k is None else int(np.asarray(k).item())
    return (ops.triu if upper else ops.tril)(x, diagonal)


@translates("Softmax", since=13)
def softmax(x: Any, *, axis: int = -1) -> Any:
    return ops.softmax(x, axis=axis)


@translates("LogSoftmax", since=13)
def log_softmax(x: Any, *, axis: int = -1) -> Any:
    return ops.log_softmax(x, axis=axis)


@translates("Hardmax", since=13)
def hardmax(x: Any, *, axis: int = -1) -> Any:
    """1 at the first largest element along the axis, 0 elsewhere."""
    at = axis % len(shape_of(x))
    places = ops.reshape(ops.arange(shape_of(x)[at]), [-1 if i == at else 1 for i in range(len(shape_of(x)))])
    return ops.astype(ops.equal(places, ops.argmax(x, axis=at, keepdims=True)), dtype_of(x))

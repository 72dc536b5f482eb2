"""How ops that work element by element are written."""

from __future__ import annotations

import math

import numpy as np

from graphs.ir import Node
from static.exporting.writer import OnnxWriter, writes

# Ops of ONNX's that do the same, on operands of the dtype of the result.
_SAME = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "add": "Add", "asin": "Asin", "asinh": "Asinh", "atan": "Atan",
    "atanh": "Atanh", "ceil": "Ceil", "cos": "Cos", "cosh": "Cosh", "divide": "Div", "erf": "Erf", "exp": "Exp",
    "floor": "Floor", "log": "Log", "maximum": "Max", "minimum": "Min", "multiply": "Mul", "negative": "Neg",
    "pow": "Pow", "reciprocal": "Reciprocal", "relu": "Relu", "round": "Round", "sigmoid": "Sigmoid", "sign": "Sign",
    "sin": "Sin", "sinh": "Sinh", "sqrt": "Sqrt", "subtract": "Sub", "tan": "Tan", "tanh": "Tanh",
}  # fmt: skip
# Comparisons, on operands of the dtype that these have together.
_COMPARED = {
    "equal": "Equal", "greater": "Greater", "greater_equal": "GreaterOrEqual", "less": "Less",
    "less_equal": "LessOrEqual", "isnan": "IsNaN", "isinf": "IsInf",
}  # fmt: skip
_LOGICAL = {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor", "logical_not": "Not"}
_BITWISE = {"bitwise_and": "And", "bitwise_or": "Or", "bitwise_xor": "Xor", "bitwise_invert": "Not"}


@writes(*_SAME)
def same(w: OnnxWriter, node: Node, *names: str) -> str:
    return w(_SAME[node.op.name], *w.typed(node, names, node.dtype))


@writes(*_COMPARED)
def compared(w: OnnxWriter, node: Node, *names: str) -> str:
    return w(_COMPARED[node.op.name], *w.typed(node, names, _together(node)))


def _together(node: Node) -> np.dtype[np.generic]:
    """The dtype that the operands of a comparison have together; ONNX compares no bools by their order."""
    dtype = np.result_type(*(source.dtype for source in node.inputs))
    return np.dtype(np.int32) if dtype == np.bool_ and node.op.name not in ("equal", "not_equal") else dtype


@writes("not_equal")
def not_equal(w: OnnxWriter, node: Node, *names: str) -> str:
    return w("Not", w("Equal", *w.typed(node, names, _together(node))))


@writes("isfinite")
def isfinite(w: OnnxWriter, node: Node, x: str) -> str:
    return w("Not", w("Or", w("IsNaN", x), w("IsInf", x)))


@writes(*_LOGICAL)
def logical(w: OnnxWriter, node: Node, *names: str) -> str:
    return w(_LOGICAL[node.op.name], *w.typed(node, names, np.bool_))


@writes(*_BITWISE)
def bitwise(w: OnnxWriter, node: Node, *names: str) -> str:
    prefix = "" if node.dtype == np.bool_ else "Bitwise"
    return w(prefix + _BITWISE[node.op.name], *w.typed(node, names, node.dtype))


@writes("positive", "identity", "stop_gradient")
def unchanged(w: OnnxWriter, node: Node, x: str) -> str:
    return x


@writes("astype")
def astype(w: OnnxWriter, node: Node, x: str) -> str:
    return x if node.dtype == node.inputs[0].dtype else w.cast(x, node.dtype)


@writes("square")
def square(w: OnnxWriter, node: Node, x: str) -> str:
    return w("Mul", x, x)


@writes("where")
def where(w: OnnxWriter, node: Node, test: str, x: str, y: str) -> str:
    condition = test if node.inputs[0].dtype == np.bool_ else w.cast(test, np.bool_)
    return w("Where", condition, *w.typed(node, (condition, x, y), node.dtype)[1:])


@writes("clip")
def clip(w: OnnxWriter, node: Node, *names: str) -> str:
    x, low, high = w.typed(node, names, node.dtype)
    return w("Min", w("Max", x, low), high)


@writes("floor_divide")
def floor_divide(w: OnnxWriter, node: Node, *names: str) -> str:
    x, y = w.typed(node, names, node.dtype)
    if node.dtype.kind == "f":
        return w("Floor", w("Div", x, y))
    return w("Div", w("Sub", x, w("Mod", x, y)), y)


@writes("remainder")
def remainder(w: OnnxWriter, node: Node, *names: str) -> str:
    """With the sign of the divisor, which Mod gives integers alone."""
    x, y = w.typed(node, names, node.dtype)
    if node.dtype.kind != "f":
        return w("Mod", x, y)
    rest = w("Mod", x, y, fmod=1)
    zero = w.scalar(0, node)
    other_side = w("And", w("Not", w("Equal", rest, zero)), w("Xor", w("Less", rest, zero), w("Less", y, zero)))
    return w("Where", other_side, w("Add", rest, y), rest)


@writes("trunc")
def trunc(w: OnnxWriter, node: Node, x: str) -> str:
    return w("Mul", w("Sign", x), w("Floor", w("Abs", x)))


@writes("log2", "log10")
def log_to_a_base(w: OnnxWriter, node: Node, x: str) -> str:
    base = 2.0 if node.op.name == "log2" else 10.0
    return w("Div", w("Log", *w.typed(node, [x], node.dtype)), w.scalar(math.log(base), node))


@writes("log1p")
def log1p(w: OnnxWriter, node: Node, x: str) -> str:
    """log(u) * x / (u - 1) with u = 1 + x: what rounding took from u it took from both (Kahan)."""
    (x,) = w.typed(node, [x], node.dtype)
    unit = w.scalar(1, node)
    u = w("Add", x, unit)
    exact = w("Equal", u, unit)
    return w("Where", exact, x, w("Div", w("Mul", w("Log", u), x), w("Where", exact, unit, w("Sub", u, unit))))


@writes("expm1")
def expm1(w: OnnxWriter, node: Node, x: str) -> str:
    """(u - 1) * x / log(u) with u = exp(x), for the same reason; u - 1 where x is far from 0."""
    (x,) = w.typed(node, [x], node.dtype)
    unit = w.scalar(1, node)
    u = w("Exp", x)
    less = w("Sub", u, unit)
    near = w("Less", w("Abs", x), w.scalar(0.5, node))
    exact = w("Equal", u, unit)
    safe = w("And", near, w("Not", exact))
    close = w("Div", w("Mul", less, x), w("Log", w("Where", safe, u, w.scalar(2, node))))
    return w("Where", exact, x, w("Where", near, close, less))


@writes("logaddexp")
def logaddexp(w: OnnxWriter, node: Node, *names: str) -> str:
    """The larger, and log(1 + exp(-distance)); equal infinities are their own."""
    x, y = w.typed(node, names, node.dtype)
    distance = w("Abs", w("Sub", x, y))
    gap = w("Where", w("Equal", x, y), w.scalar(0, node), distance)
    return w("Add", w("Max", x, y), w("Softplus", w("Neg", gap)))


@writes("hypot")
def hypot(w: OnnxWriter, node: Node, *names: str) -> str:
    x, y = w.typed(node, names, node.dtype)
    return w("Sqrt", w("Add", w("Mul", x, x), w("Mul", y, y)))


@writes("fmax", "fmin")
def extreme_but_nan(w: OnnxWriter, node: Node, *names: str) -> str:
    x, y = w.typed(node, names, node.dtype)
    extreme = w("Max" if node.op.name == "fmax" else "Min", x, y)
    return w("Where", w("IsNaN", x), y, w("Where", w("IsNaN", y), x, extreme))


@writes("bitwise_left_shift", "bitwise_right_shift")
def shift(w: OnnxWriter, node: Node, *names: str) -> str:
    """By powers of two, as BitShift takes unsigned numbers alone."""
    x, y = w.typed(node, names, node.dtype)
    power = w("Pow", w.scalar(2, node), y)
    if node.op.name == "bitwise_left_shift":
        return w("Mul", x, power)
    return w("Div", w("Sub", x, w("Mod", x, power)), power)

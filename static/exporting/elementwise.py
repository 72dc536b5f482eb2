"""How ops that work element by element are written."""

from __future__ import annotations

import math

import numpy as np

from graphs.ir import Node
from static.exporting.writer import OnnxWriter, writes

# Ops of ONNX's that do the same, on operands of the dtype of the result.
_SAME = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "add": "Add", "asin": "Asin", "asinh": "Asinh", "atan": "Atan",
    "atanh": "Atanh", "cos": "Cos", "cosh": "Cosh", "divide": "Div", "erf": "Erf", "exp": "Exp", "log": "Log",
    "maximum": "Max", "minimum": "Min", "multiply": "Mul", "pow": "Pow", "sigmoid": "Sigmoid", "sign": "Sign",
    "sin": "Sin", "sinh": "Sinh", "sqrt": "Sqrt", "subtract": "Sub", "tan": "Tan", "tanh": "Tanh",
}  # fmt: skip
_ROUNDING = {"ceil": "Ceil", "floor": "Floor", "round": "Round"}
# Comparisons, on operands of the dtype that these have together.
_COMPARED = {
    "equal": "Equal", "greater": "Greater", "greater_equal": "GreaterOrEqual", "less": "Less",
    "less_equal": "LessOrEqual",
}  # fmt: skip
_LOGICAL = {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor", "logical_not": "Not"}
_BITWISE = {"bitwise_and": "And", "bitwise_or": "Or", "bitwise_xor": "Xor", "bitwise_invert": "Not"}


@writes(*_SAME)
def same(w: OnnxWriter, node: Node, *names: str) -> str:
    return w(_SAME[node.op.name], *w.typed(names, node.dtype))


@writes(*_ROUNDING)
def rounded(w: OnnxWriter, node: Node, x: str) -> str:
    return w(_ROUNDING[node.op.name], w.cast(x, node.dtype)) if node.dtype.kind == "f" else x


@writes("negative")
def negative(w: OnnxWriter, node: Node, x: str) -> str:
    return w("Sub", w.scalar(0, node), x) if node.dtype.kind == "u" else w("Neg", w.cast(x, node.dtype))


@writes("reciprocal")
def reciprocal(w: OnnxWriter, node: Node, x: str) -> str:
    return (
        w("Reciprocal", w.cast(x, node.dtype))
        if node.dtype.kind == "f"
        else w("Div", w.scalar(1, node), w.cast(x, node.dtype))
    )


@writes("relu")
def relu(w: OnnxWriter, node: Node, x: str) -> str:
    return x if node.dtype.kind in "ub" else w("Relu", w.cast(x, node.dtype))


@writes(*_COMPARED)
def compared(w: OnnxWriter, node: Node, *names: str) -> str:
    return w(_COMPARED[node.op.name], *_together(w, *names))


def _together(w: OnnxWriter, *names: str) -> list[str]:
    """Operands of a comparison in the dtype that they have together."""
    return w.typed(names, np.result_type(*(w.dtypes[name] for name in names)))


@writes("not_equal")
def not_equal(w: OnnxWriter, node: Node, *names: str) -> str:
    return w("Not", w("Equal", *_together(w, *names)))


@writes("isnan", "isinf")
def is_special(w: OnnxWriter, node: Node, x: str) -> str:
    """Whether numbers are NaN or infinite, which an integer never is."""
    if w.dtypes[x].kind != "f":
        return w("Not", w("Equal", x, x))
    return w("IsNaN" if node.op.name == "isnan" else "IsInf", x)


@writes("isfinite")
def isfinite(w: OnnxWriter, node: Node, x: str) -> str:
    return w("Equal", x, x) if w.dtypes[x].kind != "f" else w("Not", w("Or", w("IsNaN", x), w("IsInf", x)))


@writes(*_LOGICAL)
def logical(w: OnnxWriter, node: Node, *names: str) -> str:
    return w(_LOGICAL[node.op.name], *w.typed(names, np.bool_))


@writes(*_BITWISE)
def bitwise(w: OnnxWriter, node: Node, *names: str) -> str:
    prefix = "" if node.dtype == np.bool_ else "Bitwise"
    return w(prefix + _BITWISE[node.op.name], *w.typed(names, node.dtype))


@writes("positive", "identity", "stop_gradient", "astype")
def unchanged(w: OnnxWriter, node: Node, x: str) -> str:
    return x


@writes("square")
def square(w: OnnxWriter, node: Node, x: str) -> str:
    return w("Mul", x, x)


@writes("where")
def where(w: OnnxWriter, node: Node, test: str, x: str, y: str) -> str:
    return w("Where", w.cast(test, np.bool_), *w.typed((x, y), node.dtype))


@writes("clip")
def clip(w: OnnxWriter, node: Node, *names: str) -> str:
    x, low, high = w.typed(names, node.dtype)
    return w("Min", w("Max", x, low), high)


@writes("floor_divide")
def floor_divide(w: OnnxWriter, node: Node, *names: str) -> str:
    """What is left when the rest is taken away, divided: a whole number but for rounding. By 0 it is the quotient."""
    x, y = w.typed(names, node.dtype)
    if node.dtype.kind != "f":
        return w("Div", w("Sub", x, w("Mod", x, y)), y)
    rest, below = _rest(w, x, y)
    whole = w("Round", w("Div", w("Sub", x, rest), y))
    down = w("Where", below, w("Sub", whole, w.scalar(1, node)), whole)
    zero, quotient = w.scalar(0, node), w("Div", x, y)
    signed = w("Where", w("Equal", down, zero), w("Mul", quotient, zero), down)
    return w("Where", w("Equal", y, zero), quotient, signed)


@writes("remainder")
def remainder(w: OnnxWriter, node: Node, *names: str) -> str:
    """With the sign of the divisor, which Mod gives integers alone."""
    x, y = w.typed(names, node.dtype)
    if node.dtype.kind != "f":
        return w("Mod", x, y)
    rest, below = _rest(w, x, y)
    return w("Where", below, w("Add", rest, y), rest)


def _rest(w: OnnxWriter, x: str, y: str) -> tuple[str, str]:
    """What is left of x when y is taken away as often as it goes, and whether it is on the other side of 0 than y."""
    rest, zero = w("Mod", x, y, fmod=1), w.constant(0, w.dtypes[x])
    sides = w("Xor", w("Less", rest, zero), w("Less", y, zero))
    return rest, w("And", w("Not", w("Equal", rest, zero)), sides)


@writes("trunc")
def trunc(w: OnnxWriter, node: Node, x: str) -> str:
    return w("Mul", w("Sign", x), w("Floor", w("Abs", x))) if node.dtype.kind == "f" else x


@writes("log2", "log10")
def log_to_a_base(w: OnnxWriter, node: Node, x: str) -> str:
    base = 2.0 if node.op.name == "log2" else 10.0
    return w("Div", w("Log", w.cast(x, node.dtype)), w.scalar(math.log(base), node))


@writes("log1p")
def log1p(w: OnnxWriter, node: Node, x: str) -> str:
    """log(u) * x / (u - 1) with u = 1 + x: what rounding took from u it took from both (Kahan). log(u) far from 0."""
    x = w.cast(x, node.dtype)
    unit = w.scalar(1, node)
    u = w("Add", x, unit)
    exact, far = w("Equal", u, unit), w("Greater", x, unit)
    log = w("Log", u)
    near = w("Div", w("Mul", log, x), w("Where", exact, unit, w("Sub", u, unit)))
    return w("Where", exact, x, w("Where", far, log, near))


@writes("expm1")
def expm1(w: OnnxWriter, node: Node, x: str) -> str:
    """(u - 1) * x / log(u) with u = exp(x), for the same reason; u - 1 where x is far from 0."""
    x = w.cast(x, node.dtype)
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
    x, y = w.typed(names, node.dtype)
    distance = w("Abs", w("Sub", x, y))
    gap = w("Where", w("Equal", x, y), w.scalar(0, node), distance)
    return w("Add", w("Max", x, y), w("Softplus", w("Neg", gap)))


@writes("hypot")
def hypot(w: OnnxWriter, node: Node, *names: str) -> str:
    """Measured by the longer side, whose square may be no number; infinite where one is, beside NaN too."""
    x, y = (w("Abs", name) for name in w.typed(names, node.dtype))
    longer, shorter, unit = w("Max", x, y), w("Min", x, y), w.scalar(1, node)
    part = w("Div", shorter, w("Where", w("Equal", longer, w.scalar(0, node)), unit, longer))
    length = w("Mul", longer, w("Sqrt", w("Add", unit, w("Mul", part, part))))
    return w("Where", w("Or", w("IsInf", x), w("IsInf", y)), w.scalar(math.inf, node), length)


@writes("fmax", "fmin")
def extreme_but_nan(w: OnnxWriter, node: Node, *names: str) -> str:
    x, y = w.typed(names, node.dtype)
    extreme = w("Max" if node.op.name == "fmax" else "Min", x, y)
    if node.dtype.kind != "f":
        return extreme
    return w("Where", w("IsNaN", x), y, w("Where", w("IsNaN", y), x, extreme))


@writes("bitwise_left_shift", "bitwise_right_shift")
def shift(w: OnnxWriter, node: Node, *names: str) -> str:
    """BitShift, which takes unsigned numbers alone; by less than nothing or more bits than there are nothing is left.

    A negative number goes to the right as the complement of its own complement.
    """
    x, y = w.typed(names, node.dtype)
    unsigned = np.dtype(f"u{node.dtype.itemsize}")
    inside = w("And", w("GreaterOrEqual", y, w.scalar(0, node)), w("Less", y, w.scalar(8 * node.dtype.itemsize, node)))
    some = w.cast(inside, node.dtype)
    amount = w.cast(w("Mul", y, some), unsigned)
    signed = node.op.name == "bitwise_right_shift" and node.dtype.kind == "i"
    negative = w("Less", x, w.scalar(0, node)) if signed else ""
    bits = w("Where", negative, w("BitwiseNot", x), x) if signed else x
    direction = "LEFT" if node.op.name == "bitwise_left_shift" else "RIGHT"
    moved = w("Mul", w.cast(w("BitShift", w.cast(bits, unsigned), amount, direction=direction), node.dtype), some)
    return w("Where", negative, w("BitwiseNot", moved), moved) if signed else moved

"""Rules that write ops which work element by element."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from graphs.ir import Node
from static.exporting.writer import RULES, OnnxWriter


def same(op: str, w: OnnxWriter, node: Node, *names: str) -> str:
    """Write an op that ONNX has too, on operands in the dtype of the result."""
    return w(op, *w.typed(names, node.dtype))


def write_rounding(op: str, w: OnnxWriter, node: Node, x: str) -> str:
    return w(op, w.cast(x, node.dtype)) if node.dtype.kind == "f" else x


@RULES.for_op("negative")
def negative(w: OnnxWriter, node: Node, x: str) -> str:
    return w("Sub", w.scalar(0, node), x) if node.dtype.kind == "u" else w("Neg", w.cast(x, node.dtype))


@RULES.for_op("reciprocal")
def reciprocal(w: OnnxWriter, node: Node, x: str) -> str:
    return (
        w("Reciprocal", w.cast(x, node.dtype))
        if node.dtype.kind == "f"
        else w("Div", w.scalar(1, node), w.cast(x, node.dtype))
    )


@RULES.for_op("relu")
def relu(w: OnnxWriter, node: Node, x: str) -> str:
    return x if node.dtype.kind in "ub" else w("Relu", w.cast(x, node.dtype))


def write_comparison(op: str, w: OnnxWriter, node: Node, *names: str) -> str:
    return w(op, *_together(w, *names))


def _together(w: OnnxWriter, *names: str) -> list[str]:
    """Return the operands of a comparison in their common dtype."""
    return w.typed(names, np.result_type(*(w.dtypes[name] for name in names)))


@RULES.for_op("not_equal")
def not_equal(w: OnnxWriter, node: Node, *names: str) -> str:
    return w("Not", w("Equal", *_together(w, *names)))


def is_special(op: str, w: OnnxWriter, node: Node, x: str) -> str:
    """Write whether numbers are NaN or infinite, which an integer never is."""
    return w("Not", w("Equal", x, x)) if w.dtypes[x].kind != "f" else w(op, x)


@RULES.for_op("isfinite")
def isfinite(w: OnnxWriter, node: Node, x: str) -> str:
    return w("Equal", x, x) if w.dtypes[x].kind != "f" else w("Not", w("Or", w("IsNaN", x), w("IsInf", x)))


def logical(op: str, w: OnnxWriter, node: Node, *names: str) -> str:
    return w(op, *w.typed(names, np.bool_))


def bitwise(op: str, w: OnnxWriter, node: Node, *names: str) -> str:
    return w(op if node.dtype == np.bool_ else f"Bitwise{op}", *w.typed(names, node.dtype))


@RULES.for_op("positive", "identity", "stop_gradient", "astype")
def pass_through(w: OnnxWriter, node: Node, x: str) -> str:
    return x


@RULES.for_op("square")
def square(w: OnnxWriter, node: Node, x: str) -> str:
    return w("Mul", x, x)


@RULES.for_op("where")
def where(w: OnnxWriter, node: Node, test: str, x: str, y: str) -> str:
    return w("Where", w.cast(test, np.bool_), *w.typed((x, y), node.dtype))


@RULES.for_op("clip")
def clip(w: OnnxWriter, node: Node, *names: str) -> str:
    x, low, high = w.typed(names, node.dtype)
    return w("Min", w("Max", x, low), high)


@RULES.for_op("floor_divide")
def floor_divide(w: OnnxWriter, node: Node, *names: str) -> str:
    """Write x less its remainder, divided by y and rounded to a whole number; the plain quotient for y = 0."""
    x, y = w.typed(names, node.dtype)
    if node.dtype.kind != "f":
        return w("Div", w("Sub", x, w("Mod", x, y)), y)
    rest, below = _rest(w, x, y)
    whole = w("Round", w("Div", w("Sub", x, rest), y))
    down = w("Where", below, w("Sub", whole, w.scalar(1, node)), whole)
    zero, quotient = w.scalar(0, node), w("Div", x, y)
    signed = w("Where", w("Equal", down, zero), w("Mul", quotient, zero), down)
    return w("Where", w("Equal", y, zero), quotient, signed)


@RULES.for_op("remainder")
def remainder(w: OnnxWriter, node: Node, *names: str) -> str:
    """Write the remainder with the sign of the divisor, which ONNX's Mod gives for integers only."""
    x, y = w.typed(names, node.dtype)
    if node.dtype.kind != "f":
        return w("Mod", x, y)
    rest, below = _rest(w, x, y)
    return w("Where", below, w("Add", rest, y), rest)


def _rest(w: OnnxWriter, x: str, y: str) -> tuple[str, str]:
    """Return the remainder of x with the sign of x, and whether its sign differs from that of y."""
    rest, zero = w("Mod", x, y, fmod=1), w.constant(0, w.dtypes[x])
    sides = w("Xor", w("Less", rest, zero), w("Less", y, zero))
    return rest, w("And", w("Not", w("Equal", rest, zero)), sides)


@RULES.for_op("trunc")
def trunc(w: OnnxWriter, node: Node, x: str) -> str:
    return w("Mul", w("Sign", x), w("Floor", w("Abs", x))) if node.dtype.kind == "f" else x


def log_to_a_base(base: float, w: OnnxWriter, node: Node, x: str) -> str:
    return w("Div", w("Log", w.cast(x, node.dtype)), w.scalar(math.log(base), node))


@RULES.for_op("log1p")
def log1p(w: OnnxWriter, node: Node, x: str) -> str:
    """Write log(u) * x / (u - 1) with u = 1 + x, in which rounding errors of u cancel (Kahan); log(u) for x > 1."""
    x = w.cast(x, node.dtype)
    unit = w.scalar(1, node)
    u = w("Add", x, unit)
    exact, far = w("Equal", u, unit), w("Greater", x, unit)
    log = w("Log", u)
    near = w("Div", w("Mul", log, x), w("Where", exact, unit, w("Sub", u, unit)))
    return w("Where", exact, x, w("Where", far, log, near))


@RULES.for_op("expm1")
def expm1(w: OnnxWriter, node: Node, x: str) -> str:
    """Write (u - 1) * x / log(u) with u = exp(x), in which rounding errors of u cancel; u - 1 far from 0."""
    x = w.cast(x, node.dtype)
    unit = w.scalar(1, node)
    u = w("Exp", x)
    less = w("Sub", u, unit)
    near = w("Less", w("Abs", x), w.scalar(0.5, node))
    exact = w("Equal", u, unit)
    safe = w("And", near, w("Not", exact))
    close = w("Div", w("Mul", less, x), w("Log", w("Where", safe, u, w.scalar(2, node))))
    return w("Where", exact, x, w("Where", near, close, less))


@RULES.for_op("logaddexp")
def logaddexp(w: OnnxWriter, node: Node, *names: str) -> str:
    """Write the larger plus log(1 + exp(-distance)); equal infinities give that infinity."""
    x, y = w.typed(names, node.dtype)
    distance = w("Abs", w("Sub", x, y))
    gap = w("Where", w("Equal", x, y), w.scalar(0, node), distance)
    return w("Add", w("Max", x, y), w("Softplus", w("Neg", gap)))


@RULES.for_op("hypot")
def hypot(w: OnnxWriter, node: Node, *names: str) -> str:
    """Write the hypotenuse scaled by the longer side, so that no square overflows; infinite where a side is."""
    x, y = (w("Abs", name) for name in w.typed(names, node.dtype))
    longer, shorter, unit = w("Max", x, y), w("Min", x, y), w.scalar(1, node)
    part = w("Div", shorter, w("Where", w("Equal", longer, w.scalar(0, node)), unit, longer))
    length = w("Mul", longer, w("Sqrt", w("Add", unit, w("Mul", part, part))))
    return w("Where", w("Or", w("IsInf", x), w("IsInf", y)), w.scalar(math.inf, node), length)


def extreme_but_nan(op: str, w: OnnxWriter, node: Node, *names: str) -> str:
    x, y = w.typed(names, node.dtype)
    extreme = w(op, x, y)
    if node.dtype.kind != "f":
        return extreme
    return w("Where", w("IsNaN", x), y, w("Where", w("IsNaN", y), x, extreme))


def shift(direction: str, w: OnnxWriter, node: Node, *names: str) -> str:
    """Write BitShift, which takes only unsigned numbers; a shift by a negative count or by all bits gives 0.

    A negative number is shifted to the right as the complement of its shifted complement.
    """
    x, y = w.typed(names, node.dtype)
    unsigned = np.dtype(f"u{node.dtype.itemsize}")
    inside = w("And", w("GreaterOrEqual", y, w.scalar(0, node)), w("Less", y, w.scalar(8 * node.dtype.itemsize, node)))
    some = w.cast(inside, node.dtype)
    amount = w.cast(w("Mul", y, some), unsigned)
    signed = direction == "RIGHT" and node.dtype.kind == "i"
    negative = w("Less", x, w.scalar(0, node)) if signed else ""
    bits = w("Where", negative, w("BitwiseNot", x), x) if signed else x
    moved = w("Mul", w.cast(w("BitShift", w.cast(bits, unsigned), amount, direction=direction), node.dtype), some)
    return w("Where", negative, w("BitwiseNot", moved), moved) if signed else moved


RULES.enter({
    "abs": partial(same, "Abs"), "acos": partial(same, "Acos"), "acosh": partial(same, "Acosh"),
    "add": partial(same, "Add"), "asin": partial(same, "Asin"), "asinh": partial(same, "Asinh"),
    "atan": partial(same, "Atan"), "atanh": partial(same, "Atanh"), "cos": partial(same, "Cos"),
    "cosh": partial(same, "Cosh"), "divide": partial(same, "Div"), "erf": partial(same, "Erf"),
    "exp": partial(same, "Exp"), "log": partial(same, "Log"), "maximum": partial(same, "Max"),
    "minimum": partial(same, "Min"), "multiply": partial(same, "Mul"), "pow": partial(same, "Pow"),
    "sigmoid": partial(same, "Sigmoid"), "sign": partial(same, "Sign"), "sin": partial(same, "Sin"),
    "sinh": partial(same, "Sinh"), "sqrt": partial(same, "Sqrt"), "subtract": partial(same, "Sub"),
    "tan": partial(same, "Tan"), "tanh": partial(same, "Tanh"),
    "ceil": partial(write_rounding, "Ceil"), "floor": partial(write_rounding, "Floor"),
    "round": partial(write_rounding, "Round"),
    "equal": partial(write_comparison, "Equal"), "greater": partial(write_comparison, "Greater"),
    "greater_equal": partial(write_comparison, "GreaterOrEqual"), "less": partial(write_comparison, "Less"),
    "less_equal": partial(write_comparison, "LessOrEqual"),
    "isnan": partial(is_special, "IsNaN"), "isinf": partial(is_special, "IsInf"),
    "logical_and": partial(logical, "And"), "logical_or": partial(logical, "Or"),
    "logical_xor": partial(logical, "Xor"), "logical_not": partial(logical, "Not"),
    "bitwise_and": partial(bitwise, "And"), "bitwise_or": partial(bitwise, "Or"),
    "bitwise_xor": partial(bitwise, "Xor"), "bitwise_invert": partial(bitwise, "Not"),
    "log2": partial(log_to_a_base, 2.0), "log10": partial(log_to_a_base, 10.0),
    "fmax": partial(extreme_but_nan, "Max"), "fmin": partial(extreme_but_nan, "Min"),
    "bitwise_left_shift": partial(shift, "LEFT"), "bitwise_right_shift": partial(shift, "RIGHT"),
})  # fmt: skip

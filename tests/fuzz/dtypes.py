"""Steps on ints, bools and floats of all sizes, which meet each other and Python numbers."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

import graphs as g
from tests.helpers.random_ops import (
    Array,
    Kind,
    Options,
    Random,
    Value,
    apart,
    axes,
    axis,
    broadcastable,
    filled_axes,
    from_whole,
    from_zero,
    neighbours,
)

NUMBER, ANY = "fiu", "fiub"
SCALARS = (2, 3, -1, 0, 0.5, 1.25, True)
# Functions, not operators: those of a tensor follow PyTorch where dtypes differ, and those of a symbol NumPy.
OPERATORS = {"+": g.add, "-": g.subtract, "*": g.multiply, "/": g.divide}
NUMPY = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
CASTS = {"f": ("float16", "float32", "float64"), "i": ("int8", "int32", "int64"), "b": ("bool",)}


def drawn(random: Random, among: Any) -> Any:
    """One of several values."""
    return among[int(random.integers(len(among)))]


# Options ----------------------------------------------------------------------------------------------------------


def scalar(random: Random, x: Array) -> Options | None:
    """A Python number on either side; not what overflows or divides by zero."""
    options = {
        "sign": drawn(random, list(OPERATORS)),
        "number": drawn(random, SCALARS),
        "first": bool(random.integers(2)),
    }
    divides = options["sign"] == "/" and (options["first"] or options["number"] == 0)
    below = x.dtype.kind == "u" and (options["number"] == -1 or options["sign"] == "-")
    logic = x.dtype.kind == "b" and (options["number"] is True or options["sign"] == "-")
    return None if divides or below or logic else options


def scaled(x: Value, sign: str, number: Any, first: bool) -> Value:
    return OPERATORS[sign](number, x) if first else OPERATORS[sign](x, number)


def numpy_scaled(x: Array, sign: str, number: Any, first: bool) -> Array:
    scaled: Array = NUMPY[sign](number, x) if first else NUMPY[sign](x, number)
    return scaled


def constants(random: Random, x: Array) -> Options | None:
    """Two arrays without axes, of any dtype, that a graph folds and moves; none where a sum overflows in float16."""
    values = (np.uint8(100), np.int8(-128), np.bool_(True), np.int64(5), np.float32(1.5), np.float64(0.25))
    of, c, d = drawn(random, list(WITH_CONSTANTS)), np.array(drawn(random, values)), np.array(drawn(random, values))
    if of == "sums" and np.sum(np.abs(x)) * abs(float(c) * float(d)) > np.finfo(np.float16).max:
        return None
    return {"of": of, "c": c, "d": d}


WITH_CONSTANTS: dict[str, Any] = {
    "negative": lambda x, c, d: -(x * c) * d,
    "products": lambda x, c, d: (x * c) * d + x * c,
    "quotients": lambda x, c, d: g.divide(g.divide(x, g.exp(-x * x) * c), d),
    "sums": lambda x, c, d: g.subtract(g.sum(x * c * d) * 1e-3, x + c),
    "inside": lambda x, c, d: (x * d) * (x * c) - d * x,
}


def with_constants(x: Value, of: str, c: Array, d: Array) -> Value:
    return g.tanh(WITH_CONSTANTS[of](x, c, d) * 1e-4)


def cast(random: Random, x: Array) -> Options | None:
    """A dtype that holds all values."""
    dtype = drawn(random, CASTS[drawn(random, "ffib")])
    if np.dtype(dtype).kind == "i" and x.size and np.max(np.abs(x.astype(np.float64))) > 100:
        return None
    return {"dtype": dtype}


def cast_to(x: Value, dtype: str) -> Value:
    return g.astype(x, dtype)


def from_jumps(x: Array, dtype: str) -> Array:
    """How far values are from where the cast jumps."""
    if x.dtype.kind != "f" or np.dtype(dtype).kind == "f":
        return np.ones(1)
    return x if dtype == "bool" else from_whole(x)


def along(random: Random, x: Array) -> Options | None:
    options = axis(random, x)
    return options if options and x.shape[options["axis"]] else None


def places_of(x: Value, axis: int) -> Value:
    return g.argsort(x, axis=axis) + g.argmax(x, axis=axis, keepdims=True)


def counted(x: Value, **options: Any) -> Value:
    return g.count_nonzero(x > 0, **options) + g.any(x > 0, **options) * 2 - g.all(x > 0, **options)


def chosen(condition: Value, x: Value, y: Value) -> Value:
    return g.where(condition, x, y)


def where_apart(x: Array, y: Array) -> Array:
    """How far two values are from each other, if rounding can bring them together."""
    return apart(x, y) if "f" in x.dtype.kind + y.dtype.kind else np.ones(1)


def positive(x: Array) -> Array:
    return from_zero(x) if x.dtype.kind == "f" else np.ones(1)


def found(x: Value, y: Value) -> Value:
    return g.searchsorted(g.sort(g.reshape(x, (-1,))), y)


def found_apart(x: Array, y: Array) -> Array:
    return np.subtract.outer(x.reshape(-1), y.reshape(-1))


# The kinds --------------------------------------------------------------------------------------------------------

NUMBERS = [
    *[Kind(f"mixed_{name}", getattr(g, name), getattr(np, name), broadcastable, 2, takes=NUMBER)
      for name in ("add", "subtract", "multiply")],
    *[Kind(f"mixed_{name}", getattr(g, name), getattr(np, name), broadcastable, 2, edge=where_apart, takes=NUMBER)
      for name in ("maximum", "minimum")],
    Kind("scaled", scaled, numpy_scaled, scalar, takes=ANY),
    Kind("with_constants", with_constants, None, constants),
    Kind("scaled_again", scaled, numpy_scaled, scalar, takes=ANY),
    Kind("ratio", lambda x, y: g.divide(x, g.abs(y) + 1), lambda x, y: x / (np.abs(y) + 1), broadcastable, 2,
         takes=(NUMBER, "fi"), edge=lambda x, y: positive(y)),
    Kind("whole_ratio", lambda x, y: g.add(g.floor_divide(x, (y & 7) + 1), g.remainder(x, (y & 3) + 1)),
         lambda x, y: x // ((y & 7) + 1) + x % ((y & 3) + 1), broadcastable, 2, takes="iu"),
    Kind("floor_divide", g.floor_divide, np.floor_divide, broadcastable, 2, (None, "positive"),
         lambda x, y: from_whole(x / y), True),
    Kind("int_power", lambda x: x**2 + g.pow(x, 3), lambda x: x**2 + np.power(x, 3), takes=NUMBER),
    Kind("bits", lambda x, y: g.bitwise_or(g.bitwise_and(x, y), x ^ 3), lambda x, y: (x & y) | (x ^ 3),
         broadcastable, 2, takes="i"),
    Kind("shifts", lambda x: (x << 1) + (x >> 2) + ~x, lambda x: (x << 1) + (x >> 2) + ~x, takes="i"),
    Kind("absolute", lambda x: g.abs(x) + g.sign(x) * g.square(x), lambda x: np.abs(x) + np.sign(x) * np.square(x),
         takes=NUMBER, edge=positive, jumps=True),
    Kind("of_ints", lambda x: g.tanh(x) + g.sin(x) * g.exp(-g.abs(x)),
         lambda x: np.tanh(x) + np.sin(x) * np.exp(-np.abs(x)), takes="i"),
    Kind("clip_ints", lambda x: g.clip(x, -2, 3), lambda x: np.clip(x, -2, 3), takes="i"),
]  # fmt: skip

TRUTHS = [
    Kind("greater", g.greater, np.greater, broadcastable, 2, edge=where_apart, jumps=True, takes=NUMBER),
    Kind("less_equal", g.less_equal, np.less_equal, broadcastable, 2, edge=where_apart, jumps=True,
         takes=NUMBER),
    Kind("equal", g.equal, np.equal, broadcastable, 2, takes="iu"),
    Kind("and_or", lambda x, y: g.logical_and(x, y) | g.logical_not(x), lambda x, y: (x & y) | ~x, broadcastable, 2,
         takes="b"),
    Kind("xor", lambda x, y: x ^ y, np.logical_xor, broadcastable, 2, takes="b"),
    Kind("chosen", chosen, np.where, broadcastable, 3, takes=("b", ANY, ANY)),
    Kind("counted", counted, None, filled_axes, takes=NUMBER, edge=lambda x, **_: positive(x), jumps=True),
    Kind("masked", g.multiply, np.multiply, broadcastable, 2, takes=("b", NUMBER)),
]  # fmt: skip

WHOLES = [
    Kind("astype", cast_to,
         lambda x, dtype: x.astype(np.float64 if np.dtype(dtype).kind == "f" else dtype), cast,
         edge=from_jumps, jumps=True, takes=ANY),
    *[Kind(f"any_{name}", getattr(g, name), getattr(np, name), axes, takes="iub") for name in ("sum", "prod")],
    *[Kind(f"any_{name}", getattr(g, name), getattr(np, name), filled_axes, takes="iu") for name in ("max", "min")],
    Kind("any_mean", g.mean, np.mean, filled_axes, takes="iub"),
    Kind("any_cumulative_sum", g.cumulative_sum, np.cumsum, axis, takes="iub"),
    Kind("any_sort", g.sort, np.sort, axis, takes="iu"),
    Kind("places", places_of, lambda x, axis: np.argsort(x, axis, kind="stable") + np.argmax(x, axis, keepdims=True),
         along, edge=neighbours, jumps=True, takes=NUMBER),
    Kind("stable_places", lambda x, axis: g.argsort(x, axis=axis),
         lambda x, axis: np.argsort(x, axis, kind="stable"), along, takes="iu"),
    Kind("one_hot", lambda x: g.one_hot(x & 3, 4, dtype="float64"), lambda x: (np.eye(4))[x & 3], takes="i",
         differs=True),
    Kind("searchsorted", found, lambda x, y: np.searchsorted(np.sort(x, axis=None), y), lambda random, x, y: {}, 2,
         edge=found_apart, jumps=True),
]  # fmt: skip

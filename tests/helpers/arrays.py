"""What tests of functions over arrays share: arrays with special values, and NumPy's result as the oracle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from tests.helpers.engines import run

STANDARD = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"]
UNARY = [
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwise_invert", "ceil", "cos", "cosh", "exp",
    "expm1", "floor", "isfinite", "isinf", "isnan", "log", "log10", "log1p", "log2", "logical_not", "negative",
    "positive", "reciprocal", "round", "sign", "signbit", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc",
]  # fmt: skip
BINARY = [
    "add", "atan2", "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "copysign", "divide", "equal", "floor_divide", "greater", "greater_equal", "hypot", "less", "less_equal",
    "logaddexp", "logical_and", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "nextafter",
    "not_equal", "pow", "remainder", "subtract",
]  # fmt: skip
DTYPES = [*STANDARD, "float16"]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, np.inf, -np.inf, np.nan]


@st.composite
def numbers(draw, shape, dtypes=DTYPES):
    """An array with the values at which functions are special, and some at random."""
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    if dtype.kind == "f":
        elements = st.one_of(st.sampled_from(SPECIAL), st.floats(-100, 100, width=16))
    elif dtype.kind == "b":
        elements = st.booleans()
    else:
        limits = np.iinfo(dtype)
        elements = st.one_of(st.sampled_from([limits.min, limits.max, 0, 1]), st.integers(0, 9))
    return draw(npst.arrays(dtype, shape, elements=elements))


def same(found, expected, signed=True):
    """The same values, dtype and shape, and with `signed` the same signs of zeros."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(found, expected)
    if signed and expected.dtype.kind == "f":
        kept = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found[kept]), np.signbit(expected[kept]))


def compare(engine, ours, theirs, *arrays, signed=True):
    """Our function at once and in an engine is NumPy's, or refused as NumPy refuses it."""
    try:
        expected = theirs(*arrays)
    except (TypeError, ValueError):
        for call in (lambda: ours(*arrays), lambda: run(engine, ours, *arrays)):
            with pytest.raises((TypeError, ValueError)):
                call()
        return
    same(ours(*arrays), expected, signed)
    same(run(engine, ours, *arrays), expected, signed)


small_shapes = npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)


def values(*shape, seed=0):
    """Normal numbers, the same for a shape and a seed."""
    return np.asarray(np.random.default_rng((seed, *shape)).normal(size=shape))

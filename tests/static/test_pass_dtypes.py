"""Rules that reorder sums and products meet factors of every dtype: small ints do not overflow, bools stay numbers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import graphs as g
import static
from tests.helpers.slow import mostly_slow

RANDOM = np.random.default_rng(0)
X, Y = RANDOM.normal(size=(2, 4, 3))
CONSTANTS = [
    np.array(c)
    for c in (
        np.uint8(100),
        np.int8(-128),
        np.bool_(True),
        np.int64(5),
        np.float16(300),
        np.float32(1.1),
        np.float64(0.3),
    )
]

# Of two arrays, two numbers, and a row of the dtype of each number.
FORMULAS = {
    "-(x c)": lambda x, y, c, d, a, b: -(x * c),
    "-(c x) d": lambda x, y, c, d, a, b: -(c * x) * d,
    "(x c) d": lambda x, y, c, d, a, b: (x * c) * d,
    "(x c) y d": lambda x, y, c, d, a, b: (x * c) * y * d,
    "y - -(x c)": lambda x, y, c, d, a, b: y - (-(x * c)),
    "x / (y c)": lambda x, y, c, d, a, b: x / (y * c),
    "x / c / d": lambda x, y, c, d, a, b: x / c / d,
    "(x d) / c": lambda x, y, c, d, a, b: (x * d) / c,
    "x a + y a": lambda x, y, c, d, a, b: x * a + y * a,
    "a x + b x": lambda x, y, c, d, a, b: a * x + b * x,
    "(x a) b": lambda x, y, c, d, a, b: (x * a) * b,
    "(x a) b + a b": lambda x, y, c, d, a, b: (x * a) * b + a * b,
    "-(x a)": lambda x, y, c, d, a, b: -(x * a),
    "(y - x a) - x a": lambda x, y, c, d, a, b: (y - x * a) - x * a,
    "sum(x a b)": lambda x, y, c, d, a, b: g.sum(x * a * b, axis=0),
    "sum(x a y)": lambda x, y, c, d, a, b: g.sum(x * a * y, axis=1),
    "sum(a b) x": lambda x, y, c, d, a, b: g.sum(a * b) * x,
    "mean(x c d)": lambda x, y, c, d, a, b: g.mean(x * c * d, axis=0),
    "((x c) @ y.T) d": lambda x, y, c, d, a, b: ((x * c) @ g.matrix_transpose(y)) * d,
    "(x @ a) c": lambda x, y, c, d, a, b: (x @ a) * c,
    "(x + c) + d": lambda x, y, c, d, a, b: (x + c) + d,
    "x x c - c y": lambda x, y, c, d, a, b: x * x * c - c * y,
}


@pytest.mark.parametrize("name", mostly_slow(FORMULAS, 1))
def test_factors_of_any_dtype_give_what_numpy_gives(name):
    f = FORMULAS[name]
    for c, d in itertools.product(CONSTANTS, CONSTANTS):
        a, b = ((RANDOM.normal(size=3) * 50).astype(one.dtype) for one in (c, d))
        with np.errstate(all="ignore"):
            expected = np.asarray(f(X, Y, c, d, a, b))
            folded = static.compile(lambda x, y, c=c, d=d, a=a, b=b: f(x, y, c, d, a, b), X, Y)(X, Y)
            traced = static.compile(lambda x, y, a, b, c=c, d=d: f(x, y, c, d, a, b), X, Y, a, b)(X, Y, a, b)
        for found in (folded, traced):
            assert found.dtype == expected.dtype
            # Sums of float16 and float32 may be taken in another order.
            tolerance = 1e-12 if {c.dtype.itemsize, d.dtype.itemsize} <= {1, 8} else 1e-2
            scale = 1 + np.max(np.abs(expected[np.isfinite(expected)]), initial=0)
            np.testing.assert_allclose(found, expected, tolerance, tolerance * scale, err_msg=f"{c.dtype}, {d.dtype}")

"""Exact algebra: printed before and after each rule."""

import numpy as np

import graphs as g
import static
from static.passes.simplification import simplify_algebra
from tests.helpers.printed import check

X = g.TensorSpec((2, 3))


def test_signs_go_into_sums():
    check(
        simplify_algebra,
        lambda x, y: (x + (-y), (-x) + y, x - (-y), g.negative(-x), x * -1.0),
        [X, X],
        """
        %2: f32[2,3] = negative(%1)
        %3: f32[2,3] = add(%0, %2)
        %4: f32[2,3] = negative(%0)
        %5: f32[2,3] = add(%4, %1)
        %6: f32[2,3] = negative(%1)
        %7: f32[2,3] = subtract(%0, %6)
        %8: f32[2,3] = negative(%0)
        %9: f32[2,3] = negative(%8)
        %10: f32[] = constant(value=-1.0, dtype=float32)
        %11: f32[2,3] = multiply(%0, %10)
        return %3, %5, %7, %9, %11
        """,
        """
        %2: f32[2,3] = subtract(%0, %1)
        %3: f32[2,3] = subtract(%1, %0)
        %4: f32[2,3] = add(%0, %1)
        %5: f32[2,3] = negative(%0)
        return %2, %3, %4, %0, %5
        """,
    )


def test_signs_leave_products():
    check(
        simplify_algebra,
        lambda x, y: ((-x) * y + x, (-x) / y - y),
        [X, X],
        """
        %2: f32[2,3] = negative(%0)
        %3: f32[2,3] = multiply(%2, %1)
        %4: f32[2,3] = add(%3, %0)
        %5: f32[2,3] = negative(%0)
        %6: f32[2,3] = divide(%5, %1)
        %7: f32[2,3] = subtract(%6, %1)
        return %4, %7
        """,
        """
        %2: f32[2,3] = multiply(%0, %1)
        %3: f32[2,3] = subtract(%0, %2)
        %4: f32[2,3] = divide(%0, %1)
        %5: f32[2,3] = negative(%4)
        %6: f32[2,3] = subtract(%5, %1)
        return %3, %6
        """,
    )


def test_signs_go_into_constants():
    check(
        simplify_algebra,
        lambda x: (-(x * 3.0), -(x / 3.0)),
        [X],
        """
        %1: f32[] = constant(value=3.0, dtype=float32)
        %2: f32[2,3] = multiply(%0, %1)
        %3: f32[2,3] = negative(%2)
        %4: f32[2,3] = divide(%0, %1)
        %5: f32[2,3] = negative(%4)
        return %3, %5
        """,
        """
        %1: f32[] = constant(value=-3.0, dtype=float32)
        %2: f32[2,3] = multiply(%0, %1)
        %3: f32[] = constant(value=-3.0, dtype=float32)
        %4: f32[2,3] = divide(%0, %3)
        return %2, %4
        """,
    )


def test_the_sign_of_the_smaller_factor_stays():
    check(
        simplify_algebra,
        lambda x, s: (-s) * x,
        [X, g.TensorSpec((3,))],
        """
        %2: f32[3] = negative(%1)
        %3: f32[2,3] = multiply(%2, %0)
        return %3
        """,
    )


def test_a_power_of_two_is_multiplied_by():
    check(
        simplify_algebra,
        lambda x: (x / 4.0, x / 3.0, x / 2),
        [X],
        """
        %1: f32[] = constant(value=4.0, dtype=float32)
        %2: f32[2,3] = divide(%0, %1)
        %3: f32[] = constant(value=3.0, dtype=float32)
        %4: f32[2,3] = divide(%0, %3)
        %5: f32[] = constant(value=2.0, dtype=float32)
        %6: f32[2,3] = divide(%0, %5)
        return %2, %4, %6
        """,
        """
        %1: f32[] = constant(value=0.25, dtype=float32)
        %2: f32[2,3] = multiply(%0, %1)
        %3: f32[] = constant(value=3.0, dtype=float32)
        %4: f32[2,3] = divide(%0, %3)
        %5: f32[] = constant(value=0.5, dtype=float32)
        %6: f32[2,3] = multiply(%0, %5)
        return %2, %4, %6
        """,
    )


def test_squares():
    check(
        simplify_algebra,
        lambda x: (x * x, g.pow(x, 2.0), g.square(-x), g.abs(-x), +x),
        [X],
        """
        %1: f32[2,3] = multiply(%0, %0)
        %2: f32[] = constant(value=2.0, dtype=float32)
        %3: f32[2,3] = pow(%0, %2)
        %4: f32[2,3] = negative(%0)
        %5: f32[2,3] = square(%4)
        %6: f32[2,3] = negative(%0)
        %7: f32[2,3] = abs(%6)
        return %1, %3, %5, %7, %0
        """,
        """
        %1: f32[2,3] = square(%0)
        %2: f32[2,3] = square(%0)
        %3: f32[2,3] = square(%0)
        %4: f32[2,3] = abs(%0)
        return %1, %2, %3, %4, %0
        """,
    )


def test_where():
    check(
        simplify_algebra,
        lambda x, y: (g.where(x > 0, y, y), g.where(g.logical_not(x > 0), x, y)),
        [X, X],
        """
        %2: f32[] = constant(value=0.0, dtype=float32)
        %3: bool[2,3] = greater(%0, %2)
        %4: f32[2,3] = where(%3, %1, %1)
        %5: bool[2,3] = greater(%0, %2)
        %6: bool[2,3] = logical_not(%5)
        %7: f32[2,3] = where(%6, %0, %1)
        return %4, %7
        """,
        """
        %2: f32[] = constant(value=0.0, dtype=float32)
        %3: bool[2,3] = greater(%0, %2)
        %4: f32[2,3] = where(%3, %1, %0)
        return %1, %4
        """,
    )


def test_a_cast_there_and_back_goes():
    check(
        simplify_algebra,
        lambda x: (g.astype(g.astype(x, "float64"), "float32"), g.astype(g.astype(x, "float64"), "float16")),
        [X],
        """
        %1: f64[2,3] = astype(%0, dtype=float64)
        %2: f32[2,3] = astype(%1, dtype=float32)
        %3: f64[2,3] = astype(%0, dtype=float64)
        %4: f16[2,3] = astype(%3, dtype=float16)
        return %2, %4
        """,
        """
        %1: f16[2,3] = astype(%0, dtype=float16)
        return %0, %1
        """,
    )


def test_a_cast_that_loses_something_stays():
    check(
        simplify_algebra,
        lambda x: (g.astype(g.astype(x, "float16"), "float32"), g.astype(g.astype(x, "float64"), "int32")),
        [X],
        """
        %1: f16[2,3] = astype(%0, dtype=float16)
        %2: f32[2,3] = astype(%1, dtype=float32)
        %3: f64[2,3] = astype(%0, dtype=float64)
        %4: i32[2,3] = astype(%3, dtype=int32)
        return %2, %4
        """,
    )


def test_a_second_power_is_a_square_to_the_last_bit():
    rng = np.random.default_rng(0)
    for dtype in (np.float16, np.float32, np.float64):
        limits = np.finfo(dtype)
        special = [0, -0.0, np.inf, -np.inf, np.nan, limits.tiny, limits.smallest_subnormal, limits.max]
        values = np.concatenate([np.asarray(special, dtype), rng.normal(size=1000).astype(dtype)])
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(np.power(values, dtype(2)), np.square(values))


def test_a_power_of_two_near_the_limits_is_divided_by():
    tiny = float(np.finfo(np.float32).tiny)
    graph = simplify_algebra(static.trace(lambda x: (x / tiny, x / 0.0, x / float("inf")), X))
    assert graph.op_counts() == {"divide": 3}

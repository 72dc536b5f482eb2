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
        f32[2,3] subtract(%0, %1)
        f32[2,3] subtract(%1, %0)
        f32[2,3] add(%0, %1)
        %0
        f32[2,3] negative(%0)
        """,
    )


def test_signs_leave_products():
    check(
        simplify_algebra,
        lambda x, y: ((-x) * y + x, (-x) / y - y),
        [X, X],
        """
        f32[2,3] subtract(%0, multiply(%0, %1))
        f32[2,3] subtract(negative(divide(%0, %1)), %1)
        """,
    )


def test_signs_go_into_constants():
    check(
        simplify_algebra,
        lambda x: (-(x * 3.0), -(x / 3.0)),
        [X],
        """
        f32[2,3] multiply(%0, -3.0)
        f32[2,3] divide(%0, -3.0)
        """,
    )


def test_the_sign_of_the_smaller_factor_stays():
    check(simplify_algebra, lambda x, s: (-s) * x, [X, g.TensorSpec((3,))])


def test_a_power_of_two_is_multiplied_by():
    check(
        simplify_algebra,
        lambda x: (x / 4.0, x / 3.0, x / 2),
        [X],
        """
        f32[2,3] multiply(%0, 0.25)
        f32[2,3] divide(%0, 3.0)
        f32[2,3] multiply(%0, 0.5)
        """,
    )


def test_squares():
    check(
        simplify_algebra,
        lambda x: (x * x, g.pow(x, 2.0), g.square(-x), g.abs(-x), +x),
        [X],
        """
        f32[2,3] square(%0)
        f32[2,3] square(%0)
        f32[2,3] square(%0)
        f32[2,3] abs(%0)
        %0
        """,
    )


def test_where():
    check(
        simplify_algebra,
        lambda x, y: (g.where(x > 0, y, y), g.where(g.logical_not(x > 0), x, y)),
        [X, X],
        """
        %1
        f32[2,3] where(greater(%0, 0.0), %1, %0)
        """,
    )


def test_a_cast_there_and_back_goes():
    check(
        simplify_algebra,
        lambda x: (g.astype(g.astype(x, "float64"), "float32"), g.astype(g.astype(x, "float64"), "float16")),
        [X],
        """
        %0
        f16[2,3] astype(%0, dtype=float16)
        """,
    )


def test_a_cast_that_loses_something_stays():
    check(
        simplify_algebra,
        lambda x: (g.astype(g.astype(x, "float16"), "float32"), g.astype(g.astype(x, "float64"), "int32")),
        [X],
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

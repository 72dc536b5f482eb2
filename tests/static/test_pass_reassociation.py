"""Reassociation and factoring: printed before and after each rule."""

import graphs as g
from static.passes.reassociation import reassociate
from tests.helpers.printed import check

X = g.TensorSpec((2, 3))
ROW = g.TensorSpec((3,))
COLUMN = g.TensorSpec((2, 1))
WIDE = g.TensorSpec((2, 3), "int32")


def twice_less(x, term):
    return x - term - term


def test_numbers_meet():
    check(reassociate, lambda x: x * 3.0 * 0.25 * 2.0, [X], "f32[2,3] multiply(%0, 1.5)")


def test_numbers_that_would_vanish_do_not_meet():
    check(reassociate, lambda x: x * 1e-30 * 1e-30, [X])


def test_small_factors_meet():
    check(reassociate, lambda x, c, d: x * c * d, [X, COLUMN, COLUMN], "f32[2,3] multiply(%0, multiply(%1, %2))")


def test_a_row_and_a_column_do_not_meet():
    check(reassociate, lambda x, r, c: x * r * c, [X, ROW, COLUMN])


def test_a_number_goes_outwards():
    check(reassociate, lambda x, y: (x * 3.0) * y, [X, X], "f32[2,3] multiply(multiply(%0, %1), 3.0)")


def test_a_smaller_divisor_is_inverted_once():
    check(
        reassociate,
        lambda x, c: (x / c, x / 3.0),
        [X, COLUMN],
        """
        f32[2,3] multiply(%0, reciprocal(%1))
        f32[2,3] multiply(%0, 0.3333333432674408)
        """,
    )


def test_a_sign_goes_to_the_smaller_factor():
    check(reassociate, lambda x, c: -(x * c), [X, COLUMN], "f32[2,3] multiply(%0, negative(%1))")


def test_a_product_that_is_there_is_read():
    check(
        reassociate,
        lambda x, y, z: (y * z, x * y * z),
        [X, X, X],
        """
        v0: f32[2,3] = multiply(%1, %2)
        v0
        f32[2,3] multiply(%0, v0)
        """,
    )


def test_a_reciprocal_that_is_there_is_read():
    check(
        reassociate,
        lambda x, y: (g.reciprocal(y), x / (y * 2.0)),
        [X, X],
        """
        v0: f32[2,3] = reciprocal(%1)
        v0
        f32[2,3] multiply(multiply(%0, v0), 0.5)
        """,
    )


def test_factors_leave_sums():
    check(
        reassociate,
        lambda x, c: (g.sum(x * c, axis=1), g.mean(c * x, axis=1, keepdims=True), g.sum(-x, axis=0)),
        [X, COLUMN],
        """
        f32[2] multiply(sum(%0, axis=(1), keepdims=False), reshape(%1, shape=(2)))
        f32[2,1] multiply(mean(%0, axis=(1), keepdims=True), %1)
        f32[3] subtract(0.0, sum(%0, axis=(0), keepdims=False))
        """,
    )


def test_a_factor_that_varies_stays_in_the_sum():
    check(reassociate, lambda x, c: g.sum(x * c, axis=0), [X, COLUMN])


def test_a_common_factor():
    check(
        reassociate,
        lambda x, y, c: (x * c + y * c, x * c - c * y),
        [X, X, COLUMN],
        """
        f32[2,3] multiply(add(%0, %1), %2)
        f32[2,3] multiply(subtract(%0, %1), %2)
        """,
    )


def test_the_same_term_twice():
    check(
        reassociate,
        lambda x, y, c: twice_less(x, y * c),
        [X, X, COLUMN],
        "f32[2,3] subtract(%0, multiply(%1, multiply(2.0, %2)))",
    )


def test_sums_with_itself_but_not_with_zero():
    check(
        reassociate,
        lambda x: (x + x, x + 0.0),
        [X],
        """
        f32[2,3] multiply(%0, 2.0)
        f32[2,3] add(%0, 0.0)
        """,
    )


def test_integers_stay():
    check(reassociate, lambda x: (x + x, x * 2 * 3), [WIDE])

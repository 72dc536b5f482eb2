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
    check(
        reassociate,
        lambda x: x * 3.0 * 0.25 * 2.0,
        [X],
        """
        %1: f32[] = constant(value=3.0, dtype=float32)
        %2: f32[2,3] = multiply(%0, %1)
        %3: f32[] = constant(value=0.25, dtype=float32)
        %4: f32[2,3] = multiply(%2, %3)
        %5: f32[] = constant(value=2.0, dtype=float32)
        %6: f32[2,3] = multiply(%4, %5)
        return %6
        """,
        """
        %1: f32[] = constant(value=1.5, dtype=float32)
        %2: f32[2,3] = multiply(%0, %1)
        return %2
        """,
    )


def test_numbers_that_would_vanish_do_not_meet():
    check(
        reassociate,
        lambda x: x * 1e-30 * 1e-30,
        [X],
        """
        %1: f32[] = constant(value=1.0000000031710769e-30, dtype=float32)
        %2: f32[2,3] = multiply(%0, %1)
        %3: f32[2,3] = multiply(%2, %1)
        return %3
        """,
    )


def test_small_factors_meet():
    check(
        reassociate,
        lambda x, c, d: x * c * d,
        [X, COLUMN, COLUMN],
        """
        %3: f32[2,3] = multiply(%0, %1)
        %4: f32[2,3] = multiply(%3, %2)
        return %4
        """,
        """
        %3: f32[2,1] = multiply(%1, %2)
        %4: f32[2,3] = multiply(%0, %3)
        return %4
        """,
    )


def test_a_row_and_a_column_do_not_meet():
    check(
        reassociate,
        lambda x, r, c: x * r * c,
        [X, ROW, COLUMN],
        """
        %3: f32[2,3] = multiply(%0, %1)
        %4: f32[2,3] = multiply(%3, %2)
        return %4
        """,
    )


def test_a_number_goes_outwards():
    check(
        reassociate,
        lambda x, y: (x * 3.0) * y,
        [X, X],
        """
        %2: f32[] = constant(value=3.0, dtype=float32)
        %3: f32[2,3] = multiply(%0, %2)
        %4: f32[2,3] = multiply(%3, %1)
        return %4
        """,
        """
        %2: f32[] = constant(value=3.0, dtype=float32)
        %3: f32[2,3] = multiply(%0, %1)
        %4: f32[2,3] = multiply(%3, %2)
        return %4
        """,
    )


def test_a_smaller_divisor_is_inverted_once():
    check(
        reassociate,
        lambda x, c: (x / c, x / 3.0),
        [X, COLUMN],
        """
        %2: f32[2,3] = divide(%0, %1)
        %3: f32[] = constant(value=3.0, dtype=float32)
        %4: f32[2,3] = divide(%0, %3)
        return %2, %4
        """,
        """
        %2: f32[2,1] = reciprocal(%1)
        %3: f32[2,3] = multiply(%0, %2)
        %4: f32[] = constant(value=0.3333333432674408, dtype=float32)
        %5: f32[2,3] = multiply(%0, %4)
        return %3, %5
        """,
    )


def test_a_sign_goes_to_the_smaller_factor():
    check(
        reassociate,
        lambda x, c: -(x * c),
        [X, COLUMN],
        """
        %2: f32[2,3] = multiply(%0, %1)
        %3: f32[2,3] = negative(%2)
        return %3
        """,
        """
        %2: f32[2,1] = negative(%1)
        %3: f32[2,3] = multiply(%0, %2)
        return %3
        """,
    )


def test_a_product_that_is_there_is_read():
    check(
        reassociate,
        lambda x, y, z: (y * z, x * y * z),
        [X, X, X],
        """
        %3: f32[2,3] = multiply(%1, %2)
        %4: f32[2,3] = multiply(%0, %1)
        %5: f32[2,3] = multiply(%4, %2)
        return %3, %5
        """,
        """
        %3: f32[2,3] = multiply(%1, %2)
        %4: f32[2,3] = multiply(%0, %3)
        return %3, %4
        """,
    )


def test_a_reciprocal_that_is_there_is_read():
    check(
        reassociate,
        lambda x, y: (g.reciprocal(y), x / (y * 2.0)),
        [X, X],
        """
        %2: f32[2,3] = reciprocal(%1)
        %3: f32[] = constant(value=2.0, dtype=float32)
        %4: f32[2,3] = multiply(%1, %3)
        %5: f32[2,3] = divide(%0, %4)
        return %2, %5
        """,
        """
        %2: f32[2,3] = reciprocal(%1)
        %3: f32[2,3] = multiply(%0, %2)
        %4: f32[] = constant(value=0.5, dtype=float32)
        %5: f32[2,3] = multiply(%3, %4)
        return %2, %5
        """,
    )


def test_factors_leave_sums():
    check(
        reassociate,
        lambda x, c: (g.sum(x * c, axis=1), g.mean(c * x, axis=1, keepdims=True), g.sum(-x, axis=0)),
        [X, COLUMN],
        """
        %2: f32[2,3] = multiply(%0, %1)
        %3: f32[2] = sum(%2, axis=(1), keepdims=False)
        %4: f32[2,3] = multiply(%1, %0)
        %5: f32[2,1] = mean(%4, axis=(1), keepdims=True)
        %6: f32[2,3] = negative(%0)
        %7: f32[3] = sum(%6, axis=(0), keepdims=False)
        return %3, %5, %7
        """,
        """
        %2: f32[2] = sum(%0, axis=(1), keepdims=False)
        %3: f32[2] = reshape(%1, shape=(2))
        %4: f32[2] = multiply(%2, %3)
        %5: f32[2,1] = mean(%0, axis=(1), keepdims=True)
        %6: f32[2,1] = multiply(%5, %1)
        %7: f32[] = constant(value=0.0, dtype=float32)
        %8: f32[3] = sum(%0, axis=(0), keepdims=False)
        %9: f32[3] = subtract(%7, %8)
        return %4, %6, %9
        """,
    )


def test_a_factor_that_varies_stays_in_the_sum():
    check(
        reassociate,
        lambda x, c: g.sum(x * c, axis=0),
        [X, COLUMN],
        """
        %2: f32[2,3] = multiply(%0, %1)
        %3: f32[3] = sum(%2, axis=(0), keepdims=False)
        return %3
        """,
    )


def test_a_common_factor():
    check(
        reassociate,
        lambda x, y, c: (x * c + y * c, x * c - c * y),
        [X, X, COLUMN],
        """
        %3: f32[2,3] = multiply(%0, %2)
        %4: f32[2,3] = multiply(%1, %2)
        %5: f32[2,3] = add(%3, %4)
        %6: f32[2,3] = multiply(%0, %2)
        %7: f32[2,3] = multiply(%2, %1)
        %8: f32[2,3] = subtract(%6, %7)
        return %5, %8
        """,
        """
        %3: f32[2,3] = add(%0, %1)
        %4: f32[2,3] = multiply(%3, %2)
        %5: f32[2,3] = subtract(%0, %1)
        %6: f32[2,3] = multiply(%5, %2)
        return %4, %6
        """,
    )


def test_the_same_term_twice():
    check(
        reassociate,
        lambda x, y, c: twice_less(x, y * c),
        [X, X, COLUMN],
        """
        %3: f32[2,3] = multiply(%1, %2)
        %4: f32[2,3] = subtract(%0, %3)
        %5: f32[2,3] = subtract(%4, %3)
        return %5
        """,
        """
        %3: f32[] = constant(value=2.0, dtype=float32)
        %4: f32[2,1] = multiply(%3, %2)
        %5: f32[2,3] = multiply(%1, %4)
        %6: f32[2,3] = subtract(%0, %5)
        return %6
        """,
    )


def test_sums_with_itself_but_not_with_zero():
    check(
        reassociate,
        lambda x: (x + x, x + 0.0),
        [X],
        """
        %1: f32[2,3] = add(%0, %0)
        %2: f32[] = constant(value=0.0, dtype=float32)
        %3: f32[2,3] = add(%0, %2)
        return %1, %3
        """,
        """
        %1: f32[] = constant(value=2.0, dtype=float32)
        %2: f32[2,3] = multiply(%0, %1)
        %3: f32[] = constant(value=0.0, dtype=float32)
        %4: f32[2,3] = add(%0, %3)
        return %2, %4
        """,
    )


def test_integers_stay():
    check(
        reassociate,
        lambda x: (x + x, x * 2 * 3),
        [WIDE],
        """
        %1: i32[2,3] = add(%0, %0)
        %2: i32[] = constant(value=2, dtype=int32)
        %3: i32[2,3] = multiply(%0, %2)
        %4: i32[] = constant(value=3, dtype=int32)
        %5: i32[2,3] = multiply(%3, %4)
        return %1, %5
        """,
    )

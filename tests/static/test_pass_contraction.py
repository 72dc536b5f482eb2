"""Sums as products, and transposed operands copied: printed before and after."""

import graphs as g
from static.passes.products import contract
from tests.helpers.printed import check

X = g.TensorSpec((4, 3))
CUBE = g.TensorSpec((2, 4, 3))
ROWS = g.TensorSpec(("B", 3))
W = g.TensorSpec((3, 3))


def test_rows_and_columns():
    check(
        contract,
        lambda x: (g.sum(x, axis=0), g.mean(x, axis=1, keepdims=True)),
        [X],
        """
        f32[3] matmul([1.0, 1.0, 1.0, 1.0], %0)
        f32[4,1] matmul(%0, [[0.3333333432674408], [0.3333333432674408], [0.3333333432674408]])
        """,
    )


def test_leading_axes_and_no_others():
    check(
        contract,
        lambda x: (g.sum(x, axis=(0, 1)), g.sum(x, axis=1)),
        [CUBE],
        """
        f32[3] matmul(<f32[8]>, reshape(%0, shape=(8, 3)))
        f32[2,3] sum(%0, axis=(1), keepdims=False)
        """,
    )


def test_squares_and_products():
    check(
        contract,
        lambda x, y: (g.sum(x * y), g.mean(g.square(x))),
        [X, X],
        """
        f32[] matmul(reshape(%0, shape=(12)), reshape(%1, shape=(12)))
        f32[] multiply(matmul(reshape(%0, shape=(12)), reshape(%0, shape=(12))), 0.0833333358168602)
        """,
    )


def test_unknown_sizes_stay():
    check(contract, lambda x: (g.sum(x, axis=0), g.sum(x.T, axis=0)), [ROWS])


def test_a_transposed_matrix_that_is_read_often():
    check(contract, lambda x, w: [g.exp(x * i) @ w.T for i in range(8)], [X, W])

"""Stacks of products as one product: printed before and after."""

import graphs as g
from static.passes.products import flatten_products
from tests.helpers.printed import check

X = g.TensorSpec((2, 4, 3))
W = g.TensorSpec((3, 5))
V = g.TensorSpec((4, 5))
ROWS = g.TensorSpec(("B", "T", 3))


def test_a_stack_times_a_matrix():
    check(
        flatten_products,
        lambda x, w: x @ w,
        [X, W],
        "f32[2,4,5] reshape(matmul(reshape(%0, shape=(8, 3)), %1), shape=(2, 4, 5))",
    )


def test_a_symbolic_stack_times_a_matrix():
    check(
        flatten_products,
        lambda x, w: x @ w,
        [ROWS, W],
        "f32[B,T,5] reshape(matmul(reshape(%0, shape=(B*T, 3)), %1), shape=(B, T, 5))",
    )


def test_what_would_be_copied_or_is_a_stack_on_both_sides_stays():
    check(flatten_products, lambda x, v: (g.matrix_transpose(x) @ v, g.matrix_transpose(x) @ x), [X, V])


def test_a_sum_of_products():
    check(
        flatten_products,
        lambda x, y: g.sum(g.matrix_transpose(x) @ y, axis=0),
        [X, g.TensorSpec((2, 4, 5))],
        "f32[3,5] matmul(permute_dims(reshape(%0, shape=(8, 3)), axes=(1, 0)), reshape(%1, shape=(8, 5)))",
    )

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
        """
        %2: f32[2,4,5] = matmul(%0, %1)
        return %2
        """,
        """
        %2: f32[8,3] = reshape(%0, shape=(8, 3))
        %3: f32[8,5] = matmul(%2, %1)
        %4: f32[2,4,5] = reshape(%3, shape=(2, 4, 5))
        return %4
        """,
    )


def test_a_symbolic_stack_times_a_matrix():
    check(
        flatten_products,
        lambda x, w: x @ w,
        [ROWS, W],
        """
        %2: f32[B,T,5] = matmul(%0, %1)
        return %2
        """,
        """
        %2: f32[B*T,3] = reshape(%0, shape=(B*T, 3))
        %3: f32[B*T,5] = matmul(%2, %1)
        %4: f32[B,T,5] = reshape(%3, shape=(B, T, 5))
        return %4
        """,
    )


def test_what_would_be_copied_or_is_a_stack_on_both_sides_stays():
    check(
        flatten_products,
        lambda x, v: (g.matrix_transpose(x) @ v, g.matrix_transpose(x) @ x),
        [X, V],
        """
        %2: f32[2,3,4] = permute_dims(%0, axes=(0, 2, 1))
        %3: f32[2,3,5] = matmul(%2, %1)
        %4: f32[2,3,4] = permute_dims(%0, axes=(0, 2, 1))
        %5: f32[2,3,3] = matmul(%4, %0)
        return %3, %5
        """,
    )


def test_a_sum_of_products():
    check(
        flatten_products,
        lambda x, y: g.sum(g.matrix_transpose(x) @ y, axis=0),
        [X, g.TensorSpec((2, 4, 5))],
        """
        %2: f32[2,3,4] = permute_dims(%0, axes=(0, 2, 1))
        %3: f32[2,3,5] = matmul(%2, %1)
        %4: f32[3,5] = sum(%3, axis=(0), keepdims=False)
        return %4
        """,
        """
        %2: f32[8,3] = reshape(%0, shape=(8, 3))
        %3: f32[3,8] = permute_dims(%2, axes=(1, 0))
        %4: f32[8,5] = reshape(%1, shape=(8, 5))
        %5: f32[3,5] = matmul(%3, %4)
        return %5
        """,
    )

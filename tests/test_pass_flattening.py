"""Stacks of products as one product: printed before and after."""

import graphs as g
import static
from static.passes.flattening import flatten_products
from tests.printed import check

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
        exact=False,
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
        exact=False,
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
        """
        %2: f32[2,3,4] = permute_dims(%0, axes=(0, 2, 1))
        %3: f32[2,3,5] = matmul(%2, %1)
        %4: f32[2,3,4] = permute_dims(%0, axes=(0, 2, 1))
        %5: f32[2,3,3] = matmul(%4, %0)
        return %3, %5
        """,
        exact=False,
    )


def test_the_gradient_of_the_matrix():
    check(
        flatten_products,
        static.grad(lambda w, x: g.sum(g.exp(x @ w))),
        [W, X],
        """
        %2: f32[2,4,5] = matmul(%1, %0)
        %3: f32[2,4,5] = exp(%2)
        %4: f32[] = constant(value=1.0, dtype=float32)
        %5: f32[1,1,1] = reshape(%4, shape=(1, 1, 1))
        %6: f32[2,4,5] = broadcast_to(%5, shape=(2, 4, 5))
        %7: f32[2,4,5] = multiply(%6, %3)
        %8: f32[2,3,4] = permute_dims(%1, axes=(0, 2, 1))
        %9: f32[2,3,5] = matmul(%8, %7)
        %10: f32[3,5] = sum(%9, axis=(0), keepdims=False)
        return %10
        """,
        """
        %2: f32[8,3] = reshape(%1, shape=(8, 3))
        %3: f32[8,5] = matmul(%2, %0)
        %4: f32[2,4,5] = reshape(%3, shape=(2, 4, 5))
        %5: f32[2,4,5] = exp(%4)
        %6: f32[] = constant(value=1.0, dtype=float32)
        %7: f32[1,1,1] = reshape(%6, shape=(1, 1, 1))
        %8: f32[2,4,5] = broadcast_to(%7, shape=(2, 4, 5))
        %9: f32[2,4,5] = multiply(%8, %5)
        %10: f32[8,3] = reshape(%1, shape=(8, 3))
        %11: f32[3,8] = permute_dims(%10, axes=(1, 0))
        %12: f32[8,5] = reshape(%9, shape=(8, 5))
        %13: f32[3,5] = matmul(%11, %12)
        return %13
        """,
        exact=False,
    )

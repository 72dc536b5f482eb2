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
        %1: f32[3] = sum(%0, axis=(0), keepdims=False)
        %2: f32[4,1] = mean(%0, axis=(1), keepdims=True)
        return %1, %2
        """,
        """
        %1: f32[4] = constant(value=[1.0, 1.0, 1.0, 1.0], dtype=float32)
        %2: f32[3] = matmul(%1, %0)
        %3: f32[3,1] = constant(value=[[0.3333333432674408], [0.3333333432674408], [0.3333333432674408]], dtype=float32)
        %4: f32[4,1] = matmul(%0, %3)
        return %2, %4
        """,
    )


def test_leading_axes_and_no_others():
    check(
        contract,
        lambda x: (g.sum(x, axis=(0, 1)), g.sum(x, axis=1)),
        [CUBE],
        """
        %1: f32[3] = sum(%0, axis=(0, 1), keepdims=False)
        %2: f32[2,3] = sum(%0, axis=(1), keepdims=False)
        return %1, %2
        """,
        """
        %1: f32[8] = constant(value=<f32[8]>, dtype=float32)
        %2: f32[8,3] = reshape(%0, shape=(8, 3))
        %3: f32[3] = matmul(%1, %2)
        %4: f32[2,3] = sum(%0, axis=(1), keepdims=False)
        return %3, %4
        """,
    )


def test_squares_and_products():
    check(
        contract,
        lambda x, y: (g.sum(x * y), g.mean(g.square(x))),
        [X, X],
        """
        %2: f32[4,3] = multiply(%0, %1)
        %3: f32[] = sum(%2, axis=(0, 1), keepdims=False)
        %4: f32[4,3] = square(%0)
        %5: f32[] = mean(%4, axis=(0, 1), keepdims=False)
        return %3, %5
        """,
        """
        %2: f32[12] = reshape(%0, shape=(12))
        %3: f32[12] = reshape(%1, shape=(12))
        %4: f32[] = matmul(%2, %3)
        %5: f32[12] = reshape(%0, shape=(12))
        %6: f32[12] = reshape(%0, shape=(12))
        %7: f32[] = matmul(%5, %6)
        %8: f32[] = constant(value=0.0833333358168602, dtype=float32)
        %9: f32[] = multiply(%7, %8)
        return %4, %9
        """,
    )


def test_unknown_sizes_stay():
    check(
        contract,
        lambda x: (g.sum(x, axis=0), g.sum(x.T, axis=0)),
        [ROWS],
        """
        %1: f32[3] = sum(%0, axis=(0), keepdims=False)
        %2: f32[3,B] = permute_dims(%0, axes=(1, 0))
        %3: f32[B] = sum(%2, axis=(0), keepdims=False)
        return %1, %3
        """,
    )


def test_a_transposed_matrix_that_is_read_often():
    check(
        contract,
        lambda x, w: [g.exp(x * i) @ w.T for i in range(8)],
        [X, W],
        """
        %2: f32[] = constant(value=0.0, dtype=float32)
        %3: f32[4,3] = multiply(%0, %2)
        %4: f32[4,3] = exp(%3)
        %5: f32[3,3] = permute_dims(%1, axes=(1, 0))
        %6: f32[4,3] = matmul(%4, %5)
        %7: f32[] = constant(value=1.0, dtype=float32)
        %8: f32[4,3] = multiply(%0, %7)
        %9: f32[4,3] = exp(%8)
        %10: f32[3,3] = permute_dims(%1, axes=(1, 0))
        %11: f32[4,3] = matmul(%9, %10)
        %12: f32[] = constant(value=2.0, dtype=float32)
        %13: f32[4,3] = multiply(%0, %12)
        %14: f32[4,3] = exp(%13)
        %15: f32[3,3] = permute_dims(%1, axes=(1, 0))
        %16: f32[4,3] = matmul(%14, %15)
        %17: f32[] = constant(value=3.0, dtype=float32)
        %18: f32[4,3] = multiply(%0, %17)
        %19: f32[4,3] = exp(%18)
        %20: f32[3,3] = permute_dims(%1, axes=(1, 0))
        %21: f32[4,3] = matmul(%19, %20)
        %22: f32[] = constant(value=4.0, dtype=float32)
        %23: f32[4,3] = multiply(%0, %22)
        %24: f32[4,3] = exp(%23)
        %25: f32[3,3] = permute_dims(%1, axes=(1, 0))
        %26: f32[4,3] = matmul(%24, %25)
        %27: f32[] = constant(value=5.0, dtype=float32)
        %28: f32[4,3] = multiply(%0, %27)
        %29: f32[4,3] = exp(%28)
        %30: f32[3,3] = permute_dims(%1, axes=(1, 0))
        %31: f32[4,3] = matmul(%29, %30)
        %32: f32[] = constant(value=6.0, dtype=float32)
        %33: f32[4,3] = multiply(%0, %32)
        %34: f32[4,3] = exp(%33)
        %35: f32[3,3] = permute_dims(%1, axes=(1, 0))
        %36: f32[4,3] = matmul(%34, %35)
        %37: f32[] = constant(value=7.0, dtype=float32)
        %38: f32[4,3] = multiply(%0, %37)
        %39: f32[4,3] = exp(%38)
        %40: f32[3,3] = permute_dims(%1, axes=(1, 0))
        %41: f32[4,3] = matmul(%39, %40)
        return %6, %11, %16, %21, %26, %31, %36, %41
        """,
    )

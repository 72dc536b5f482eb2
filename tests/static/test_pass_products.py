"""Products that share an operand, merged where that pays: printed before and after."""

import numpy as np

import graphs as g
from static.passes.products import merge_products
from tests.helpers.printed import check

X = g.TensorSpec((4, 3))
WIDE = g.TensorSpec((64, 64))
WQ, WK, WV = np.random.default_rng(0).normal(size=(3, 3, 2)).astype(np.float32)


def test_weights_that_are_constants():
    check(
        merge_products,
        lambda x: [x @ w for w in (WQ, WK, WV)],
        [X],
        """
        %1: f32[3,2] = constant(value=<f32[3,2]>, dtype=float32)
        %2: f32[4,2] = matmul(%0, %1)
        %3: f32[3,2] = constant(value=<f32[3,2]>, dtype=float32)
        %4: f32[4,2] = matmul(%0, %3)
        %5: f32[3,2] = constant(value=<f32[3,2]>, dtype=float32)
        %6: f32[4,2] = matmul(%0, %5)
        return %2, %4, %6
        """,
        """
        %1: f32[3,2] = constant(value=<f32[3,2]>, dtype=float32)
        %2: f32[3,2] = constant(value=<f32[3,2]>, dtype=float32)
        %3: f32[3,2] = constant(value=<f32[3,2]>, dtype=float32)
        %4: f32[3,6] = concat(%1, %2, %3, axis=1)
        %5: f32[4,6] = matmul(%0, %4)
        %6: f32[4,2] = getitem(%5, key=(:, 0:2:))
        %7: f32[4,2] = getitem(%5, key=(:, 2:4:))
        %8: f32[4,2] = getitem(%5, key=(:, 4:6:))
        return %6, %7, %8
        """,
    )


def test_inputs_of_one_weight():
    check(
        merge_products,
        lambda x, y, z, w: (x @ w, y @ w, z @ w),
        [X, X, X, g.TensorSpec((3, 2))],
        """
        %4: f32[4,2] = matmul(%0, %3)
        %5: f32[4,2] = matmul(%1, %3)
        %6: f32[4,2] = matmul(%2, %3)
        return %4, %5, %6
        """,
        """
        %4: f32[12,3] = concat(%0, %1, %2, axis=0)
        %5: f32[12,2] = matmul(%4, %3)
        %6: f32[4,2] = getitem(%5, key=(0:4:, :))
        %7: f32[4,2] = getitem(%5, key=(4:8:, :))
        %8: f32[4,2] = getitem(%5, key=(8:12:, :))
        return %6, %7, %8
        """,
    )


def test_what_costs_more_to_join_than_it_saves_stays():
    check(
        merge_products,
        lambda x, q, k, v: (x @ q, x @ k, x @ v),
        [WIDE, WIDE, WIDE, WIDE],
        """
        %4: f32[64,64] = matmul(%0, %1)
        %5: f32[64,64] = matmul(%0, %2)
        %6: f32[64,64] = matmul(%0, %3)
        return %4, %5, %6
        """,
    )


def test_what_is_computed_is_not_waited_for():
    check(
        merge_products,
        lambda x, q: (x @ q, x @ (g.exp(x @ q) @ q)),
        [g.TensorSpec((3, 3)), g.TensorSpec((3, 3))],
        """
        %2: f32[3,3] = matmul(%0, %1)
        %3: f32[3,3] = matmul(%0, %1)
        %4: f32[3,3] = exp(%3)
        %5: f32[3,3] = matmul(%4, %1)
        %6: f32[3,3] = matmul(%0, %5)
        return %2, %6
        """,
    )

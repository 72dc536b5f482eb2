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
        v0: f32[4,6] = matmul(%0, concat(<f32[3,2]>, <f32[3,2]>, <f32[3,2]>, axis=1))
        f32[4,2] getitem(v0, key=(:, 0:2:))
        f32[4,2] getitem(v0, key=(:, 2:4:))
        f32[4,2] getitem(v0, key=(:, 4:6:))
        """,
    )


def test_inputs_of_one_weight():
    check(
        merge_products,
        lambda x, y, z, w: (x @ w, y @ w, z @ w),
        [X, X, X, g.TensorSpec((3, 2))],
        """
        v0: f32[12,2] = matmul(concat(%0, %1, %2, axis=0), %3)
        f32[4,2] getitem(v0, key=(0:4:, :))
        f32[4,2] getitem(v0, key=(4:8:, :))
        f32[4,2] getitem(v0, key=(8:12:, :))
        """,
    )


def test_what_costs_more_to_join_than_it_saves_stays():
    check(merge_products, lambda x, q, k, v: (x @ q, x @ k, x @ v), [WIDE, WIDE, WIDE, WIDE])


def test_what_is_computed_is_not_waited_for():
    check(merge_products, lambda x, q: (x @ q, x @ (g.exp(x @ q) @ q)), [g.TensorSpec((3, 3)), g.TensorSpec((3, 3))])

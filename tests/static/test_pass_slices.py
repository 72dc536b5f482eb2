"""Work on the entries of an array, done on the array: printed before and after."""

import graphs as g
from static.passes.batching import merge_slices
from tests.helpers.printed import check

XS = g.TensorSpec((4, 2, 3))
W = g.TensorSpec((3, 5))
H = g.TensorSpec((2, 5))
ROW = g.TensorSpec((5,))


def unrolled(w, b, h, xs):
    """What an RNN's steps do, written as a loop in Python."""
    for t in range(4):
        h = g.tanh(xs[t] @ w + h + b)
    return h


def stacked(hs):
    """Work on arrays that are also joined, before and after they are."""
    parts = [g.sin(hs[i] * (i + 2.0)) for i in range(4)]
    return g.concat(parts), [g.exp(p) for p in parts]


def test_products_that_share_a_matrix():
    check(
        merge_slices,
        lambda w, xs: [xs[t] @ w for t in range(4)],
        [W, XS],
        """
        v0: f32[4,2,5] = reshape(matmul(reshape(%1, shape=(8, 3)), %0), shape=(4, 2, 5))
        f32[2,5] getitem(v0, key=(0, :, :))
        f32[2,5] getitem(v0, key=(1, :, :))
        f32[2,5] getitem(v0, key=(2, :, :))
        f32[2,5] getitem(v0, key=(3, :, :))
        """,
    )


def test_few_entries_stay():
    check(merge_slices, lambda xs: [g.exp(xs[t]) for t in range(1, 4)], [g.TensorSpec((4, 2, 3))])


def test_the_steps_of_a_loop_apart_from_the_state():
    check(
        merge_slices,
        unrolled,
        [W, ROW, H, XS],
        """
        v0: f32[4,2,5] = add(reshape(matmul(reshape(%3, shape=(8, 3)), %0), shape=(4, 2, 5)), %1)
        f32[2,5] tanh(add(getitem(v0, key=(3, :, :)), tanh(add(getitem(v0, key=(2, :, :)), tanh(add(getitem(v0,
          key=(1, :, :)), tanh(add(getitem(v0, key=(0, :, :)), %2))))))))
        """,
    )


def test_a_concat_that_is_there_is_read():
    check(
        merge_slices,
        stacked,
        [XS],
        """
        v0: f32[8,3] = concat(sin(multiply(getitem(%0, key=(0, :, :)), 2.0)), sin(multiply(getitem(%0, key=(1, :,
          :)), 3.0)), sin(multiply(getitem(%0, key=(2, :, :)), 4.0)), sin(multiply(getitem(%0, key=(3, :, :)),
          5.0)), axis=0)
        v1: f32[8,3] = exp(v0)
        v0
        f32[2,3] getitem(v1, key=(0:2:, :))
        f32[2,3] getitem(v1, key=(2:4:, :))
        f32[2,3] getitem(v1, key=(4:6:, :))
        f32[2,3] getitem(v1, key=(6:8:, :))
        """,
    )

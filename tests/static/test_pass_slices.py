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
        %2: f32[2,3] = getitem(%1, key=(0, :, :))
        %3: f32[2,5] = matmul(%2, %0)
        %4: f32[2,3] = getitem(%1, key=(1, :, :))
        %5: f32[2,5] = matmul(%4, %0)
        %6: f32[2,3] = getitem(%1, key=(2, :, :))
        %7: f32[2,5] = matmul(%6, %0)
        %8: f32[2,3] = getitem(%1, key=(3, :, :))
        %9: f32[2,5] = matmul(%8, %0)
        return %3, %5, %7, %9
        """,
        """
        %2: f32[8,3] = reshape(%1, shape=(8, 3))
        %3: f32[8,5] = matmul(%2, %0)
        %4: f32[4,2,5] = reshape(%3, shape=(4, 2, 5))
        %5: f32[2,5] = getitem(%4, key=(0, :, :))
        %6: f32[2,5] = getitem(%4, key=(1, :, :))
        %7: f32[2,5] = getitem(%4, key=(2, :, :))
        %8: f32[2,5] = getitem(%4, key=(3, :, :))
        return %5, %6, %7, %8
        """,
    )


def test_few_entries_stay():
    check(
        merge_slices,
        lambda xs: [g.exp(xs[t]) for t in range(1, 4)],
        [g.TensorSpec((4, 2, 3))],
        """
        %1: f32[2,3] = getitem(%0, key=(1, :, :))
        %2: f32[2,3] = exp(%1)
        %3: f32[2,3] = getitem(%0, key=(2, :, :))
        %4: f32[2,3] = exp(%3)
        %5: f32[2,3] = getitem(%0, key=(3, :, :))
        %6: f32[2,3] = exp(%5)
        return %2, %4, %6
        """,
    )


def test_the_steps_of_a_loop_apart_from_the_state():
    check(
        merge_slices,
        unrolled,
        [W, ROW, H, XS],
        """
        %4: f32[2,3] = getitem(%3, key=(0, :, :))
        %5: f32[2,5] = matmul(%4, %0)
        %6: f32[2,5] = add(%5, %2)
        %7: f32[2,5] = add(%6, %1)
        %8: f32[2,5] = tanh(%7)
        %9: f32[2,3] = getitem(%3, key=(1, :, :))
        %10: f32[2,5] = matmul(%9, %0)
        %11: f32[2,5] = add(%10, %8)
        %12: f32[2,5] = add(%11, %1)
        %13: f32[2,5] = tanh(%12)
        %14: f32[2,3] = getitem(%3, key=(2, :, :))
        %15: f32[2,5] = matmul(%14, %0)
        %16: f32[2,5] = add(%15, %13)
        %17: f32[2,5] = add(%16, %1)
        %18: f32[2,5] = tanh(%17)
        %19: f32[2,3] = getitem(%3, key=(3, :, :))
        %20: f32[2,5] = matmul(%19, %0)
        %21: f32[2,5] = add(%20, %18)
        %22: f32[2,5] = add(%21, %1)
        %23: f32[2,5] = tanh(%22)
        return %23
        """,
        """
        %4: f32[8,3] = reshape(%3, shape=(8, 3))
        %5: f32[8,5] = matmul(%4, %0)
        %6: f32[4,2,5] = reshape(%5, shape=(4, 2, 5))
        %7: f32[4,2,5] = add(%6, %1)
        %8: f32[2,5] = getitem(%7, key=(0, :, :))
        %9: f32[2,5] = add(%8, %2)
        %10: f32[2,5] = tanh(%9)
        %11: f32[2,5] = getitem(%7, key=(1, :, :))
        %12: f32[2,5] = add(%11, %10)
        %13: f32[2,5] = tanh(%12)
        %14: f32[2,5] = getitem(%7, key=(2, :, :))
        %15: f32[2,5] = add(%14, %13)
        %16: f32[2,5] = tanh(%15)
        %17: f32[2,5] = getitem(%7, key=(3, :, :))
        %18: f32[2,5] = add(%17, %16)
        %19: f32[2,5] = tanh(%18)
        return %19
        """,
    )


def test_a_concat_that_is_there_is_read():
    check(
        merge_slices,
        stacked,
        [XS],
        """
        %1: f32[2,3] = getitem(%0, key=(0, :, :))
        %2: f32[] = constant(value=2.0, dtype=float32)
        %3: f32[2,3] = multiply(%1, %2)
        %4: f32[2,3] = sin(%3)
        %5: f32[2,3] = getitem(%0, key=(1, :, :))
        %6: f32[] = constant(value=3.0, dtype=float32)
        %7: f32[2,3] = multiply(%5, %6)
        %8: f32[2,3] = sin(%7)
        %9: f32[2,3] = getitem(%0, key=(2, :, :))
        %10: f32[] = constant(value=4.0, dtype=float32)
        %11: f32[2,3] = multiply(%9, %10)
        %12: f32[2,3] = sin(%11)
        %13: f32[2,3] = getitem(%0, key=(3, :, :))
        %14: f32[] = constant(value=5.0, dtype=float32)
        %15: f32[2,3] = multiply(%13, %14)
        %16: f32[2,3] = sin(%15)
        %17: f32[8,3] = concat(%4, %8, %12, %16, axis=0)
        %18: f32[2,3] = exp(%4)
        %19: f32[2,3] = exp(%8)
        %20: f32[2,3] = exp(%12)
        %21: f32[2,3] = exp(%16)
        return %17, %18, %19, %20, %21
        """,
        """
        %1: f32[2,3] = getitem(%0, key=(0, :, :))
        %2: f32[] = constant(value=2.0, dtype=float32)
        %3: f32[2,3] = multiply(%1, %2)
        %4: f32[2,3] = sin(%3)
        %5: f32[2,3] = getitem(%0, key=(1, :, :))
        %6: f32[] = constant(value=3.0, dtype=float32)
        %7: f32[2,3] = multiply(%5, %6)
        %8: f32[2,3] = sin(%7)
        %9: f32[2,3] = getitem(%0, key=(2, :, :))
        %10: f32[] = constant(value=4.0, dtype=float32)
        %11: f32[2,3] = multiply(%9, %10)
        %12: f32[2,3] = sin(%11)
        %13: f32[2,3] = getitem(%0, key=(3, :, :))
        %14: f32[] = constant(value=5.0, dtype=float32)
        %15: f32[2,3] = multiply(%13, %14)
        %16: f32[2,3] = sin(%15)
        %17: f32[8,3] = concat(%4, %8, %12, %16, axis=0)
        %18: f32[8,3] = exp(%17)
        %19: f32[2,3] = getitem(%18, key=(0:2:, :))
        %20: f32[2,3] = getitem(%18, key=(2:4:, :))
        %21: f32[2,3] = getitem(%18, key=(4:6:, :))
        %22: f32[2,3] = getitem(%18, key=(6:8:, :))
        return %17, %19, %20, %21, %22
        """,
    )

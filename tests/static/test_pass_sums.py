"""Sums of products as one product, sums of sums as one sum: printed before and after."""

import graphs as g
from static.passes.products import merge_sums
from tests.helpers.printed import check

A = g.TensorSpec((2, 3))
B = g.TensorSpec((3, 4))
XS = g.TensorSpec((3, 2, 4))
BIG = g.TensorSpec((8, 4096))
THIN = g.TensorSpec((4096, 8))


def test_products():
    check(
        merge_sums,
        lambda a, b, c: a @ b + c @ b + (a * c) @ b,
        [A, B, A],
        """
        %3: f32[2,4] = matmul(%0, %1)
        %4: f32[2,4] = matmul(%2, %1)
        %5: f32[2,4] = add(%3, %4)
        %6: f32[2,3] = multiply(%0, %2)
        %7: f32[2,4] = matmul(%6, %1)
        %8: f32[2,4] = add(%5, %7)
        return %8
        """,
        """
        %3: f32[2,3] = multiply(%0, %2)
        %4: f32[2,9] = concat(%0, %2, %3, axis=1)
        %5: f32[9,4] = concat(%1, %1, %1, axis=0)
        %6: f32[2,4] = matmul(%4, %5)
        return %6
        """,
    )


def test_two_products_are_as_cheap_as_joining_them():
    check(
        merge_sums,
        lambda a, b, c, d: a @ b + c @ d,
        [A, B, A, B],
        """
        %4: f32[2,4] = matmul(%0, %1)
        %5: f32[2,4] = matmul(%2, %3)
        %6: f32[2,4] = add(%4, %5)
        return %6
        """,
    )


def test_entries_of_an_array_are_not_joined_again():
    check(
        merge_sums,
        lambda xs, g0, g1, g2: xs[0].T @ g0 + xs[1].T @ g1 + xs[2].T @ g2,
        [XS, A, A, A],
        """
        %4: f32[2,4] = getitem(%0, key=(0, :, :))
        %5: f32[4,2] = permute_dims(%4, axes=(1, 0))
        %6: f32[4,3] = matmul(%5, %1)
        %7: f32[2,4] = getitem(%0, key=(1, :, :))
        %8: f32[4,2] = permute_dims(%7, axes=(1, 0))
        %9: f32[4,3] = matmul(%8, %2)
        %10: f32[4,3] = add(%6, %9)
        %11: f32[2,4] = getitem(%0, key=(2, :, :))
        %12: f32[4,2] = permute_dims(%11, axes=(1, 0))
        %13: f32[4,3] = matmul(%12, %3)
        %14: f32[4,3] = add(%10, %13)
        return %14
        """,
        """
        %4: f32[6,4] = reshape(%0, shape=(6, 4))
        %5: f32[4,6] = permute_dims(%4, axes=(1, 0))
        %6: f32[6,3] = concat(%1, %2, %3, axis=0)
        %7: f32[4,3] = matmul(%5, %6)
        return %7
        """,
    )


def test_sums_of_rows():
    check(
        merge_sums,
        lambda x, y, b: (g.sum(x, axis=0) + g.sum(y, axis=0)) + b,
        [A, A, g.TensorSpec((3,))],
        """
        %3: f32[3] = sum(%0, axis=(0), keepdims=False)
        %4: f32[3] = sum(%1, axis=(0), keepdims=False)
        %5: f32[3] = add(%3, %4)
        %6: f32[3] = add(%5, %2)
        return %6
        """,
        """
        %3: f32[4,3] = concat(%0, %1, axis=0)
        %4: f32[3] = sum(%3, axis=(0), keepdims=False)
        %5: f32[3] = add(%2, %4)
        return %5
        """,
    )


def test_what_costs_more_to_join_than_it_saves_stays():
    check(
        merge_sums,
        lambda a, b, c, d: a @ b + c @ d,
        [BIG, THIN, BIG, THIN],
        """
        %4: f32[8,8] = matmul(%0, %1)
        %5: f32[8,8] = matmul(%2, %3)
        %6: f32[8,8] = add(%4, %5)
        return %6
        """,
    )


def test_each_of_two_products_is_one_term():
    check(
        merge_sums,
        lambda a, b, c, d: (a @ b, a @ b + c @ d),
        [A, B, A, B],
        """
        %4: f32[2,4] = matmul(%0, %1)
        %5: f32[2,4] = matmul(%0, %1)
        %6: f32[2,4] = matmul(%2, %3)
        %7: f32[2,4] = add(%5, %6)
        return %4, %7
        """,
    )

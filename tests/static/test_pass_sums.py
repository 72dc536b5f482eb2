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
        "f32[2,4] matmul(concat(%0, %2, multiply(%0, %2), axis=1), concat(%1, %1, %1, axis=0))",
    )


def test_two_products_are_as_cheap_as_joining_them():
    check(merge_sums, lambda a, b, c, d: a @ b + c @ d, [A, B, A, B])


def test_entries_of_an_array_are_not_joined_again():
    check(
        merge_sums,
        lambda xs, g0, g1, g2: xs[0].T @ g0 + xs[1].T @ g1 + xs[2].T @ g2,
        [XS, A, A, A],
        "f32[4,3] matmul(permute_dims(reshape(%0, shape=(6, 4)), axes=(1, 0)), concat(%1, %2, %3, axis=0))",
    )


def test_sums_of_rows():
    check(
        merge_sums,
        lambda x, y, b: (g.sum(x, axis=0) + g.sum(y, axis=0)) + b,
        [A, A, g.TensorSpec((3,))],
        "f32[3] add(%2, sum(concat(%0, %1, axis=0), axis=(0), keepdims=False))",
    )


def test_what_costs_more_to_join_than_it_saves_stays():
    check(merge_sums, lambda a, b, c, d: a @ b + c @ d, [BIG, THIN, BIG, THIN])


def test_each_of_two_products_is_one_term():
    check(merge_sums, lambda a, b, c, d: (a @ b, a @ b + c @ d), [A, B, A, B])

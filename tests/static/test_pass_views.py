"""Views: printed before and after each rule."""

import graphs as g
from graphs.ops.slicing import place
from static.passes.views import eliminate_views
from tests.helpers.printed import check

X = g.TensorSpec((2, 3))
CUBE = g.TensorSpec((2, 3, 4))
COLUMNS = g.TensorSpec(("B", 3))


def test_reshapes_become_one():
    check(
        eliminate_views,
        lambda x: g.reshape(g.squeeze(g.expand_dims(g.reshape(x, (6,)), 1), 1), (3, 2)),
        [X],
        "f32[3,2] reshape(%0, shape=(3, 2))",
    )


def test_a_symbolic_reshape_back_goes():
    check(eliminate_views, lambda x: g.reshape(g.reshape(x, (-1,)), (x.shape[0], 3)), [COLUMNS], "%0")


def test_permutations_become_one():
    check(
        eliminate_views,
        lambda x: (x.T.T, g.permute_dims(g.permute_dims(x.T, (1, 0)), (1, 0))),
        [X],
        """
        %0
        f32[3,2] permute_dims(%0, axes=(1, 0))
        """,
    )


def test_permutations_that_cancel_go():
    check(
        eliminate_views,
        lambda x: (
            g.permute_dims(g.permute_dims(x, (1, 2, 0)), (2, 0, 1)),
            g.permute_dims(g.permute_dims(x, (1, 2, 0)), (1, 0, 2)),
        ),
        [CUBE],
        """
        %0
        f32[4,3,2] permute_dims(%0, axes=(2, 1, 0))
        """,
    )


def test_broadcasts_become_one():
    check(
        eliminate_views,
        lambda x: g.broadcast_to(g.broadcast_to(g.expand_dims(x, 0), (4, 2, 3)), (5, 4, 2, 3)),
        [X],
        "f32[5,4,2,3] broadcast_to(%0, shape=(5, 4, 2, 3))",
    )


def test_a_reduction_keeps_its_axes_itself():
    check(
        eliminate_views,
        lambda x: g.reshape(g.sum(x, axis=1), (2, 1)) + g.reshape(g.max(x, axis=0, keepdims=True), (3,)),
        [X],
        "f32[2,3] add(sum(%0, axis=(1), keepdims=True), max(%0, axis=(0), keepdims=False))",
    )


def test_a_part_of_a_concat_is_the_part():
    check(
        eliminate_views,
        lambda x, y: (g.concat([x, y])[0:2], g.concat([x, y])[1:3]),
        [X, X],
        """
        %0
        f32[2,3] getitem(concat(%0, %1, axis=0), key=(1:3:, :))
        """,
    )


def test_all_parts_of_an_array_are_the_array():
    check(
        eliminate_views,
        lambda x: (
            g.concat([x[0:1], x[1:2]]),
            g.concat([g.expand_dims(x[0], 0), g.expand_dims(x[1], 0)]),
            g.concat([x[1:2], x[0:1]]),
        ),
        [X],
        """
        %0
        %0
        f32[2,3] concat(getitem(%0, key=(1:2:, :)), getitem(%0, key=(0:1:, :)), axis=0)
        """,
    )


def test_what_is_undone_goes():
    check(eliminate_views, lambda x: g.stop_gradient(g.flip(g.flip(x, axis=0), axis=0)[:, :]), [X], "%0")


def test_the_gradient_of_all_is_placed_nowhere():
    def f(x):
        return place(g.exp(x), shape=(2, 3), key=(slice(None), slice(None)))

    check(eliminate_views, f, [X], "f32[2,3] exp(%0)")


def test_columns_are_split_where_they_lie():
    check(
        eliminate_views,
        lambda x: (g.reshape(x[:, 4:8], (2, 2, 2, 2)), g.reshape(x[:, 3:7], (4, 2, 2))),
        [g.TensorSpec((4, 8))],
        """
        f32[2,2,2,2] getitem(reshape(%0, shape=(2, 2, 4, 2)), key=(:, :, 2:4:, :))
        f32[4,2,2] reshape(getitem(%0, key=(:, 3:7:)), shape=(4, 2, 2))
        """,
    )


def test_a_transposed_operand_of_a_product_stays():
    check(eliminate_views, lambda x, y: (x @ y.T, g.exp(x.T) @ y), [X, X])

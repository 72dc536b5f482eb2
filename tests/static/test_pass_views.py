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
        """
        %1: f32[6] = reshape(%0, shape=(6))
        %2: f32[6,1] = reshape(%1, shape=(6, 1))
        %3: f32[6] = reshape(%2, shape=(6))
        %4: f32[3,2] = reshape(%3, shape=(3, 2))
        return %4
        """,
        """
        %1: f32[3,2] = reshape(%0, shape=(3, 2))
        return %1
        """,
    )


def test_a_symbolic_reshape_back_goes():
    check(
        eliminate_views,
        lambda x: g.reshape(g.reshape(x, (-1,)), (x.shape[0], 3)),
        [COLUMNS],
        """
        %1: f32[3*B] = reshape(%0, shape=(3*B))
        %2: f32[B,3] = reshape(%1, shape=(B, 3))
        return %2
        """,
        """
        return %0
        """,
    )


def test_permutations_become_one():
    check(
        eliminate_views,
        lambda x: (x.T.T, g.permute_dims(g.permute_dims(x.T, (1, 0)), (1, 0))),
        [X],
        """
        %1: f32[3,2] = permute_dims(%0, axes=(1, 0))
        %2: f32[2,3] = permute_dims(%1, axes=(1, 0))
        %3: f32[3,2] = permute_dims(%0, axes=(1, 0))
        %4: f32[2,3] = permute_dims(%3, axes=(1, 0))
        %5: f32[3,2] = permute_dims(%4, axes=(1, 0))
        return %2, %5
        """,
        """
        %1: f32[3,2] = permute_dims(%0, axes=(1, 0))
        return %0, %1
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
        %1: f32[3,4,2] = permute_dims(%0, axes=(1, 2, 0))
        %2: f32[2,3,4] = permute_dims(%1, axes=(2, 0, 1))
        %3: f32[3,4,2] = permute_dims(%0, axes=(1, 2, 0))
        %4: f32[4,3,2] = permute_dims(%3, axes=(1, 0, 2))
        return %2, %4
        """,
        """
        %1: f32[4,3,2] = permute_dims(%0, axes=(2, 1, 0))
        return %0, %1
        """,
    )


def test_broadcasts_become_one():
    check(
        eliminate_views,
        lambda x: g.broadcast_to(g.broadcast_to(g.expand_dims(x, 0), (4, 2, 3)), (5, 4, 2, 3)),
        [X],
        """
        %1: f32[1,2,3] = reshape(%0, shape=(1, 2, 3))
        %2: f32[4,2,3] = broadcast_to(%1, shape=(4, 2, 3))
        %3: f32[5,4,2,3] = broadcast_to(%2, shape=(5, 4, 2, 3))
        return %3
        """,
        """
        %1: f32[5,4,2,3] = broadcast_to(%0, shape=(5, 4, 2, 3))
        return %1
        """,
    )


def test_a_reduction_keeps_its_axes_itself():
    check(
        eliminate_views,
        lambda x: g.reshape(g.sum(x, axis=1), (2, 1)) + g.reshape(g.max(x, axis=0, keepdims=True), (3,)),
        [X],
        """
        %1: f32[2] = sum(%0, axis=(1), keepdims=False)
        %2: f32[2,1] = reshape(%1, shape=(2, 1))
        %3: f32[1,3] = max(%0, axis=(0), keepdims=True)
        %4: f32[3] = reshape(%3, shape=(3))
        %5: f32[2,3] = add(%2, %4)
        return %5
        """,
        """
        %1: f32[2,1] = sum(%0, axis=(1), keepdims=True)
        %2: f32[3] = max(%0, axis=(0), keepdims=False)
        %3: f32[2,3] = add(%1, %2)
        return %3
        """,
    )


def test_a_part_of_a_concat_is_the_part():
    check(
        eliminate_views,
        lambda x, y: (g.concat([x, y])[0:2], g.concat([x, y])[1:3]),
        [X, X],
        """
        %2: f32[4,3] = concat(%0, %1, axis=0)
        %3: f32[2,3] = getitem(%2, key=(0:2:, :))
        %4: f32[4,3] = concat(%0, %1, axis=0)
        %5: f32[2,3] = getitem(%4, key=(1:3:, :))
        return %3, %5
        """,
        """
        %2: f32[4,3] = concat(%0, %1, axis=0)
        %3: f32[2,3] = getitem(%2, key=(1:3:, :))
        return %0, %3
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
        %1: f32[1,3] = getitem(%0, key=(0:1:, :))
        %2: f32[1,3] = getitem(%0, key=(1:2:, :))
        %3: f32[2,3] = concat(%1, %2, axis=0)
        %4: f32[3] = getitem(%0, key=(0, :))
        %5: f32[1,3] = reshape(%4, shape=(1, 3))
        %6: f32[3] = getitem(%0, key=(1, :))
        %7: f32[1,3] = reshape(%6, shape=(1, 3))
        %8: f32[2,3] = concat(%5, %7, axis=0)
        %9: f32[1,3] = getitem(%0, key=(1:2:, :))
        %10: f32[1,3] = getitem(%0, key=(0:1:, :))
        %11: f32[2,3] = concat(%9, %10, axis=0)
        return %3, %8, %11
        """,
        """
        %1: f32[1,3] = getitem(%0, key=(1:2:, :))
        %2: f32[1,3] = getitem(%0, key=(0:1:, :))
        %3: f32[2,3] = concat(%1, %2, axis=0)
        return %0, %0, %3
        """,
    )


def test_what_is_undone_goes():
    check(
        eliminate_views,
        lambda x: g.stop_gradient(g.flip(g.flip(x, axis=0), axis=0)[:, :]),
        [X],
        """
        %1: f32[2,3] = flip(%0, axis=(0))
        %2: f32[2,3] = flip(%1, axis=(0))
        %3: f32[2,3] = getitem(%2, key=(:, :))
        %4: f32[2,3] = stop_gradient(%3)
        return %4
        """,
        """
        return %0
        """,
    )


def test_the_gradient_of_all_is_placed_nowhere():
    def f(x):
        return place(g.exp(x), shape=(2, 3), key=(slice(None), slice(None)))

    check(
        eliminate_views,
        f,
        [X],
        """
        %1: f32[2,3] = exp(%0)
        %2: f32[2,3] = place(%1, shape=(2, 3), key=(:, :))
        return %2
        """,
        """
        %1: f32[2,3] = exp(%0)
        return %1
        """,
    )


def test_columns_are_split_where_they_lie():
    check(
        eliminate_views,
        lambda x: (g.reshape(x[:, 4:8], (2, 2, 2, 2)), g.reshape(x[:, 3:7], (4, 2, 2))),
        [g.TensorSpec((4, 8))],
        """
        %1: f32[4,4] = getitem(%0, key=(:, 4:8:))
        %2: f32[2,2,2,2] = reshape(%1, shape=(2, 2, 2, 2))
        %3: f32[4,4] = getitem(%0, key=(:, 3:7:))
        %4: f32[4,2,2] = reshape(%3, shape=(4, 2, 2))
        return %2, %4
        """,
        """
        %1: f32[2,2,4,2] = reshape(%0, shape=(2, 2, 4, 2))
        %2: f32[2,2,2,2] = getitem(%1, key=(:, :, 2:4:, :))
        %3: f32[4,4] = getitem(%0, key=(:, 3:7:))
        %4: f32[4,2,2] = reshape(%3, shape=(4, 2, 2))
        return %2, %4
        """,
    )


def test_a_transposed_operand_of_a_product_stays():
    check(
        eliminate_views,
        lambda x, y: (x @ y.T, g.exp(x.T) @ y),
        [X, X],
        """
        %2: f32[3,2] = permute_dims(%1, axes=(1, 0))
        %3: f32[2,2] = matmul(%0, %2)
        %4: f32[3,2] = permute_dims(%0, axes=(1, 0))
        %5: f32[3,2] = exp(%4)
        %6: f32[3,3] = matmul(%5, %1)
        return %3, %6
        """,
    )

"""The ops that batches gather, scatter and cut rows with."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic
import graphs as g
from dynamic.batching.moves import EVERY, Move, Segments, gather, repeat, scatter, section, segment_sum
from graphs import dispatch
from tests.helpers.tree_cells import leaf, numbers

# The ops of batches -------------------------------------------------------------------------------------------------

ROWS = np.array([3, 0, 2])
LINEAR = {
    "gather": lambda x: gather.apply(
        (x, x * 2),
        {
            "moves": (Move(ROWS, True, np.array([0, 2, 4])), Move(slice(1, 3), True, np.array([1, 3]))),
            "unit": 2,
            "shape": (5, 2),
        },
    ),
    "section": lambda x: section.apply((x,), {"first": 3, "shape": (2, 2)}),
    "gather again": lambda x: gather.apply(
        (x,), {"moves": (Move(np.array([1, 1, 3]), False, EVERY),), "unit": 2, "shape": (6,)}
    ),
    "scatter": lambda x: scatter.apply((x,), {"move": Move(ROWS, True, slice(1, 4)), "unit": 2, "shape": (5, 2)}),
    "scatter onto one": lambda x: scatter.apply(
        (x,), {"move": Move(np.array([1, 1]), False, slice(0, 2)), "unit": 2, "shape": (2, 2)}
    ),
    "repeat": lambda x: repeat.apply((x,), {"segments": Segments(np.array([0, 0, 1, 2, 3]), np.array([0, 2, 3, 4]))}),
    "segment sum": lambda x: segment_sum.apply((x,), {"segments": Segments(np.array([0, 0, 1, 1]), np.array([0, 2]))}),
}


@pytest.mark.parametrize("name", LINEAR)
def test_moves_have_derivatives_of_every_order(name):
    f, x = LINEAR[name], numbers(4, 2)
    matrix = np.stack([f(dynamic.tensor(unit)).numpy().reshape(-1) for unit in np.eye(8).reshape(8, 4, 2)], axis=-1)
    np.testing.assert_allclose(f(dynamic.tensor(x)).numpy().reshape(-1), matrix @ x.reshape(-1))
    np.testing.assert_allclose(dynamic.jacobian(f)(x).reshape(matrix.shape), matrix)
    hessian = dynamic.hessian(lambda x: g.sum(f(x) ** 3))(x).reshape(8, 8)
    np.testing.assert_allclose(hessian, matrix.T @ np.diag(6 * matrix @ x.reshape(-1)) @ matrix, atol=1e-12)
    specs = [g.TensorSpec((4, 2), np.float64)] * (2 if name == "gather" else 1)
    recorded = f(dynamic.tensor(x, requires_grad=True)).grad_fn
    assert recorded.op.infer(*specs, **recorded.attrs).shape == f(dynamic.tensor(x)).shape


def part_of(x):
    return section.apply((x,), {"first": 2, "shape": (2, 2)})


READERS = {"gather": LINEAR["gather"], "gather again": LINEAR["gather again"], "section": part_of}


@pytest.mark.parametrize("name", READERS)
def test_a_cotangent_that_others_see_is_left_alone(name):
    """What reads a part adds to the cotangent of the whole in place, unless that is another's as well."""
    read, weights = READERS[name], numbers(4, 2)

    def gradients(whole):
        x, y = leaf(numbers(4, 2, seed=1)), leaf(numbers(4, 2, seed=2))
        a, b = x * 1, y * 1
        a.retain_grad()
        parts = [g.sum(read(a) ** 2), g.sum(read(a) * 3)]
        total = whole(a, b, leaf(weights)) + parts[0] + parts[1]
        total.backward(retain_graph=True)
        total.backward()
        return [v.grad.numpy() for v in (a, x, y)], (parts, x)

    for whole in (lambda a, b, _: g.sum(a + b), lambda a, b, w: g.sum((a + b) * w), lambda a, b, w: g.sum(a * w + b)):
        with dispatch.observe_kernels(lambda *_: None):
            expected, _ = gradients(whole)  # by the rules
        for x, y in zip(gradients(whole)[0], expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-12)


def test_large_parts_with_a_pool():
    def loss(x):
        with dynamic.batched():
            rows = list(g.sin(x))
            sums = [g.sum(rows[i] * rows[j]) for i, j in ((0, 1), (1, 2), (3, 0), (2, 2))]
            return g.sum(g.stack(sums))

    x = numbers(4, 1 << 15)
    expected = dynamic.grad(loss)(x)
    with dynamic.pool():
        got = dynamic.grad(loss)(x)
    np.testing.assert_array_equal(got, expected)

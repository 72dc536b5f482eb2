"""The parts of batching: options, runs of memory, and what is kept."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dynamic
import graphs as g
from dynamic.batching import moves
from dynamic.batching.nodes import DeferredNode, GroupValues, View
from graphs import GraphError
from tests.helpers.tree_cells import leaf, numbers

# Options, and where values lie --------------------------------------------------------------------------------------

OPTIONS = [
    *[lambda x, v=v: g.pad(x, ((1, 1), (0, 0)), v) for v in (0, 1, True, 0.0, -0.0, 1.0, -1.0)],
    *[lambda x, a=a: g.sum(x, axis=a) for a in (0, 1, -1, (0,), (0, 1), None)],
    lambda x: g.sum(x, 0),
    lambda x: g.sum(x, axis=0, keepdims=True),
    lambda x: g.sum(x, axis=0, dtype=np.float32),
    lambda x: g.astype(x, np.float32),
    lambda x: g.astype(x, np.dtype(np.float32)),
    lambda x: g.astype(x, "float32"),
    *[lambda x, k=k: g.getitem(x, k) for k in (1, slice(1, None), (slice(None), 1), (..., None), (None, 1))],
    *[lambda x, a=a: g.stack((x, x + 1), axis=a) for a in (0, 1, -1)],
    lambda x: g.stack([x + 1, np.ones((2, 3))], 0),
    lambda x: g.stack([np.ones((2, 3)), x + 1], 0),
    lambda x: g.concat([x, x * 2], axis=1),
    lambda x: g.concat([x]),
    lambda x: g.take(x, np.array([1, 0, 1]), axis=1),
    lambda x: g.reshape(x, (3, 2)),
    lambda x: g.reshape(x, -1),
]


def test_options_are_told_apart():
    """Each twice in one batch, as the second call finds what the first has left, among those of all others."""
    inputs = [dynamic.tensor(numbers(2, 3, seed=i)) for i in range(2)]
    with dynamic.batched():
        got = [f(x * 1) for x in inputs for f in OPTIONS]
    for value, expected in zip(got, [f(x * 1) for x in inputs for f in OPTIONS], strict=True):
        np.testing.assert_array_equal(value.numpy(), expected.numpy())
        np.testing.assert_array_equal(np.signbit(value.numpy()), np.signbit(expected.numpy()))
        assert value.dtype == expected.dtype


def test_options_that_are_wrong_are_explained_each_time():
    with dynamic.batched():
        rows = [leaf(numbers(2)) * 1, leaf(numbers(3)) * 1]
        for _ in range(2):
            with pytest.raises(GraphError, match=r"(?s)stack: .*f64\[2\], f64\[3\].*test_batched_parts"):
                g.stack(rows)
            with pytest.raises(GraphError, match=r"(?s)sum: .*axis.*test_batched_parts"):
                g.sum(rows[0], axis=1)
            with pytest.raises(TypeError):
                g.sum(rows[0], axes=0)
            with pytest.raises((GraphError, TypeError)):
                g.stack([])


def test_nothing_is_recorded_of_options_without_gradients():
    x = leaf(numbers(2, 3))
    with dynamic.batched():
        recorded = g.sum(x * 1, axis=0)
        with dynamic.no_grad():
            alone = [g.sum(x * 1, axis=0), g.stack([x * 1, x * 2])]
        stacked = g.stack([x * 1, x * 2])
    assert recorded.requires_grad
    assert stacked.requires_grad
    assert not any(value.requires_grad for value in alone)


def memory_of(size, start=0, block=None):
    """A node that has run."""
    node = DeferredNode(None, None, ())
    node.block, node.start = block or GroupValues(dynamic.tensor(np.arange(float(size)))), start
    return node


BLOCKS = [GroupValues(dynamic.tensor(np.arange(100.0) + 100 * i)) for i in range(3)]
RUNS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=40)


@given(RUNS, st.booleans(), st.booleans())
def test_what_is_gathered_of_runs_is_what_they_hold(drawn, in_a_row, with_views):
    """Whether they lie in few stretches or in many."""
    runs, sizes = [], []
    for end, (number, start, size) in enumerate(drawn):
        node = memory_of(1, end if in_a_row else start, BLOCKS[0 if in_a_row else number])
        runs.append(View(node, 0) if with_views else node)
        sizes.append(1 if in_a_row else size)
    values = np.concatenate([run.block.tensor.numpy()[run.start :][:n] for run, n in zip(runs, sizes, strict=True)])
    got = moves.gather_runs(moves.locate_runs(runs, sizes), (len(values),))
    np.testing.assert_array_equal(got.numpy(), values)
    assert moves.are_one(runs) == (len({(run.block, run.start) for run in runs}) == 1)


def stretches(runs, sizes):
    blocks, *numbers = moves.locate_runs(runs, sizes)
    return blocks, list(zip(*[each.tolist() for each in numbers], strict=True))


def test_runs_that_follow_each_other_are_one_stretch():
    first, second, third = BLOCKS
    found = stretches([memory_of(1, start, block) for block in BLOCKS[:2] for start in (4, 6, 8)], 2)
    assert found == ([first, second], [(0, 4, 6), (1, 4, 6)])
    assert stretches([memory_of(1, start, third) for start in (5, 8, 11)], 3) == ([third], [(0, 5, 9)])
    assert stretches([memory_of(1, start, third) for start in (5, 8, 9)], [3, 1, 2]) == ([third], [(0, 5, 6)])
    assert stretches([memory_of(1, start, third) for start in (5, 5)], 3) == ([third], [(0, 5, 3), (0, 5, 3)])
    assert moves.are_one([memory_of(1, 4, first), memory_of(1, 4, first)])
    assert not moves.are_one([memory_of(1, 4, first), memory_of(1, 4, second)])


def test_only_values_that_somebody_holds_are_kept():
    x = dynamic.tensor([1.0, 2.0])
    with dynamic.batched() as batch:
        kept = x + 1
        _ = x + 2
        _ = x + 3
        before = len(batch.values)
        batch._forget_values()
        assert (before, len(batch.values)) == (3, 2)
        assert batch.values[0] is kept


def test_iteration_over_nothing():
    with dynamic.batched(), pytest.raises(TypeError):
        iter(g.sum(dynamic.tensor([1.0, 2.0])))

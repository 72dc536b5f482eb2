"""The loops of batches, compiled and in Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dynamic
import graphs as g
from compare.workloads import rnn_text, tree_lstm
from dynamic.batching import loops as batch_loops
from dynamic.batching import memory
from dynamic.batching.nodes import Block, Node, View
from dynamic.batching.schedule import SCHEDULES
from graphs import GraphError, tree
from tests.helpers.tree_cells import leaf, numbers

# The compiled loops -------------------------------------------------------------------------------------------------

compiled = pytest.mark.skipif(batch_loops.compiled is None, reason="without compiled loops")


@compiled
def test_the_loops_refuse_what_they_do_not_know():
    loops = batch_loops.compiled
    with pytest.raises(ValueError, match="65 inputs, where 1 to 64 can be"):
        loops.Deferral(op=g.where, general=print, arity=65)
    with pytest.raises(ValueError, match="-1 inputs, where"):
        loops.Deferral(op=g.stack, general=print, arity=-1)
    with pytest.raises(ValueError, match="0 inputs, where"):
        loops.Deferral(op=g.stack, general=print, arity=0, sign=print)
    with pytest.raises(TypeError, match="follow takes a dict of blocks"):
        loops.follow([])
    with pytest.raises(TypeError, match="held takes a list"):
        loops.held(())
    with pytest.raises(TypeError, match="rows takes a deferred value that has some"):
        loops.rows(dynamic.tensor([1.0]))
    with pytest.raises(TypeError, match="defer_call takes a batch"):
        loops.defer_call(None, print, [], {})
    with dynamic.batched(), pytest.raises(TypeError, match="rows takes a deferred"):
        loops.rows(g.sum(dynamic.tensor([1.0, 2.0])))


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
            with pytest.raises(GraphError, match=r"(?s)stack: .*f64\[2\], f64\[3\].*test_batch_loops"):
                g.stack(rows)
            with pytest.raises(GraphError, match=r"(?s)sum: .*axis.*test_batch_loops"):
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


@compiled
@pytest.mark.parametrize("function", [lambda f: f, dynamic.cell])
@pytest.mark.parametrize("strategy", SCHEDULES)
@pytest.mark.parametrize("workload", [tree_lstm, rnn_text])
def test_the_loops_defer_and_group_as_python_does(workload, strategy, function, monkeypatch):
    step = "node_state" if workload is tree_lstm else "step"
    monkeypatch.setattr(workload, step, function(getattr(workload, step)))
    case = workload.make(**workload.WORKLOAD.sizes["small"])
    stats = []

    def loss(params):
        with dynamic.batched(strategy) as batch:
            total = g.mean(g.stack([case.loss(params, *example) for example in case.examples]))
        stats.append(batch.stats)
        return total

    by_loops = dynamic.value_and_grad(loss)(case.params)
    monkeypatch.setattr(batch_loops, "compiled", None)
    by_python = dynamic.value_and_grad(loss)(case.params)
    assert stats[0] == stats[1]
    for x, y in zip(tree.leaves(by_loops), tree.leaves(by_python), strict=True):
        np.testing.assert_array_equal(x, y)


def memory_of(size, start=0, block=None):
    """A node that has run."""
    node = Node(None, None, ())
    node.block, node.start = block or Block(dynamic.tensor(np.arange(float(size)))), start
    return node


BLOCKS = [Block(dynamic.tensor(np.arange(100.0) + 100 * i)) for i in range(3)]
RUNS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=40)


@given(RUNS, st.booleans(), st.booleans())
def test_runs_are_found_as_python_finds_them(drawn, in_a_row, with_views):
    """And what is gathered of them is what they hold, whether in few stretches or in many."""
    runs, sizes = [], []
    for end, (number, start, size) in enumerate(drawn):
        node = memory_of(1, end if in_a_row else start, BLOCKS[0 if in_a_row else number])
        runs.append(View(node, 0) if with_views else node)
        sizes.append(1 if in_a_row else size)
    values = np.concatenate([run.block.tensor.numpy()[run.start :][:n] for run, n in zip(runs, sizes, strict=True)])
    got = memory.gathered(memory.located(runs, sizes), (len(values),))
    np.testing.assert_array_equal(got.numpy(), values)
    found = memory.spans(runs, sizes), memory.spans(runs, 3), memory.are_one(runs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_loops, "compiled", None)
        assert found == (memory.spans(runs, sizes), memory.spans(runs, 3), memory.are_one(runs))


def test_runs_in_few_stretches_are_told_by_these():
    first, second, third = BLOCKS
    found = memory.spans([memory_of(1, start, block) for block in BLOCKS[:2] for start in (4, 6, 8)], 2)
    assert found == ([first, second], [(0, 4, 6), (1, 4, 6)])
    assert memory.spans([memory_of(1, 50 - i, third) for i in range(40)], 1) is None
    assert memory.are_one([memory_of(1, 4, first), memory_of(1, 4, first)])
    assert not memory.are_one([memory_of(1, 4, first), memory_of(1, 4, second)])


@pytest.mark.parametrize("loops", [batch_loops.compiled, None])
def test_only_values_that_somebody_holds_are_kept(loops, monkeypatch):
    x = dynamic.tensor([1.0, 2.0])
    with dynamic.batched() as batch:
        kept = x + 1
        _ = x + 2
        _ = x + 3
        monkeypatch.setattr(batch_loops, "compiled", loops)
        before = len(batch.values)
        batch._forget_values()
        assert (before, len(batch.values)) == (3, 2)
        assert batch.values[0] is kept


@compiled
def test_the_loops_of_groups_check_what_they_are_given():
    loops = batch_loops.compiled
    with pytest.raises(TypeError, match="located takes a list"):
        loops.located(())
    with pytest.raises(TypeError, match="spans takes a list of runs"):
        loops.spans((), 1, 1)
    with pytest.raises(IndexError):
        loops.spans([memory_of(1)], [], 1)
    with pytest.raises(TypeError, match="are_one takes a list"):
        loops.are_one([])
    with pytest.raises(TypeError, match="column takes a list of nodes"):
        loops.column([], -1)
    with pytest.raises(IndexError, match="a node has fewer inputs"):
        loops.column([memory_of(1)], 0)
    with pytest.raises(TypeError, match="let_go takes a list"):
        loops.let_go(())
    with pytest.raises(TypeError, match="arrange takes groups and a number"):
        loops.arrange([])
    with pytest.raises(TypeError, match="a list of lists of nodes"):
        loops.arrange([()], 1)
    with pytest.raises(TypeError, match="awaited takes a list"):
        loops.awaited(())
    with pytest.raises(TypeError, match="place takes a list of nodes"):
        loops.place((), None, [])
    with pytest.raises(ValueError, match="each node has one start"):
        loops.place([], None, [0])
    checks = (
        *(loops.located, loops.awaited, loops.are_one, loops.let_go),
        *(lambda a: loops.arrange([a], 1), lambda a: loops.place(a, None, [0])),
        *(lambda a: loops.spans(a, 1, 1), lambda a: loops.column(a, 0)),
    )
    for check in checks:
        with pytest.raises(TypeError, match="a node, not int"):
            check([1])
    with dynamic.batched(), pytest.raises(AttributeError, match="not been computed yet"):
        loops.located([(dynamic.tensor([1.0]) * 2).run])


@compiled
def test_iteration_over_nothing():
    with dynamic.batched(), pytest.raises(TypeError):
        iter(g.sum(dynamic.tensor([1.0, 2.0])))

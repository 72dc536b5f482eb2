"""On-the-fly batching: what runs together gives the values and gradients of what runs one by one."""

from __future__ import annotations

import gc
import inspect
import threading
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dynamic
import graphs as g
import static
from compare.workloads import rnn_text, tree_lstm
from dynamic.batching import layout
from dynamic.batching.schedule import SCHEDULES
from graphs import GraphError, tree
from graphs.errors import InplaceError
from graphs.op import registered
from graphs.ops.movement import identity
from graphs.testing import samples

each_strategy = pytest.mark.parametrize("strategy", SCHEDULES)
COPIES = 3


def leaf(array):
    return dynamic.tensor(array, requires_grad=np.asarray(array).dtype.kind == "f")


# Every rule, on the samples of every op ---------------------------------------------------------------------------


def calls():
    """Samples of every op that computes from arrays; of the elementwise ones, which share a rule, a few."""
    for name, op in registered().items():
        if op.family not in ("source", "control", "creation", "random", "elementwise") or name in ELEMENTWISE:
            yield from samples(name)


ELEMENTWISE = ("tanh", "add", "divide", "maximum", "where", "clip", "less")


def copies(sample):
    """The arrays of some calls: those of the sample, and others like them."""
    symmetric = sample.op.name in ("cholesky", "eigh")  # which other places for elements would end
    for i in range(COPIES):
        yield [(a * (1 + i) if symmetric else np.roll(a, i)) if a.dtype.kind == "f" else a for a in sample.arrays]


def weighted(outs):
    """A scalar in which each element of each result counts otherwise."""
    total = 0.0
    for i, out in enumerate(outs):
        if out.dtype.kind == "f":
            weights = np.cos(np.arange(out.size, dtype=out.dtype) + i).reshape(out.shape)
            total = total + g.sum(out * weights)
    return total


def run(sample, shared, batched):
    """Results and gradients of the copies, from leaves, or from deferred values of which one input may be shared."""
    values = [[leaf(a) for a in arrays] for arrays in copies(sample)]
    for arrays in values:
        if shared in range(len(arrays)):
            arrays[shared] = values[0][shared]
    if batched:
        with dynamic.batched() as batch:
            outs = [
                sample(*(v if shared in (i, "none") else identity(v) for i, v in enumerate(arrays)))
                for arrays in values
            ]
            total = weighted(outs)
        assert batch.stats.ops
    else:
        outs = [sample(*arrays) for arrays in values]
        total = weighted(outs)
    leaves = [v for arrays in values for v in arrays]
    if isinstance(total, dynamic.Tensor) and total.requires_grad:
        total.backward()
    return [o.detach().numpy() for o in outs], [None if v.grad is None else v.grad.numpy() for v in leaves]


@pytest.mark.parametrize("sample", list(calls()), ids=str)
def test_every_op_batched(sample):
    for shared in ("all", "none", *range(len(sample.arrays))):
        outs, gradients = run(sample, shared, batched=False)
        batched_outs, batched_gradients = run(sample, shared, batched=True)
        for expected, got in zip(outs, batched_outs, strict=True):
            assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
            np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)
        for expected, got in zip(gradients, batched_gradients, strict=True):
            if expected is not None and expected.size:
                np.testing.assert_allclose(
                    np.zeros_like(expected) if got is None else got, expected, rtol=1e-9, atol=1e-9
                )


# Random programs ----------------------------------------------------------------------------------------------------


WIDTH = 3


def parameters(seed=0):
    rng = np.random.default_rng(seed)
    shapes = {"table": (7, WIDTH), "w": (WIDTH, WIDTH), "u": (WIDTH, WIDTH), "b": (WIDTH,), "start": (WIDTH,)}
    return {name: rng.standard_normal(shape) for name, shape in shapes.items()}


def recurrent(params, words):
    """A loss of a sequence of any length: a step for each word, and ops on rows of all of them."""
    state, states = params["start"], []
    for x in g.embedding(params["table"], np.array(words)):
        state = g.tanh(x @ params["w"] + state @ params["u"] + params["b"])
        states.append(state)
    rows = g.stack(states)
    scores = g.log_softmax(g.relu(rows) @ params["u"] + params["b"], axis=-1)
    chosen = g.take_along_axis(scores, g.expand_dims(np.array(words) % WIDTH, -1))
    best = g.take(scores[-1], g.argmax(scores[0]))
    return g.mean(chosen) - best + g.max(rows, axis=(0, 1)) * g.sum(g.sort(rows, axis=0)[0] * state)


def branching(params, tree_):
    """A loss of a tree of any shape: `(word, children)`."""
    return g.sum(g.square(branch_state(params, tree_)))


def branch_state(params, tree_):
    word, children = tree_
    x = params["table"][word]
    if not children:
        return g.tanh(x * params["b"])
    states = [branch_state(params, child) for child in children]
    if len(children) == 1:
        return g.where(states[0] > 0, states[0] @ params["u"], x)
    joined = g.concat([g.reshape(s, (1, WIDTH)) for s in states])
    weights = g.softmax(joined @ x)
    return g.tanh(weights @ joined + g.mean(g.stack(states, axis=1), axis=1) * x[0] + g.flip(joined, axis=0)[0, :] / 2)


def mean_loss(loss, examples, strategy):
    def together(params):
        with dynamic.batched(strategy):
            return g.mean(g.stack([loss(params, example) for example in examples]))

    return together


def one_by_one(loss, examples):
    return lambda params: g.mean(g.stack([loss(params, example) for example in examples]))


def assert_same(loss, examples, strategy, params=None):
    params = params or parameters()
    expected = dynamic.value_and_grad(one_by_one(loss, examples))(params)
    got = dynamic.value_and_grad(mean_loss(loss, examples, strategy))(params)
    for x, y in zip(tree.leaves(expected), tree.leaves(got), strict=True):
        np.testing.assert_allclose(y, x, rtol=1e-9, atol=1e-10)


words = st.integers(0, 6)
trees = st.recursive(
    st.tuples(words, st.just(())), lambda inner: st.tuples(words, st.lists(inner, max_size=3).map(tuple)), max_leaves=6
)


@each_strategy
@settings(max_examples=20)
@given(st.lists(st.lists(words, min_size=1, max_size=6), min_size=1, max_size=5))
def test_sequences_of_any_length(strategy, examples):
    assert_same(recurrent, examples, strategy)


@each_strategy
@settings(max_examples=20)
@given(st.lists(trees, min_size=1, max_size=5))
def test_trees_of_any_shape(strategy, examples):
    assert_same(branching, examples, strategy)


@each_strategy
@pytest.mark.parametrize("workload", [tree_lstm, rnn_text])
def test_workloads(workload, strategy):
    case = workload.make(**workload.WORKLOAD.sizes["small"])
    params = tree.tree_map(lambda x: x.astype(np.float64), case.params)
    assert_same(lambda p, example: case.loss(p, *example), case.examples, strategy, params)


# Cells --------------------------------------------------------------------------------------------------------------


@each_strategy
@pytest.mark.parametrize(("workload", "step"), [(tree_lstm, "node_state"), (rnn_text, "step")])
def test_workloads_by_cells(workload, step, strategy, monkeypatch):
    monkeypatch.setattr(workload, step, dynamic.cell(getattr(workload, step)))
    test_workloads(workload, strategy)


def outcome(function, batched):
    """Values and gradients of three calls of a function of arrays, with what it returns in a batch or without."""
    rng = np.random.default_rng(0)
    w, xs = leaf(rng.standard_normal((3, 3))), [leaf(rng.standard_normal(3)) for _ in range(3)]
    rows = [np.arange(i, i + 3) for i in range(3)]
    if batched:
        with dynamic.batched():
            results = [function(w, [x * 1, row], "plain", scale=0.5) for x, row in zip(xs, rows, strict=True)]
            total = weighted([r for result in results for r in tree.leaves(result) if hasattr(r, "dtype")])
    else:
        results = [function(w, [x, row], "plain", scale=0.5) for x, row in zip(xs, rows, strict=True)]
        total = weighted([r for result in results for r in tree.leaves(result) if hasattr(r, "dtype")])
    total.backward()
    values = [np.asarray(g.stop_gradient(r)) if hasattr(r, "dtype") else r for r in tree.leaves(results)]
    return values, [v.grad.numpy() for v in (w, *xs)]


def views(w, pair, word, scale):
    x, row = pair
    return {"y": g.tanh(w @ x)[1:], "x": x[0], "both": (x, g.reshape(w, (-1,))[2:5] * scale), "word": word, "row": row}


def nested(w, pair, word, scale):
    return dynamic.cell(views)(w, [g.sin(pair[0]), pair[1]], word, scale=scale)["y"] * pair[0][:2]


def unruled(w, pair, word, scale):
    return g.roll(w * pair[0], 1) * scale, w[1] * 1, pair[1] * 2, g.take(w, pair[1] % 3) @ pair[0]


def silent(w, pair, word, scale):
    with dynamic.no_grad():
        frozen = pair[0] * scale
    return frozen * (w @ pair[0])


@pytest.mark.parametrize("function", [views, nested, unruled, silent])
def test_a_cell_is_its_function(function):
    (values, gradients), (by_cell, cell_gradients) = outcome(function, False), outcome(dynamic.cell(function), True)
    for x, y in zip(values, by_cell, strict=True):
        np.testing.assert_allclose(y, x) if isinstance(x, np.ndarray) else np.testing.assert_equal(y, x)
    for x, y in zip(gradients, cell_gradients, strict=True):
        np.testing.assert_allclose(y, x, rtol=1e-12, atol=1e-12)


def test_a_cell_runs_once_for_each_structure():
    runs = []

    @dynamic.cell
    def step(states, power=1):
        runs.append(len(states))
        return g.sum(g.stack(states), axis=0) ** power

    x = dynamic.tensor([1.0, 2.0])
    with dynamic.batched() as batch:
        results = [step([x * 1] * n, power=p) for n, p in ((1, 1), (2, 1), (1, 1), (2, 1), (2, 3))]
    assert runs == [1, 2, 2]
    assert [r.tolist() for r in results] == [[1, 2], [2, 4], [1, 2], [2, 4], [8, 64]]
    assert batch.stats.mean_batch > 1
    assert step([x]).tolist() == [1, 2]  # outside a block it is the function itself
    assert step.__name__ == "step"


def test_a_cell_after_values_were_needed():
    double = dynamic.cell(lambda x: x * 2)
    with dynamic.batched():
        x = double(dynamic.tensor([1.0]))
        while x.sum() < 100:
            x = double(x)
    assert x.tolist() == [128.0]


def test_a_cell_looks_at_no_value():
    @dynamic.cell
    def f(x):
        return x * 2 if x.sum() > 0 else x

    with dynamic.batched(), pytest.raises(g.ControlFlowError, match=r"needs the value .*test_batched.py:\d+\); choose"):
        f(dynamic.tensor([1.0]))


def test_an_error_of_values_in_a_cell_names_its_line():
    @dynamic.cell
    def pick(table, i):
        return g.take(table, i)

    line = inspect.getsourcelines(pick)[1] + 2
    table = leaf(np.ones((3, 2)))
    with pytest.raises(GraphError, match=f"take: .*test_batched.py:{line}") as caught, dynamic.batched():
        rows = [pick(table, np.array(i)) for i in (0, 1, 7)]
    assert "i64[]" in str(caught.value)
    assert len(rows) == 3


# What a block does --------------------------------------------------------------------------------------------------


def test_equal_ops_run_once_for_all():
    x, w = (leaf(np.ones(s)) for s in ((4,), (4, 4)))
    with dynamic.batched() as batch:
        total = g.sum(g.stack([g.tanh((x * i) @ w) for i in range(1, 9)]))
    assert (batch.stats.ops, batch.stats.groups, batch.stats.single) == (26, 5, 0)
    assert batch.stats.mean_batch == 26 / 5
    assert type(total) is dynamic.Tensor


def test_a_deferred_value_knows_its_shape_and_runs_when_looked_at():
    with dynamic.batched() as batch:
        y = dynamic.tensor([1.0, 2.0]) * 2
        assert (y.shape, y.dtype, y.ndim, y.size, len(y), y.numel()) == ((2,), np.float32, 1, 2, 2, 2)
        assert batch.stats.ops == 0
        assert isinstance(y, dynamic.Tensor)
        assert str(y) == "tensor([2., 4.])"
        assert type(y) is dynamic.Tensor
        assert batch.stats.ops == 1


@pytest.mark.parametrize("look", [bool, float, int, repr, np.asarray, lambda x: x.item(), lambda x: x.tolist()])
def test_every_look_at_a_value_runs_it(look):
    with dynamic.batched() as batch:
        assert look(dynamic.tensor([2.0])[0] * 2) == look(dynamic.tensor(4.0))
        assert batch.stats.ops == 1


def test_python_decides_on_values_midway():
    def loss(x):
        x = x * 2 if x.sum() > 0 else x - 2
        while g.sum(x * x) < 100:
            x = x * 1.5
        return g.sum(x)

    examples = [leaf(np.array(a)) for a in ([1.0, -1.0, 2.0], [-3.0, -2.0, -1.0], [4.0, 5.0, 6.0])]
    expected = [loss(x) for x in examples]
    for value in expected:
        value.backward()
    gradients = [x.grad.numpy() for x in examples]
    for x in examples:
        x.grad = None
    with dynamic.batched():
        total = g.sum(g.stack([loss(x) for x in examples]))
    total.backward()
    assert total.item() == pytest.approx(sum(v.item() for v in expected))
    np.testing.assert_allclose([x.grad.numpy() for x in examples], gradients)


def test_backward_inside_the_block():
    w = leaf(np.array([1.0, 2.0]))
    with dynamic.batched():
        (w * w).sum().backward()
        np.testing.assert_array_equal(w.grad.numpy(), [2.0, 4.0])


def test_gradients_of_gradients():
    def cubes(x):
        with dynamic.batched():
            return g.sum(g.stack([x[i] ** 3 for i in range(3)]))

    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(dynamic.hessian(cubes)(x), np.diag(6 * x))


def test_a_gradient_taken_inside_the_block():
    slope = dynamic.grad(lambda x: g.sum(x**3))
    with dynamic.batched():
        np.testing.assert_allclose(np.asarray(slope(np.array([1.0, 2.0]))), [3.0, 12.0])
        x = leaf(np.array([1.0, 2.0]))
        (dynamic.grad(lambda v: g.sum(v * x * x))(np.ones(2)) + x).sum()


def test_nothing_is_recorded_under_no_grad():
    x = leaf(np.ones(2))
    with dynamic.batched():
        with dynamic.no_grad():
            frozen = x * 2
        recorded = frozen * x
    assert not frozen.requires_grad
    recorded.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2.0, 2.0])
    with dynamic.no_grad(), dynamic.batched():
        y = x * 3
    assert not y.requires_grad


def test_what_is_gathered_under_no_grad_is_gathered_again_to_be_recorded():
    x = leaf(np.linspace(0, 1, 12).reshape(4, 3))
    with dynamic.batched():
        sines, cosines = [g.sin(x[i] * 1) for i in (0, 1)], [g.cos(x[i] * 1) for i in (2, 3)]
        values = [sines[0], cosines[0], sines[1], cosines[1]]
        with dynamic.no_grad():
            longest = [g.exp(g.tanh(g.sin(g.exp(g.exp(value))))) for value in values]  # and so the first to run
        total = g.sum(g.stack([g.tanh(value) for value in values]))
    total.backward()
    assert not any(value.requires_grad for value in longest)
    angle, is_sine = x.detach().numpy(), np.arange(4)[:, None] < 2
    value, slope = np.where(is_sine, (np.sin(angle), np.cos(angle)), (np.cos(angle), -np.sin(angle)))
    np.testing.assert_allclose(x.grad.numpy(), slope * (1 - np.tanh(value) ** 2))


def test_looking_under_no_grad_loses_no_history():
    x = leaf(np.ones(2))
    with dynamic.batched():
        y = x * 3
        with dynamic.no_grad():
            assert y.tolist() == [3.0, 3.0]
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [3.0, 3.0])


def test_a_number_has_the_dtype_of_what_it_meets():
    with dynamic.batched():
        results = [dynamic.tensor(np.ones(2, dtype)) * 2.5 for dtype in (np.float32, np.float64, np.float16)]
        zeros = [dynamic.tensor(np.ones(1)) * zero for zero in (0.0, -0.0)]
    assert [r.dtype for r in results] == [np.float32, np.float64, np.float16]
    assert [np.signbit(z.item()) for z in zeros] == [False, True]


def test_a_block_inside_a_block_is_the_same_batch():
    x = dynamic.tensor([1.0])
    with dynamic.batched() as outer:
        y = x + 1
        with dynamic.batched() as inner:
            assert inner is outer
            z = y * 2
        assert outer.stats.ops == 0
    assert (z.item(), outer.stats.ops) == (4.0, 2)


def test_another_thread_runs_at_once():
    kinds = []
    with dynamic.batched():
        thread = threading.Thread(target=lambda: kinds.append(type(dynamic.tensor([1.0]) * 2)))
        thread.start()
        thread.join()
        kinds.append(type(dynamic.tensor([1.0]) * 2))
    assert kinds[0] is dynamic.Tensor is not kinds[1]
    assert type(dynamic.tensor([1.0]) * 2) is dynamic.Tensor


def test_the_collector_is_as_it_was():
    assert gc.isenabled()
    with dynamic.batched():
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError), dynamic.batched():
        raise ZeroDivisionError
    assert gc.isenabled()


def test_the_strategy_has_a_name():
    with pytest.raises(ValueError, match="path, agenda, depth, not 'height'"), dynamic.batched("height"):
        pass


# In place -----------------------------------------------------------------------------------------------------------


def test_in_place_addition():
    x = leaf(np.array([1.0, 2.0]))
    with dynamic.batched():
        total = x * 1
        same = total
        total += x
        total[0] = 5.0
    assert same is total
    np.testing.assert_array_equal(total.detach().numpy(), [5.0, 4.0])
    total.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [0.0, 2.0])


def test_a_parameter_changed_in_place_was_read_before():
    w = leaf(np.array([1.0, 2.0]))
    with dynamic.batched():
        before = w * 2
        with dynamic.no_grad():
            w -= 1.0
        after = w * 2
    np.testing.assert_array_equal(before.detach().numpy(), [2.0, 4.0])
    np.testing.assert_array_equal(after.detach().numpy(), [0.0, 2.0])


@pytest.mark.parametrize("changed", [0, 1])
def test_views_are_not_changed_in_place(changed):
    with dynamic.batched():
        x = dynamic.tensor([[1.0, 2.0]]) * 2
        values = [x, x[0]]
        with pytest.raises(InplaceError, match=r"is a view, or has one \(test_batched.py:\d+\); write"):
            values[changed] += 1.0


def test_results_have_memory_of_their_own():
    with dynamic.batched():
        x, y = (dynamic.tensor([1.0, 2.0]) * i for i in (1, 2))
    x += 10.0
    np.testing.assert_array_equal(y.numpy(), [2.0, 4.0])


# Errors -------------------------------------------------------------------------------------------------------------


def test_a_wrong_shape_is_an_error_at_once():
    w = leaf(np.ones((3, 2)))
    with dynamic.batched():
        h = w * 2
        with pytest.raises(
            g.ShapeError, match=r"matmul: inner dimensions differ, f64\[3,2\] @ f64\[3,2\] \(test_batched"
        ):
            h @ w


def test_an_error_of_values_names_the_line_that_deferred_the_op():
    table = leaf(np.ones((3, 2)))
    with dynamic.batched():
        rows = [g.take(table, np.array(i)) for i in (0, 1, 2)]
        rows.append(g.take(table, np.array(7)))
        line = inspect.currentframe().f_lineno - 1
        total = g.sum(g.stack(rows))
        with pytest.raises(GraphError, match=r"take: .* f64\[3,2\], i64\[\]") as caught:
            total.item()
        with pytest.raises(GraphError, match=r"an op of this batch has failed \(test_batched.py:\d+\); leave"):
            table * 2
        with pytest.raises(GraphError, match="is gone, since one of them failed"):
            rows[0].item()
    assert f"(test_batched.py:{line})" in str(caught.value)


def test_an_error_at_the_end_of_the_block():
    with pytest.raises(GraphError, match="take: "), dynamic.batched():
        lost = g.take(leaf(np.ones((3, 2))), np.array(7))
    with pytest.raises(GraphError, match="is gone, since one of them failed"):
        lost * 2
    assert type(dynamic.tensor([1.0]) * 2) is dynamic.Tensor


def test_a_traced_value_in_a_block_is_refused():
    def f(x):
        with dynamic.batched():
            return dynamic.tensor([1.0]) * x

    with pytest.raises(GraphError, match="multiply: a Symbol in a batched block"):
        static.compile(f, np.ones(1))


def test_a_number_that_does_not_fit():
    with dynamic.batched(), pytest.raises(g.DTypeError, match="300 does not fit int8"):
        dynamic.tensor(np.ones(2, np.int8)) + 300


# Memory -------------------------------------------------------------------------------------------------------------


def test_what_nobody_holds_is_freed():
    with dynamic.no_grad(), dynamic.batched():
        x = dynamic.tensor(np.ones(1000)) * 2
        kept = x + 1
        inner = weakref.ref(x)
        del x
    assert inner() is None
    assert kept._data.base is None


def test_large_results_are_cut_for_their_readers(monkeypatch):
    monkeypatch.setattr(layout, "_WORTH_CUTTING", 1 << 22)
    table, w = leaf(np.ones((400, 64))), leaf(np.eye(64))
    with dynamic.batched():
        rows = [row @ w for row in table * 1]
        total = rows[0]
        for row in rows[1:]:
            total = g.tanh(total * row)
    total.sum().backward()
    with_block = table.grad.numpy()
    table.grad = None
    total = (table * 1)[0] @ w
    for row in (table * 1)[1:]:
        total = g.tanh(total * (row @ w))
    total.sum().backward()
    np.testing.assert_allclose(with_block, table.grad.numpy(), atol=1e-12)

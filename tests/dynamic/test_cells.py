"""Cells: calls of a function that run together give what they give one by one, whatever is passed and in what order."""

from __future__ import annotations

import gc
import inspect
import threading
import weakref
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dynamic
import graphs as g
from dynamic.batching import memory
from dynamic.batching.moves import EVERY, Move, Segments, gather, repeat, scatter, section, segment_sum
from dynamic.batching.nodes import Block, Node, View
from dynamic.batching.schedule import SCHEDULES
from graphs import GraphError, dispatch, tree

WIDTH = 3


def leaf(array):
    return dynamic.tensor(array, requires_grad=True)


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def parameters(seed=0):
    return {
        "w": numbers(WIDTH, WIDTH, seed=seed),
        "u": numbers(WIDTH, WIDTH, seed=seed + 1),
        "b": numbers(WIDTH, seed=2),
    }


# Nodes of trees with any number of children -------------------------------------------------------------------------


def summed(params, x, states):
    """What each child passes on hangs on the parent, as in a Child-Sum Tree-LSTM."""
    if not states:
        return g.tanh(x * params["b"])
    rows = g.stack(states)
    gates = g.sigmoid(x @ params["u"] + rows @ params["w"])
    return g.tanh(g.sum(gates * rows, axis=0) + params["b"] * x)


def averaged(params, x, states):
    return g.tanh(x @ params["w"] + (g.sum(g.stack(states), axis=0) / len(states) if states else params["b"]))


def attended(params, x, states):
    """A softmax over the children: their number counts."""
    if not states:
        return x * params["b"]
    rows = g.stack(states)
    return g.softmax(rows @ x) @ rows + g.max(rows, axis=0) * params["b"]


def chained(params, x, states):
    """Joined from parts and other shapes of the children, and one of them used alone."""
    if not states:
        return g.sin(x)
    pairs = g.concat([g.reshape(s, (1, WIDTH)) for s in states] + [g.expand_dims(s, 0) for s in states])
    tails = g.concat([s[1:] for s in states])
    return g.tanh(g.sum(pairs @ params["u"], axis=(0,)) + states[0] * g.sum(tails * tails)) + g.where(x > 0, x, 0)


NODES = [summed, averaged, attended, chained]


def state_of(node, params, tree_):
    word, children = tree_
    return node(params, params["table"][word], [state_of(node, params, child) for child in children])


def mean_square(node, params, examples):
    return g.mean(g.stack([g.sum(g.square(state_of(node, params, example))) for example in examples]))


def with_table(params):
    return params | {"table": numbers(7, WIDTH, seed=3)}


def in_batch(node, examples, strategy="path"):
    def loss(params):
        with dynamic.batched(strategy):
            return mean_square(dynamic.cell(node), params, examples)

    return loss


words = st.integers(0, 6)
trees = st.recursive(
    st.tuples(words, st.just(())), lambda inner: st.tuples(words, st.lists(inner, max_size=4).map(tuple)), max_leaves=8
)


@pytest.mark.parametrize("strategy", SCHEDULES)
@pytest.mark.parametrize("node", NODES)
@settings(max_examples=15)
@given(examples=st.lists(trees, min_size=1, max_size=5))
def test_trees_of_any_shape(node, strategy, examples):
    params = with_table(parameters())
    expected = dynamic.value_and_grad(lambda p: mean_square(node, p, examples))(params)
    got = dynamic.value_and_grad(in_batch(node, examples, strategy))(params)
    for x, y in zip(tree.leaves(expected), tree.leaves(got), strict=True):
        np.testing.assert_allclose(y, x, rtol=1e-9, atol=1e-10)


A, B = (1, ()), (2, ())
BUSHES = ((0, (A, B, A)), (3, (A, (4, (B,)))), (5, ((6, (A, B)), B)))


@pytest.mark.parametrize("node", NODES)
def test_second_derivatives(node):
    def of_bias(loss):
        params = with_table(parameters())
        return dynamic.hessian(lambda b: loss(params | {"b": b}))(params["b"])

    expected = of_bias(lambda p: mean_square(node, p, BUSHES))
    np.testing.assert_allclose(of_bias(in_batch(node, BUSHES)), expected, rtol=1e-9, atol=1e-10)


def groups_of(node, sizes):
    """The ops of calls with so many children, and the groups in which they run."""
    params = {name: leaf(value) for name, value in parameters().items()}
    xs = [leaf(numbers(WIDTH, seed=i)) for i in range(4)]
    with dynamic.batched() as batch:
        inputs = [x * 1 for x in xs]
        batch.run()
        ops, groups = batch.stats.ops, batch.stats.groups
        values = [dynamic.cell(node)(params, inputs[0], inputs[:size]) for size in sizes]
        batch.run()
        found = batch.stats.ops - ops, batch.stats.groups - groups
    for size, value in zip(sizes, values, strict=True):
        np.testing.assert_allclose(value.detach(), node(params, xs[0], xs[:size]).detach())
    return found


def test_any_number_of_children_runs_together():
    assert groups_of(summed, (1, 2, 3, 4, 2)) == (5 * 10, 10)


def test_calls_that_differ_in_a_number_run_apart():
    assert groups_of(averaged, (1, 2, 2)) == (3 * 6, 2 * 6)


def test_calls_that_do_more_with_their_rows_run_apart():
    assert groups_of(attended, (1, 2, 2)) == (3 * 7, 2 * 7)


def test_two_lists_of_other_lengths():
    """Two numbers of rows in one call, which are equal in some."""

    def two(left, right):
        return g.sum(g.stack(left) * 2, axis=0) * g.sum(g.sin(g.stack(right)), axis=0)

    xs = [leaf(numbers(WIDTH, seed=i)) for i in range(4)]
    pairs = [(xs[:i], xs[:j]) for i in (1, 2, 3) for j in (1, 2, 4)]
    expected = [two(*pair).detach() for pair in pairs]
    with dynamic.batched():
        values = [dynamic.cell(two)(*pair) for pair in pairs]
    for value, other in zip(values, expected, strict=True):
        np.testing.assert_allclose(value.detach(), other)


def test_rows_of_integers_are_summed_as_ever():
    counted = dynamic.cell(lambda rows: g.sum(g.stack(rows), axis=0))
    rows = [dynamic.tensor(np.array([i, 100], np.int8)) for i in range(3)]
    with dynamic.batched():
        values = [counted(rows[:2]), counted(rows)]
    assert [value.dtype for value in values] == [g.sum(g.stack(rows), axis=0).dtype] * 2
    assert [value.tolist() for value in values] == [[1, 200], [3, 300]]


def test_a_state_with_two_parents():
    x = leaf(numbers(WIDTH))
    call = dynamic.cell(lambda states: g.sum(g.stack(states), axis=0))
    with dynamic.batched():
        y = x * 2
        total = g.sum(call([y, y, x]) * 3 + call([y, x]))
    total.backward()
    np.testing.assert_allclose(x.grad, [18.0] * WIDTH)  # 3 * (2 + 2 + 1) + (2 + 1)


# What is passed -----------------------------------------------------------------------------------------------------


class Pair(NamedTuple):
    first: object
    second: object


def outcome(call, *args, **options):
    return tree.tree_map(lambda r: np.asarray(g.stop_gradient(r)) if hasattr(r, "dtype") else r, call(*args, **options))


def arguments():
    """Arguments of every kind, several of each structure."""
    for i in range(3):
        x, row = leaf(numbers(WIDTH, seed=i)) * 1, np.arange(i, i + 3)
        yield x
        yield {"a": x, "b": row}
        yield {"b": row, "a": x}
        yield [x, (row, {"deep": [x, None]})], None
        yield Pair(x, 1.0), -0.0
        yield Pair(x, 2), True
        yield {"a": x, "scale": 0.0}, 1, 1.0, "word"
        yield row


def anything(*args, **options):
    """Hangs on the values of plain arguments, on types, and on the order of keys."""
    leaves = tree.leaves((args, options))
    total = 0.0
    for number, each in enumerate(leaves):
        if hasattr(each, "dtype"):
            total = total + g.sum(each * (number + 1))
        elif isinstance(each, (int, float)):
            total = total + (np.copysign(1.0, each) + each + (isinstance(each, bool)) * 10)
    keys = "".join(args[0]) if args and isinstance(args[0], dict) else ""
    return {"total": total * 1, "keys": keys, "last": leaves[-1], "all": [args, options]}


def test_every_kind_of_argument():
    given_ = list(arguments())
    expected = [outcome(anything, arg, word=arg) for arg in given_]
    with dynamic.batched():
        returned = [dynamic.cell(anything)(arg, word=arg) for arg in given_]
    for x, y in zip(expected, [outcome(lambda r: r, r) for r in returned], strict=True):
        assert tree.layout(x) == tree.layout(y)
        for u, v in zip(tree.leaves(x), tree.leaves(y), strict=True):
            np.testing.assert_allclose(v, u) if isinstance(u, np.ndarray) else np.testing.assert_equal(v, u)


def test_an_argument_that_is_no_key():
    with dynamic.batched(), pytest.raises(TypeError, match="unhashable"):
        dynamic.cell(lambda x, s: x * len(s))(dynamic.tensor([1.0]), {1, 2})


def test_a_cell_that_returns_nothing():
    runs = []
    with dynamic.batched() as batch:
        assert dynamic.cell(runs.append)(dynamic.tensor([1.0]) * 2) is None
    assert len(runs) == 1
    assert batch.stats.ops == 1


def test_a_dict_changed_between_two_calls():
    w = {"layer": {"w": leaf(numbers(WIDTH)), "scale": 2}}
    scaled = dynamic.cell(lambda p, x: x * p["layer"]["w"] * p["layer"]["scale"])
    x, other = leaf(np.ones(WIDTH)), leaf(numbers(WIDTH, seed=5))
    with dynamic.batched():
        values = [scaled(w, x)]
        w["layer"]["w"] = other
        values.append(scaled(w, x))
        w["layer"]["scale"] = 3
        values.append(scaled(w, x))
        w["layer"]["more"] = 1
        values.append(scaled(w, x))
    first = numbers(WIDTH) * 2
    for value, expected in zip(values, [first, other.data * 2, other.data * 3, other.data * 3], strict=True):
        np.testing.assert_allclose(value.detach(), expected)
    g.sum(values[0] + values[1]).backward()
    np.testing.assert_allclose(other.grad, [2.0] * WIDTH)


def test_a_parameter_changed_in_place_between_two_calls():
    w = leaf(np.array([1.0, 2.0]))
    double = dynamic.cell(lambda w: w * 2)
    with dynamic.batched():
        before = double(w)
        with dynamic.no_grad():
            w -= 1.0
        after = double(w)
    assert (before.tolist(), after.tolist()) == ([2.0, 4.0], [0.0, 2.0])


def test_numbers_that_a_cell_finds_for_itself():
    """Tensors of one element, which are equal, and then no longer."""
    one, other = dynamic.tensor(1.0), dynamic.tensor(1.0)
    first, second = dynamic.cell(lambda x: x * one * 3), dynamic.cell(lambda x: x * other * 3)
    with dynamic.batched():
        x = dynamic.tensor([1.0, 2.0]) * 1
        values = [first(x), second(x)]
        assert [v.tolist() for v in values] == [[3.0, 6.0]] * 2
        other.mul_(2)
        values = [first(x), second(x)]
    assert [v.tolist() for v in values] == [[3.0, 6.0], [6.0, 12.0]]


# From batch to batch ------------------------------------------------------------------------------------------------


def test_one_cell_with_other_parameters_in_each_batch():
    call = dynamic.cell(summed)
    for seed in range(3):
        params = with_table(parameters(seed))

        def loss(p):
            with dynamic.batched():
                return mean_square(call, p, BUSHES)

        expected = dynamic.value_and_grad(lambda p: mean_square(summed, p, BUSHES))(params)
        got = dynamic.value_and_grad(loss)(params)
        for x, y in zip(tree.leaves(expected), tree.leaves(got), strict=True):
            np.testing.assert_allclose(y, x, rtol=1e-9, atol=1e-10)


def test_what_a_cell_does_is_asked_in_each_batch():
    class Model:
        scale = 2.0
        w = leaf(np.ones(2))

        @dynamic.cell
        def step(self, x):
            return x * self.w * self.scale

    model, values = Model(), []
    for scale, w in ((2.0, model.w), (3.0, model.w), (3.0, leaf(np.full(2, 10.0)))):
        model.scale, model.w = scale, w
        step = dynamic.cell(lambda x: Model.step.__wrapped__(model, x))
        with dynamic.batched():
            values.append(step(dynamic.tensor(np.ones(2)) * 1))
    assert [v.detach().tolist() for v in values] == [[2.0, 2.0], [3.0, 3.0], [30.0, 30.0]]


def test_recorded_and_not():
    call, x = dynamic.cell(lambda x: g.sum(g.stack([x * 2, x]), axis=0)), leaf(np.ones(2))
    with dynamic.batched():
        with dynamic.no_grad():
            frozen = call(x)
        value = call(x)
        again = call(frozen)
    assert [v.requires_grad for v in (frozen, value, again)] == [False, True, False]
    value.sum().backward()
    np.testing.assert_array_equal(x.grad, [3.0, 3.0])
    with dynamic.no_grad(), dynamic.batched():
        assert not call(x).requires_grad


def test_parameters_are_let_go_after_the_block():
    call = dynamic.cell(summed)
    params = {name: leaf(value) for name, value in parameters().items()}
    held = [weakref.ref(value) for value in params.values()]
    with dynamic.batched():
        xs = [leaf(numbers(WIDTH, seed=i)) for i in range(3)]
        held += map(weakref.ref, xs)
        total = g.sum(call(params, xs[0], xs) + call(params, xs[0], xs[:2]))
    total.backward()
    del params, xs, total
    gc.collect()
    assert [ref() for ref in held] == [None] * len(held)


def test_a_function_is_let_go_after_the_block():
    def double(x):
        return x * 2

    held = weakref.ref(double)
    with dynamic.batched():
        dynamic.cell(double)(dynamic.tensor([1.0]))
    del double
    gc.collect()
    assert held() is None


def test_cells_of_two_threads():
    call, results = dynamic.cell(summed), []

    def work():
        got = dynamic.value_and_grad(in_batch(call.__wrapped__, BUSHES))(with_table(parameters()))
        results.append(got[0])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    np.testing.assert_allclose(results, results[0])


# Errors -------------------------------------------------------------------------------------------------------------


def test_an_error_of_values_among_calls_of_other_lengths_names_its_line():
    def pick(table, rows, i):
        return g.sum(g.stack(rows), axis=0) + g.take(table, i)

    line = inspect.getsourcelines(pick)[1] + 1
    table, rows = leaf(np.ones((4, WIDTH))), [leaf(numbers(WIDTH))] * 3
    call = dynamic.cell(pick)
    with pytest.raises(GraphError, match=rf"take: .*\(test_cells.py:{line}\)") as caught, dynamic.batched():
        values = [call(table, rows[:n], np.array(i)) for n, i in ((1, 0), (2, 1), (3, 9), (2, 2))]
    assert "f64[4,3], i64[]" in str(caught.value)
    assert len(values) == 4


def test_a_wrong_shape_in_a_cell_is_an_error_at_once():
    with dynamic.batched():
        x = dynamic.tensor([1.0, 2.0]) * 1
        with pytest.raises(g.ShapeError, match=r"add: .*test_cells.py:\d+"):
            dynamic.cell(lambda x: x + np.ones(3))(x)


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
        with dispatch.observed(lambda *_: None):
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
            with pytest.raises(GraphError, match=r"(?s)stack: .*f64\[2\], f64\[3\].*test_cells"):
                g.stack(rows)
            with pytest.raises(GraphError, match=r"(?s)sum: .*axis.*test_cells"):
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
    node = Node(None, None, ())
    node.block, node.start = block or Block(dynamic.tensor(np.arange(float(size)))), start
    return node


BLOCKS = [Block(dynamic.tensor(np.arange(100.0) + 100 * i)) for i in range(3)]
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
    got = memory.gathered(memory.located(runs, sizes), (len(values),))
    np.testing.assert_array_equal(got.numpy(), values)
    assert memory.are_one(runs) == (len({(run.block, run.start) for run in runs}) == 1)


def stretches(runs, sizes):
    blocks, *numbers = memory.located(runs, sizes)
    return blocks, list(zip(*[each.tolist() for each in numbers], strict=True))


def test_runs_that_follow_each_other_are_one_stretch():
    first, second, third = BLOCKS
    found = stretches([memory_of(1, start, block) for block in BLOCKS[:2] for start in (4, 6, 8)], 2)
    assert found == ([first, second], [(0, 4, 6), (1, 4, 6)])
    assert stretches([memory_of(1, start, third) for start in (5, 8, 11)], 3) == ([third], [(0, 5, 9)])
    assert stretches([memory_of(1, start, third) for start in (5, 8, 9)], [3, 1, 2]) == ([third], [(0, 5, 6)])
    assert stretches([memory_of(1, start, third) for start in (5, 5)], 3) == ([third], [(0, 5, 3), (0, 5, 3)])
    assert memory.are_one([memory_of(1, 4, first), memory_of(1, 4, first)])
    assert not memory.are_one([memory_of(1, 4, first), memory_of(1, 4, second)])


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

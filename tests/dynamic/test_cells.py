"""Cells: calls of a function that run together give what they give one by one, whatever is passed and in what order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dynamic
import graphs as g
from dynamic.batching.batch import SCHEDULES
from graphs import tree
from tests.helpers.slow import examples
from tests.helpers.tree_cells import (
    BUSHES,
    NODES,
    WIDTH,
    attended,
    averaged,
    in_batch,
    leaf,
    mean_square,
    numbers,
    parameters,
    summed,
    with_table,
)

words = st.integers(0, 6)
trees = st.recursive(
    st.tuples(words, st.just(())), lambda inner: st.tuples(words, st.lists(inner, max_size=4).map(tuple)), max_leaves=8
)


@pytest.mark.parametrize("strategy", SCHEDULES)
@pytest.mark.parametrize("node", NODES)
@examples(0.3)
@given(examples=st.lists(trees, min_size=1, max_size=5))
def test_trees_of_any_shape(node, strategy, examples):
    params = with_table(parameters())
    expected = dynamic.value_and_grad(lambda p: mean_square(node, p, examples))(params)
    got = dynamic.value_and_grad(in_batch(node, examples, strategy))(params)
    for x, y in zip(tree.leaves(expected), tree.leaves(got), strict=True):
        np.testing.assert_allclose(y, x, rtol=1e-9, atol=1e-10)


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
    """Depends on the values of plain arguments, on types, and on the order of keys."""
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

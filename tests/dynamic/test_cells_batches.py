"""Cells from batch to batch, in threads, and their errors."""

from __future__ import annotations

import gc
import inspect
import threading
import weakref

import numpy as np
import pytest

import dynamic
import graphs as g
from graphs import GraphError, tree
from tests.helpers.tree_cells import BUSHES, WIDTH, in_batch, leaf, mean_square, numbers, parameters, summed, with_table

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
    with pytest.raises(GraphError, match=rf"take: .*\(test_cells_batches.py:{line}\)") as caught, dynamic.batched():
        values = [call(table, rows[:n], np.array(i)) for n, i in ((1, 0), (2, 1), (3, 9), (2, 2))]
    assert "f64[4,3], i64[]" in str(caught.value)
    assert len(values) == 4


def test_a_wrong_shape_in_a_cell_is_an_error_at_once():
    with dynamic.batched():
        x = dynamic.tensor([1.0, 2.0]) * 1
        with pytest.raises(g.ShapeError, match=r"add: .*test_cells_batches.py:\d+"):
            dynamic.cell(lambda x: x + np.ones(3))(x)

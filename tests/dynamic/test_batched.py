"""On-the-fly batching: what a block does, in place, errors and memory."""

from __future__ import annotations

import gc
import inspect
import threading
import weakref

import numpy as np
import pytest

import dynamic
import graphs as g
import static
from dynamic.batching import groups
from graphs import GraphError
from graphs.errors import InplaceError
from tests.helpers.batches import leaf

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
    outer = dynamic.tensor([1.0])

    def f(x):
        with dynamic.batched():
            return outer * x

    with pytest.raises(GraphError, match="multiply: a Symbol in a batched block"):
        static.compile(f, np.ones(1))


def test_an_int_wraps_beside_small_ints():
    with dynamic.batched():
        x = dynamic.tensor(np.ones(2, np.int8))
        assert [(x + 300).tolist(), (300 - x).tolist(), (x * -129).tolist()] == [[45] * 2, [43] * 2, [127] * 2]


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
    monkeypatch.setattr(groups, "_WORTH_CUTTING", 1 << 22)
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

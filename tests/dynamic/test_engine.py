"""The dynamic engine: leaves, accumulation, hooks, modes, threads, and how the tape is freed."""

from __future__ import annotations

import gc
import threading
import tracemalloc
import weakref

import numpy as np
import pytest

import dynamic
import graphs
from graphs.errors import DTypeError, GraphError, NotDifferentiableError

DOMAIN = np.lib.tracemalloc_domain


def leaf(*values: float) -> dynamic.Tensor:
    return dynamic.tensor([float(v) for v in values], requires_grad=True)


def shares(a: dynamic.Tensor, b: dynamic.Tensor) -> bool:
    return np.shares_memory(a.detach().numpy(), b.detach().numpy())


# Leaves and what follows from them --------------------------------------------------------------------------


def test_leaves_require_what_they_were_told_and_results_what_their_inputs_do():
    x, c = leaf(1, 2), dynamic.tensor([3.0, 4.0])
    assert (x.requires_grad, x.is_leaf, x.grad_fn) == (True, True, None)
    assert (c.requires_grad, (c * 2).requires_grad) == (False, False)
    y = x * c
    assert (y.requires_grad, y.is_leaf) == (True, False)
    assert y.detach().is_leaf
    assert not y.detach().requires_grad
    assert not (y > 1).requires_grad


def test_data_keeps_its_meaning():
    x = dynamic.tensor([[1.5, 2.0], [3.0, 4.0]])
    assert (x.dtype, x.shape, x.ndim, x.numel(), len(x)) == (np.float32, (2, 2), 2, 4, 2)
    assert x.tolist() == [[1.5, 2.0], [3.0, 4.0]]
    assert x[0, 0].item() == 1.5
    assert type(x.sum().item()) is float
    assert dynamic.tensor(np.ones(2)).dtype == np.float64
    assert dynamic.tensor([1, 2]).dtype == np.int64
    assert [row.tolist() for row in x] == x.tolist()
    assert (float(x.max()), int(x.max()), bool(x.min() > 0)) == (4.0, 4, True)


def test_tensor_copies_and_from_numpy_shares():
    array = np.ones(2, np.float32)
    copied, shared = dynamic.tensor(array), dynamic.from_numpy(array)
    array += 1
    assert copied.tolist() == [1, 1]
    assert shared.tolist() == [2, 2]
    assert shares(shared, shared.detach())


@pytest.mark.parametrize(
    ("broken", "error", "words"),
    [
        (lambda x: x.item(), GraphError, "item() of a tensor with 2 elements"),
        (bool, GraphError, "truth of a tensor with 2 elements"),
        (lambda x: x.numpy(), GraphError, "detach().numpy()"),
        (np.asarray, GraphError, "detach().numpy()"),
        (lambda x: (x * 2).requires_grad_(False), NotDifferentiableError, "only a leaf can stop"),
        (lambda x: (x * 2).backward(), NotDifferentiableError, "only scalars have one gradient"),
        (lambda x: (x * 2).backward(dynamic.ones(3)), NotDifferentiableError, "shape (3,), the output (2,)"),
        (lambda x: x.detach().sum().backward(), NotDifferentiableError, "requires_grad=True"),
        (lambda x: (x > 1).register_hook(print), NotDifferentiableError, "never called"),
        (lambda x: dynamic.tensor([1, 2], requires_grad=True), DTypeError, "floating point"),
        (lambda x: dynamic.tensor(["a"]), DTypeError, "bools, ints or floats"),
        (lambda x: x @ dynamic.ones(3), graphs.ShapeError, "matmul"),
    ],
)
def test_refusals_name_the_line_and_the_remedy(broken, error, words):
    with pytest.raises(error) as caught:
        broken(leaf(1, 2))
    assert words in str(caught.value)
    assert "test_engine.py:" in str(caught.value)


# Accumulation -----------------------------------------------------------------------------------------------


def test_gradients_accumulate_until_they_are_cleared():
    x = leaf(1, 2)
    for expected in ([2, 4], [4, 8], [6, 12]):
        (x * x).sum().backward()
        assert x.grad.tolist() == expected
    held = x.grad
    x.sum().backward()
    assert held is x.grad
    assert held.tolist() == [7, 13]
    x.grad = None
    x.sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_only_leaves_and_retained_tensors_get_a_gradient():
    x, c = leaf(1, 2), dynamic.tensor([3.0, 4.0])
    y, z = x * c, x + c
    y.retain_grad()
    y.retain_grad()
    (y * z).sum().backward()
    assert z.grad is None
    assert c.grad is None
    assert y.grad.tolist() == [4, 6]
    assert x.grad.tolist() == [3 * 4 + 3, 4 * 6 + 8]


def test_a_leaf_used_many_times_gets_the_sum():
    x = leaf(2)
    (x * x * x + x).sum().backward()
    assert x.grad.tolist() == [13]


def two_leaves(**options):
    x, y = leaf(1, 2), leaf(3, 4)
    (x + y).sum().backward(**options)
    return x.grad, y.grad


def seed_and_leaf(**options):
    x, seed = leaf(1, 2), dynamic.tensor([5.0, 6.0])
    (x + 0).backward(seed, **options)
    return seed, x.grad


def retained_and_leaf(**options):
    x = leaf(1, 2)
    y = x + 0
    y.retain_grad()
    y.backward(dynamic.ones(2), **options)
    return y.grad, x.grad


def seen_by_hook_and_leaf(**options):
    x, seen = leaf(1, 2), []
    y = x + 0
    y.register_hook(seen.append)
    x.register_hook(seen.append)
    y.backward(dynamic.ones(2), **options)
    return seen[0], seen[1], x.grad


def returned_by_hook_and_leaf(**options):
    x, mine = leaf(1, 2), dynamic.tensor([7.0, 8.0])
    x.register_hook(lambda g: mine)
    x.sum().backward(**options)
    return mine, x.grad


@pytest.mark.parametrize("options", [{}, {"create_graph": True}], ids=["plain", "create_graph"])
@pytest.mark.parametrize(
    "program", [two_leaves, seed_and_leaf, retained_and_leaf, seen_by_hook_and_leaf, returned_by_hook_and_leaf]
)
def test_a_gradient_shares_its_memory_with_nobody(program, options):
    *others, last = program(**options)
    assert not any(shares(other, last) for other in others)


def test_gradients_are_writeable_and_whole():
    x = dynamic.zeros(3, 4, requires_grad=True)
    x.sum().backward()
    assert x.grad.numpy().flags.writeable
    assert x.grad.numpy().base is None


# Hooks ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("on_leaf", [True, False])
def test_hooks_see_replace_and_go_away(on_leaf):
    x, seen = leaf(1, 2), []

    def run():
        x.grad = None
        y = x * 3
        target = x if on_leaf else y
        handles = [target.register_hook(lambda g: seen.append(g.tolist())), target.register_hook(lambda g: g * 10)]
        y.sum().backward()
        for handle in handles:
            handle.remove()
            handle.remove()
        return x.grad.tolist()

    assert run() == [30, 30]
    assert seen == ([[3, 3]] if on_leaf else [[1, 1]])
    x.grad = None
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3, 3]
    assert len(seen) == 1


def test_hooks_run_in_order_and_once_on_the_sum():
    x, calls = leaf(1), []
    x.register_hook(lambda g: calls.append(g.item()))
    x.register_hook(lambda g: g + 1)
    x.register_hook(lambda g: g * 2)
    (x * 2 + x * 3).sum().backward()
    assert calls == [5]
    assert x.grad.tolist() == [12]


def test_what_is_retained_is_the_gradient_after_every_hook():
    x = leaf(1)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 5)
    y.sum().backward()
    assert y.grad.tolist() == [5]
    assert x.grad.tolist() == [10]


@pytest.mark.parametrize("given", [lambda g: g.sum(), lambda g: [1.0, 2.0], lambda g: g.astype("float64")])
def test_a_hook_that_changes_the_kind_of_gradient_is_refused(given):
    x = leaf(1, 2)
    x.register_hook(given)
    with pytest.raises(NotDifferentiableError, match=r"a hook returned .* for a gradient f32\[2\]"):
        x.sum().backward()


# Graphs kept, freed and differentiated again ------------------------------------------------------------------


def test_a_second_backward_needs_the_graph():
    x = leaf(3)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [12]
    with pytest.raises(NotDifferentiableError, match=r"second time.*retain_graph=True"):
        y.backward()
    assert x.grad.tolist() == [12]


def test_a_shared_part_that_was_freed_is_named():
    x = leaf(3)
    shared = x * x
    (shared * 2).sum().backward()
    with pytest.raises(NotDifferentiableError, match="multiply: backward a second time"):
        (shared * 3).sum().backward()


def test_create_graph_gives_gradients_that_are_differentiated_again():
    x = leaf(2, 3)
    (x**3).sum().backward(create_graph=True)
    first = x.grad
    assert first.tolist() == [12, 27]
    assert first.requires_grad
    x.grad = None
    first.sum().backward()
    assert x.grad.tolist() == [12, 18]


def test_a_gradient_penalty_trains_through_the_gradient():
    w, x = leaf(0.5), leaf(2)
    (w * x * x).sum().backward(create_graph=True)
    slope = x.grad  # 2 w x
    w.grad = None
    (slope * slope).sum().backward()
    assert w.grad.tolist() == [8 * 0.5 * 4]


def test_a_seed_weighs_the_outputs():
    x = leaf(1, 2, 3)
    (x * x).backward(dynamic.tensor([1.0, 0.0, -1.0]))
    assert x.grad.tolist() == [2, 0, -6]
    (x * 1).backward([1.0, 1.0, 1.0])
    assert x.grad.tolist() == [3, 1, -5]


# Modes ------------------------------------------------------------------------------------------------------


def test_nothing_is_recorded_under_no_grad():
    x = leaf(1, 2)
    with dynamic.no_grad():
        assert not (x * 2).requires_grad
        with dynamic.enable_grad():
            assert (x * 2).requires_grad
        assert not dynamic.is_grad_enabled()
    assert (x * 2).requires_grad

    @dynamic.no_grad()
    def frozen():
        return x * 2

    assert not frozen().requires_grad


def test_an_error_inside_no_grad_restores_the_mode():
    with pytest.raises(KeyError), dynamic.no_grad():
        raise KeyError
    assert dynamic.is_grad_enabled()


def test_an_optimizer_steps_under_no_grad():
    w, memory = leaf(4), None
    for _ in range(20):
        (w * w).sum().backward()
        memory = memory or w._data
        with dynamic.no_grad():
            w -= 0.25 * w.grad
            w.grad.zero_()
    assert w.is_leaf
    assert w._data is memory
    assert w.item() == pytest.approx(4 * 0.5**20)


def test_modes_of_threads_do_not_mix():
    x, inside, go_on, recorded = leaf(1, 2), threading.Event(), threading.Event(), {}

    def frozen():
        with dynamic.no_grad():
            inside.set()
            go_on.wait(10)
            recorded["frozen"] = (x * 2).requires_grad

    thread = threading.Thread(target=frozen)
    thread.start()
    inside.wait(10)
    recorded["here"] = (x * 2).requires_grad
    go_on.set()
    thread.join()
    assert recorded == {"frozen": False, "here": True}


def test_tapes_of_threads_do_not_mix():
    found = {}

    def train(k):
        x = leaf(k)
        for _ in range(50):
            x.grad = None
            h = x * 1
            for _ in range(20):
                h = h * 1 + x * 0
            (h * k).sum().backward()
        found[k] = x.grad.tolist()

    threads = [threading.Thread(target=train, args=(k,)) for k in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {k: [k] for k in range(1, 5)}


# The life of the tape -----------------------------------------------------------------------------------------


def test_intermediate_arrays_die_with_the_result():
    x = leaf(1, 2)
    h = x * 2
    y = dynamic.tanh(h)
    held = weakref.ref(h._data), weakref.ref(y._data)
    loss = y.sum()
    del h, y
    assert held[1]() is not None  # tanh's rule reads its output
    assert held[0]() is None  # and nobody reads its input
    del loss
    assert held[1]() is None


def test_backward_frees_each_saved_value_when_its_last_reader_has_run():
    x, alive = leaf(1, 2), []
    h, saved = x, []
    for _ in range(5):
        h = dynamic.tanh(h)
        saved.append(weakref.ref(h._data))
        h.register_hook(lambda g: alive.append(sum(ref() is not None for ref in saved)))
    loss = h.sum()
    del h
    loss.backward()
    assert alive == [5, 4, 3, 2, 1]
    assert not any(ref() for ref in saved)


def test_the_peak_of_backward_does_not_grow_with_the_depth():
    def extra(depth):
        x = dynamic.ones(100_000, requires_grad=True)
        h = x
        for _ in range(depth):
            h = dynamic.tanh(h)
        loss = h.sum()
        del h
        gc.collect()
        tracemalloc.start()
        try:
            loss.backward()
            return max(trace.size for trace in tracemalloc.take_snapshot().traces if trace.domain == DOMAIN), (
                tracemalloc.get_traced_memory()[1]
            )
        finally:
            tracemalloc.stop()

    (largest, shallow), (_, deep) = extra(4), extra(40)
    assert largest == 400_000
    assert deep < shallow + 200_000
    assert deep < 4.5 * 400_000


def test_tape_stats_count_entries_and_saved_bytes():
    x = dynamic.ones(10, requires_grad=True)
    assert dynamic.tape_stats(x) == (0, 0, 0)
    h = dynamic.tanh(x * 2)  # saves its output; the product by a number saves that number
    loss = (h * h).sum()  # saves h, which is counted once
    stats = dynamic.tape_stats(loss)
    assert stats.nodes == 4
    assert stats.saved_bytes == h._data.nbytes + 4
    assert 0 < stats.structure_bytes < 4 * 1000
    loss.backward()
    assert dynamic.tape_stats(loss).saved_bytes == 0


def test_leaves_are_not_counted_as_saved():
    w = dynamic.ones(10, requires_grad=True)
    assert dynamic.tape_stats((w * w).sum()).saved_bytes == 0


def test_copies_have_their_own_memory():
    x = leaf(1, 2)
    y = x.clone()
    assert not shares(x, y)
    y.sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_the_record_of_a_run_holds_in_place_changes():
    def f(x):
        y = x * 2
        y += 1
        y[0] = 7.0
        return (y * y).sum()

    point = np.array([1.0, 2.0])
    graph = dynamic.record(f, point)
    assert graph.op_counts() == {"multiply": 2, "add": 1, "setitem": 1, "sum": 1}

    def out_of_place(x):
        y = graphs.setitem(x * 2 + 1, 7.0, 0)
        return (y * y).sum()

    assert graphs.isomorphic(graph, dynamic.record(out_of_place, point))


def test_zeros_like_a_tensor_is_a_tensor_that_can_be_written_into():
    x = dynamic.tensor([1.0, 2.0], requires_grad=True)
    y = graphs.zeros_like(x)
    y[0] = x[1]
    graphs.sum(y * 3).backward()
    np.testing.assert_array_equal(x.grad, [0, 3])

"""Modes of recording, and the life of the tape."""

from __future__ import annotations

import gc
import threading
import tracemalloc
import weakref

import numpy as np
import pytest

import dynamic
import graphs
from tests.helpers.leaves import DOMAIN, leaf, shares

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

"""A pool beside what the engine does: layouts, errors, observers, threads, other pools."""

import itertools
import threading

import numpy as np
import pytest

import dynamic
import graphs as g
from dynamic.pool import _allocator
from graphs.errors import ShapeError
from tests.helpers.pools import filled, handler, pool_of_all, same_bits, size_class, step
from tests.helpers.random_graphs import random_program

pytestmark = pytest.mark.skipif(_allocator is None, reason="needs the compiled part")

# Beside what the engine does ------------------------------------------------------------------------------------------


def test_the_layout_of_results_is_what_it_is_without_a_pool():
    x = np.asfortranarray(np.random.default_rng(0).normal(size=(40, 50)).astype(np.float32))
    plain = g.sum(g.exp(x) * x, axis=0)
    with pool_of_all():
        for _ in range(3):
            assert g.exp(x).strides == x.strides
            assert g.sum(g.exp(x) * x, axis=0).tobytes() == plain.tobytes()


def test_numbers_and_dtypes_are_told_apart():
    x = np.arange(2000).reshape(40, 50)
    with pool_of_all():
        for _ in range(3):
            assert g.multiply(x, 2).dtype == np.int64
            assert g.multiply(x, 2.0).dtype == np.float64
            assert g.multiply(x.astype(np.int8), 2).dtype == np.int8
            assert g.sum(x, axis=0, dtype=np.int8).dtype == np.int8
            assert g.sum(x, axis=0).dtype == np.int64


def test_inplace_changes_of_pooled_results_are_no_changes_of_views():
    with pool_of_all():
        for _ in range(3):
            x = dynamic.tensor(np.full((20, 20), 3.0), requires_grad=True)
            y = x * 2
            y += x * x
            y.sum().backward()
            assert (x.grad.numpy() == 8).all()
            z = x * 2
            view = z[0]
            view += x[0]  # z gets the history of the change, as in PyTorch
            x.grad = None
            z.sum().backward()
            assert (z.numpy(force=True)[:2, 0].tolist(), x.grad.numpy()[:2, 0].tolist()) == ([9, 6], [3, 2])


def test_errors_are_those_without_a_pool():
    with pool_of_all(), pytest.raises(ShapeError, match=r"matmul: .*f64\[2,3\] @ f64\[2,3\]"):
        g.matmul(np.ones((2, 3)), np.ones((2, 3)))


def test_ops_are_observed_as_without_a_pool():
    program = random_program(3)
    plain = dynamic.record(program, list(program.inputs))
    with pool_of_all():
        dynamic.record(program, list(program.inputs))
        assert g.isomorphic(dynamic.record(program, list(program.inputs)), plain)


def in_thread(work):
    """Run in a thread of its own, and return what it returns."""
    results, errors = [], []

    def run():
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001  (raised again, where the test sees it)
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def left(first, second):
    """What serves after two pools were entered, the first is left, and then the second."""
    outer, inner = pool_of_all(), pool_of_all()
    pools = {"outer": outer, "inner": inner}
    outer.__enter__()
    inner.__enter__()
    served = []
    for name in (first, second):
        pools[name].__exit__(None, None, None)
        served.append((handler(), filled(1).nbytes and (outer.stats().fresh, inner.stats().fresh)))
    return served


def test_pools_left_in_any_order():
    ours, numpys = "graphduel_pool", "default_allocator"
    assert left("inner", "outer") == [(ours, (1, 0)), (numpys, (1, 0))]
    assert left("outer", "inner") == [(ours, (0, 1)), (numpys, (0, 1))]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
def test_three_pools_left_in_any_order_and_used_again(order):
    pools = [pool_of_all() for _ in range(3)]
    for _ in range(2):
        for pool in pools:
            pool.__enter__()
        kept = filled(7)
        for number in order:
            pools[number].__exit__(None, None, None)
            filled(1)
        assert handler() == "default_allocator"
        assert (kept == 7).all()
        assert [pool.stats().kept for pool in pools] == [0, 0, 0]
    for pool in pools:
        with pool:
            assert handler() == "graphduel_pool"
    assert handler() == "default_allocator"


def test_a_pool_that_another_thread_leaves_serves_no_longer():
    pool, found = pool_of_all(), []
    pool.__enter__()
    in_thread(lambda: (pool.__exit__(None, None, None), found.append(handler())))
    assert found == ["default_allocator"]
    filled(1)
    assert pool.stats()[:2] == (0, 0)
    with pool_of_all():
        pass
    assert handler() == "default_allocator"  # and with the next that this thread leaves it is gone
    with pool:
        filled(1)
        assert pool.stats().fresh == 1
    assert handler() == "default_allocator"


def test_a_pool_serves_its_own_thread_alone():
    with pool_of_all() as pool:
        in_thread(lambda: [filled(i) for i in range(4)])
        assert pool.stats().fresh == 0


def test_memory_that_another_thread_lets_go_comes_back():
    with pool_of_all() as pool:
        held = [filled(i) for i in range(4)]
        in_thread(held.clear)
        assert pool.stats()[:2] == (0, 4 * size_class(4096))
        held = [filled(i) for i in range(4)]
        assert pool.stats().fresh == 4


def test_pools_of_several_threads_do_not_mix():
    programs = [random_program(seed) for seed in range(4)]
    expected = [step(p, p.inputs) for p in programs]
    start = threading.Barrier(4)

    def work(number):
        start.wait()
        with pool_of_all():
            return all(same_bits(step(programs[number], programs[number].inputs), expected[number]) for _ in range(20))

    found = [None] * 4
    threads = [threading.Thread(target=lambda i=i: found.__setitem__(i, work(i))) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4
    assert handler() == "default_allocator"

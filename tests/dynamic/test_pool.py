"""Pools of array memory: the same bits, no alias changes, and memory is reused."""

import gc
import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dynamic
import graphs as g
from dynamic import tapes
from dynamic.pool import _allocator
from graphs import dispatch
from graphs.errors import GraphError
from tests.helpers.aliases import ALIASES, content
from tests.helpers.pools import filled, handler, pool_of_all, same_bits, size_class, step
from tests.helpers.random_graphs import random_program
from tests.helpers.slow import mostly_slow
from tests.helpers.together import together

pytestmark = pytest.mark.skipif(_allocator is None, reason="needs the compiled part")


@pytest.mark.parametrize("seed", mostly_slow(range(60), 8))
def test_random_programs_give_the_same_bits_and_no_alias_changes(seed):
    program = random_program(seed)
    expected = step(program, program.inputs)
    random = np.random.default_rng(seed)
    held = []

    def hold(op, arrays, attrs, out):
        if random.random() < 0.3 and out.size:
            alias = ALIASES[random.choice(["the array", "reshape", "memoryview", "transpose", "tensor"])](out)
            held.append((alias, content(alias)))

    with pool_of_all(), dispatch.observe_kernels(hold):
        for _ in range(3):
            assert same_bits(step(program, program.inputs), expected), str(program)
            del held[: len(held) // 2]
        assert all(content(alias) == before for alias, before in held)
    assert all(content(alias) == before for alias, before in held)


@together("seed", range(40))
def test_what_backward_writes_over_was_seen_by_nobody(seed):
    program = random_program(seed)
    expected = step(program, program.inputs)
    leaves = [dynamic.tensor(x, requires_grad=True) for x in program.inputs]
    held = []
    with pool_of_all():
        results = [step(program, program.inputs) for _ in range(3)]
        values = program.values([leaf * 1 for leaf in leaves])
        for value in values:
            if value.requires_grad:
                value.register_hook(lambda gradient: held.append((gradient.numpy(), gradient.numpy().tobytes())))
        loss = sum(g.sum(g.sin(value)) for value in values)
        loss.backward(retain_graph=True)
        first = [leaf.grad.numpy().tobytes() for leaf in leaves]
        for leaf in leaves:
            leaf.grad = None
        loss.backward()
    assert all(same_bits(result, expected) for result in results)
    assert [leaf.grad.numpy().tobytes() for leaf in leaves] == first
    assert len(held) > len(leaves)
    assert all(array.tobytes() == before for array, before in held)


@pytest.mark.skipif(not tapes.is_compiled(), reason="the tape in Python writes over nothing")
def test_backward_writes_over_dying_cotangents():
    x = np.random.default_rng(0).normal(size=(50, 50))

    def chain(x):
        for _ in range(8):
            x = g.tanh(x) * 2 + x
        return g.sum(x)

    expected = dynamic.value_and_grad(chain)(x)
    with pool_of_all() as pool:
        for _ in range(2):
            dynamic.value_and_grad(chain)(x)
        leaf = dynamic.tensor(x, requires_grad=True)
        loss = chain(leaf)
        in_use = pool.stats().in_use
        del loss
        peak = pool.stats().peak_in_use
        assert same_bits(dynamic.value_and_grad(chain)(x), expected)
    assert peak <= in_use + 4 * x.nbytes


def saving(leaf):
    """A value that two ops save, and a loss of it: of `tanh` it is the result, of the product an operand."""
    value = g.tanh(leaf * 1)
    return value, g.sum(value * g.exp(-value))


@pytest.mark.skipif(not tapes.is_compiled(), reason="the tape in Python writes over nothing")
def test_backward_writes_over_what_was_saved_for_it_alone():
    x = np.random.default_rng(0).normal(size=(50, 50))
    with pool_of_all():
        loss = saving(dynamic.tensor(x, requires_grad=True))[1]
        with pool_of_all() as inner:
            loss.backward()
            # The gradients of the product, whose operands the ops before it have saved as well, and the cotangent.
            assert inner.stats().peak_in_use <= 3 * x.nbytes


@pytest.mark.parametrize("kind", ALIASES)
def test_what_was_saved_is_not_written_over_while_an_alias_sees_it(kind):
    x = np.random.default_rng(0).normal(size=(16, 16))
    with pool_of_all():
        dynamic.value_and_grad(lambda x: saving(x)[1])(x)
        for _ in range(3):
            leaf = dynamic.tensor(x, requires_grad=True)
            value, loss = saving(leaf)
            alias = ALIASES[kind](value.detach().numpy())
            del value
            before = content(alias)
            loss.backward()
            assert content(alias) == before
            t = np.tanh(x)
            assert np.allclose(leaf.grad.numpy(), (1 - t**2) * (1 - t) * np.exp(-t))


def test_a_cotangent_that_is_given_stays_what_it_is():
    seed = np.ones((20, 20))
    with pool_of_all():
        for _ in range(3):
            x = dynamic.tensor(np.full((20, 20), 0.5), requires_grad=True)
            y = dynamic.tensor(np.full((20, 20), 0.25), requires_grad=True)
            total = x + y  # the same cotangent for both, which then go apart
            g.tanh(total).backward(dynamic.from_numpy(seed))
            g.exp(g.sin(x) + g.sin(y)).backward(seed)
    assert (seed == 1).all()
    factor = np.exp(np.sin(0.5) + np.sin(0.25))
    assert np.allclose(x.grad.numpy(), 1 - np.tanh(0.75) ** 2 + factor * np.cos(0.5))
    assert np.allclose(y.grad.numpy(), 1 - np.tanh(0.75) ** 2 + factor * np.cos(0.25))


@pytest.mark.parametrize("kind", ALIASES)
def test_memory_is_not_reused_while_an_alias_sees_it_and_is_afterwards(kind):
    with pool_of_all() as pool:
        filled(0), filled(0)
        array = filled(7)
        alias = ALIASES[kind](array)
        before = content(alias)
        address = array.ctypes.data
        del array
        later = [filled(value) for value in range(20)]
        assert address not in [a.ctypes.data for a in later]
        assert content(alias) == before
        del alias, later
        gc.collect()
        fresh = pool.stats().fresh
        later = [filled(value) for value in range(21)]
        assert pool.stats().fresh == fresh
        assert address in [a.ctypes.data for a in later]


@given(st.lists(st.tuples(st.sampled_from([31, 32, 64]), st.sampled_from(sorted(ALIASES)), st.integers(0, 9))))
def test_any_sequence_of_arrays_aliases_and_deaths_leaves_what_is_seen_alone(steps):
    with pool_of_all() as pool:
        held = []
        for size in (31, 32, 64):
            filled(0, size)
        for number, (size, kind, victim) in enumerate(steps):
            array = filled(number, size)
            alias = ALIASES[kind](array)
            held.append((alias, content(alias)))
            del array, alias
            if victim < len(held):
                del held[victim]
            assert all(content(alias) == before for alias, before in held)
        assert pool.stats().slack <= 0.2


def test_the_second_step_of_a_training_loop_takes_no_fresh_memory():
    w, x = np.ones((64, 64), np.float32), np.ones((64, 64), np.float32)
    loss = dynamic.value_and_grad(lambda w: g.mean(g.tanh(g.tanh(x @ w) @ w) ** 2))
    with pool_of_all() as pool:
        loss(w)
        loss(w)
        fresh = pool.stats().fresh
        loss(w)
        assert pool.stats().fresh == fresh > 0


def test_accounting_is_that_of_the_arrays_alive():
    with pool_of_all() as pool:
        held = [filled(i) for i in range(5)]
        nbytes = held[0].nbytes
        assert pool.stats().in_use == 5 * nbytes
        del held[1:]
        stats = pool.stats()
        assert (stats.in_use, stats.peak_in_use, stats.fresh) == (nbytes, 5 * nbytes, 5)
        assert stats.kept == 4 * size_class(nbytes)
        assert stats.peak == 5 * size_class(nbytes)
        assert stats.slack == 1 - stats.peak_in_use / stats.peak


def test_unused_memory_stays_within_a_fifth_of_the_peak_whatever_the_sizes():
    random = np.random.default_rng(0)
    sizes = random.integers(2, 200, 600)
    with dynamic.pool() as pool:
        held = []
        for size in sizes:
            held.append(np.full((size, size), 1.0))
            held = [a for a in held if random.random() < 0.9]
            np.full((size, size), 2.0)
            stats = pool.stats()
            assert stats.slack <= 0.2
            assert stats.in_use + stats.kept <= stats.peak


@pytest.mark.parametrize("limit", [0, 5000, 20_000])
def test_no_more_than_the_limit_is_kept(limit):
    with pool_of_all(limit) as pool:
        held = [filled(i) for i in range(20)]
        while held:
            held.pop()
            assert pool.stats().kept <= limit
        assert pool.stats().in_use == 0


def test_arrays_below_the_threshold_are_left_alone():
    with dynamic.pool(threshold=4096) as pool:
        held = [filled(i, 31) for i in range(3)]
        assert pool.stats().fresh == 0
        held += [filled(i) for i in range(3)]
        assert pool.stats().fresh == 3
        del held
        assert pool.stats().kept == 3 * size_class(4096)


def test_leaving_the_block_frees_what_is_kept_and_keeps_what_is_seen():
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        with pool_of_all() as pool:
            held = [np.full((200, 200), i) for i in range(10)]
            kept = held[3]
            del held
            assert pool.stats().kept > 8 * kept.nbytes
        assert pool.stats()[:2] == (0, 0)
        assert tracemalloc.get_traced_memory()[0] - before < 3 * kept.nbytes
        assert (kept == 3).all()
        del kept
        assert tracemalloc.get_traced_memory()[0] - before < 100_000
    finally:
        tracemalloc.stop()


def test_a_pool_can_be_used_again_and_pools_nest():
    outer, inner = pool_of_all(), pool_of_all()
    with outer:
        first = [filled(1) for _ in range(3)]
        with inner:
            [filled(2) for _ in range(3)]
        assert (outer.stats().fresh, inner.stats().fresh) == (3, 3)
        del first
        filled(3)
        assert outer.stats().fresh == 3
    with outer:
        filled(1), filled(1)
        assert outer.stats().fresh == 5
    assert handler() == "default_allocator"


def test_a_pool_that_is_on_cannot_be_turned_on_again():
    with dynamic.pool() as pool, pytest.raises(GraphError, match=r"on already \(test_pool.py:\d+\); make one"), pool:
        pass
    assert handler() == "default_allocator"


@pytest.mark.parametrize("given", [{"limit": -1}, {"threshold": -1}])
def test_sizes_below_nothing_are_refused(given):
    with pytest.raises(ValueError, match="bytes, 0 or more"):
        dynamic.pool(**given)


def test_without_the_compiled_part_a_pool_says_that_it_reuses_nothing(monkeypatch):
    monkeypatch.setattr(sys.modules["dynamic.pool"], "_allocator", None)
    with pytest.warns(UserWarning, match="install a C compiler"):
        pool = dynamic.pool()
    with pool:
        assert (filled(3) == 3).all()
        assert pool.stats() == (0, 0, 0, 0, 0)
        assert pool.stats().slack == 0


def test_an_exception_in_the_block_turns_the_pool_off():
    with pytest.raises(KeyError), dynamic.pool():
        raise KeyError
    assert handler() == "default_allocator"

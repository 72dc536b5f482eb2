"""Memory of large results: written again when nobody sees it, and never while anybody does."""

import copy
import gc
import pickle
import threading
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphs as g
import static
from graphs import tree
from static.codegen import kernels, lowering
from tests.helpers.aliases import ALIASES as OF_POOL
from tests.helpers.aliases import content
from tests.helpers.random_graphs import random_program
from tests.helpers.slow import mostly_slow

SHAPE = (512, 512)  # of float32: a mebibyte
ZEROS = np.zeros(SHAPE, np.float32)
ALIASES = {name: make for name, make in OF_POOL.items() if name not in ("base of the base", "saved for backward")}


def adder(**options):
    """An executable with one large result."""
    return static.compile(lambda x, y: x + y, ZEROS, np.float32(0), **options)


def filled(exe, value):
    return exe(ZEROS, np.asarray(value, np.float32))


def address(array):
    return array.ctypes.data


@pytest.mark.parametrize("kind", ALIASES)
def test_memory_is_not_written_while_an_alias_sees_it_and_is_afterwards(kind):
    exe = adder()
    result = filled(exe, 7)
    seen = address(result)
    alias = ALIASES[kind](result)
    before = content(alias)
    del result
    for value in range(5):
        assert address(filled(exe, value)) != seen
    assert content(alias) == before
    del alias
    gc.collect()
    assert seen in {address(kept) for kept in [filled(exe, 1), filled(exe, 2)]}


@given(st.lists(st.tuples(st.sampled_from(sorted(ALIASES)), st.integers(0, 6)), max_size=12))
def test_any_sequence_of_calls_aliases_and_deaths_leaves_what_is_seen_alone(steps):
    exe = static.compile(lambda x, y: (x + y, x - y), ZEROS[:, :512], np.float32(0))
    held = []
    for number, (kind, victim) in enumerate(steps):
        for result, value in zip(exe(ZEROS, np.asarray(number, np.float32)), (number, -number), strict=True):
            assert result.flat[0] == result.flat[-1] == value
            alias = ALIASES[kind](result)
            held.append((alias, content(alias)[:: 4096 + 4]))
            del result, alias
        del held[victim : victim + 2]
        assert all(content(alias)[:: 4096 + 4] == before for alias, before in held)


@pytest.mark.parametrize("seed", mostly_slow(range(40), 4))
def test_random_programs_give_the_same_bits_and_no_result_changes(seed, monkeypatch):
    monkeypatch.setattr(lowering, "LARGE", 1)
    monkeypatch.setattr(kernels, "LARGE", 1)
    program = random_program(seed)
    step, inputs = static.value_and_grad(program), list(program.inputs)
    plain, exe = static.compile(step, inputs, recycle=False), static.compile(step, inputs)
    expected = [np.asarray(leaf).tobytes() for leaf in tree.leaves(plain(inputs))]
    random = np.random.default_rng(seed)
    held = []
    for _ in range(5):
        leaves = [np.asarray(leaf) for leaf in tree.leaves(exe(inputs))]
        assert [leaf.tobytes() for leaf in leaves] == expected
        held += [(leaf.T, data) for leaf, data in zip(leaves, expected, strict=True) if random.random() < 0.5]
        del leaves, held[: len(held) // 3]
        for leaf in tree.leaves(exe(inputs)):
            if isinstance(leaf, np.ndarray) and leaf.flags.writeable:
                leaf.fill(0)  # whoever owns a result may write to it
        assert all(leaf.T.tobytes() == data for leaf, data in held)
    assert exe.result_bytes or "= n" not in exe.source or not inputs[0].size


def test_results_that_are_held_until_the_next_go_back_and_forth_between_two_pieces_of_memory():
    exe = adder()
    assert exe.result_bytes == 0
    seen = set()
    for value in range(6):
        result = filled(exe, value)
        seen.add(address(result))
        assert (result == value).all()
    assert len(seen) == 2
    assert 2 * result.nbytes <= exe.result_bytes <= 2 * result.nbytes + 128


def test_results_that_nobody_holds_take_one_piece():
    exe = adder()
    assert len({address(filled(exe, value)) for value in range(5)}) == 1
    assert ZEROS.nbytes <= exe.result_bytes <= ZEROS.nbytes + 64


def test_results_that_are_all_kept_are_all_different():
    exe = adder()
    held = [filled(exe, value) for value in range(6)]
    assert [one[5, 5] for one in held] == list(range(6))
    assert not any(np.shares_memory(a, b) for i, a in enumerate(held) for b in held[:i])


def test_a_result_is_an_array_of_its_own_each_time():
    exe = adder()
    result = filled(exe, 1)
    dead = weakref.ref(result)
    result.setflags(write=False)
    del result
    assert dead() is None
    again = filled(exe, 2)
    assert again.flags.writeable
    assert again.shape == SHAPE
    assert again.flags.c_contiguous
    assert address(again) % 64 == 0


def of_branches(x, y):
    def nested():
        return g.cond(g.sum(y) > 0, lambda: (x + 1, y, g.zeros(3)), lambda: (x * 2, x + y, x))

    a, b, c = g.cond(g.sum(x) > 0, nested, lambda: (x, y * 3, g.ones(3)))
    _, d, e = g.while_loop(lambda s: s[0] < g.sum(x), lambda s: (s[0] + 1, s[2], s[1] * 2), (g.zeros(()), a, y))
    return a, a, b, c[::-1], c, d, e, g.sum(a)


@pytest.mark.parametrize("signs", [(1, 1), (1, -1), (-1, 1)], ids=str)
@pytest.mark.parametrize("arena", [True, False])
def test_what_branches_and_loops_return_is_an_array_of_its_own_each_time(arena, signs):
    x, y = (sign * np.arange(1.0, 4.0) for sign in signs)
    exe = static.compile(of_branches, x, y, arena=arena)
    expected = [np.array(value) for value in of_branches(x, y)]
    calls = [exe(x, y), exe(x, y)]
    owned = [array for call in calls for array in call]
    for i, array in enumerate(owned):
        assert type(array) is np.ndarray
        assert not any(np.shares_memory(array, other) for other in (x, y, *owned[:i]))
    for array in calls[0]:
        array[...] = 99
    for call in (calls[1], exe(x, y)):
        for got, value in zip(call, expected, strict=True):
            np.testing.assert_array_equal(got, value)


def test_copies_are_copies():
    exe = adder()
    result = filled(exe, 3)
    copies = [copy.copy(result), copy.deepcopy(result), pickle.loads(pickle.dumps(result)), np.array(result)]
    del result
    filled(exe, 4)
    assert all((one == 3).all() for one in copies)


@pytest.mark.parametrize("options", [{"recycle": False}, {"arena": False}])
def test_nothing_is_kept_where_it_is_not_wanted(options):
    exe = adder(**options)
    held = [filled(exe, value) for value in range(3)]
    assert [one[0, 0] for one in held] == [0, 1, 2]
    assert exe.result_bytes == 0


def test_nothing_is_kept_where_references_do_not_tell(monkeypatch):
    monkeypatch.setattr(kernels, "COUNTED", False)
    exe = adder()
    first = filled(exe, 1)
    filled(exe, 2)
    assert (first == 1).all()
    assert exe.result_bytes == 0


def test_small_results_are_left_to_the_allocator():
    exe = static.compile(lambda x: x + 1, np.zeros(1000))
    exe(np.zeros(1000))
    assert "n1" not in exe.source
    assert exe.result_bytes == 0


def test_sizes_share_the_memory_of_results_of_one_shape():
    exe = static.compile(
        static.value_and_grad(lambda w, x: g.sum(g.tanh(x @ w))),
        g.TensorSpec(SHAPE),
        g.TensorSpec(("N", 512)),
    )
    weights = np.random.default_rng(0).standard_normal(SHAPE, np.float32)
    seen = set()
    for size in (3, 5, 3, 7):
        _, gradient = exe(weights, np.ones((size, 512), np.float32))
        seen.add(address(gradient))
        del gradient
    assert len(seen) == 1
    assert ZEROS.nbytes <= exe.result_bytes <= ZEROS.nbytes + 64


def test_states_of_a_loop_are_right_in_every_call():
    def f(x):
        return g.scan(lambda state, y: (state * 0.5 + y, state[0, 0]), x, np.arange(4, dtype=np.float32))[0]

    exe, x = static.compile(f, ZEROS), np.full(SHAPE, 8, np.float32)
    held = [exe(x + shift) for shift in range(4)]
    plain = [f(x + shift) for shift in range(4)]
    for one, other in zip(held, plain, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_result_that_another_thread_lets_go_is_written_again():
    exe = adder()
    held = [filled(exe, 1)]
    seen = address(held[0])
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    assert address(filled(exe, 2)) == seen

"""Kernels side by side: those that do not touch the same memory, and as many as pay; each waits for what it needs."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphs as g
import static

pytest.importorskip("llvmlite", reason="native code needs llvmlite")

from static.native import binding, cores, flow, pool
from static.native.flow import Flow
from static.native.placement import Extent
from static.native.products import Product
from static.native.target import host
from tests.helpers.native_reference import in_python
from tests.helpers.slow import mostly_slow
from tests.static.native.test_native_ops import EFFECTS, OPS, samples, summed, together


class Kernel(NamedTuple):
    """A recipe that touches some bytes, and does nothing."""

    number: int
    extents: tuple[Extent, ...]
    operations: int = 1


def kernel(number, *touched, operations=1):
    """A piece of work that touches these bytes: of which argument, from where to where, and whether it writes."""
    extents = tuple(Extent(0, high - low, is_written) for _, low, high, is_written in touched)
    return Kernel(number, extents, operations), [(which, low) for which, low, *_ in touched]


def numbers(work):
    """The waves of a work as the numbers of their kernels."""
    seen = []

    def note(wave):
        seen.append([recipe.number for recipe, _ in wave])
        return wave

    cores.arrange_waves(work, note)
    return seen


# Waves ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "later", "waits"),
    [
        ((0, 0, 8, True), (0, 0, 8, False), True),  # it reads what is written
        ((0, 0, 8, False), (0, 0, 8, True), True),  # it writes over what is read
        ((0, 0, 8, True), (0, 0, 8, True), True),
        ((0, 0, 8, False), (0, 0, 8, False), False),
        ((0, 0, 8, True), (0, 7, 9, False), True),
        ((0, 0, 8, True), (0, 8, 16, False), False),
        ((0, 0, 8, True), (1, 0, 8, False), False),  # another argument
        ((-1, 4096, 4104, True), (-1, 4100, 4101, True), True),
    ],
)
def test_a_kernel_waits_for_what_touches_the_same_bytes_if_one_writes_them(first, later, waits):
    assert numbers([kernel(0, first), kernel(1, later)]) == ([[0], [1]] if waits else [[0, 1]])


touched = st.tuples(st.integers(0, 1), st.integers(0, 9), st.integers(1, 5), st.booleans())


@given(st.lists(st.lists(touched, max_size=3), max_size=12))
def test_each_kernel_runs_in_the_first_wave_after_all_that_it_waits_for(touches):
    touches = [[(which, low, low + size, written) for which, low, size, written in some] for some in touches]
    wave = {n: i for i, some in enumerate(numbers([kernel(n, *some) for n, some in enumerate(touches)])) for n in some}
    needed = {n: [] for n in wave}
    for first, later in combinations(wave, 2):
        pairs = [(a, b) for a in touches[min(first, later)] for b in touches[max(first, later)]]
        if any(a[0] == b[0] and a[1] < b[2] and b[1] < a[2] and (a[3] or b[3]) for a, b in pairs):
            needed[max(first, later)].append(min(first, later))
    assert wave == {n: max((wave[m] + 1 for m in before), default=0) for n, before in needed.items()}


def test_a_loop_waits_for_all_before_it_and_all_after_it_wait_for_the_loop():
    inner = [kernel(2, (0, 0, 8, True)), kernel(3, (1, 0, 8, True))]
    loop = Flow("while", (inner, [], [])), [(0, 0)]
    work = [kernel(0, (0, 0, 8, True)), kernel(1, (1, 0, 8, True)), loop, kernel(4, (2, 0, 8, True))]
    seen = []
    arranged = cores.arrange_waves(work, lambda wave: seen.append([recipe.number for recipe, _ in wave]) or wave)
    assert sorted(seen) == [[0, 1], [2, 3], [4]]
    assert [recipe.kind if isinstance(recipe, Flow) else recipe.number for recipe, _ in arranged] == [0, 1, "while", 4]


# What kernels touch ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", mostly_slow([name for name in OPS if name not in EFFECTS], 30))
def test_kernels_stay_within_their_extents(name):
    """The reference in Python looks at each element that it reads or writes."""
    calls = [sample.cast("f4") for sample in samples(name)]
    every, arrays = together(calls)
    gradient, _, has_one = summed(calls)
    with np.errstate(all="ignore"), in_python():
        for f in [every, gradient] if has_one else [every]:
            static.compile(f, *arrays, backend="native")(*arrays)


# Side by side ---------------------------------------------------------------------------------------------------


@pytest.fixture
def work_of(monkeypatch):
    """What gives the work of the only segment of a function, for two threads that cost this many nanoseconds."""

    def given_back(f, *arrays, nanoseconds=500):
        monkeypatch.setattr(pool.pool_of(2, host()), "nanoseconds", nanoseconds)
        kept = []

        def keep(work, *others):
            kept.append(work)
            return compiled(work, *others)

        compiled = binding.compile_work
        with monkeypatch.context() as patch:
            patch.setattr(binding, "compile_work", keep)
            exe = static.compile(f, *arrays, backend="native", threads=2)
        expected = static.compile(f, *arrays, backend="native")(*arrays)
        for actual, leaf in zip(g.tree.leaves(exe(*arrays)), g.tree.leaves(expected), strict=True):
            np.testing.assert_array_equal(actual, leaf)
        (work,) = kept
        return work

    holder = pool.pool_of(2, host())  # which is there as long as the test, so that its nanoseconds stay
    yield given_back
    del holder


def products(work):
    return [sum(isinstance(recipe, Product) for recipe in flow.kernels([piece])) for piece in work]


RNG = np.random.default_rng(0)
X, W = RNG.normal(size=(96, 96)).astype("f4"), RNG.normal(size=(5, 96, 96)).astype("f4")


def test_the_products_of_one_input_run_side_by_side(work_of):
    def f(x, q, k, v):
        return x @ q, x @ k, x @ v

    (piece,) = work_of(f, X, *W[:3])
    assert piece[0].kind == "parallel"
    assert len(piece[0].lists) == 2 * cores.DEALT
    (uncut,) = products(work_of(f, X, *W[:3], nanoseconds=4_000))
    assert uncut == 3  # no product is long enough to be cut, but one is long enough to run beside another


def test_the_gradients_of_a_weight_and_of_an_input_run_side_by_side(work_of):
    def loss(w, x):
        return g.sum(g.tanh(g.tanh(x @ w[0]) @ w[1]) @ w[2])

    work = work_of(static.value_and_grad(loss), W[:3], X)
    mixed = []
    for recipe, _ in work:
        if isinstance(recipe, Flow):
            shapes = {(r.left.row, r.left.column) for r in flow.kernels([(recipe, [])]) if isinstance(r, Product)}
            mixed.append(len(shapes))
    assert max(mixed) == 2  # one has the matrix on its left turned


def test_what_waits_runs_one_after_the_other(work_of):
    def f(x, a, b, c):
        return ((x @ a) @ b) @ c

    assert len(work_of(f, X, *W[:3])) == 3


def test_kernels_that_are_too_short_together_are_not_shared(work_of):
    def f(x, q, k):
        return x @ q, x @ k

    assert not any(isinstance(recipe, Flow) for recipe, _ in work_of(f, X[:4], *W[:2], nanoseconds=20_000))


def test_one_long_kernel_and_what_is_nothing_beside_it_are_not_shared(monkeypatch):
    """Two cores do not take less time than the longest list."""
    monkeypatch.setattr(pool.pool_of(2, host()), "nanoseconds", 500)  # what a busy machine has measured may be 0
    two = cores.Cores(pool.pool_of(2, host()), host())
    long, short = kernel(0, (0, 0, 8, True), operations=10**9), kernel(1, (1, 0, 8, True), operations=10)
    assert two.arrange_cores([long, short]) == [long, short]
    (piece,) = two.arrange_cores([long, kernel(1, (1, 0, 8, True), operations=10**9)])
    assert [len(inner) for inner in piece[0].lists] == [1, 1]

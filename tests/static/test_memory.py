"""The memory planner: no two live buffers overlap, no plan beats the lower bound, and the engine's own plans."""

from __future__ import annotations

from itertools import pairwise, permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphs
import static
from static.memory import Plan, best_fit, greedy_by_size, max_live, plan, planner
from static.memory.heuristics import components
from static.memory.planner import fillers, join, spread
from static.memory.schedule import schedule
from static.passes import pipeline
from tests.helpers.hard_instances import STEPS, packed
from tests.helpers.random_graphs import random_program
from tests.helpers.slow import examples

times = st.integers(0, 25)
buffers = st.lists(
    st.tuples(times, times, st.integers(0, 40)).map(lambda b: (min(b[:2]), max(b[:2]), b[2])), max_size=25
)


def overlaps(instance: list[Any], offsets: Any) -> list[tuple[int, int]]:
    """Pairs of buffers that are alive together and share a byte: the check, apart from the planner."""
    found = []
    for i, (lower, upper, size) in enumerate(instance):
        for j in range(i):
            low, up, other = instance[j]
            in_time = max(lower, low) < min(upper, up)
            in_space = max(offsets[i], offsets[j]) < min(offsets[i] + size, offsets[j] + other)
            if in_time and in_space:
                found.append((j, i))
    return found


def top(instance: list[Any], offsets: Any) -> int:
    return max((offset + buffer[2] for offset, buffer in zip(offsets, instance, strict=True)), default=0)


def dropped(instance: list[Any], order: Any) -> int:
    """The peak when each buffer, in order, falls onto those that live at the same time."""
    offsets: dict[int, int] = {}
    for i in order:
        lower, upper, _ = instance[i]
        below = [j for j in offsets if max(lower, instance[j][0]) < min(upper, instance[j][1])]
        offsets[i] = max((offsets[j] + instance[j][2] for j in below), default=0)
    return max((offset + instance[i][2] for i, offset in offsets.items()), default=0)


def live_bytes(instance: list[Any]) -> int:
    """The most bytes alive at any step, step by step."""
    steps = {t for lower, upper, _ in instance for t in (lower, upper)}
    return max((sum(s for lo, up, s in instance if lo <= t < up) for t in steps), default=0)


@given(buffers)
def test_a_plan_is_valid_and_no_better_than_possible(instance):
    result = plan(instance)
    assert not overlaps(instance, result.offsets)
    assert all(offset >= 0 for offset in result.offsets)
    assert result.peak == top(instance, result.offsets)
    assert result.lower_bound == max_live(instance) == live_bytes(instance)
    assert result.peak >= result.lower_bound


@pytest.mark.parametrize("heuristic", [best_fit, greedy_by_size])
@given(instance=buffers)
def test_each_heuristic_is_valid(heuristic, instance):
    assert not overlaps(instance, heuristic(instance))


@given(buffers)
def test_no_heuristic_does_better_than_the_plan(instance):
    assert plan(instance).peak <= min(top(instance, best_fit(instance)), top(instance, greedy_by_size(instance)))


@given(buffers, st.sampled_from([1, 8, 64, 100]))
def test_alignment_is_respected(instance, alignment):
    result = plan(instance, alignment)
    assert all(offset % alignment == 0 for offset in result.offsets)
    assert not overlaps(instance, result.offsets)
    assert result.peak >= max_live(instance)


@given(buffers, st.integers(-1000, 10**9))
def test_when_the_clock_starts_does_not_matter(instance, start):
    moved = [(lower + start, upper + start, size) for lower, upper, size in instance]
    assert plan(moved) == plan(instance)


@given(st.lists(st.tuples(times, st.integers(0, 40)), max_size=20))
def test_a_chain_is_packed_perfectly(chain):
    """Buffers that never live together need no more than the largest."""
    instance = [(2 * i, 2 * i + 1, size) for i, (_, size) in enumerate(chain)]
    result = plan(instance)
    assert result.peak == result.lower_bound == max((b[2] for b in instance), default=0)


@pytest.mark.parametrize(
    ("instance", "expected"),
    [
        ([], Plan((), 0, 0)),
        ([(0, 2, 10)], Plan((0,), 10, 10)),
        ([(0, 1, 10), (1, 2, 10)], Plan((0, 0), 10, 10)),  # half-open: one ends as the other starts
        ([(0, 2, 10), (1, 3, 5)], Plan((0, 10), 15, 15)),
        ([(0, 3, 0), (1, 2, 4)], Plan((0, 0), 4, 4)),
    ],
)
def test_plans_by_hand(instance, expected):
    result = plan(instance)
    assert (result.peak, result.lower_bound) == (expected.peak, expected.lower_bound)
    if instance and instance[0][2]:
        assert result == expected
    assert result.gap == 0


@pytest.mark.parametrize("broken", [[(2, 1, 5)], [(0, 1, -5)], [(0, 1, 4), (3, 2, 0)]])
def test_impossible_buffers_are_refused(broken):
    with pytest.raises(ValueError, match="lower, upper"):
        plan(broken)


def test_many_buffers_are_planned():
    rng = np.random.default_rng(0)
    lower, length, size = (rng.integers(1, top, 10_000).tolist() for top in (20_000, 40, 5000))
    instance = [(start, start + steps, bytes_) for start, steps, bytes_ in zip(lower, length, size, strict=True)]
    result = plan(instance)
    by_time = sorted(range(len(instance)), key=lambda i: instance[i][0])
    for at in range(0, len(by_time), 500):  # every buffer of a window against the others of it
        window = by_time[at : at + 120]
        assert not overlaps([instance[i] for i in window], [result.offsets[i] for i in window])
    assert result.lower_bound <= result.peak < 1.5 * result.lower_bound


# Search ---------------------------------------------------------------------------------------------------------

short = st.tuples(st.integers(0, 7), st.integers(1, 4), st.integers(1, 9)).map(lambda b: (b[0], b[0] + b[1], b[2]))


@examples(1.2)
@given(st.lists(short, min_size=1, max_size=6))
def test_the_exact_search_finds_what_trying_every_order_finds(instance):
    """Every layout can be pressed down without a rise of its peak, so some order of dropping gives the least."""
    worst = [sum(size for _, _, size in instance[:i]) for i in range(len(instance))]
    offsets, proven = planner.solve(instance, worst)
    assert proven
    assert not overlaps(instance, offsets)
    assert top(instance, offsets) == min(dropped(instance, order) for order in permutations(range(len(instance))))
    assert plan(instance).peak == top(instance, offsets)


def test_the_least_peak_may_lie_above_what_is_live():
    """Seven buffers that never take more than 5 bytes at once, and fit in no 5."""
    instance = [(1, 3, 2), (0, 2, 2), (1, 4, 1), (3, 5, 3), (0, 1, 3), (4, 5, 2), (2, 4, 1)]
    least = min(dropped(instance, order) for order in permutations(range(len(instance))))
    assert (plan(instance).peak, plan(instance).lower_bound) == (least, 5)
    assert least == 6


def test_the_exact_search_gives_up_in_time_and_keeps_what_it_was_given():
    instance = packed(40, 0)
    worst = [sum(size for _, _, size in instance[:i]) for i in range(len(instance))]
    offsets, proven = planner.solve(instance, worst, nodes=10)
    assert not proven
    assert offsets == worst


@given(buffers)
def test_components_take_all_that_counts_and_never_meet(instance):
    parts = components(instance)
    assert sorted(i for part in parts for i in part) == [
        i for i, (lo, up, size) in enumerate(instance) if lo < up and size
    ]
    spans = [(min(instance[i][0] for i in part), max(instance[i][1] for i in part)) for part in parts]
    assert all(before[1] <= after[0] for before, after in pairwise(spans))


@examples(0.5)
@given(buffers, st.sampled_from([1, 64]))
def test_a_search_is_valid_and_never_worse_than_the_heuristics(instance, alignment):
    fast, searched = plan(instance, alignment), plan(instance, alignment, 0.02)
    assert not overlaps(instance, searched.offsets)
    assert all(offset >= 0 and offset % alignment == 0 for offset in searched.offsets)
    assert searched.lower_bound == fast.lower_bound <= searched.peak <= fast.peak


@pytest.mark.diagonal("long", "count")
@pytest.mark.parametrize("long", [0.3, 0.5, 0.7])
@pytest.mark.parametrize("count", [60, 154, 454])
def test_cuts_in_two_are_packed_again_at_once(count, long):
    instance = packed(count, 0, long)
    assert top(instance, greedy_by_size(instance)) > 1.05 * STEPS
    found = plan(instance, time_limit=60.0)  # far above what is needed
    assert found.peak == found.lower_bound == STEPS
    assert not overlaps(instance, found.offsets)


@pytest.mark.parametrize("long", [0.3, 0.5])
def test_a_packing_that_exists_is_found(long):
    """Heuristics leave a tenth and more on these; the time limit is far above what is needed."""
    instance = packed(60, 3, long, wheels=0.5)
    assert plan(instance).gap > 0.1
    found = plan(instance, time_limit=60.0)
    assert found.peak == found.lower_bound == STEPS
    assert not overlaps(instance, found.offsets)


def test_components_are_searched_apart():
    """Two packed halves, one after the other, and one that is small and loose between them."""
    first = packed(40, 1, wheels=0.3)
    second = [(lower + 3 * STEPS, upper + 3 * STEPS, size) for lower, upper, size in packed(40, 2, wheels=0.3)]
    instance = [*first, (STEPS, 2 * STEPS, 10), (2 * STEPS, 3 * STEPS, 20), *second, (5, 5, 7), (0, STEPS, 0)]
    found = plan(instance, time_limit=60.0)
    assert found.peak == STEPS
    assert not overlaps(instance, found.offsets)


@pytest.mark.parametrize("count", [150, 450])
def test_hard_instances_stay_valid_when_time_runs_out(count):
    instance = packed(count, 0, wheels=0.5)
    found = plan(instance, time_limit=0.5)
    assert not overlaps(instance, found.offsets)
    assert STEPS == found.lower_bound <= found.peak <= plan(instance).peak


@pytest.mark.parametrize("limit", [-1.0, float("nan")])
def test_impossible_time_limits_are_refused(limit):
    with pytest.raises(ValueError, match="time limit"):
        plan([], time_limit=limit)


# Joining --------------------------------------------------------------------------------------------------------


@given(buffers, st.integers(0, 3))
def test_a_layout_of_boxes_is_one_of_the_buffers(instance, seed):
    boxes = join(instance, np.random.default_rng(seed) if seed else None)
    found = plan([box.buffer for box in boxes])
    offsets = spread(boxes, found.offsets)
    assert not overlaps(instance, offsets)
    assert top(instance, offsets) == found.peak
    assert found.lower_bound == live_bytes(instance)
    lives = [box.buffer[:2] for box in boxes]
    assert len(set(lives)) == len(lives)  # those would be stacked


@pytest.mark.parametrize(("count", "seed"), [(40, 0), (80, 1), (150, 2)])
def test_the_cuts_of_a_rectangle_are_undone(count, seed):
    boxes = join(packed(count, seed))
    assert len(boxes) < count / 4


@given(buffers.filter(lambda instance: any(lower < upper and size for lower, upper, size in instance)))
def test_fillers_make_every_step_as_full_as_the_fullest(instance):
    filled = [*instance, *fillers(instance)]
    steps = {t for lower, upper, size in instance for t in (lower, upper)}
    for step in sorted(steps)[:-1]:
        assert sum(size for lower, upper, size in filled if lower <= step < upper) == live_bytes(instance)


def test_what_was_left_out_of_a_packing_is_put_back():
    instance = packed(150, 0, 0.5, 0.1)
    assert len(instance) < 150
    assert len(join([*instance, *fillers(instance)])) < len(join(instance)) / 2


# The engine's own plans -----------------------------------------------------------------------------------------


def planned_buffers(exe: static.Executable) -> list[Any]:
    """What an executable's arena was planned for, workspaces included."""
    (binding,) = exe._bindings.values()
    return list(binding.lives)


@examples(1.2)
@given(st.integers(0, 10_000))
def test_buffers_of_random_graphs_never_overlap(seed):
    program = random_program(seed)
    exe = static.compile(static.value_and_grad(program), list(program.inputs))
    instance = planned_buffers(exe)
    assert len(instance) == len(exe.plan.offsets)
    assert not overlaps(instance, exe.plan.offsets)
    assert all(offset % 64 == 0 for offset in exe.plan.offsets)
    assert live_bytes(instance) <= exe.plan.lower_bound <= exe.plan.peak
    print(f"seed {seed}: {exe.plan.peak} planned, {exe.plan.lower_bound} live, gap {exe.plan.gap:.1%}")


@pytest.mark.slow
@examples(1.2)
@given(st.integers(0, 10_000))
def test_a_buffer_lives_until_its_last_reader_views_included(seed):
    """Every step finds each input's memory alive: the lifetimes, from the graph alone."""
    program = random_program(seed)
    graph = static.compile(static.value_and_grad(program), list(program.inputs)).graph
    order = schedule(graph)
    for step, node in enumerate(order.order):
        for value in (node, *node.inputs):
            place = order.place.get(order.owner[value])
            assert place is None or order.lives[place.buffer][0] <= step < order.lives[place.buffer][1]


def test_views_keep_their_owner_alive_and_cost_nothing():
    def f(x: Any) -> Any:
        y = np.exp(x)
        transposed = y.T
        z = np.tanh(x)  # must not take the place of y
        return (transposed @ z).sum()

    exe = static.compile(f, np.ones((8, 8)), passes=pipeline.REPLAY)
    assert exe.plan.lower_bound == 3 * 8 * 8 * 8
    x = np.random.default_rng(0).normal(size=(8, 8))
    np.testing.assert_allclose(exe(x), (np.exp(x).T @ np.tanh(x)).sum())


def test_a_deep_chain_needs_one_buffer():
    def f(x: Any) -> Any:
        for _ in range(50):
            x = graphs.tanh(x)
        return x.sum()

    assert static.compile(f, np.ones(64)).plan.peak == 64 * 8


def test_outputs_have_no_place_in_the_arena():
    exe = static.compile(lambda x: (np.exp(x), np.tanh(x)), np.ones(64))
    assert exe.plan.peak == 0

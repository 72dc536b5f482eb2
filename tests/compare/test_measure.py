"""Timing: orders, calibration and the record, with values and never a time."""

import gc
import subprocess
import sys
import time
from collections import Counter
from itertools import islice
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare import engines
from compare.engines.graphduel.steps import GraphStep
from compare.instruments import rounds, timing
from compare.instruments.bench import Bench
from compare.instruments.timing import no_limit
from compare.records.job import Budget
from compare.records.record import JobName
from tests.helpers import fake_workloads
from tests.helpers.fake_workloads import job
from tests.helpers.records import plain

MILLISECOND = 1_000_000


class Clock:
    """A clock that only moves when told to."""

    def __init__(self):
        self.now = 0

    def __call__(self):
        return self.now

    def call(self, nanoseconds):
        def run():
            self.now += nanoseconds

        return run


def drawn(names, count, seed):
    """The orders of so many rounds."""
    return list(islice(rounds.orders(names, Random(seed)), count))


@given(st.integers(1, 6), st.integers(0, 30), st.integers())
def test_every_round_runs_every_mode_once(count, several, seed):
    names = tuple("abcdef"[:count])
    assert all(sorted(order) == list(names) for order in drawn(names, several, seed))


@given(st.integers(1, 6), st.integers(1, 4), st.integers())
def test_each_mode_takes_each_place_equally_often(count, groups, seed):
    names = tuple("abcdef"[:count])
    draw = drawn(names, groups * count, seed)
    places = Counter((place, mode) for order in draw for place, mode in enumerate(order))
    assert set(places.values()) == {groups}


def test_orders_follow_the_seed_and_are_not_one_rotation():
    names = ("a", "b", "c", "d")
    draw = [drawn(names, 40, seed) for seed in (1, 1, 2)]
    assert draw[0] == draw[1] != draw[2]
    assert len(set(draw[0])) > len(names)


@pytest.mark.parametrize(("nanoseconds", "least"), [(MILLISECOND, 4), (5 * MILLISECOND, 1), (40_000, 100), (1, 4e6)])
def test_a_block_is_long_enough_and_not_much_longer(nanoseconds, least):
    clock = Clock()
    count, each = rounds.calibrate(clock.call(nanoseconds), 0.004, clock)[-1]
    assert each == pytest.approx(nanoseconds / 1e9)
    assert least <= count <= 1.1 * least + 1


def test_the_processor_of_first_calls_is_that_of_building_and_calls_alone(monkeypatch):
    """Each look at the clock finds it a second later: two for each part."""
    seconds = iter(range(100))
    monkeypatch.setattr(timing, "processor_seconds", lambda: next(seconds))
    bench = Bench(engines.find_engine(engines.OWN), fake_workloads.STREAM.case("small"), engines.step)
    epoch = timing.first_epoch(bench, "dynamic", no_limit)
    assert epoch.processor == 1 + len(epoch.calls)
    assert epoch.times(bench, "cpu").processor == epoch.processor
    assert epoch.times(bench, "wall").processor is None


def test_what_is_spent_includes_what_a_process_has_started():
    before = rounds.processor_seconds()
    subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.2: pass"], check=True)
    assert rounds.processor_seconds() - before >= 0.15  # the system counts in ticks


def test_what_the_first_call_does_once_leaves_blocks_as_long_as_those_of_others():
    clock = Clock()
    first, later = clock.call(50 * MILLISECOND), clock.call(40_000)
    calls = iter([first])

    def call():
        next(calls, later)()

    timed = rounds.paired_rounds({"mode": call}, Budget(rounds=7, seconds=9), Random(0), clock)
    assert timed.counts["mode"] >= 100
    assert timed.steady() == {"mode": [pytest.approx(40e-6)] * 7}


def test_calibration_ends_on_a_clock_too_coarse_to_see_one_call():
    ticks = Clock()
    coarse = lambda: ticks.now // MILLISECOND * MILLISECOND  # noqa: E731
    assert rounds.calibrate(ticks.call(1000), 0.004, coarse)[-1][0] >= 3000


@pytest.mark.parametrize("since", [0, 5 * MILLISECOND, 16 * MILLISECOND - 1])
def test_blocks_are_longer_than_the_steps_of_a_coarse_clock(since):
    """A call that a step of the clock falls into reads as a whole step, and the next ones as nothing."""
    ticks = Clock()
    ticks.now = since
    coarse = lambda: ticks.now // (16 * MILLISECOND) * 16 * MILLISECOND  # noqa: E731
    calls = {"one": ticks.call(100_000), "two": ticks.call(200_000)}
    timed = rounds.paired_rounds(calls, Budget(rounds=7, seconds=9), Random(0), coarse)
    for mode, seconds in (("one", 100e-6), ("two", 200e-6)):
        assert timed.blocks[mode] == [pytest.approx(seconds, rel=0.3)] * timed.done


def test_blocks_are_seconds_per_call_and_paired_by_round():
    clock = Clock()
    calls = {"fast": clock.call(MILLISECOND), "slow": clock.call(3 * MILLISECOND)}
    timed = rounds.paired_rounds(calls, Budget(rounds=7, seconds=9), Random(0), clock)
    assert timed.steady() == {"fast": [0.001] * 7, "slow": [0.003] * 7}
    assert timed.counts["fast"] >= 4
    assert timed.counts["slow"] >= 2


def test_a_spent_budget_ends_between_rounds_after_the_least():
    clock = Clock()
    calls = {"a": clock.call(10 * MILLISECOND), "b": clock.call(10 * MILLISECOND)}
    blocks = rounds.paired_rounds(calls, Budget(rounds=50, least=3, seconds=0.001), Random(0), clock).steady()
    assert {len(b) for b in blocks.values()} == {3}


def test_no_collection_inside_a_block_and_the_setting_comes_back():
    with rounds.without_collection():
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with rounds.without_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_the_first_epoch_keeps_every_call_and_marks_what_is_new():
    case = fake_workloads.make_stream()
    build = lambda mode, case: GraphStep(lambda *_: (0.0, ()), None, case.examples)  # noqa: E731
    bench = Bench(engines.find_engine(engines.OWN), case, build)
    epochs = timing.first_epochs(job("time", "STREAM", modes=("a", "b")), bench, no_limit)
    for epoch in epochs.values():
        calls = plain(epoch.calls)
        assert [call["length"] for call in calls] == [3, 5, 3, 8]
        assert [call["new"] for call in calls] == [True, True, False, True]
        assert not any(call["compiled"] for call in calls)


def test_the_time_record_has_what_the_schema_says():
    record = timing.measure(job("time", "STREAM", process=0, modes=("dynamic",), budget=Budget(3, 1, 1, 1e-5)))
    assert record.job == JobName("time", "stream", "small", process=0)
    row = record.modes["dynamic"]
    assert row.status == "ok"
    assert len(row.blocks) == 3
    assert len(row.stream) == 4
    assert row.calls_per_block % 4 == 0
    assert (row.useful, row.computed, row.compiles) == (19, 19, 0)
    assert row.first == row.stream[0].seconds > 0


def test_a_fixed_input_has_no_stream():
    record = timing.measure(job("time", "TINY", process=0, modes=("dynamic",), budget=Budget(2, 1, 1, 1e-5)))
    assert record.modes["dynamic"].stream is None


def test_a_block_that_waits_takes_more_on_the_wall():
    sleeping = rounds.read_block(lambda: time.sleep(0.02), 3)
    assert sleeping.wall - sleeping.others > 10 * sleeping.clock
    assert sleeping.wall >= 0.02


@pytest.mark.parametrize("is_worker", [False, True])
def test_collections_of_rounds_walk_nothing_older_only_in_a_process_that_measures(monkeypatch, is_worker):
    freezes = []
    monkeypatch.setattr(rounds, "is_asked", lambda: is_worker)
    monkeypatch.setattr(gc, "freeze", lambda: freezes.append("freeze"))
    rounds.paired_rounds({"mode": lambda: None}, Budget(rounds=2, least=2, seconds=0.01), Random(0))
    assert freezes == ["freeze"] * is_worker

"""Steady state: found where a series has one, denied where it has none, and exact where brute force can check."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.instruments import rounds as steady
from compare.instruments.rounds import Rounds, steady_from


def series(levels, noise=0.01, seed=0):
    return (np.asarray(levels) * np.exp(np.random.default_rng(seed).normal(0, noise, len(levels)))).tolist()


@pytest.mark.parametrize("warm", [0, 1, 2, 3, 8, 15])
@pytest.mark.parametrize("factor", [1.2, 2.0, 0.7])
def test_a_warm_up_ends_where_it_ends(warm, factor):
    assert steady_from(series([factor] * warm + [1.0] * (20 - warm))) == warm


@pytest.mark.parametrize("noise", [0.005, 0.02, 0.1])
def test_noise_is_no_change(noise):
    found = [steady_from(series([1.0] * 20, noise, seed)) for seed in range(200)]
    assert found.count(0) >= 196


def test_a_spike_is_no_change_wherever_it_falls_but_first():
    for place in range(1, 20):
        levels = [1.0] * 20
        levels[place] = 5.0
        assert steady_from(series(levels)) == 0


def test_differences_of_no_interest_are_one_level():
    assert steady_from(series([1.04] * 10 + [1.0] * 10, 0.001)) == 0
    assert steady_from(series([1.07] * 10 + [1.0] * 10, 0.001)) == 10


@pytest.mark.parametrize("levels", [[1.0] * 17 + [1.5] * 3, (1.03 ** np.arange(40)).tolist()])
def test_a_level_that_still_changes_at_the_end_was_never_steady(levels):
    assert steady_from(series(levels)) is None


def test_one_block_is_steady_and_none_is_refused():
    assert steady_from([3.0]) == 0
    with pytest.raises(ValueError, match="no blocks"):
        steady_from([])


@given(st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=30), st.floats(1e-3, 1e3))
def test_the_unit_of_time_does_not_matter(seconds, unit):
    values = np.log(seconds)
    assert steady.segments(values, 0.01) == steady.segments(values + 7.0, 0.01)
    assert steady_from([1.0] * len(seconds)) == steady_from([unit] * len(seconds)) == 0


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=8), st.floats(0.01, 2))
def test_the_segments_cost_least_of_all(values, variance):
    values = np.asarray(values, float)

    def cost(starts):
        edges = [*starts, len(values)]
        pieces = [values[a:b] for a, b in pairwise(edges)]
        penalty = steady.PENALTY * np.log(len(values)) * variance
        return sum(((p - p.mean()) ** 2).sum() for p in pieces) + penalty * (len(starts) - 1)

    every = [(0, *more) for n in range(len(values)) for more in combinations(range(1, len(values)), n)]
    assert cost(steady.segments(values, variance)) == pytest.approx(min(map(cost, every)), abs=1e-9)


def rounds(**blocks):
    return Rounds(dict.fromkeys(blocks, 1), {mode: [9.0] for mode in blocks}, blocks)


def test_the_blocks_of_all_modes_begin_where_the_last_is_steady():
    slow = series([2.0] * 5 + [1.0] * 15, seed=1)
    found = rounds(a=series([1.0] * 20), b=slow)
    assert found.starts() == {"a": 0, "b": 5}
    assert found.warmup("b") == [9.0, *slow[:5]]
    assert {len(seconds) for seconds in found.steady().values()} == {15}
    assert found.steady()["b"] == slow[5:]


def test_a_slow_moment_that_all_modes_meet_is_the_machines():
    machine = [1.0] * 17 + [1.6] * 3
    found = rounds(a=series(machine), b=series(machine, seed=1), c=series(machine, seed=2))
    assert found.starts() == {"a": 0, "b": 0, "c": 0}


def test_an_mode_that_never_is_steady_keeps_its_blocks():
    found = rounds(a=series([1.0] * 20), b=series([1.0] * 17 + [1.5] * 3, seed=1))
    assert found.starts() == {"a": 0, "b": None}
    assert len(found.steady()["b"]) == 20

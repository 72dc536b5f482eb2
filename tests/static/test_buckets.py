"""Optimal buckets: never worse than any other choice, by brute force."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import static
from static.call.buckets import optimal

lengths = st.lists(st.integers(0, 40), min_size=1, max_size=12)


def wasted(lengths, boundaries, work=float):
    return sum(work(min(b for b in boundaries if b >= length)) for length in lengths)


def least(lengths, count, work=float):
    """By trying every choice of boundaries among the lengths."""
    sizes = sorted(set(lengths))
    choices = (c for k in range(1, count + 1) for c in combinations(sizes, min(k, len(sizes))) if c[-1] == sizes[-1])
    return min(wasted(lengths, choice, work) for choice in choices)


@given(lengths, st.integers(1, 5), st.sampled_from([float, lambda n: float(n * n), lambda n: 10.0 + n]))
def test_no_choice_of_boundaries_takes_less_work(lengths, count, work):
    found = optimal(lengths, count, work)
    assert list(found) == sorted(set(found))
    assert set(found) <= set(lengths)
    assert found[-1] == max(lengths)
    assert len(found) <= count
    assert wasted(lengths, found, work) == pytest.approx(least(lengths, count, work))


def test_values():
    assert optimal([3, 3, 3, 10, 11, 12], 2) == (3, 12)
    assert optimal([1, 2, 3, 4], 1) == (4,)
    assert optimal([7, 7, 7], 5) == (7,)
    assert optimal([1, 2, 3], 9) == (1, 2, 3)
    assert optimal([1] * 100 + [9, 10], 2) == (1, 10)
    assert optimal([1, 9, 10, 10, 10], 2) == (1, 10)


def test_more_boundaries_than_powers_of_two_never_waste_more():
    sizes = np.random.default_rng(0).integers(1, 200, 500).tolist()
    powers = sorted({1 << max(n - 1, 0).bit_length() for n in sizes})
    assert wasted(sizes, optimal(sizes, len(powers))) < wasted(sizes, powers)


@pytest.mark.parametrize(
    ("lengths", "count", "words"), [([], 2, "at least one"), ([3, -1], 2, "none below 0"), ([3], 0, "1 or more")]
)
def test_refusals(lengths, count, words):
    with pytest.raises(ValueError, match=words):
        optimal(lengths, count)


def test_a_jitted_function_compiles_once_for_each_bucket():
    sizes = [2, 3, 3, 8, 9, 9]
    twice = static.jit(lambda x: x * 2, shapes="bucket", dims=(("T",),), buckets=static.buckets.optimal(sizes, 2))
    for n in sizes:
        assert twice(np.ones(n, np.float32)).shape == (n,)
    assert twice.stats.compiles == 2
    assert twice.stats.computed == 3 * 3 + 3 * 9

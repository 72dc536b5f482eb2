"""Pooling with ceil_mode: windows written out one by one, sizes that vary, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import graphs as g
import static
from tests.helpers.engines import ENGINES, run

each_engine = pytest.mark.parametrize("engine", ENGINES)


def pooled(row, size, stride, padding, dilation):
    """What is in each window that begins before the end: its elements, and how many of its places are padding."""
    begin, found = -padding, []
    last = len(row) + padding
    while begin < len(row) and (begin + dilation * (size - 1) < last + stride - 1 or begin == -padding):
        places = [begin + tap * dilation for tap in range(size)]
        found.append(
            ([row[p] for p in places if 0 <= p < len(row)], sum(p < 0 or len(row) <= p < last for p in places))
        )
        begin += stride
    return found


@given(st.integers(1, 9), st.integers(1, 4), st.integers(1, 4), st.integers(0, 2), st.integers(1, 3))
def test_windows_that_reach_beyond_the_padding_count(length, size, stride, padding, dilation):
    assume(padding <= size // 2 and length + 2 * padding + stride > dilation * (size - 1) + 1)
    row = np.random.default_rng(length).normal(size=length)
    windows = pooled(row, size, stride, padding, dilation)
    largest = g.max_pool1d(row[None, None], size, stride, padding, dilation, ceil_mode=True)
    np.testing.assert_array_equal(largest[0, 0], [max(inside, default=-np.inf) for inside, _ in windows])
    if dilation == 1:
        for padded in (True, False):
            found = g.avg_pool1d(row[None, None], size, stride, padding, ceil_mode=True, count_include_pad=padded)
            expected = [sum(inside) / (len(inside) + (around if padded else 0)) for inside, around in windows]
            np.testing.assert_allclose(found[0, 0], expected, rtol=1e-12)


@each_engine
def test_a_last_window_of_one_element_is_that_element(engine):
    x = np.arange(5.0)[None, None]
    for pool in (g.max_pool1d, g.avg_pool1d):
        assert run(engine, lambda x, f=pool: f(x, 2, ceil_mode=True), x)[0, 0, -1] == 4
        assert run(engine, lambda x, f=pool: f(x, 2), x).shape == (1, 1, 2)


def test_sizes_that_vary_need_a_stride_of_1():
    def f(x, stride):
        return g.max_pool1d(x, 3, stride, 1, ceil_mode=True) + g.avg_pool1d(x, 3, stride, 1, ceil_mode=True)

    spec = g.TensorSpec(("B", 2, "T"), "float64")
    exe = static.compile(lambda x: f(x, 1), spec)
    for shape in ((1, 2, 4), (2, 2, 7)):
        x = np.random.default_rng(shape).normal(size=shape)
        np.testing.assert_allclose(exe(x), f(x, 1), rtol=1e-12)
    with pytest.raises(g.ShapeError, match="max_pool1d: with ceil_mode the windows over a size of T are not known"):
        static.compile(lambda x: f(x, 2), spec)
    batches = static.compile(lambda x: f(x, 2), g.TensorSpec(("B", 2, 6), "float64"))
    np.testing.assert_allclose(batches(np.ones((3, 2, 6))), f(np.ones((3, 2, 6)), 2))

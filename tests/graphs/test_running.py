"""Running extremes and their places, and logcumsumexp: ties, NaN, infinities, any size, batches, padding."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.special
from hypothesis import given
from hypothesis import strategies as st

import dynamic
import graphs as g
import static
from tests.helpers.engines import ENGINES, gradients, run

each_engine = pytest.mark.parametrize("engine", ENGINES)
inf, nan = math.inf, math.nan


def latest(row, is_better):
    """The place of the best so far, step by step: the last of equals, and the last NaN once there is one."""
    best, places = 0, []
    for i, value in enumerate(row):
        if math.isnan(value) or (not math.isnan(row[best]) and is_better(value, row[best])):
            best = i
        places.append(best)
    return places


@given(st.lists(st.sampled_from([-1.0, 0.0, -0.0, 1.0, 2.0, nan, inf, -inf]), min_size=1, max_size=8))
def test_places_are_found_step_by_step(row):
    x = np.array(row)
    for f, is_better in ((g.cummax, float.__ge__), (g.cummin, float.__le__)):
        values, indices = f(x)
        assert indices.tolist() == latest(row, is_better)
        np.testing.assert_array_equal(values, x[indices])


@each_engine
def test_every_axis_and_dtype(engine):
    x = np.round(np.random.default_rng(0).normal(size=(3, 4, 2)) * 2)
    for axis in (0, 1, -1):
        values = run(engine, lambda x, axis=axis: g.cummax(x, axis).values, x)
        np.testing.assert_array_equal(values, np.maximum.accumulate(x, axis))
        whole = run(engine, lambda x, axis=axis: g.cummin(x, axis).values, x.astype(np.int8))
        np.testing.assert_array_equal(whole, np.minimum.accumulate(x.astype(np.int8), axis))
        assert whole.dtype == np.int8


def test_an_index_has_pytorchs_names_and_no_gradient():
    x = dynamic.tensor([1.0, 3.0, 2.0], requires_grad=True)
    found = x.cummax(dim=0)
    assert found.indices.tolist() == dynamic.cummax(x, dim=0).indices.tolist() == [0, 1, 1]
    assert not found.indices.requires_grad
    assert x.cummin(0).values.tolist() == [1, 1, 1]
    np.testing.assert_array_equal(x.logcumsumexp(0).tolist(), dynamic.logcumsumexp(x, dim=0).tolist())


@given(st.lists(st.floats(-900, 900) | st.just(-inf), min_size=1, max_size=6))
def test_logcumsumexp_is_logsumexp_of_what_came_before(row):
    x = np.array(row)
    expected = [scipy.special.logsumexp(x[: i + 1]) for i in range(len(x))]
    np.testing.assert_allclose(g.logcumsumexp(x), expected, rtol=1e-12, atol=1e-12)
    slope = dynamic.grad(lambda x: g.sum(g.logcumsumexp(x)))(x)
    theirs = sum(scipy.special.softmax(x[: i + 1]) @ np.eye(i + 1, len(x)) for i in range(len(x)) if expected[i] > -inf)
    np.testing.assert_allclose(slope, theirs + np.zeros(len(x)), rtol=1e-9, atol=1e-12)


@each_engine
def test_nothing_so_far_has_no_slope_to_second_order(engine):
    x = np.array([-inf, -inf, 1.0, -inf, 2.0])

    def slope(x):
        return g.sum(ENGINES[engine].grad(lambda x: g.sum(g.logcumsumexp(x)))(x) * np.arange(5.0))

    assert np.isfinite(gradients(engine, slope, x)[0]).all()


def test_one_graph_serves_all_sizes():
    def f(x):
        return g.sum(g.cummax(x, 0).values * g.logcumsumexp(x, 0))

    exe = static.compile(static.value_and_grad(f), g.TensorSpec(("N", 2), "float64"))
    for n in (0, 1, 5):
        x = np.random.default_rng(n).normal(size=(n, 2))
        value, slope = exe(x)
        np.testing.assert_allclose(value, f(x))
        np.testing.assert_allclose(slope, dynamic.grad(f)(x), rtol=1e-12)


def test_batches_of_them_are_one_by_one():
    rows = [np.random.default_rng(i).normal(size=(3, 4)) for i in range(4)]

    def f(x):
        return g.sum(g.cummin(x, 0).values * g.logcumsumexp(x, 1))

    expected = [dynamic.value_and_grad(f)(row) for row in rows]
    leaves = [dynamic.tensor(row, requires_grad=True) for row in rows]
    with dynamic.batched():
        values = [f(leaf) for leaf in leaves]
    g.sum(g.stack(values)).backward()
    for value, leaf, (want, slope) in zip(values, leaves, expected, strict=True):
        np.testing.assert_allclose(value.tolist(), want, rtol=1e-12)
        np.testing.assert_allclose(leaf.grad.tolist(), slope, rtol=1e-12)


def test_padding_that_runs_along_is_refused_and_a_padded_batch_is_not():
    def f(x, mask):
        return g.sum(g.where(mask[:, None], g.cummax(x, 1).values + g.logcumsumexp(x, 1), 0))

    x, mask = np.random.default_rng(0).normal(size=(3, 4)), np.ones(3, bool)
    padded = static.jit(f, shapes="bucket", dims=(("N", None), ("N",)), buckets=(4,))
    np.testing.assert_allclose(padded(x, mask), f(x, mask))
    along = static.jit(lambda x: g.cummax(x, 1).values[:, -1], shapes="bucket", dims=((None, "T"),), buckets=(8,))
    with pytest.raises(g.ShapeError, match="padding"):
        along(x)


@pytest.mark.parametrize("f", [g.cummax, g.cummin, g.logcumsumexp])
def test_an_axis_that_is_not_there_is_refused(f):
    with pytest.raises(g.OutOfRangeError, match="axis 2 is out of range for 2 axes"):
        f(np.ones((2, 2)), 2)
    with pytest.raises(g.OutOfRangeError, match="axis -1 is out of range for 0 axes"):
        f(np.ones(()))

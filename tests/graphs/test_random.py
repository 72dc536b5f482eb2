"""Random numbers: fixed streams, equal in both engines, new for another key, and distributed as they say."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

import dynamic
import graphs
import static
from tests.helpers.engines import ENGINES, gradients, run

KEY = graphs.random_key(1)
MANY = 200_000
each_engine = pytest.mark.parametrize("engine", ENGINES)
seeds = st.integers(0, 2**64 - 1)


# The streams are promised for ever: these numbers may not change ------------------------------------------------


def test_the_stream_of_a_seed_is_fixed():
    np.testing.assert_array_equal(graphs.random_key(5), np.array([5, 0], np.uint64))
    raw = np.random.Philox(key=np.array([1, 0], np.uint64), counter=np.zeros(4, np.uint64)).random_raw(2)
    np.testing.assert_array_equal(graphs.uniform(KEY, (2,)), (raw >> np.uint64(11)) / 2.0**53)
    np.testing.assert_array_equal(graphs.uniform(KEY, (3,)), UNIFORM)
    np.testing.assert_array_equal(graphs.uniform(KEY, (3,), "float32"), UNIFORM_SINGLE)
    np.testing.assert_allclose(graphs.normal(KEY, (3,)), NORMAL, rtol=1e-14)
    np.testing.assert_array_equal(graphs.split_key(KEY), SPLIT)
    np.testing.assert_array_equal(graphs.fold_in(KEY, 3), FOLDED)


UNIFORM = [0.3035680343067586, 0.8487087496857769, 0.1561347780434731]
UNIFORM_SINGLE = np.array([0.4585343599319458, 0.3035680055618286, 0.7294625043869019], np.float32)
NORMAL = [0.4730962764258938, 1.9064733866232129, 0.706930162629125]
SPLIT = np.array([[4978906544001802683, 18317224390208822039], [10218913774611940194, 14519389193509363506]], np.uint64)
FOLDED = np.array([6649467637274347345, 1664830243804975061], np.uint64)


@given(seeds, st.integers(0, 50))
def test_more_uniform_numbers_begin_with_the_same(seed, count):
    key = graphs.random_key(seed)
    for dtype in ("float64", "float32"):
        longer = graphs.uniform(key, (51,), dtype)
        np.testing.assert_array_equal(graphs.uniform(key, (count,), dtype), longer[:count])
        np.testing.assert_array_equal(graphs.uniform(key, (3, 17), dtype), longer.reshape(3, 17))


# Distributions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_numbers_follow_their_distribution(dtype):
    uniform, normal = graphs.uniform(KEY, (MANY,), dtype), graphs.normal(KEY, (MANY,), dtype)
    assert uniform.dtype == normal.dtype == dtype
    assert uniform.min() >= 0
    assert uniform.max() < 1
    assert np.isfinite(normal).all()
    if dtype != "float16":  # whose 2048 values no continuous distribution has
        assert scipy.stats.kstest(uniform, "uniform").pvalue > 1e-3
        assert scipy.stats.kstest(normal, "norm").pvalue > 1e-3


def test_bernoulli_has_its_probability():
    assert abs(np.mean(graphs.bernoulli(KEY, 0.3, (MANY,))) - 0.3) < 5e-3
    rates = np.array([0.0, 1.0, 0.5])
    means = np.mean(graphs.bernoulli(KEY, rates, (10_000, 3)), axis=0)
    np.testing.assert_array_equal(means[:2], [0, 1])
    assert abs(means[2] - 0.5) < 0.03


def test_derived_keys_are_independent():
    keys = [KEY, *graphs.split_key(KEY, 4), *(graphs.fold_in(KEY, i) for i in range(4)), graphs.random_key(2)]
    streams = np.array([graphs.uniform(key, (20_000,)) for key in keys])
    correlation = np.corrcoef(streams) - np.eye(len(keys))
    assert np.abs(correlation).max() < 0.03
    np.testing.assert_array_equal(graphs.split_key(KEY, 4)[:2], graphs.split_key(KEY, 2))


@given(seeds, st.integers(-(2**63), 2**63 - 1))
def test_folding_in_takes_any_integer(seed, number):
    folded = graphs.fold_in(graphs.random_key(seed), number)
    assert folded.shape == (2,)
    assert not np.array_equal(folded, graphs.fold_in(graphs.random_key(seed), number ^ 1))


# Both engines ---------------------------------------------------------------------------------------------------


def noisy(x, key):
    first, second = graphs.split_key(key)
    noise = graphs.normal(graphs.fold_in(first, 3), x.shape, "float32")
    return graphs.dropout(x + noise, 0.4, second) * graphs.uniform(key, (), "float32")


def test_both_engines_draw_the_same_numbers():
    x = np.ones((4, 5), np.float32)
    np.testing.assert_array_equal(run("dynamic", noisy, x, KEY), noisy(x, KEY))
    np.testing.assert_array_equal(run("static", noisy, x, KEY), noisy(x, KEY))


def test_a_key_that_is_an_input_gives_other_numbers_without_another_compile():
    step = static.jit(noisy)
    x = np.ones((4, 5), np.float32)
    results = [step(x, graphs.fold_in(KEY, i)) for i in range(3)]
    assert step.stats.compiles == 1
    for i, result in enumerate(results):
        np.testing.assert_array_equal(result, noisy(x, graphs.fold_in(KEY, i)))
    assert not np.array_equal(results[0], results[1])


def test_the_number_of_a_step_may_be_an_input():
    def draw(step):
        return graphs.uniform(graphs.fold_in(KEY, step), (3,))

    exe = static.compile(draw, np.array(0))
    for step in (0, 7):
        np.testing.assert_array_equal(exe(np.array(step)), draw(step))


def test_symbolic_sizes_draw_as_numbers_do():
    def drop(x, key):
        return graphs.dropout(x, 0.5, key)

    def constant_key(x):
        return graphs.dropout(x, 0.5, KEY)

    spec = graphs.TensorSpec(("B", 3), "float64")
    by_input, by_constant = static.compile(drop, spec, KEY), static.compile(constant_key, spec)
    for size in (0, 1, 4):
        x = np.ones((size, 3))
        np.testing.assert_array_equal(by_input(x, KEY), drop(x, KEY))
        np.testing.assert_array_equal(by_constant(x), drop(x, KEY))


@each_engine
def test_the_gradient_of_dropout_is_its_mask(engine):
    x = np.full((50, 40), 3.0)
    dropped = run(engine, lambda x: graphs.dropout(x, 0.25, KEY), x)
    (gradient,) = gradients(engine, lambda x: graphs.sum(graphs.dropout(x, 0.25, KEY)), x)
    np.testing.assert_allclose(dropped, x * gradient)
    np.testing.assert_allclose(np.unique(gradient), [0, 1 / 0.75])
    assert abs(np.mean(gradient) - 1) < 0.05


def test_dropout_at_its_ends():
    x = np.ones((3, 4))
    assert graphs.dropout(x, 0.5, None) is x
    assert graphs.dropout(x, 0, KEY) is x
    np.testing.assert_array_equal(graphs.dropout(x, 1, KEY), np.zeros((3, 4)))
    with pytest.raises(ValueError, match="the rate is a probability"):
        graphs.dropout(x, 1.5, KEY)


def test_random_ops_are_recorded_like_any_other():
    graph = dynamic.record(noisy, np.ones((4, 5), np.float32), KEY)
    assert graph.op_counts()["uniform"] == 2
    assert graphs.isomorphic(graph, static.trace(noisy, np.ones((4, 5), np.float32), KEY))


# Refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [0, np.zeros(2), np.zeros(4, np.uint64)])
def test_what_is_no_key_is_named(key):
    with pytest.raises(graphs.ShapeError, match=r"a key is u64\[2\].*random_key"):
        graphs.uniform(key, (3,))


def test_seeds_and_dtypes_are_checked():
    for seed in (-1, 2**64):
        with pytest.raises(ValueError, match="a seed is from 0 to"):
            graphs.random_key(seed)
    with pytest.raises(graphs.DTypeError, match="floating point"):
        graphs.normal(KEY, (3,), np.int64)
    with pytest.raises(graphs.ShapeError, match="folds in one number"):
        graphs.fold_in(KEY, np.zeros(2, int))

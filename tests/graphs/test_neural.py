"""Special functions, composites at the edges, normalisation, attention and losses."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.special

import graphs
import static
from graphs.testing import check_grads
from tests.helpers.arrays import values
from tests.helpers.engines import ENGINES, each_engine, gradients, run
from tests.helpers.slow import examples

few = examples(0.6)
CAUSAL = np.tri(4, dtype=bool)
inf, nan = math.inf, math.nan


# Special functions ----------------------------------------------------------------------------------------------


def distance(got, exact):
    """The largest error in units in the last place of the exact values rounded to the dtype of `got`."""
    rounded = np.abs(exact).astype(got.dtype)
    return np.max(np.abs(got.astype(float) - exact) / np.spacing(np.maximum(rounded, np.finfo(got.dtype).tiny)))


POINTS = np.concatenate([np.linspace(-7, 7, 4001), np.linspace(-0.6, 0.6, 2001), np.logspace(-300, 0, 301)])


def test_erf_to_the_last_digits():
    exact = np.array([math.erf(x) for x in POINTS])
    assert distance(graphs.erf(POINTS), exact) <= 5
    single = POINTS.astype(np.float32)
    assert distance(graphs.erf(single), np.array([math.erf(x) for x in single])) <= 6


def test_erfc_to_the_last_digits_of_its_tail():
    points = np.concatenate([POINTS, np.linspace(0, 26, 4001)])
    assert distance(graphs.erfc(points), np.array([math.erfc(x) for x in points])) <= 8
    single = np.linspace(-4, 9, 4001).astype(np.float32)
    assert distance(graphs.erfc(single), np.array([math.erfc(x) for x in single])) <= 10


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_ends_of_the_error_functions(dtype):
    x = np.array([0.0, -0.0, inf, -inf, nan, 100, -100], dtype)
    np.testing.assert_array_equal(graphs.erf(x), np.array([0, -0.0, 1, -1, nan, 1, -1], dtype))
    assert np.signbit(graphs.erf(x)[1])
    np.testing.assert_array_equal(graphs.erfc(x), np.array([1, 1, 0, 2, nan, 0, 2], dtype))
    assert graphs.erf(x).dtype == graphs.erfc(x).dtype == dtype


def test_gelu_is_x_times_the_normal_distribution():
    x = np.linspace(-6, 6, 101)
    np.testing.assert_allclose(graphs.gelu(x), x * scipy.special.ndtr(x), rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(graphs.gelu(x, approximate=True), graphs.gelu(x), atol=5e-4)


# Composites at the edges ----------------------------------------------------------------------------------------


@each_engine
def test_logsumexp_of_infinities(engine):
    x = np.array([[-inf, 0, 1], [inf, 0, -inf], [inf, inf, 0], [nan, 0, 1]])
    got = run(engine, lambda x: graphs.logsumexp(x, axis=-1), x)
    np.testing.assert_allclose(got, [np.log(1 + np.e), inf, inf, nan])
    with np.errstate(divide="ignore"):
        assert run(engine, graphs.logsumexp, np.full(3, -inf)) == -inf
    (gradient,) = gradients(engine, lambda x: graphs.sum(graphs.logsumexp(x, axis=-1)), x[:1])
    np.testing.assert_allclose(gradient, [[0, 1 / (1 + np.e), np.e / (1 + np.e)]])


def test_log_softmax_keeps_the_digits_of_small_differences():
    x = np.array([1e5, 1e5 + 0.25], np.float32)
    np.testing.assert_allclose(graphs.log_softmax(x), scipy.special.log_softmax([0, 0.25]), rtol=1e-6)


@each_engine
def test_softmax_with_masked_entries(engine):
    x = np.array([[-inf, 0.0, 0.0], [1.0, -inf, -inf]])
    np.testing.assert_array_equal(run(engine, graphs.softmax, x), [[0, 0.5, 0.5], [1, 0, 0]])
    (gradient,) = gradients(engine, lambda x: graphs.sum(graphs.softmax(x) ** 2), x)
    np.testing.assert_array_equal(gradient, np.zeros((2, 3)))


@each_engine
def test_the_gradient_of_a_standard_deviation_of_zero_is_zero(engine):
    x = np.array([[2.0, 2.0], [1.0, 3.0]])
    (gradient,) = gradients(engine, lambda x: graphs.sum(graphs.std(x, axis=1)), x)
    np.testing.assert_allclose(gradient, [[0, 0], [-0.5, 0.5]])


# Normalisation, dropout, attention, losses ----------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(5, 3), (4, 3, 6), (2, 3, 4, 2)])
def test_batch_norm_by_the_batch_and_by_given_statistics(shape):
    x, scale, shift = values(*shape), values(3), values(3)
    axes = tuple(i for i in range(x.ndim) if i != 1)
    column = (3, *(1,) * (x.ndim - 2))
    normal = (x - x.mean(axes).reshape(column)) / np.sqrt(x.var(axes).reshape(column) + 1e-5)
    expected = normal * scale.reshape(column) + shift.reshape(column)
    np.testing.assert_allclose(graphs.batch_norm(x, scale, shift), expected)
    mean, variance = graphs.batch_statistics(x)
    np.testing.assert_allclose(graphs.batch_norm(x, scale, shift, mean, variance), expected)
    np.testing.assert_allclose(graphs.batch_norm(x), normal)


@pytest.mark.parametrize("size", [4095, 4096, 8191, 8192, 8193, 20000])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
def test_relu_of_many_elements_is_that_of_each(size, dtype):
    x = np.resize(np.array([-2, 3, 0, -1, 5], dtype), (2, size))
    if x.dtype.kind == "f":
        x[:, -3:] = nan, inf, -inf
    for laid in (x, x[:, ::-1], x[:, 1:]):
        np.testing.assert_array_equal(graphs.relu(laid), np.where(laid < 0, np.zeros((), dtype), laid), strict=True)
        into = np.empty((*laid.shape, 2), dtype)[..., 0]
        graphs.relu.kernel(laid, out=into)
        np.testing.assert_array_equal(into, graphs.relu(laid))


def test_group_and_instance_norm():
    x = values(2, 4, 3)
    grouped = x.reshape(2, 2, 6)
    expected = (grouped - grouped.mean(-1, keepdims=True)) / np.sqrt(grouped.var(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(graphs.group_norm(x, 2), expected.reshape(x.shape))
    np.testing.assert_allclose(graphs.instance_norm(x), graphs.group_norm(x, 4))
    with pytest.raises(graphs.ShapeError, match="4 channels do not divide into 3 groups"):
        graphs.group_norm(x, 3)


@pytest.mark.diagonal("engine", "f")
@each_engine
@pytest.mark.parametrize(
    "f",
    [
        graphs.gelu,
        lambda x: graphs.gelu(x, approximate=True),
        lambda x: graphs.leaky_relu(x, 0.1) ** 2,
        lambda x: graphs.elu(x, 0.5),
        lambda x: graphs.batch_norm(x, x[0, :, 0], x[1, :, 0]),
        lambda x: graphs.group_norm(x, 2, x[0, :, 0]),
        lambda x: graphs.rms_norm(x, x[0, 0]),
        lambda x: graphs.attention(x, x + 1, x * 2, CAUSAL),
        lambda x: graphs.mse_loss(x, 2 * x**2),
        lambda x: graphs.huber_loss(x, 2 * x**2, 0.5),
        lambda x: graphs.binary_cross_entropy_with_logits(x, graphs.sigmoid(x + 1)),
        lambda x: graphs.dropout(x**2, 0.3, graphs.random_key(1)),
    ],
    ids=lambda f: getattr(f, "__name__", ""),
)
def test_second_order_of_composites(engine, f):
    check_grads(f, (values(2, 4, 3),), order=2, engine=ENGINES[engine])


@each_engine
def test_attention_of_a_row_that_sees_nothing_is_zero(engine):
    q, k, v = values(2, 3), values(4, 3), values(4, 5)
    mask = np.array([[True, True, False, False], [False] * 4])
    got = run(engine, lambda q, k, v: graphs.attention(q, k, v, mask), q, k, v)
    weights = scipy.special.softmax((q @ k.T / np.sqrt(3))[0, :2])
    np.testing.assert_allclose(got, [weights @ v[:2], np.zeros(5)])
    for gradient in gradients(engine, lambda q, k, v: graphs.sum(graphs.attention(q, k, v, mask)), q, k, v):
        assert np.isfinite(gradient).all()


@each_engine
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_mask_of_floats_is_added(engine, dtype):
    q, k, v = values(2, 3).astype(dtype), values(4, 3).astype(dtype), values(4, 5).astype(dtype)
    bias = np.array([[0.5, -1.0, 0.0, -np.inf], [-np.inf] * 4])
    got = run(engine, graphs.attention, q, k, v, bias)
    weights = scipy.special.softmax((q @ k.T / np.sqrt(3) + bias)[0])
    np.testing.assert_allclose(got, [weights @ v, np.zeros(5)], rtol=1e-5)
    assert got.dtype == dtype
    allowed = np.isfinite(bias)
    chosen, added = (run(engine, graphs.attention, q, k, v, m) for m in (allowed, np.where(allowed, 0.0, -np.inf)))
    np.testing.assert_array_equal(added, chosen)
    for gradient in gradients(engine, lambda *xs: graphs.sum(graphs.attention(*xs) ** 2), q, k, v, bias):
        assert np.isfinite(gradient).all()


@each_engine
def test_a_mask_of_floats_has_gradients_and_one_of_ints_is_refused(engine):
    q, k, v = values(2, 3), values(4, 3), values(4, 5)
    check_grads(lambda m: graphs.attention(q, k, v, m), (values(2, 4),), order=2, engine=ENGINES[engine])
    with pytest.raises(graphs.DTypeError, match="attention: a mask is bool, or float and added"):
        run(engine, lambda q, k, v: graphs.attention(q, k, v, np.ones((2, 4), int)), q, k, v)


def test_attention_of_a_symbolic_width():
    spec = graphs.TensorSpec(("T", "D"), "float32")
    exe = static.compile(graphs.attention, spec, spec, spec)
    assert exe.graph.outputs[0].spec == spec
    q, k, v = (values(3, 4, seed=seed).astype(np.float32) for seed in range(3))
    np.testing.assert_allclose(exe(q, k, v), graphs.attention(q, k, v), rtol=1e-6)


def test_cross_entropy_of_certain_logits_is_exact():
    logits, target = np.array([1000.0, -1000.0, 40.0]), np.array([1.0, 0.0, 1.0])
    got = graphs.binary_cross_entropy_with_logits(logits, target)
    np.testing.assert_allclose(got, np.log1p(np.exp(-40)) / 3, rtol=1e-12)

"""Sums over rows and along rows: values as in float64, whatever the layout, and each row the same in any block."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphs
from graphs.ops.scans import sum_sorted_axes
from tests.helpers.engines import ENGINES, gradients, run

SHAPES = [
    (0, 40), (40, 0), (3, 5), (63, 64), (64, 64), (5000, 1), (5000, 2), (300, 15), (300, 16), (2, 4096), (2, 4097),
    (2, 64, 50), (16, 16, 17), (2, 3, 40, 20), (8, 3, 16, 16), (128, 1, 40), (5000,),
]  # fmt: skip
LAYOUTS = {
    "rows": np.asarray,
    "columns": np.asfortranarray,
    "strided": lambda x: np.repeat(x, 2, -1)[..., ::2],
    "backwards": lambda x: x[::-1].copy()[::-1],
}
TOLERANCES = {"float32": 1e-5, "float64": 1e-14}


def axes_of(ndim):
    subsets = [tuple(a for a in range(ndim) if number >> a & 1) for number in range(1 << ndim)]
    return [*subsets, None, -1]


@pytest.mark.diagonal("shape", "layout", "dtype")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", TOLERANCES)
def test_sums_and_means_are_those_of_float64(shape, layout, dtype):
    x = LAYOUTS[layout](np.random.default_rng(3).uniform(1, 9, shape).astype(dtype))
    wide, tolerance = x.astype("float64"), TOLERANCES[dtype]
    for axis in axes_of(x.ndim):
        for keepdims in (False, True):
            exact = wide.sum(axis=axis, keepdims=keepdims)
            got = graphs.sum(x, axis=axis, keepdims=keepdims)
            assert (got.shape, got.dtype) == (exact.shape, x.dtype)
            np.testing.assert_allclose(got, exact, rtol=tolerance)
            if 0 not in shape:
                mean = graphs.mean(x, axis=axis, keepdims=keepdims)
                assert (mean.shape, mean.dtype) == (exact.shape, x.dtype)
                np.testing.assert_allclose(mean, wide.mean(axis=axis, keepdims=keepdims), rtol=tolerance)


@pytest.mark.diagonal("shape", "dtype")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["int8", "int32", "uint64", "bool"])
def test_what_blas_does_not_add_has_the_bits_of_numpy(shape, dtype):
    x = np.random.default_rng(3).integers(0, 9, shape).astype(dtype)
    for axis in axes_of(x.ndim)[:-2]:
        for keepdims in (False, True):
            got, expected = sum_sorted_axes(x, axis, None, None, keepdims), np.add.reduce(x, axis, None, None, keepdims)
            np.testing.assert_array_equal(got, expected, strict=True)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sums_go_where_they_are_told_in_the_dtype_that_is_asked_for(shape):
    x = np.random.default_rng(4).normal(size=shape).astype("float32")
    for axis in axes_of(x.ndim)[:-2]:
        for keepdims in (False, True):
            exact = x.astype("float64").sum(axis=axis, keepdims=keepdims)
            for dtype in ("float32", "float64"):
                buffer = np.empty((*exact.shape, 2), dtype)[..., 0]  # of any layout
                attrs = {"axis": axis, "keepdims": keepdims, "dtype": np.dtype(dtype)}
                assert graphs.sum.kernel(x, out=buffer, **attrs) is buffer
                np.testing.assert_allclose(buffer, exact, rtol=1e-4, atol=1e-4 if dtype == "float32" else 1e-12)


@pytest.mark.parametrize("axis", [(0,), (1,)])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38])
def test_what_is_not_finite_reaches_its_own_sum_alone(axis, value):
    x = np.ones((260, 20), np.float32)
    x[5, 3] = x[6, 3] = x[5, 4] = value
    with np.errstate(over="ignore", invalid="ignore"):
        expected = x.astype("float64").sum(axis=axis).astype("float32")
        np.testing.assert_array_equal(sum_sorted_axes(x, axis), expected)
        x[6, 3] = -value
        opposed = sum_sorted_axes(x, axis)[3 if axis == (0,) else 5]
    assert np.isnan(opposed) == (np.isnan(value) or (np.isinf(value) and axis == (0,)))


@given(st.integers(256, 400), st.integers(16, 200), st.data(), st.sampled_from([np.float32, np.float64]))
def test_a_row_has_the_same_bits_in_any_large_block_of_rows(rows, length, data, dtype):
    x = np.random.default_rng(rows).normal(size=(rows, length)).astype(dtype)
    least = -(-4096 // length)
    start = data.draw(st.integers(0, rows - least))
    stop = data.draw(st.integers(start + least, rows))
    whole = sum_sorted_axes(x, (1,))
    np.testing.assert_array_equal(sum_sorted_axes(x[start:stop], (1,)), whole[start:stop])
    np.testing.assert_array_equal(sum_sorted_axes(x[None], (2,), None, None, True)[0, :, 0], whole)


@pytest.mark.parametrize("shape", [(100_000, 3), (3, 4096)])
def test_long_sums_of_singles_lose_no_more_digits_than_numpys(shape):
    x = (np.random.default_rng(0).normal(size=shape) + 1).astype(np.float32)
    axis = (0,) if shape[0] > shape[1] else (1,)
    exact = x.astype(np.float64).sum(axis)
    error, theirs = (np.max(np.abs(s - exact) / exact) for s in (sum_sorted_axes(x, axis), np.add.reduce(x, axis)))
    assert error <= 2 * theirs + 4 * np.finfo(np.float32).eps


def test_gradients_through_broadcasting_are_sums_too():
    """Of a bias and of a column, by both engines, against float64."""
    import dynamic
    import static

    def loss(params, x):
        return graphs.sum(graphs.tanh(x * params["column"] + params["bias"]) ** 2)

    random = np.random.default_rng(1)
    x = random.normal(size=(4, 64, 33))
    params = {"column": random.normal(size=(4, 64, 1)), "bias": random.normal(size=33)}
    _, exact = dynamic.value_and_grad(loss)(params, x)
    singles = {name: value.astype(np.float32) for name, value in params.items()}
    for engine in (dynamic, static):
        _, grads = engine.value_and_grad(loss)(singles, x.astype(np.float32))
        for name, grad in grads.items():
            assert grad.shape == params[name].shape
            np.testing.assert_allclose(np.asarray(grad), np.asarray(exact[name]), rtol=2e-4, atol=2e-4)


HALF = {  # of 70,000 numbers, more than float16 has: what it gives, and its gradient, as PyTorch has them
    "mean": (graphs.mean, np.ones(70000), 1.0, 1.4305e-05),
    "max": (graphs.max, np.ones(70000), 1.0, 1.4305e-05),
    "var": (graphs.var, np.arange(70000) % 2 * 2.0, 1.0, -2.861e-05),
    "std": (graphs.std, np.arange(70000) % 2 * 2.0, 1.0, -1.4305e-05),
    "l1_loss": (lambda x: graphs.l1_loss(x, graphs.zeros_like(x)), np.ones(70000), 1.0, 1.4305e-05),
    "average": (lambda x: graphs.avg_pool2d(graphs.reshape(x, (1, 1, 2, 2)), 2).sum(), np.full(4, 6e4), 6e4, 0.25),
    "cumulative_sum": (lambda x: graphs.cumulative_sum(x)[-1], np.full(20000, 0.1), 2000.0, 1.0),
    "sum over rows": (lambda x: graphs.sum(x, axis=0), np.full(20000, 0.1), 2000.0, 1.0),
    "sum of columns": (lambda x: graphs.sum(graphs.reshape(x, (-1, 2)), axis=0)[0], np.full(40000, 0.1), 2000.0, 1.0),
    "softmax": (lambda x: graphs.softmax(x)[-1], np.zeros(70000), 1.4305e-05, 0.0),
    "log_softmax": (lambda x: graphs.log_softmax(x)[-1], np.zeros(70000), -11.156, -1.4305e-05),
    "logsumexp": (graphs.logsumexp, np.zeros(70000), 11.156, 1.4305e-05),
    "logcumsumexp": (lambda x: graphs.logcumsumexp(x)[-1], np.zeros(70000), 11.156, 1.4305e-05),
    "norm": (graphs.linalg.vector_norm, np.full(1000, 30.0), 948.5, 0.0316),
}


@pytest.mark.parametrize("name", HALF)
def test_float16_counts_and_adds_beyond_its_own_numbers(name):
    f, x, value, slope = HALF[name]
    half = x.astype(np.float16)
    for engine in ENGINES:
        assert abs(float(run(engine, f, half)) / value - 1) < 2e-3
        assert run(engine, f, half).dtype == np.float16
        for _ in range(2):  # the compiled tape learns a call that comes again
            np.testing.assert_allclose(gradients(engine, f, half)[0][0], np.float16(slope), rtol=2e-3)


@pytest.mark.parametrize("x", [[0, 0, 1e200, 1e200], [1e200, 1e200, 0, 5, 0], [0, 3, 1e200, 1e200], [2, 0, 4, 5]])
def test_a_zero_elsewhere_makes_a_product_zero_though_another_part_overflows(x):
    x = np.array(x, np.float64)
    with np.errstate(over="ignore"):
        others = [0.0 if 0 in np.delete(x, i) else np.prod(np.delete(x, i)) for i in range(len(x))]
    for engine in ENGINES:
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(gradients(engine, graphs.prod, x)[0], others)

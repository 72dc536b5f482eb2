"""interpolate: against NumPy's own, gradients of a fixed graph for every batch, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dynamic
import graphs as g
import static
from graphs import DTypeError, ShapeError
from tests.helpers.engines import ENGINES, gradients, run

each_engine = pytest.mark.parametrize("engine", ENGINES)


def values(*shape):
    return np.asarray(np.random.default_rng(shape).normal(size=shape))


@given(st.integers(1, 9), st.integers(1, 20))
def test_linear_with_aligned_corners_is_numpys_interp(have, want):
    x = values(1, 2, have)
    found = g.interpolate(x, want, mode="linear", align_corners=True)
    places = np.linspace(0, have - 1, want)
    np.testing.assert_allclose(found[0], [np.interp(places, np.arange(have), row) for row in x[0]], atol=1e-12)


@given(st.integers(1, 9), st.integers(1, 20))
def test_linear_without_is_numpys_interp_of_the_middles(have, want):
    x = values(1, 1, have)
    middles = (np.arange(want) + 0.5) * have / want
    expected = np.interp(middles, np.arange(have) + 0.5, x[0, 0])  # which keeps the ends beyond the first and the last
    np.testing.assert_allclose(g.interpolate(x, want, mode="linear")[0, 0], expected, atol=1e-12)


@each_engine
@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
def test_a_whole_factor_repeats_the_nearest(engine, dtype):
    x = np.arange(12).astype(dtype).reshape(1, 2, 2, 3)
    for mode in ("nearest", "nearest-exact"):
        found = run(engine, lambda x, mode=mode: g.interpolate(x, scale_factor=(2, 3), mode=mode), x)
        np.testing.assert_array_equal(found, x.repeat(2, axis=2).repeat(3, axis=3))
        assert found.dtype == dtype


@each_engine
def test_the_gradient_of_the_nearest_counts_who_chose_it(engine):
    found = gradients(engine, lambda x: g.sum(g.interpolate(x, 7)), values(1, 1, 3))[0]
    np.testing.assert_array_equal(found, [[[3, 2, 2]]])


def test_one_graph_serves_every_batch():
    def f(x):
        return g.sum(g.interpolate(x, scale_factor=1.5, mode="bilinear") ** 2)

    exe = static.compile(static.value_and_grad(f), g.TensorSpec(("B", "C", 4, 3), "float64"))
    for shape in ((1, 2, 4, 3), (3, 1, 4, 3), (0, 2, 4, 3)):
        x = values(*shape)
        value, slope = exe(x)
        np.testing.assert_allclose(value, f(x))
        np.testing.assert_allclose(slope, dynamic.grad(f)(x), rtol=1e-12)
    with pytest.raises(ShapeError, match="the sizes that change are numbers"):
        static.compile(f, g.TensorSpec((1, 1, "H", 3), "float64"))


X = np.ones((1, 2, 3, 4))
REFUSED = [
    (lambda: g.interpolate(X), "give either size or scale_factor"),
    (lambda: g.interpolate(X, 2, 2.0), "give either size or scale_factor"),
    (lambda: g.interpolate(X, (2, 3, 4)), "3 sizes for 2 axes"),
    (lambda: g.interpolate(X, 0), "hold nothing"),
    (lambda: g.interpolate(X, scale_factor=0.2), "hold nothing"),
    (lambda: g.interpolate(X, 2, mode="cubic"), "mode is one of 'nearest', .*, not 'cubic'"),
    (lambda: g.interpolate(X, 2, antialias=True), "antialias is for modes 'bilinear' and 'bicubic', not 'nearest'"),
    (lambda: g.interpolate(X, 2, mode="linear"), "mode 'linear' is for 1 axes after batch and channels, not 2"),
    (lambda: g.interpolate(X, 2, align_corners=True), "align_corners is for smooth modes"),
    (lambda: g.interpolate(X[0, 0], 2), "one to three axes after batch and channels, not 0"),
    (lambda: g.interpolate(X[:, :, :0], 2), "nothing between no elements"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_what_has_no_meaning_is_refused(call, message):
    with pytest.raises(ShapeError, match=message):
        call()


def test_integers_lie_between_nothing():
    with pytest.raises(DTypeError, match="interpolate: 'bilinear' takes floating point values"):
        g.interpolate(X.astype(int), 2, mode="bilinear")


@pytest.mark.parametrize(
    ("mode", "shape"),
    [("linear", (1, 2, 9)), ("bilinear", (1, 2, 9, 7)), ("trilinear", (1, 2, 5, 7, 3)), ("bicubic", (1, 2, 9, 7))],
)
def test_float16_is_rounded_once(mode, shape):
    """Not after each axis, nor are the shares of neighbours float16."""
    x = (np.random.default_rng(0).normal(size=shape) * 9).astype(np.float16)
    exact = g.interpolate(x.astype(np.float64), scale_factor=1.7, mode=mode)
    result = g.interpolate(x, scale_factor=1.7, mode=mode)
    assert result.dtype == np.float16
    assert np.all(np.abs(result - exact) <= np.spacing(np.abs(exact).astype(np.float16)) * 0.5 + 1e-5)

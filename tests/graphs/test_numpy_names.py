"""NumPy's names beside the standard's: dot, vstack, diag, kron, sinc, gradient, sum(where=) and the like."""

from __future__ import annotations

import functools

import autograd
import autograd.numpy as anp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays, mutually_broadcastable_shapes

import dynamic
import graphs as g
import static
from graphs.errors import ShapeError
from graphs.testing import check_grads
from tests.helpers.engines import ENGINES, gradients, run
from tests.helpers.slow import examples, mostly_slow

each_engine = pytest.mark.parametrize("engine", ENGINES)
RANDOM = np.random.default_rng(8)
X, Y, V, W = (
    RANDOM.normal(size=(3, 4)),
    RANDOM.normal(size=(4, 2)),
    RANDOM.normal(size=4),
    RANDOM.normal(size=(2, 3, 4)),
)
MASK = RANDOM.random((3, 4)) > 0.4
AT = np.array([0.0, 0.3, 1.1, 1.2])
NOTHING = np.zeros((0, 3))

# The same call of graphs and of NumPy, and its inputs.
CALLS = {
    "dot": (lambda np, x, y: np.dot(x, y), (X, Y)),
    "dot of vectors": (lambda np, x: np.dot(x, x), (V,)),
    "dot of a scalar": (lambda np, x: np.dot(x, 2.5), (X,)),
    "dot of many axes": (lambda np, x, y: np.dot(x, y), (X, np.swapaxes(W, 1, 2))),
    "inner": (lambda np, x, y: np.inner(x, y), (X, W)),
    "inner of a scalar": (lambda np, x: np.inner(x, 2.5), (X,)),
    "kron": (lambda np, x, y: np.kron(x, y), (X, Y)),
    "kron of a vector": (lambda np, x, y: np.kron(x, y), (V, W)),
    "kron of a scalar": (lambda np, x: np.kron(x, 3.0), (V,)),
    "cross": (lambda np, x, y: np.cross(x, y), (X[:, :3], X[0, :3])),
    "cross first axis": (lambda np, x, y: np.cross(x, y, axis=0), (X, X[:, :1])),
    "vstack": (lambda np, x, y: np.vstack((x, y, x)), (X, V)),
    "vstack of numbers": (lambda np, x: np.vstack([x, x]), (V[0],)),
    "hstack": (lambda np, x: np.hstack((x, x)), (X,)),
    "hstack of vectors": (lambda np, x, y: np.hstack((x, y)), (V, V[0])),
    "append": (lambda np, x, y: np.append(x, y), (X, V)),
    "append rows": (lambda np, x, y: np.append(x, y, axis=0), (X, X[:1])),
    **{
        f"atleast_{n}d of {x.ndim}": (lambda np, x, n=n: getattr(np, f"atleast_{n}d")(x), (x,))
        for n in (1, 2, 3)
        for x in (V[0], V, X, W)
    },
    "ravel": (lambda np, x: np.ravel(x), (W,)),
    "diag of a vector": (lambda np, x: np.diag(x), (V,)),
    "diag above": (lambda np, x: np.diag(x, 2), (V,)),
    "diag below": (lambda np, x: np.diag(x, k=-1), (V,)),
    "diag of a matrix": (lambda np, x: np.diag(x, 1), (X,)),
    "flipud": (lambda np, x: np.flipud(x), (W,)),
    "fliplr": (lambda np, x: np.fliplr(x), (W,)),
    **{f"rot90 {k}": (lambda np, x, k=k: np.rot90(x, k), (W,)) for k in range(-1, 5)},
    "rot90 of other axes": (lambda np, x: np.rot90(x, k=1, axes=(2, 0)), (W,)),
    "sinc": (lambda np, x: np.sinc(x), (X * 2,)),
    "gradient": (lambda np, x: np.gradient(x), (X,)),
    "gradient of one axis": (lambda np, x: np.gradient(x, 0.5, axis=-1), (X,)),
    "gradient of some": (lambda np, x: np.gradient(x, 0.5, 2.0, axis=(2, 0), edge_order=1), (W,)),
    "gradient at coordinates": (lambda np, x: np.gradient(x, AT, axis=1), (X,)),
    "gradient by parabolas": (lambda np, x: np.gradient(x, 0.5, AT, edge_order=2), (X,)),
    "nan_to_num": (lambda np, x: np.nan_to_num(x), (X,)),
    "fmax": (lambda np, x, y: np.fmax(x, y), (X, V)),
    "fmin": (lambda np, x, y: np.fmin(x, y), (X, V)),
    "sum where": (lambda np, x: np.sum(x, axis=0, where=MASK), (X,)),
    "sum where a row": (lambda np, x: np.sum(x, where=MASK[0], keepdims=True), (X,)),
    "prod where": (lambda np, x: np.prod(x, axis=1, where=MASK), (X,)),
    "sum of nothing": (lambda np, x: np.sum(x, axis=0), (NOTHING,)),
}
# What only NumPy's names know.
NUMPY = {
    "sum from": (lambda x: np.sum(x, axis=0, initial=2.5, where=MASK), (X,)),
    "prod from": (lambda x: np.prod(x, initial=2.5), (X,)),
    "max where": (lambda x: np.max(x, axis=0, initial=-0.3, where=MASK), (X,)),
    "min from": (lambda x: np.min(x, axis=1, initial=0.1), (X,)),
    "mean where": (lambda x: np.mean(x, axis=1, where=MASK), (X,)),
    "cross of other axes": (lambda x, y: np.cross(x, y, axisa=0, axisb=1, axisc=0), (W[:, :, 0].T, X[:2, :3])),
    "nan_to_num in place of a copy": (lambda x: np.nan_to_num(x, True, 1.0), (X,)),
    "average": (lambda x, w: np.average(x, axis=1, weights=w), (X, V**2)),
    "cov": (np.cov, (X,)),
    "cov of a row": (np.cov, (V,)),
    "corrcoef": (lambda x: np.corrcoef(x, rowvar=False), (X,)),
    "trapezoid": (np.trapezoid, (X, AT)),
    "trapezoid of even steps": (lambda y: np.trapezoid(y, dx=0.5, axis=0), (X,)),
    "nanmean": (lambda x: np.nanmean(x, axis=0), (X,)),
    "nanvar": (lambda x: np.nanvar(x, axis=1, ddof=1), (X,)),
    "nanmax": (lambda x: np.nanmax(x, axis=1), (X,)),
    "ptp": (lambda x: np.ptp(x, axis=0), (X,)),
    "quantile": (lambda x: np.quantile(x, [0.2, 0.7], axis=1, keepdims=True), (X,)),
    "median": (lambda x: np.median(x, axis=(0, 1)), (X,)),
    "interp": (lambda x, fp: np.interp(x, AT, fp), (X, V)),
    "interp at its places": (lambda xp, fp: np.interp([0.1, 0.7, 1.15], xp, fp), (AT, V)),
    "polyval": (np.polyval, (V, X)),
    "vander": (lambda x: np.vander(x, 3, increasing=True), (V,)),
    "convolve": (np.convolve, (V, X[0, :3])),
    "convolve, the longer last": (lambda a, v: np.convolve(a, v, "valid"), (X[0, :3], V)),
    "correlate": (lambda a, v: np.correlate(a, v, "full"), (V, X[0, :3])),
    "block": (lambda x, y: np.block([[x, x], [y, y]]), (X, X[:1])),
    "delete": (lambda x: np.delete(x, [0, 2], axis=1), (X,)),
    "apply along an axis": (lambda x: np.apply_along_axis(lambda row: row[:2] * np.sum(row), 0, x), (X,)),
    "select": (lambda x: np.select([x > 1, x < -0.5], [x, x**2], 0.0), (X,)),
    "array_split": (lambda x: np.concatenate(np.array_split(x, 3, axis=1)[::-1], axis=1), (X,)),
    "dstack": (lambda x: np.dstack([x, x * 2]), (X,)),
    "vdot": (lambda x: np.vdot(x, x), (X,)),
    "round": (lambda x: np.round(x, -1) + x, (X,)),
    "cbrt": (np.cbrt, (X,)),
    "exp2": (np.exp2, (X,)),
    "fmod": (lambda x: np.fmod(x, 0.7), (X,)),
    "float_power": (lambda x: np.float_power(x, 3), (X,)),
    "heaviside": (lambda x: np.heaviside(x, 0.5) * x, (X,)),
    "logaddexp2": (np.logaddexp2, (X, V)),
    "angles": (lambda x: np.deg2rad(x) + np.degrees(x) + np.radians(x) - np.rad2deg(x), (X,)),
    "modf": (lambda x: np.modf(x)[0], (X,)),
}


def parts(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


def same(found, expected):
    assert len(parts(found)) == len(parts(expected))
    for one, other in zip(parts(found), parts(expected), strict=True):
        assert (np.shape(one), np.asarray(one).dtype) == (np.shape(other), np.asarray(other).dtype)
        np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(("call", "inputs"), CALLS.values(), ids=CALLS)
def test_values_are_numpys_for_arrays_tensors_and_symbols(call, inputs):
    for kind in (np.float64, np.float32):
        given_ = [np.asarray(x, kind) for x in inputs]
        expected = call(np, *given_)
        if kind == np.float64:
            same(call(g, *given_), expected)
        for namespace in (g, np):
            f = functools.partial(call, namespace)
            eager = [np.asarray(part) for part in parts(f(*map(dynamic.tensor, given_)))]
            for one, other in zip(parts(static.compile(f, *given_)(*given_)), eager, strict=True):
                np.testing.assert_array_equal(one, other)
            for one, other in zip(eager, parts(expected), strict=True):
                assert (one.shape, one.dtype) == (other.shape, other.dtype)
                np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@each_engine
@pytest.mark.parametrize("name", mostly_slow(CALLS, 14))
def test_gradients_are_finite_differences_to_order_2(engine, name):
    call, inputs = CALLS[name]
    check_grads(functools.partial(call, g), inputs, order=2, engine=ENGINES[engine])


@each_engine
@pytest.mark.parametrize("name", mostly_slow(NUMPY, 10))
def test_options_of_numpys_names(engine, name):
    f, inputs = NUMPY[name]
    same(run(engine, f, *inputs), f(*inputs))
    check_grads(f, inputs, order=2, engine=ENGINES[engine])


AUTOGRAD = ("dot", "inner", "vstack", "hstack", "append", "ravel", "diag below", "fliplr", "rot90 1", "sinc", "kron")


@pytest.mark.diagonal("engine", "name")
@each_engine
@pytest.mark.parametrize("name", AUTOGRAD)
def test_autograd_finds_the_same_gradients(engine, name):
    call, inputs = CALLS[name]
    weights = np.random.default_rng(1).normal(size=call(np, *inputs).shape)
    found = gradients(engine, lambda *args: g.sum(call(g, *args) * weights), *inputs)
    expected = autograd.grad(lambda *args: anp.sum(call(anp, *args) * weights), tuple(range(len(inputs))))(*inputs)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@examples(1.2)
@given(mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3), st.integers(-2, 2))
def test_products_and_joins_of_any_shape(shapes, k):
    x, y = (RANDOM.normal(size=shape) for shape in shapes.input_shapes)
    same(g.kron(x, y), np.kron(x, y))
    same(g.append(x, y), np.append(x, y))
    for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
        same(getattr(g, name)(x, y), getattr(np, name)(x, y))
    if x.ndim in (1, 2):
        same(g.diag(x, k), np.diag(x, k))
    if x.ndim > 1:
        same(g.rot90(x, k), np.rot90(x, k))


@examples(1.2)
@given(arrays(np.bool_, (3, 4)), st.sampled_from([None, 0, 1, (0, 1), ()]), st.booleans())
def test_sums_of_what_a_mask_selects(mask, axis, keepdims):
    for name in ("sum", "prod"):
        expected = getattr(np, name)(X, axis=axis, keepdims=keepdims, where=mask)
        same(getattr(g, name)(X, axis=axis, keepdims=keepdims, where=mask), expected)
        found = getattr(g, name)(dynamic.tensor(X), axis=axis, keepdims=keepdims, where=dynamic.tensor(mask))
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-13)


@each_engine
def test_a_mask_may_be_traced(engine):
    def f(x):
        return g.sum(x * 2, axis=1, where=x > 0)

    same(run(engine, f, X), np.sum(X * 2, axis=1, where=X > 0))
    np.testing.assert_array_equal(gradients(engine, lambda x: g.sum(f(x)), X)[0], 2.0 * (X > 0))


def test_masks_make_padding_harmless():
    f = static.jit(lambda x, mask: g.sum(x, where=mask), shapes="bucket", dims=(("T",), ("T",)), buckets=(8,))
    assert f(V, np.array([True, False, True, True])) == pytest.approx(V[[0, 2, 3]].sum())


def _slope(f, engine):
    return lambda x: g.sum(engine.grad(f)(x))


@each_engine
def test_sinc_has_every_slope_at_0_and_near_it(engine):
    # The k-th derivative at 0 is 0 for odd k, else (-1) ** (k / 2) * pi ** k / (k + 1).
    for order, expected in enumerate([1.0, 0.0, -(np.pi**2) / 3, 0.0, np.pi**4 / 5]):
        f = functools.reduce(_slope, [ENGINES[engine]] * order, lambda x: g.sum(g.sinc(x)))
        compiled = f if engine == "dynamic" else static.compile(f, np.zeros(1))
        assert float(compiled(np.zeros(1))) == pytest.approx(expected, rel=1e-12)
    x = np.array([1e-9, 1e-3, 0.0954, 0.0956, 0.5])
    check_grads(g.sinc, [x], order=3, engine=ENGINES[engine])
    y = np.pi * x.astype(np.longdouble)
    slope = np.pi * (np.cos(y) - np.sin(y) / y) / y
    np.testing.assert_allclose(gradients(engine, lambda x: g.sum(g.sinc(x)), x)[0][1:], slope[1:], rtol=1e-9)


@each_engine
def test_what_is_no_number_is_left_out_of_the_gradient(engine):
    x = np.array([1.0, np.nan, np.inf, -np.inf])
    same(run(engine, g.nan_to_num, x), np.nan_to_num(x))
    same(run(engine, lambda x: g.nan_to_num(x, nan=5.0, posinf=6.0, neginf=7.0), x), np.array([1.0, 5.0, 6.0, 7.0]))
    found = gradients(engine, lambda x: g.sum(g.nan_to_num(x) / 4), x)[0]
    np.testing.assert_array_equal(found, [0.25, 0, 0, 0])
    one, other = np.array([1.0, np.nan, 2.0, np.nan]), np.array([np.nan, 3.0, 2.0, np.nan])
    for f in (g.fmax, g.fmin):
        same(run(engine, f, one, other), np.array([1.0, 3.0, 2.0, np.nan]))
        a, b = gradients(engine, lambda x, y, f=f: g.sum(f(x, y)), one, other)
        np.testing.assert_array_equal([a, b], [[1, 0, 1, 1], [0, 1, 0, 0]])


REFUSED = [
    (lambda: g.diag(W), "diag: takes a vector or a matrix, not 3 axes"),
    (lambda: g.rot90(X, axes=(1, -1)), "rot90: .*are one.*; name two"),
    (lambda: g.fliplr(V), "flip: axis 1 is out of range"),
    (lambda: g.vstack([X, Y]), "concat: "),
    (lambda: g.gradient(X[:1]), "gradient: 1 samples along axis 0"),
    (lambda: g.gradient(X, 1.0, 2.0, 3.0), "gradient: 3 spacings for 2 axes"),
    (lambda: g.gradient(X, AT[:2], axis=1), "gradient: .*coordinates along axis 1"),
    (lambda: g.gradient(X, edge_order=3), "gradient: slopes at the ends are of order 1 or 2"),
    (lambda: g.sum(V, where=MASK), "sum: a mask of shape"),
    (lambda: g.cross(X, X), "cross: vectors of sizes 4 and 4"),
]


@pytest.mark.parametrize(("call", "rule"), REFUSED)
def test_what_does_not_fit_is_refused(call, rule):
    with pytest.raises(ShapeError, match=rule):
        call()


def test_one_graph_serves_all_sizes():
    spec = g.TensorSpec(("T",), "float64")
    for f in (g.diag, g.sinc, lambda x: g.kron(x, x), lambda x: g.dot(x, x), lambda x: g.vstack([x, x])):
        compiled = static.compile(f, spec)
        for size in (2, 5):
            same(compiled(AT[:1] + np.arange(size)), f(AT[:1] + np.arange(size)))

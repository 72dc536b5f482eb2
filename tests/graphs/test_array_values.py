"""Elementwise functions, reductions, sorting and searching: NumPy's values and dtypes, in both engines."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import dynamic
import graphs as g
import static
from tests.helpers.arrays import BINARY, DTYPES, UNARY, compare, numbers, same, small_shapes
from tests.helpers.engines import ENGINES, run
from tests.helpers.slow import examples
from tests.helpers.together import together

each_engine = pytest.mark.parametrize("engine", ENGINES)
few = examples(0.2, slow=0.4)
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # overflow and 0 / 0 are part of what is tested

# Values -------------------------------------------------------------------------------------------------------------


@pytest.mark.diagonal("engine", "name")
@each_engine
@pytest.mark.parametrize("name", UNARY)
@few
@given(st.data())
def test_unary_functions(engine, name, data):
    x = data.draw(numbers(data.draw(small_shapes)))
    theirs = {"abs": np.absolute, "round": _round}.get(name) or getattr(np, name)
    compare(engine, getattr(g, name), theirs, x)


def _round(x):
    return np.positive(x) if x.dtype.kind in "iu" else np.rint(x)


@pytest.mark.diagonal("engine", "name")
@each_engine
@pytest.mark.parametrize("name", BINARY)
@few
@given(npst.mutually_broadcastable_shapes(num_shapes=2, min_side=0, max_side=3, max_dims=3), st.data())
def test_binary_functions_of_any_two_dtypes(engine, name, shapes, data):
    x, y = (data.draw(numbers(shape)) for shape in shapes.input_shapes)
    if name == "pow" and y.dtype.kind in "iu":
        y = np.minimum(y, np.asarray(9, y.dtype))
    compare(engine, getattr(g, name), getattr(np, name), x, y)


@each_engine
@few
@given(small_shapes, st.data())
def test_clip(engine, shape, data):
    dtype = data.draw(st.sampled_from(["float64", "float32", "float16", "int64", "uint8"]))
    x, low, high = (data.draw(numbers(s, [dtype])) for s in (shape, (), ()))
    compare(engine, g.clip, np.clip, x, low, high, signed=False)
    compare(engine, g.clip, lambda x, low: np.clip(x, low, None), x, low, signed=False)
    compare(engine, lambda x, high: g.clip(x, max=high), lambda x, high: np.clip(x, None, high), x, high, signed=False)


@together(("left", "right"), itertools.product(DTYPES, DTYPES))
def test_promotion_is_numpys_for_every_two_dtypes(left, right):
    x, y = np.ones(1, left), np.ones(1, right)
    expected = np.result_type(x, y)
    assert g.result_type(left, y) == expected
    for f in (g.concat([x, y]), g.where(x == 1, x, y), g.multiply(dynamic.tensor(x), dynamic.tensor(y))):
        assert f.dtype == expected
    graph = static.trace(lambda x, y: (x * y, g.concat([x, y])), x, y)
    assert [o.spec.dtype for o in graph.outputs] == [expected, expected]


@st.composite
def along(draw, min_side=0):
    """A shape and one of its axes, counted from either end."""
    shape = draw(npst.array_shapes(min_dims=1, max_dims=3, min_side=min_side, max_side=4))
    return shape, draw(st.integers(-len(shape), len(shape) - 1))


NUMERIC = [d for d in DTYPES if d != "bool"]


@each_engine
@pytest.mark.parametrize("name", ["sum", "prod"])
@few
@given(along(), st.sampled_from([None, "float64", "float32", "int64", "int8"]), st.booleans(), st.data())
def test_sums_and_products_in_a_dtype(engine, name, drawn, dtype, keepdims, data):
    shape, axis = drawn
    whole = dtype is not None and np.dtype(dtype).kind == "i"
    x = data.draw(numbers(shape, ["int8", "int64", "bool", "uint8"] if whole else DTYPES))
    options = {"axis": axis, "dtype": dtype, "keepdims": keepdims}
    compare(engine, lambda x: getattr(g, name)(x, **options), lambda x: getattr(np, name)(x, **options), x)


@each_engine
@pytest.mark.parametrize(
    ("name", "ufunc", "first"), [("cumulative_sum", np.add, 0), ("cumulative_prod", np.multiply, 1)]
)
@few
@given(along(), st.booleans(), st.data())
def test_running_sums_and_products(engine, name, ufunc, first, drawn, include_initial, data):
    shape, axis = drawn
    x = data.draw(numbers(shape))

    def theirs(x):
        if include_initial:  # the sum starts from 0.0, so that -0.0 becomes 0.0, which np.cumulative_sum keeps
            front = [1 if i == axis % x.ndim else s for i, s in enumerate(shape)]
            x = np.concatenate([np.full(front, first, x.dtype), x], axis=axis)
        return ufunc.accumulate(x, axis=axis, dtype=ufunc.reduce(np.empty(1, x.dtype)).dtype)

    compare(engine, lambda x: getattr(g, name)(x, axis=axis, include_initial=include_initial), theirs, x)


@each_engine
@pytest.mark.parametrize("name", ["max", "min", "mean", "any", "all", "argmax", "argmin", "count_nonzero"])
@few
@given(along(min_side=1), st.booleans(), st.data())
def test_other_reductions(engine, name, drawn, keepdims, data):
    shape, axis = drawn
    x = data.draw(numbers(shape, DTYPES if name != "mean" else ["float64", "float32", "int8", "bool"]))
    options = {"axis": axis, "keepdims": keepdims}
    compare(engine, lambda x: getattr(g, name)(x, **options), lambda x: getattr(np, name)(x, **options), x)


@each_engine
@few
@given(along(min_side=2), st.sampled_from([0, 1, 0.5]))
def test_variance_and_deviation(engine, drawn, correction):
    shape, axis = drawn
    x = np.random.default_rng(0).normal(size=shape)
    found = run(engine, lambda x: g.var(x, axis=axis, correction=correction), x)
    np.testing.assert_allclose(found, np.var(x, axis=axis, ddof=correction), rtol=1e-12)
    found = run(engine, lambda x: g.std(x, axis=axis, correction=correction), x)
    np.testing.assert_allclose(found, np.std(x, axis=axis, ddof=correction), rtol=1e-12)


@each_engine
@few
@given(along(min_side=1), st.sampled_from([0, 1, 1.5, 2, 3, 7.5, 200]), st.booleans())
def test_variance_without_degrees_of_freedom(engine, drawn, correction, keepdims):
    """As many elements as the correction, or fewer: infinite, or NaN where no element differs from the mean."""
    shape, axis = drawn
    x = np.random.default_rng(0).normal(size=shape)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for ours, theirs in ((g.var, np.var), (g.std, np.std)):
            found = run(engine, lambda x, f=ours: f(x, axis=axis, correction=correction, keepdims=keepdims), x)
            expected = theirs(x, axis=axis, ddof=correction, keepdims=keepdims)
            np.testing.assert_allclose(found, expected, rtol=1e-12)
            called = run(engine, lambda x, f=theirs: f(x, axis=axis, ddof=correction, keepdims=keepdims), x)
            np.testing.assert_array_equal(called, found)


@pytest.mark.parametrize("correction", [2, 3, 3.5, 5])
def test_variance_of_a_symbolic_size_and_its_gradient(correction):
    def f(x):
        return g.sum(g.std(x, axis=0, correction=correction))

    sized = static.compile(static.value_and_grad(f), g.TensorSpec(("n", 2), np.float64))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for x in (np.array([[1.0, 5.0], [2.0, 1.0], [4.0, 4.0]]), np.ones((1, 2))):
            value, slope = sized(x)
            np.testing.assert_allclose(value, np.std(x, axis=0, ddof=correction).sum())
            for engine in (dynamic, static):
                np.testing.assert_allclose(engine.grad(f)(x), slope, rtol=1e-12)
            assert np.isnan(slope).all() == (len(x) <= correction)


# Sorting and searching ----------------------------------------------------------------------------------------------


@each_engine
@few
@given(along(), st.booleans(), st.booleans(), st.data())
def test_sort_and_argsort_agree_and_are_stable(engine, drawn, descending, stable, data):
    shape, axis = drawn
    x = data.draw(numbers(shape, ["float64", "float32", "int8", "bool"]))
    options = {"axis": axis, "descending": descending, "stable": stable}
    values = run(engine, lambda x: g.sort(x, **options), x)
    order = run(engine, lambda x: g.argsort(x, **options), x)
    assert order.dtype == np.intp
    np.testing.assert_array_equal(np.take_along_axis(x, order, axis), values)
    np.testing.assert_array_equal(np.sort(np.flip(values, axis) if descending else values, axis), np.sort(x, axis))
    if stable and not descending:
        np.testing.assert_array_equal(order, np.argsort(x, axis, kind="stable"))
    if stable and descending and x.dtype != bool and not np.isnan(x.astype(float)).any():
        np.testing.assert_array_equal(order, np.argsort(-x.astype(float), axis, kind="stable"))


@together("dtype", ["bool", "int8", "uint8", "int32", "uint32", "int64", "float16", "float32", "float64"])
def test_long_axes_keep_the_order_of_equals(dtype):
    """Those that are sorted with their places behind them, and others: NaN and zeros of both signs among them."""
    rng = np.random.default_rng(0)
    for shape, axis in (((3, 40), 1), ((40, 3), 0), ((2, 33, 2), 1)):
        x = (rng.normal(size=shape) * 5).astype(dtype)
        if x.dtype.kind == "f":
            hard = rng.choice(np.array([np.nan, -np.nan, 0.0, -0.0, np.inf], dtype), shape)
            x = np.where(rng.random(shape) < 0.4, hard, x)
        order = np.argsort(x, axis, kind="stable")
        turned = shape[axis] - 1 - np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
        for descending, expected in ((False, order), (True, turned)):
            np.testing.assert_array_equal(g.argsort(x, axis=axis, descending=descending), expected)
            values, ours = np.take_along_axis(x, expected, axis), g.sort(x, axis=axis, descending=descending)
            np.testing.assert_array_equal(ours, values)
            np.testing.assert_array_equal(np.signbit(ours) & (ours == 0), np.signbit(values) & (values == 0))


@each_engine
@few
@given(st.data(), st.sampled_from(["left", "right"]))
def test_searchsorted(engine, data, side):
    x = data.draw(numbers(data.draw(st.integers(0, 6)), ["float64", "int8"]))
    y = data.draw(numbers(data.draw(small_shapes), [x.dtype.name]))
    order = np.argsort(x)
    theirs = np.searchsorted(x, y, side=side, sorter=order)
    same(run(engine, lambda x, y: g.searchsorted(x, y, side=side, sorter=order), x, y), theirs)
    same(run(engine, lambda x, y: g.searchsorted(g.sort(x), y, side=side), x, y), theirs)


DEPENDENT = ["nonzero", "argwhere", "unique_all", "unique_counts", "unique_inverse", "unique_values"]


@pytest.mark.parametrize("name", DEPENDENT)
@few
@given(st.data())
def test_sizes_that_depend_on_values_run_on_arrays_and_tensors(name, data):
    x = data.draw(numbers(data.draw(npst.array_shapes(max_dims=3, max_side=4)), ["float64", "int8"]))
    theirs = {"unique_values": lambda x: np.unique(x, equal_nan=False)}.get(name, getattr(np, name, None))
    expected = theirs(x)
    for given_, kind in ((x, np.ndarray), (dynamic.tensor(x), dynamic.Tensor)):
        found = getattr(g, name)(given_)
        assert isinstance(found, tuple) == isinstance(expected, tuple)
        parts = list(zip(found, expected, strict=True)) if isinstance(found, tuple) else [(found, expected)]
        for ours, theirs in parts:
            assert isinstance(ours, kind)
            same(ours, theirs)


@pytest.mark.parametrize("name", DEPENDENT)
def test_a_trace_refuses_sizes_that_depend_on_values(name):
    with pytest.raises(g.ControlFlowError, match=rf"{name}: the size of the result .*use graphs\."):
        static.trace(getattr(g, name), np.ones(3))
    with pytest.raises(g.ControlFlowError, match=r"nonzero: .*test_array_values.py:\d+\); use graphs.where"):
        static.trace(lambda x: np.where(x > 0), np.ones(3))


def test_searching_a_tensor_that_requires_gradients():
    x = dynamic.tensor([1.0, 0.0, 2.0], requires_grad=True)
    assert g.nonzero(x)[0].tolist() == [0, 2]
    g.sum(x[g.nonzero(x)[0]]).backward()
    assert x.grad.tolist() == [1.0, 0.0, 1.0]

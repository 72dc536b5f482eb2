"""x[key] and writing at x[key] are NumPy's for every kind of key, in both engines, and so are their gradients."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import dynamic
import graphs as g
from tests.helpers.engines import ENGINES, gradients, run
from tests.helpers.slow import examples

each_engine = pytest.mark.parametrize("engine", ENGINES)
few = examples(1.2)
INDEX_DTYPES = (np.int64, np.int32, np.int8, np.uint8, np.uint64)


@st.composite
def index_arrays(draw, size, shape):
    """Positions along an axis, counted from either end, in an array that broadcasts to `shape`."""
    dtype = draw(st.sampled_from(INDEX_DTYPES))
    kept = shape[draw(st.integers(0, len(shape))) :]
    sizes = tuple(1 if draw(st.booleans()) else s for s in kept)
    least = 0 if np.dtype(dtype).kind == "u" else -size
    return draw(npst.arrays(dtype, sizes, elements=st.integers(least, size - 1)))


FLAGS = [True, False, np.True_, np.False_, np.array(True), np.array(False)]
NO_AXIS = {"none": st.none(), "bool": st.sampled_from(FLAGS)}


@st.composite
def parts(draw, sizes, broadcast):
    """One part of a key, and how many of the axes it takes."""
    kind = draw(st.sampled_from(["array", "array", "int", "slice", "mask", *NO_AXIS]))
    if kind in NO_AXIS:
        return draw(NO_AXIS[kind]), 0
    if kind == "mask":
        count = draw(st.integers(1, len(sizes)))
        return draw(npst.arrays(bool, sizes[:count])), count
    size = sizes[0]
    one = {"array": index_arrays(size, broadcast), "int": st.integers(-size, size - 1), "slice": st.slices(size)}
    return draw(one[kind]), 1


@st.composite
def keys(draw, shape):
    """A key of ints, slices of any step, None, one Ellipsis, integer arrays, masks of any number of axes, and bools."""
    broadcast = draw(npst.array_shapes(min_dims=0, max_dims=2, min_side=1, max_side=3))
    left, key = shape[: draw(st.integers(0, len(shape)))], []
    while left:
        part, taken = draw(parts(left, broadcast))
        key.append(part)
        left = left[taken:]
    if draw(st.booleans()):
        key.insert(draw(st.integers(0, len(key))), ...)
    return tuple(key) if len(key) != 1 or draw(st.booleans()) else key[0]


@st.composite
def indexed(draw):
    shape = draw(npst.array_shapes(min_dims=0, max_dims=4, min_side=1, max_side=4))
    return np.arange(1.0, 1 + np.prod(shape)).reshape(shape), draw(keys(shape))


def numpys(x, key):
    """NumPy's x[key]; None where NumPy refuses the key."""
    try:
        return np.asarray(x[key])
    except IndexError:
        return None


def weights(shape):
    return np.arange(2.0, 2 + np.prod(shape)).reshape(shape)


def refuses_or_picks_nothing(engine, x, key):
    try:
        assert not run(engine, lambda x: g.index(x, key), x).size
    except g.GraphError as error:
        assert isinstance(error, IndexError) or "do not broadcast" in str(error) or "a mask of" in str(error)  # noqa: PT017


@each_engine
@few
@given(indexed())
def test_reading_is_numpys_and_differentiates(engine, drawn):
    x, key = drawn
    expected = numpys(x, key)
    if expected is None:
        refuses_or_picks_nothing(engine, x, key)
        return
    np.testing.assert_array_equal(run(engine, lambda x: g.index(x, key), x), expected, strict=True)
    w = weights(expected.shape)
    adjoint = np.zeros_like(x)
    np.add.at(adjoint, key, w)
    (found,) = gradients(engine, lambda x: g.sum(g.index(x, key) * w), x)
    np.testing.assert_array_equal(found, adjoint)


@each_engine
@few
@given(indexed(), st.data())
def test_writing_is_numpys_and_differentiates(engine, drawn, data):
    x, key = drawn
    target = numpys(x, key)
    if target is None:
        return
    kept = data.draw(st.integers(0, target.ndim))
    value = -weights(tuple(1 if data.draw(st.booleans()) else s for s in target.shape[kept:]))
    if data.draw(st.booleans()):
        value = value[(None,) * (1 + target.ndim - value.ndim)]  # leading axes of size 1 that the target does not have
    expected = x.copy()
    try:
        expected[key] = value
    except (TypeError, ValueError):  # NumPy takes leading axes of size 1 in some cases only
        value = value[(0,) * (value.ndim - target.ndim)]
        expected[key] = value
    np.testing.assert_array_equal(run(engine, lambda x, v: g.setitem(x, v, key), x, value), expected, strict=True)
    w = weights(x.shape)
    in_x, in_value = gradients(engine, lambda x, v: g.sum(g.setitem(x, v, key) * w), x, value)
    sources = np.full(x.shape, -1)
    sources[key] = np.arange(value.size).reshape(value.shape)  # which element of the value each place holds
    np.testing.assert_array_equal(in_x, np.where(sources < 0, w, 0))
    written = np.bincount(sources[sources >= 0], w[sources >= 0], value.size).reshape(value.shape)
    np.testing.assert_array_equal(in_value, written)


@few
@given(indexed())
def test_a_tensor_is_written_in_place_as_an_array_is(drawn):
    x, key = drawn
    parts = key if isinstance(key, tuple) else (key,)
    if numpys(x, key) is None or any(getattr(part, "dtype", None) == np.uint8 for part in parts):
        return  # bytes are a mask to a tensor, as in PyTorch
    tensor = dynamic.tensor(x)
    tensor[key] = -1.0
    x[key] = -1.0
    np.testing.assert_array_equal(tensor.numpy(), x)


@each_engine
def test_a_value_written_over_has_no_gradient(engine):
    (found,) = gradients(engine, lambda v: g.sum(g.setitem(np.zeros(3), v, [0, 2, -3])), np.ones(3))
    np.testing.assert_array_equal(found, [0, 1, 1])


SEPARATED = {
    "ellipsis between arrays": np.s_[:, [0, 1, 2], ..., [0, 1, 2]],
    "ellipsis before an int": np.s_[:, [0, 1], ..., 0],
    "ellipsis after two": np.s_[None, [0, 1], ..., [0, 2], [0, 3]],
    "int before an ellipsis": np.s_[0, ..., [0, 1], 1],
}


@each_engine
@pytest.mark.parametrize("key", SEPARATED.values(), ids=SEPARATED)
def test_an_ellipsis_that_is_no_axis_separates_arrays(engine, key):
    x = np.arange(24.0).reshape(2, 3, 4)
    found = run(engine, lambda x: g.index(x, key), x)
    np.testing.assert_array_equal(found, x[key], strict=True)
    w = weights(x[key].shape)
    np.testing.assert_array_equal(run(engine, lambda x: g.index(g.setitem(x, w, key), key), x), w)


# Positions that are outside -----------------------------------------------------------------------------------------

OUTSIDE = {
    "int": (lambda x, i: x[3], 0),
    "array": (lambda x, i: x[i], 3),
    "pair": (lambda x, i: x[0, i], 4),
    "two arrays": (lambda x, i: x[i, i], -4),
    "written": (lambda x, i: g.setitem(x, 0.0, (i, i)), 3),
    "too many": (lambda x, i: x[0, 0, 0], 0),
    "take": (lambda x, i: g.take(x, i, axis=1), 4),
    "axis": (lambda x, i: g.sum(x, axis=2), 0),
}


@each_engine
@pytest.mark.parametrize(("f", "position"), OUTSIDE.values(), ids=OUTSIDE)
def test_what_is_outside_is_an_index_error(engine, f, position):
    x, i = np.arange(12.0).reshape(3, 4), np.array([0, position])
    with pytest.raises(IndexError) as caught:
        run(engine, f, x, i)
    assert isinstance(caught.value, g.ShapeError)


@each_engine
def test_positions_of_few_bits_reach_far_rows(engine):
    """Tensors are PyTorch's, whose positions have 32 bits or more; arrays may have fewer."""
    kind = np.int32 if engine == "dynamic" else np.int8
    x, i, j = np.arange(30000.0).reshape(100, 300), np.array([99, -1], kind), np.array([2, 127], kind)
    np.testing.assert_array_equal(run(engine, lambda x, i, j: x[i, j], x, i, j), x[[99, 99], [2, 127]])

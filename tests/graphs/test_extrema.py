"""The largest and the smallest element: values as NumPy finds them, in both engines, whatever the sizes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import graphs
import static
from graphs.errors import GraphError

OPS = pytest.mark.parametrize(("op", "function"), [(graphs.max, np.max), (graphs.min, np.min)], ids=["max", "min"])
SHAPES = (
    arrays.array_shapes(min_dims=1, max_dims=3, max_side=5)
    | st.tuples(st.integers(1, 3), st.integers(6, 70))
    | st.tuples(st.integers(60, 70), st.integers(1, 18))  # many short rows
    | st.tuples(st.integers(250, 260), st.integers(15, 20))  # and longer ones
    | st.tuples(st.integers(1, 3), st.integers(11, 33), st.integers(1, 9))
)
DTYPES = st.sampled_from(["f2", "f4", "f8", "i4", "i8", "u1", "?"])
CASES = st.tuples(DTYPES, SHAPES).flatmap(lambda case: arrays.arrays(*case)).filter(lambda x: x.size)


@OPS
@given(CASES, st.data(), st.booleans())
def test_values_are_those_of_numpy(op, function, x, data, keepdims):
    """Infinities and NaN, which goes through, included; and every layout of the operand."""
    axis = data.draw(st.sampled_from([None, *range(-x.ndim, x.ndim)]))
    x = data.draw(st.sampled_from([x, np.asfortranarray(x), x[..., ::-1]]))
    found = op(x, axis=axis, keepdims=keepdims)
    expected = function(x, axis=axis, keepdims=keepdims)
    assert (found.shape, found.dtype) == (np.shape(expected), x.dtype)
    np.testing.assert_array_equal(found, expected)


@OPS
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize(
    "shape",
    [(63, 15), (64, 15), (64, 16), (8, 8, 3), (255, 17), (256, 17), (4, 64, 30), (256, 1025), (33, 0), (0, 3), (40,)],
    ids=str,
)
def test_of_short_rows_results_go_where_they_are_told(op, function, shape, keepdims):
    x = np.random.default_rng(1).normal(size=shape).astype("f4")
    attrs = {"axis": (x.ndim - 1,), "keepdims": keepdims}
    if not shape[-1]:
        with pytest.raises(ValueError, match="no identity"):
            op.kernel(x, **attrs)
        return
    expected = function(x, axis=-1, keepdims=keepdims)
    buffer = np.empty((*expected.shape, 2), "f4")[..., 0]  # of any layout
    assert op.kernel(x, out=buffer, **attrs) is buffer
    np.testing.assert_array_equal(buffer, expected)
    np.testing.assert_array_equal(op.kernel(x, **attrs), expected)


@OPS
@pytest.mark.parametrize("size", [1, 7, 16, 17, 32, 64])
def test_a_symbolic_size_may_be_any_but_zero(op, function, size):
    exe = static.compile(lambda x: op(x * 2, axis=1), graphs.TensorSpec(("B", "T")))
    x = np.random.default_rng(size).normal(size=(3, size)).astype("f4")
    for value in (0.0, np.nan, np.inf, -np.inf):
        x[1, -1] = value
        np.testing.assert_array_equal(exe(x), function(x * 2, axis=1))
    x[:] = -np.inf
    np.testing.assert_array_equal(exe(x), x[:, 0])
    assert exe(x[:0]).shape == (0,)
    many = np.tile(x, (20, 1)) + np.arange(60, dtype="f4")[:, None]
    np.testing.assert_array_equal(exe(many), function(many * 2, axis=1))
    with pytest.raises(GraphError, match="no identity"):
        exe(x[:, :0])

"""TensorSpec: what it prints, holds and refuses; broadcasting as NumPy's, also of symbolic sizes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from graphs import DTypeError, ShapeError, TensorSpec, dim, dims
from graphs.spec import broadcast_shapes, short_dtype, spec_of

B, T = dim("B"), dim("T")


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (TensorSpec(("B", 3), "float32"), "f32[B,3]"),
        (TensorSpec((), "float64"), "f64[]"),
        (TensorSpec((0,), bool), "bool[0]"),
        (TensorSpec((2, 3), np.uint8), "u8[2,3]"),
        (TensorSpec((B + 1, 2 * T), np.int16), "i16[B+1,2*T]"),
        (TensorSpec([5], "f2"), "f16[5]"),
    ],
)
def test_printing(spec, text):
    assert str(spec) == repr(spec) == text


def test_float32_is_the_default():
    assert TensorSpec((2,)).dtype == np.float32


def test_sizes_and_bytes():
    fixed, symbolic = TensorSpec((2, 3), "float64"), TensorSpec(("B", 3, "T"), "int16")
    assert (fixed.ndim, fixed.size, fixed.nbytes, fixed.symbols) == (2, 6, 48, frozenset())
    assert str(symbolic.size) == "3*B*T"
    assert str(symbolic.nbytes) == "6*B*T"
    assert symbolic.symbols == {"B", "T"}
    assert TensorSpec((), "float32").size == 1


def test_equality_is_of_shape_and_dtype():
    assert TensorSpec(("B", 3)) == TensorSpec((dim("B"), 3))
    assert hash(TensorSpec(("B", 3))) == hash(TensorSpec((dim("B"), 3)))
    assert TensorSpec(("B", 3)) != TensorSpec(("T", 3))
    assert TensorSpec(("B",)) != TensorSpec((3,))
    assert TensorSpec((2,), "float32") != TensorSpec((2,), "float64")
    assert TensorSpec((2,)) != (2,)


@pytest.mark.parametrize("shape", [(-1,), (2, -3)])
def test_negative_sizes_are_refused(shape):
    with pytest.raises(ShapeError, match="sizes are 0 or more, got -"):
        TensorSpec(shape)


def test_a_size_that_is_no_name_is_refused():
    with pytest.raises(ShapeError, match="dimension names are identifiers, got '2T'"):
        TensorSpec(("2T",))


@pytest.mark.parametrize("dtype", ["complex64", "U3", object, "M8[s]"])
def test_dtypes_that_are_no_numbers_are_refused(dtype):
    with pytest.raises(DTypeError, match="tensors hold bools, ints or floats"):
        TensorSpec((2,), dtype)


@pytest.mark.parametrize("value", [np.zeros((2, 3), np.int8), np.float32(1), 1.5, True, [[1, 2]], TensorSpec(("B",))])
def test_spec_of_anything_with_a_shape_and_a_dtype(value):
    spec = spec_of(value)
    expected = value if isinstance(value, TensorSpec) else np.asarray(value)
    assert dims.same_shape(spec.shape, expected.shape)
    assert spec.dtype == expected.dtype


def test_short_dtypes():
    names = ["float16", "float64", "int8", "int64", "uint32", "bool"]
    assert [short_dtype(np.dtype(n)) for n in names] == ["f16", "f64", "i8", "i64", "u32", "bool"]


@given(npst.mutually_broadcastable_shapes(num_shapes=3, min_side=0, max_dims=4))
def test_shapes_that_broadcast_in_numpy_broadcast_so_here(drawn):
    assert broadcast_shapes(*drawn.input_shapes) == np.broadcast_shapes(*drawn.input_shapes) == drawn.result_shape


shapes = npst.array_shapes(min_dims=0, min_side=0, max_side=3)


@given(shapes, shapes)
def test_any_two_shapes_broadcast_as_in_numpy_or_are_refused(left, right):
    try:
        expected = np.broadcast_shapes(left, right)
    except ValueError:
        with pytest.raises(ShapeError, match=r"sizes \d and \d do not broadcast"):
            broadcast_shapes(left, right)
    else:
        assert broadcast_shapes(left, right) == expected


@given(st.lists(st.sampled_from([1, 3, B, T, B + 1]), max_size=3), st.lists(st.sampled_from([1, 3, B, T]), max_size=3))
def test_symbolic_sizes_broadcast_with_themselves_and_one_only(left, right):
    try:
        result = broadcast_shapes(tuple(left), tuple(right))
    except ShapeError:
        pairs = zip(left[::-1], right[::-1], strict=False)
        assert any(not dims.same(a, b) and not dims.same(a, 1) and not dims.same(b, 1) for a, b in pairs)
    else:  # right for sizes that meet no one by chance
        at = {"B": 5, "T": 7}
        numbers = [tuple(dims.evaluate(s, at) for s in shape) for shape in (left, right, result)]
        assert np.broadcast_shapes(*numbers[:2]) == numbers[2]


def test_no_shape_and_one_shape_broadcast():
    assert broadcast_shapes() == ()
    assert broadcast_shapes((2, 0)) == (2, 0)

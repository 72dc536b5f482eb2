"""Kernels that take another way where arrays are large: the values are the same, to rounding, edges included."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.special

import dynamic
import graphs as g
import static
from compare.instruments.memory import numpy_memory
from graphs.ops import linalg
from graphs.ops.linalg import TURNED_RATIO, TURNED_WORK, may_turn
from graphs.spec import TensorSpec
from static.passes import pipeline

SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 88.0, -88.0, 1e30, -1e30, 1e-40], np.float32)
PAIRS = np.stack([pair.reshape(-1) for pair in np.meshgrid(SPECIAL, SPECIAL)])


def units_off(actual, exact, *parts):
    """How far off, in units in the last place of the exact value or, where it is a sum, of the largest of its parts."""
    largest = np.max(np.abs(np.broadcast_arrays(exact, *parts)), axis=0)
    return np.max(np.abs(actual - exact) / np.spacing(largest.astype(actual.dtype)))


# logaddexp ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("y", [0.0, -3.5, np.linspace(30, -30, 5000, dtype=np.float32)], ids=["0", "number", "array"])
@pytest.mark.parametrize("count", [500, 5000])
def test_logaddexp_is_near_the_truth(y, count):
    x = np.linspace(-30, 30, 5000, dtype=np.float32)[::-1][:count]
    y = y if isinstance(y, float) else y[:count]
    result = g.logaddexp(x, y)
    assert result.dtype == np.float32
    assert units_off(result, np.logaddexp(x.astype("d"), y), np.maximum(x, y)) < 6


def test_logaddexp_of_float64_is_numpys_to_the_last_bits():
    x, y = np.random.default_rng(0).normal(0, 30, (2, 40, 50))
    assert units_off(g.logaddexp(x, y), np.logaddexp(x, y), np.maximum(x, y)) < 4


def test_logaddexp_of_infinities_and_nan_is_numpys_and_warns_of_nothing():
    x, y = np.tile(PAIRS, 10)
    with np.errstate(invalid="ignore"):
        expected = np.logaddexp(x, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(g.logaddexp(x, y), expected, 6e-7)


def test_logaddexp_broadcasts_and_may_be_written_over_an_operand():
    x, y = np.linspace(-9, 9, 1200, dtype=np.float32).reshape(30, 40), np.linspace(-2, 2, 40, dtype=np.float32)
    expected = g.logaddexp(x, y)
    np.testing.assert_allclose(expected, np.logaddexp(x, y), 1e-6, 1e-6)
    over = x.copy()
    assert g.logaddexp.kernel(over, y, out=over) is over
    np.testing.assert_array_equal(over, expected)
    exe = static.compile(lambda x, y: g.logaddexp(g.logaddexp(x * 2, y), x), x, y, passes=pipeline.SIMPLIFY)
    np.testing.assert_array_equal(exe(x, y), g.logaddexp(g.logaddexp(x * 2, y), x))


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16"])
def test_logaddexp_of_other_dtypes_is_numpys(dtype):
    x = np.arange(1000).astype(dtype)
    np.testing.assert_array_equal(g.logaddexp(x, x), np.logaddexp(x, x), strict=True)


# relu and erf -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int16"])
def test_relu_is_the_maximum_with_0(dtype):
    with np.errstate(over="ignore"):
        x = (np.tile(SPECIAL, 100) if dtype[0] == "f" else np.arange(-50, 50)).astype(dtype)
    np.testing.assert_array_equal(g.relu(x), np.maximum(x, 0), strict=True)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [1, 1 << 15, (1 << 16) + 1, 200_000])
def test_erf_of_several_blocks(dtype, count):
    x = np.linspace(-5, 5, count, dtype=dtype)
    assert units_off(g.special.erf(x), scipy.special.erf(x.astype("d"))) < 8


# softmax and its relatives -------------------------------------------------------------------------------------------

ALONG = {"softmax": 1, "log_softmax": 1, "softmax_gradient": 2, "log_softmax_gradient": 2}


@pytest.mark.parametrize("name", ALONG)
@pytest.mark.parametrize("shape", [(64, 512), (2, 32, 700), (5, 9000), (64, 511)], ids=str)
def test_long_rows_have_the_bits_of_the_parts_and_numpys_buffer_stays(name, shape):
    op, before = g.op.get(name), np.getbufsize()
    arrays = list(np.random.default_rng(0).normal(size=(ALONG[name], *shape)).astype("f4"))
    attrs = {"axis": (len(shape) - 1,)}
    expected, out = op.parts(*arrays, **attrs), np.empty(shape, "f4")
    np.testing.assert_array_equal(op.kernel(*arrays, **attrs), expected, strict=True)
    np.testing.assert_array_equal(op.kernel(*arrays, out=out, **attrs), expected)
    with pytest.raises(ValueError, match="broadcast"):
        op.kernel(*arrays, out=np.empty((3, 3), "f4"), **attrs)
    assert np.getbufsize() == before


# Products ------------------------------------------------------------------------------------------------------------

SHAPES = [(16, 512, 128), (2, 2048, 40), (64, 784, 256), (3, 24, 8), (64, 64, 64), (1, 900, 300)]
LAYOUTS = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "strided": lambda x: np.repeat(x, 2, -1)[..., ::2],
}


def product_of(shape, dtype, left, right):
    rng, (rows, inner, columns) = np.random.default_rng(0), shape
    x, y = rng.normal(size=(rows, inner)).astype(dtype), rng.normal(size=(inner, columns)).astype(dtype)
    return LAYOUTS[left](x), LAYOUTS[right](y)


@pytest.mark.diagonal("shape", "left", "right", "dtype")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("left", LAYOUTS)
@pytest.mark.parametrize("right", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_of_any_layout_are_near_the_truth_and_lie_in_rows(shape, left, right, dtype):
    x, y = product_of(shape, dtype, left, right)
    exact, tolerance = x.astype("d") @ y.astype("d"), 1e-4 if dtype == "float32" else 1e-12
    result, out = g.matmul(x, y), np.empty((shape[0], shape[2]), dtype)
    np.testing.assert_allclose(result, exact, tolerance, tolerance)
    assert result.flags.c_contiguous
    assert g.matmul.kernel(x, y, out) is out
    np.testing.assert_array_equal(out, result)


def test_which_products_are_turned_round():
    single = np.dtype(np.float32)
    assert may_turn((16, 512), (512, 128), single)
    assert not may_turn((16, 512), (512, 128), np.dtype(np.float64))
    assert not may_turn((64, 64 * TURNED_RATIO - 1), (64 * TURNED_RATIO - 1, 999), single)
    assert not may_turn((2, 64), (64, TURNED_WORK // 128 - 1), single)
    assert not may_turn((1, 999), (999, 999), single)  # a vector, for which BLAS has another function


@pytest.mark.parametrize("rows", [np.iinfo(int).max, 16], ids=["AVX-512", "AVX2"])
def test_the_processor_decides_how_many_rows_are_turned_round(rows, monkeypatch):
    monkeypatch.setattr(linalg, "TURNED_ROWS", rows)
    assert may_turn((64, 1024), (1024, 128), np.dtype(np.float32)) == (rows > 16)


def over_transpose(x, w):
    return g.sum(g.tanh(x @ g.matrix_transpose(w)))


@pytest.mark.parametrize("symbolic", [False, True], ids=["sizes", "symbols"])
@pytest.mark.parametrize("shape", [(32, 2048, 4096), (32, 128, 4096)], ids=["turned", "plain"])
def test_a_planned_product_takes_no_memory_beside_the_plan(shape, symbolic, monkeypatch):
    """A product that is turned round has its workspace in the arena, one that is not has none."""
    monkeypatch.setattr(linalg, "TURNED_ROWS", 999)
    x, y = product_of(shape, "float32", "rows", "columns")
    w = np.ascontiguousarray(y.T)
    first = TensorSpec(("B", x.shape[1])) if symbolic else x
    exe = static.compile(over_transpose, first, w, passes=pipeline.REPLAY)
    assert exe(x, w) == exe(x, w) == over_transpose(x, w)
    with numpy_memory():
        exe(x, w)
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        exe(x, w)
        assert tracemalloc.get_traced_memory()[1] - before < 1000
    assert exe.plan.peak // (shape[0] * shape[2] * 4) == 1 + may_turn(x.shape, y.shape, x.dtype)


def test_products_of_stacks_of_symbolic_sizes_need_no_workspace():
    x = np.random.default_rng(0).normal(size=(4, 3, 300)).astype(np.float32)
    exe = static.compile(lambda x: g.sum(x @ g.matrix_transpose(x)), TensorSpec((4, "T", 300)))
    np.testing.assert_allclose(exe(x), np.sum(x @ x.swapaxes(1, 2)), rtol=1e-5)


def test_without_an_arena_a_kernel_makes_its_own_workspace(monkeypatch):
    monkeypatch.setattr(linalg, "TURNED_ROWS", 999)
    x, y = product_of((32, 2048, 4096), "float32", "rows", "columns")
    w = np.ascontiguousarray(y.T)
    exe = static.compile(over_transpose, x, w, arena=False)
    assert exe.plan.peak == 0
    assert exe(x, w) == over_transpose(x, w)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_both_engines_have_the_same_bits_of_a_product_with_a_transpose(shape):
    x, y = product_of(shape, "float32", "rows", "columns")
    w = np.ascontiguousarray(y.T)

    def loss(x, w):
        return g.sum(g.square(x @ g.matrix_transpose(w)))

    expected = dynamic.value_and_grad(loss, argnums=(0, 1))(x, w)
    exe = static.compile(static.value_and_grad(loss, argnums=(0, 1)), x, w, passes=pipeline.SIMPLIFY)
    for actual, wanted in zip((exe(x, w)[0], *exe(x, w)[1]), (expected[0], *expected[1]), strict=True):
        np.testing.assert_array_equal(actual, wanted)


# Indices along an axis -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_many_indices_along_an_axis_pick_and_add_what_few_do(axis, layout):
    rng, sizes = np.random.default_rng(axis), (12, 15, 9)
    x = LAYOUTS[layout](rng.normal(size=sizes).astype(np.float32))
    picked = (*sizes[:axis], 200, *sizes[axis + 1 :])
    indices = rng.integers(-sizes[axis], sizes[axis], picked)
    found = np.take_along_axis(x, indices, axis)
    np.testing.assert_array_equal(g.take_along_axis(x, indices, axis=axis), found, strict=True)
    expected = np.zeros(sizes, np.float32)
    places = [np.arange(size).reshape([-1 if i == a else 1 for i in range(3)]) for a, size in enumerate(picked)]
    np.add.at(expected, tuple(indices if a == axis else place for a, place in enumerate(places)), found)
    np.testing.assert_allclose(
        g.add_along_axis(LAYOUTS[layout](found), indices, sizes, axis), expected, rtol=1e-4, atol=1e-4
    )
    outside = np.where(indices == 0, sizes[axis], indices)
    for call in (
        lambda: g.take_along_axis(x, outside, axis=axis),
        lambda: g.add_along_axis(found, outside, sizes, axis),
    ):
        with pytest.raises(IndexError):
            call()


def test_what_is_picked_is_written_to_its_place():
    x, indices = np.random.default_rng(0).normal(size=(100, 640)), np.arange(-100, 100)
    out = np.empty((200, 640))
    with numpy_memory():
        before, _ = tracemalloc.get_traced_memory()
        assert g.take.kernel(x, indices, axis=0, out=out) is out
        assert tracemalloc.get_traced_memory()[1] - before < 10_000
    np.testing.assert_array_equal(out, x[indices])
    along = np.broadcast_to(indices[:, None], (200, 640))
    assert g.take_along_axis.kernel(x, along, axis=0, out=np.zeros_like(out)).tobytes() == out.tobytes()
    for wrong in (100, -101):
        for given in (None, np.empty((2, 640))):
            with pytest.raises(IndexError):
                g.take.kernel(x, np.array([0, wrong]), axis=0, out=given)


@pytest.mark.parametrize("after", [1, 3, 16], ids=lambda after: f"rows of {after}")
@pytest.mark.parametrize("count", [5, 40, 500])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_slices_added_along_an_inner_axis_are_those_added_one_by_one(after, count, layout):
    rng = np.random.default_rng(count)
    indices = rng.integers(-24, 24, count)
    values = rng.normal(size=(7, count, after)).astype(np.float32)
    expected = np.zeros((24, 7, after), np.float32)
    np.add.at(expected, indices, values.swapaxes(0, 1))
    result = g.scatter_add(LAYOUTS[layout](values), indices, (7, 24, after), 1)
    np.testing.assert_array_equal(result, expected.swapaxes(0, 1), strict=True)
    with pytest.raises(IndexError, match="out of range for an axis of size 24"):
        g.scatter_add(values, np.where(indices == indices[0], 24, indices), (7, 24, after), 1)


@pytest.mark.parametrize("dtype", ["int64", "int8", "uint8", "uint64"])
@pytest.mark.parametrize("least", [0, -5])
def test_positions_along_axes_are_numpys(least, dtype):
    if least < 0 and dtype[0] == "u":
        pytest.skip("no position is negative")
    rng, sizes = np.random.default_rng(0), (5, 7, 6)
    positions = [rng.integers(least, 5, shape).astype(dtype) for shape in [(4, 1), (3,), (4, 3)]]
    flat = g.flat_index(*positions, sizes=sizes)
    np.testing.assert_array_equal(flat, np.arange(210).reshape(sizes)[tuple(positions)])
    assert flat.dtype == np.intp
    assert g.flat_index(*[position[:0] for position in positions[2:] * 2], sizes=(0, 3)).shape == (0, 3)
    outside = [positions[0], np.array([7], dtype), positions[2]]
    with pytest.raises(IndexError, match="out of range for an axis of size 7"):
        g.flat_index(*outside, sizes=sizes)

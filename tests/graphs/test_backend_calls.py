"""How kernels are called: the same bits as the kernel itself, whatever the shortest way is."""

import itertools
import warnings

import numpy as np
import pytest

import dynamic
import graphs as g
import static
from graphs.ops.linalg import SMALL, matrix_product
from graphs.ops.selection import select
from static.passes import pipeline

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint16", "float16", "float32", "float64", "complex128"]
SHAPES = [
    ((5, 4), (5, 4), (5, 4)),
    ((5, 4), (), (5, 4)),
    ((5, 4), (5, 4), ()),
    ((5, 1), (4,), (5, 4)),
    ((0, 3), (3,), ()),
    ((50, 40), (50, 40), (50, 40)),
    ((50, 40), (), (50, 40)),
    ((50, 40), (50, 40), ()),
    ((50, 1), (40,), (50, 40)),
    ((), (50, 40), ()),
    ((), (3,), (3,)),
    ((), (3, 1), (1, 4)),
]


def drawn(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    values = np.random.default_rng(seed).normal(size=shape) * 3
    if np.dtype(dtype).kind in "fc":
        values = np.where(values > 2, np.nan, np.where(values < -2, -0.0, values))
    else:
        values = abs(values)
    return values.astype(dtype)


@pytest.mark.diagonal("dtype", "shapes")
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_select_gives_the_bits_of_where(dtype, shapes):
    condition = drawn(shapes[0], "float64", 0) > 0
    for x in (drawn(shapes[1], dtype, 1), np.zeros((), dtype), np.asarray(-0.0).astype(dtype)):
        for y in (drawn(shapes[2], dtype, 2), np.zeros((), dtype)):
            expected = np.where(condition, x, y)
            out = np.empty(expected.shape, dtype)
            for got in (select(condition, x, y), select(condition, x, y, out=out)):
                assert got.dtype == expected.dtype
                assert got.tobytes() == expected.tobytes()


@pytest.mark.parametrize("size", [20, 2000])
@pytest.mark.parametrize("dtypes", [("float32", "float32"), ("float64", "float32"), ("int64", "int32")])
def test_select_may_write_over_an_operand(dtypes, size):
    for condition in (np.arange(size) % 3 == 0, np.array(True), np.array(False), np.True_, np.False_):
        _check_writing_over(condition, dtypes, size)


def _check_writing_over(condition, dtypes, size):
    for other in (np.zeros((), dtypes[1]), -np.arange(size).astype(dtypes[1]) - 30):
        for swapped in (False, True):
            over = np.arange(size).astype(dtypes[0])
            operands = (over, other) if swapped else (other, over)
            expected = np.where(condition, *operands)
            assert select(condition, *operands, out=over) is over
            np.testing.assert_array_equal(over, expected)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64", "bool"])
@pytest.mark.parametrize("width", [3, 2000])
def test_select_takes_numbers_as_where_does(dtype, width):
    condition, x = np.array([[True], [False]]), (np.arange(width) % 3 == 1).astype(dtype)
    for number in (0, 0.0, -0.0, 3, 0.5, True, np.nan):
        for got, expected in (
            (select(condition, number, x), np.where(condition, number, x)),
            (select(condition, x, number), np.where(condition, x, number)),
            (select(x == 0, number, x), np.where(x == 0, number, x)),
            (select(x == 0, x, number), np.where(x == 0, x, number)),
            (select(x == 0, number, 2.5), np.where(x == 0, number, 2.5)),
        ):
            assert (got.shape, got.dtype, got.tobytes()) == (expected.shape, expected.dtype, expected.tobytes())


def test_select_of_several_dtypes_promotes_as_where_does():
    condition, x, y = np.array([True, False]), np.array([1, 2]), np.array([0.5, 1.5])
    assert select(condition, x, y).tolist() == [1.0, 1.5]
    assert select(np.array([2, 0]), y, y * 2).tolist() == [0.5, 3.0]
    assert select(condition, x, y, out=np.empty(2)).tolist() == [1.0, 1.5]


@pytest.mark.parametrize("arena", [True, False])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "bool"])
def test_reductions_are_called_as_their_kernels_call_themselves(dtype, arena):
    x = drawn((6, 5), dtype, 0)
    x = np.nan_to_num(x)

    def f(x):
        rows = [op(x, axis=1, keepdims=True) for op in (g.sum, g.mean, g.max, g.min, g.prod, g.any, g.all)]
        return [g.mean(x), g.sum(x, dtype="float64"), *rows, *[g.astype(r, "float64") + 1 for r in rows]]

    exe = static.compile(f, x, passes=pipeline.SIMPLIFY, arena=arena)
    for got, expected in zip(exe(x), f(x), strict=True):
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("transposed", [False, True])
def test_products_have_the_bits_of_matmul(dtype, transposed):
    def f(x, y):
        y = y.T if transposed else y
        return g.tanh(x @ y) + 0.5, x @ y, x[0] @ y, y.T @ x[0] * 3, g.sum(x[0] @ y[:, 0]) * 2

    for m, k, n in itertools.product((1, 2, 33), (1, 5, 64), (1, 9)):
        x, y = drawn((m, k), "float64", m), drawn((n, k) if transposed else (k, n), "float64", n)
        x, y = (np.nan_to_num(a * 5).astype(dtype) for a in (x, y))
        exe = static.compile(f, x, y, passes=pipeline.REPLAY)
        for got, expected in zip(exe(x, y), f(x, y), strict=True):
            assert got.dtype == expected.dtype
            np.testing.assert_array_equal(got, expected)


TOLERANCES: dict[str, dict[str, float]] = {
    "float16": {"rtol": 1e-2, "atol": 1e-1},
    "float32": {"rtol": 1e-5, "atol": 1e-5},
    "float64": {"rtol": 1e-13, "atol": 1e-13},
    "int32": {"rtol": 0, "atol": 0},
}
LAYOUTS = {
    "rows": np.asarray,
    "columns": np.asfortranarray,
    "strided": lambda x: np.repeat(x, 2, 1)[:, ::2],
    "backwards": lambda x: x[::-1].copy()[::-1],
}


@pytest.mark.diagonal("first", "second", "name")
@pytest.mark.parametrize("first", TOLERANCES)
@pytest.mark.parametrize("second", TOLERANCES)
@pytest.mark.parametrize("name", LAYOUTS)
def test_matrices_are_multiplied_whatever_their_dtypes_and_layouts(first, second, name):
    layout = LAYOUTS[name]
    for m, k, n in itertools.product((0, 1, 5), (0, 1, 7), (1, 4)):
        x, y = (np.nan_to_num(drawn(shape, d, 3)) for shape, d in (((m, k), first), ((k, n), second)))
        dtype = np.result_type(x, y)
        expected = (x.astype("float64")[:, :, None] * y.astype("float64")).sum(axis=1)
        for a, b in ((layout(x), y), (x, layout(y)), (layout(x), layout(y))):
            buffers = np.empty((m, n), dtype), np.empty((n, m), dtype).T, np.empty((m, n, 2), dtype)[..., 0]
            for got in (g.matmul(a, b), *[g.matmul.kernel(a, b, out=buffer) for buffer in buffers]):
                assert (got.shape, got.dtype) == ((m, n), dtype)
                np.testing.assert_allclose(got.astype(float), expected, **TOLERANCES[dtype.name])


@pytest.mark.parametrize("arena", [True, False])
def test_views_of_scalars_and_arrays_that_are_allocated(arena):
    def f(x):
        total = g.sum(x)
        return total, g.reshape(total, (1, 1)) + x, g.permute_dims(g.tanh(x), (1, 0)), g.reshape(x, (-1,))

    x = np.arange(6.0).reshape(2, 3)
    for got, expected in zip(static.compile(f, x, passes=pipeline.SIMPLIFY, arena=arena)(x), f(x), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_every_ufunc_takes_its_buffer_without_a_warning():
    x = np.linspace(0.1, 0.9, 12).reshape(3, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for op in (g.add, g.maximum, g.minimum, g.pow, g.atan2, g.hypot, g.logaddexp):
            exe = static.compile(lambda x, op=op: op(x, x * 2) * 1.5, x, passes=pipeline.REPLAY)
            np.testing.assert_array_equal(exe(x), op(x, x * 2) * 1.5)


def test_the_short_way_in_lets_nothing_through():
    exe = static.compile(lambda p, n: p["x"] * n, {"x": np.ones(3, np.float32)}, 2)
    assert exe({"x": np.ones(3, np.float32)}, 2).tolist() == [2, 2, 2]
    with pytest.raises(g.DTypeError, match="compiled for"):
        exe({"x": np.ones(3)}, 2)
    with pytest.raises(g.ShapeError, match="static value"):
        exe({"x": np.ones(3, np.float32)}, 3)
    with pytest.raises(g.ShapeError, match="laid out"):
        exe([np.ones(3, np.float32)], 2)
    plain = static.compile(lambda x: x * 2, np.ones(3, np.float32))
    with pytest.raises(g.DTypeError):
        plain(np.ones(3, ">f4"))
    with pytest.raises(g.ShapeError):
        plain(np.ones(4, np.float32))
    with pytest.raises(g.DTypeError):
        plain(1)


@pytest.mark.diagonal("layout", "columns", "dtype")
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64", "bool"])
@pytest.mark.parametrize("columns", [1, SMALL // 64, SMALL // 64 + 1], ids=["vector", "small", "large"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_products_small_and_large_are_those_of_matmul(layout, columns, dtype):
    x, y = (LAYOUTS[layout](drawn(shape, dtype, shape[0])) for shape in ((64, 5), (5, columns)))
    expected = np.matmul(x, y)
    out = np.empty(expected.shape, expected.dtype)
    assert matrix_product(x, y, out=out) is out
    in_dynamic = g.matmul(dynamic.tensor(x), dynamic.tensor(y)).numpy()
    made = [matrix_product(x, y), out, static.compile(g.matmul, x, y)(x, y), in_dynamic]
    for got in made:
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol=1e-2 if dtype == "float16" else 1e-5, equal_nan=True)
    assert len({got.tobytes() for got in made}) == 1  # every way makes the same choice

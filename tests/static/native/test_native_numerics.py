"""What native code computes: functions within two units in the last place, limits, NaN, signs, the order of sums."""

from __future__ import annotations

import numpy as np
import pytest

import graphs as g
import static
from graphs import op as registry
from graphs.errors import GraphError
from static.native.functions import FAST as FASTER
from static.native.functions import NATIVE
from tests.helpers.specials import differences, pairs

pytest.importorskip("llvmlite", reason="native code needs llvmlite")

SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e-38, -1e-38, 1e-40, 3.4028235e38, -3.4028235e38,
     0.5, -0.5, 2.0, -2.0, 88.72283, 88.72284, -87.33654, -103.97, -103.98, -104.0, 0.625, 0.62499994, 10.0, 9.0, 1e-4],
    np.float32,
)  # fmt: skip


def everywhere():
    """Floats of every exponent and sign, and more of them where functions bend."""
    bits = np.arange(0, 1 << 32, 20011, dtype=np.uint64).astype(np.uint32).view(np.float32)
    near = np.linspace(-20, 20, 60_001, dtype=np.float32)
    around_one = (1 + np.linspace(-1e-3, 1e-3, 20_001)).astype(np.float32)
    exps = np.linspace(-110, 95, 60_001, dtype=np.float32)
    return np.concatenate([SPECIAL, bits, near, around_one, exps])


def native(f, *arrays):
    return static.compile(f, *arrays, backend="native")(*arrays)


def units_off(actual, exact):
    """How many units in the last place of float32 a result is off, where it is finite in both."""
    rounded = exact.astype(np.float32)
    both = np.isfinite(rounded) & np.isfinite(actual)
    np.testing.assert_array_equal(actual[~both], rounded[~both])
    unit = np.maximum(np.spacing(np.abs(rounded[both])).astype(np.float64), 2.0**-149)
    return np.max(np.abs(actual[both].astype(np.float64) - exact[both]) / unit, initial=0)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


UNARY = {
    "exp": (np.exp, 1.1), "tanh": (np.tanh, 1.5), "expm1": (np.expm1, 0.51), "log": (np.log, 0.51),
    "log1p": (np.log1p, 0.51), "log2": (np.log2, 0.51), "log10": (np.log10, 0.51), "sinh": (np.sinh, 0.51),
    "cosh": (np.cosh, 0.51), "sigmoid": (sigmoid, 0.51), "sqrt": (np.sqrt, 0.51), "reciprocal": (np.reciprocal, 0.51),
    "square": (np.square, 0.51), "asin": (np.arcsin, 0.51), "acos": (np.arccos, 0.51), "atan": (np.arctan, 0.51),
    "asinh": (np.arcsinh, 0.51), "acosh": (np.arccosh, 0.51), "atanh": (np.arctanh, 0.51), "erf": (g.erf, 5),
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_a_function_of_one_number_is_near_the_truth_everywhere(name):
    exact, most = UNARY[name]
    x = everywhere()
    with np.errstate(all="ignore"):
        assert units_off(native(getattr(g, name), x), exact(x.astype(np.float64))) <= most


@pytest.mark.parametrize("name", UNARY)
def test_a_zero_keeps_its_sign(name):
    x = np.array([0.0, -0.0] * 9, np.float32)
    with np.errstate(all="ignore"):
        expected = UNARY[name][0](x)
    defined = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(native(getattr(g, name), x))[defined], np.signbit(expected)[defined])


FAST = {"exp": (np.exp, 2.7), "tanh": (np.tanh, 5.4), "sigmoid": (sigmoid, 3.4)}
LEAST = 1.9e-38  # below this the short forms of exp and sigmoid are 0


@pytest.mark.parametrize("name", FAST)
def test_fast_math_is_near_the_truth_everywhere_by_another_form(name):
    exact, most = FAST[name]
    x = everywhere()
    with np.errstate(all="ignore"):
        true = exact(x.astype(np.float64))
        fast = static.compile(getattr(g, name), x, backend="native", fast_math=True)(x)
        small = np.abs(true) < LEAST
        assert np.all(np.isnan(x) | (np.abs(fast[small] - true[small]).max(initial=0) <= LEAST))
        assert units_off(fast[~small], true[~small]) <= most
        assert np.nanmax(fast) == (1 if name != "exp" else np.inf)
        assert not np.array_equal(fast, native(getattr(g, name), x), equal_nan=True)


def test_fast_math_is_for_float32_also_inside_loops_and_leaves_the_graph_as_it_is(tmp_path):
    def f(x):
        return g.fori_loop(0, 3, lambda _, h: g.tanh(h * 3) + g.sigmoid(h), x)

    single = np.linspace(-2, 2, 1000, dtype=np.float32)
    usual, fast = (static.compile(f, single, backend="native", fast_math=fast) for fast in (False, True))
    assert str(fast.graph) == str(usual.graph)
    np.testing.assert_allclose(fast(single), usual(single), atol=2e-6)
    assert not np.array_equal(fast(single), usual(single))
    fast.save(tmp_path / "fast.gd")
    again = [static.load(tmp_path / "fast.gd", "native", fast_math=fast)(single) for fast in (False, True)]
    np.testing.assert_array_equal(again, [usual(single), fast(single)])
    jitted = static.jit(f, backend="native", fast_math=True)
    np.testing.assert_array_equal(jitted(single), fast(single))
    for other in (single.astype(np.float64), single.astype(np.int16)):  # NumPy's exp of int16 is float32
        same = [static.compile(g.exp, other, backend="native", fast_math=fast)(other) for fast in (False, True)]
        np.testing.assert_array_equal(*same)


def test_fast_math_of_numpys_kernels_is_refused():
    for make in (static.compile, static.jit):
        with pytest.raises(GraphError, match="fast_math is of native code; use backend='native'"):
            make(g.exp, *([np.ones(2)] if make is static.compile else []), fast_math=True)


PAIRS = tuple(np.array(np.meshgrid(SPECIAL, SPECIAL)).reshape(2, -1))


@pytest.mark.parametrize("name", ["logaddexp", "hypot", "pow"])
def test_a_function_of_two_numbers_is_near_the_truth(name):
    exact = np.power if name == "pow" else getattr(np, name)
    rng = np.random.default_rng(0)
    wide = [np.concatenate([p, rng.normal(size=40_000) * s, rng.normal(size=20_000)]).astype("f4")
            for p, s in zip(PAIRS, (30, 30), strict=True)]  # fmt: skip
    with np.errstate(all="ignore"):
        actual, true = native(getattr(g, name), *wide), exact(*(w.astype("f8") for w in wide))
        assert units_off(actual, true) <= 0.52


SAME = ["add", "subtract", "multiply", "divide", "maximum", "minimum", "fmax", "fmin", "copysign", "equal",
        "not_equal", "less", "less_equal", "greater", "greater_equal"]  # fmt: skip


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", SAME)
def test_arithmetic_and_comparisons_are_numpys_to_the_bit(name, dtype):
    x, y = (p.astype(dtype) for p in PAIRS)
    with np.errstate(all="ignore"):
        actual, expected = native(getattr(g, name), x, y), getattr(np, name)(x, y)
    np.testing.assert_array_equal(actual, expected)
    if expected.dtype.kind == "f" and name not in ("maximum", "minimum", "fmax", "fmin"):  # equal zeros: either one
        defined = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(actual)[defined], np.signbit(expected)[defined])


ROUNDED = [
    "abs",
    "negative",
    "sign",
    "floor",
    "ceil",
    "trunc",
    "round",
    "relu",
    "isnan",
    "isinf",
    "isfinite",
    "signbit",
]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", ROUNDED)
def test_what_is_exact_is_numpys(name, dtype):
    halves = np.linspace(-4, 4, 65).astype(dtype)
    x = np.concatenate([SPECIAL.astype(dtype), halves, np.array([2.0**23 + 1, -(2.0**31), 2.0**52 + 1], dtype)])
    with np.errstate(all="ignore"):
        kernel = getattr(g, name).kernel
        expected = kernel(x)
    actual = native(getattr(g, name), x)
    np.testing.assert_array_equal(actual, expected)


INTEGERS = ["add", "subtract", "multiply", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor", "less",
            "equal", "greater_equal"]  # fmt: skip


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "i4", "u4", "i8", "u8"])
@pytest.mark.parametrize("name", INTEGERS)
def test_integers_wrap_and_compare_as_numpys(name, dtype):
    info, rng = np.iinfo(dtype), np.random.default_rng(0)
    x, y = (rng.integers(info.min, info.max, 97, dtype=dtype, endpoint=True) for _ in range(2))
    x[:3], y[:3] = (info.min, info.max, 0), (info.max, info.max, info.min)
    expected = getattr(np, name)(x, y)
    actual = native(getattr(g, name), x, y)
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize(("source", "target"), [(s, t) for s in "bBiIlLfd?" for t in "bBiIlLfd?" if s != t])
def test_casts_are_numpys(source, target):
    x = np.array([0, 1, 3, 100, 127, 0, 1] * 5).astype(source)
    x = -x if source in "bilfd" else x
    expected = x.astype(target)
    if np.dtype(source).kind == "f" and np.dtype(target).kind == "u":
        pytest.skip("a negative float has no unsigned integer")
    actual = native(lambda x: g.astype(g.positive(x) if x.dtype != bool else x, target), x)
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", ["max", "min", "sum", "mean"])
def test_reductions_see_nan_and_infinity(name, dtype):
    rows = np.random.default_rng(0).normal(size=(8, 75)).astype(dtype)
    rows[1, 3], rows[2, 70], rows[3, 5], rows[4, 74] = np.nan, np.nan, np.inf, -np.inf
    for axis in (0, 1, None):
        with np.errstate(all="ignore"):
            expected = getattr(np, name)(rows, axis=axis)
        actual = native(lambda x, axis=axis: getattr(g, name)(x, axis=axis), rows)
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("size", [1, 15, 16, 17, 63, 64, 65, 1000, 8192, 16385, 100_003])
def test_long_sums_of_float32_lose_little(size):
    x = (np.random.default_rng(size).normal(size=size) + 1).astype(np.float32)
    actual, exact = native(g.sum, x), np.sum(x.astype(np.float64))
    assert abs(actual - exact) <= 4e-7 * np.sum(np.abs(x.astype(np.float64)))


def test_a_sum_is_made_in_one_order_wherever_its_rows_lie():
    x = np.random.default_rng(0).normal(size=(6, 1003)).astype(np.float32)
    whole = native(lambda x: g.sum(x, axis=1), x)
    alone = [native(g.sum, row.copy()) for row in x]
    later = native(lambda x: g.sum(x * 1.0 + 0.0, axis=1), x)
    assert whole.tobytes() == np.array(alone).tobytes() == later.tobytes()


def test_denormals_are_kept():
    x = np.array([1e-45, 1e-40, -1e-42] * 7, np.float32)
    np.testing.assert_array_equal(native(lambda x: x + x, x), x + x)
    np.testing.assert_array_equal(native(lambda x: x * np.float32(0.5), x), x * np.float32(0.5))


def test_the_sum_of_nothing():
    x = np.zeros((3, 0), np.float32)
    actual = native(lambda x: (g.sum(x, axis=1), g.sum(x), g.prod(x, axis=1), g.all(x, axis=1), g.any(x, axis=1)), x)
    for a, b in zip(actual, ([0, 0, 0], 0, [1, 1, 1], [True] * 3, [False] * 3), strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.signbit(actual[0]).any()


def test_reductions_of_signed_zeros_infinities_and_nan():
    def every(x):
        reductions = (g.sum, g.mean, g.prod, g.max, g.min)
        rows = [f(y, axis=axis) for f in reductions for y in (x, -x, x * 2.0) for axis in (0, 1)]
        return [*rows, *(f(g.expand_dims(x, axis=axis), axis=axis) for f in reductions for axis in (0, 2))]

    with np.errstate(all="ignore"):
        for dtype in ("float32", "float64"):
            x = pairs(dtype, ends=False)
            for backend in ("numpy", "native"):
                results = zip(static.compile(every, x, backend=backend)(x), every(x), strict=True)
                assert all(not differences(actual, expected) for actual, expected in results), (dtype, backend)


ENDS = np.float32([0, 0.5, 1, 2, 3, 3.75, 3.9375, 4, 9.01, 10, 87.3, 87.4, 88.72283, 88.72284, 89.41, 89.42, 103.97,
                   104, 126, 127, 128, 149, 150, 400, 709, 1e4, 1e8, 16777216, 1e-7, 1e-8, 3e-39, 1e-45, 1.1754944e-38,
                   1e19, 1.9e19, 1e30, 3.4028235e38, np.inf])  # fmt: skip
SINGLE = [op.name for op, native in NATIVE.items() if native.single and op not in FASTER.values()]


@pytest.mark.parametrize("name", SINGLE)
def test_functions_at_their_ends_are_those_of_float64_rounded(name):
    """At 0, 1, infinity, the last arguments with a finite result, and beyond: exact where 0, 1 or no number is."""
    op, x = registry.get(name), np.concatenate([ENDS, -ENDS, np.float32([np.nan])])
    arrays = [a.ravel() for a in np.meshgrid(*[x] * op.arity)]
    with np.errstate(all="ignore"):
        wanted = op.kernel(*[a.astype(np.float64) for a in arrays]).astype(np.float32)
    found = native(op, *arrays)
    exact = ~np.isfinite(wanted) | (wanted == 0) | (np.abs(wanted) == 1)
    np.testing.assert_array_equal(found[exact], wanted[exact])
    np.testing.assert_allclose(found[~exact], wanted[~exact], rtol=4e-6, atol=3e-45)

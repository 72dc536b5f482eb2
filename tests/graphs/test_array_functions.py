"""Functions that rearrange, multiply and scatter arrays: NumPy's values, and gradients to second order."""

from __future__ import annotations

import math
import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dynamic
import graphs as g
import static
from graphs.testing import check_grads
from tests.helpers.arrays import same
from tests.helpers.engines import ENGINES, each_engine, gradients, run
from tests.helpers.slow import examples, mostly_slow
from tests.helpers.together import together

few = examples(0.4)
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # overflow and 0 / 0 are part of what is tested

# Manipulation and linear algebra ------------------------------------------------------------------------------------

X = np.random.default_rng(1).normal(size=(2, 3, 4))
M = np.random.default_rng(2).normal(size=(3, 4))
V = np.random.default_rng(3).normal(size=4)
FUNCTIONS = {
    "roll flat": (lambda m: g.roll(m, 5), lambda m: np.roll(m, 5)),
    "roll axes": (lambda m: g.roll(m, (1, -2), axis=(0, -1)), lambda m: np.roll(m, (1, -2), axis=(0, -1))),
    "roll alike": (lambda m: g.roll(m, 1, axis=(0, 1)), lambda m: np.roll(m, 1, axis=(0, 1))),
    "repeat": (lambda m: g.repeat(m, 3, axis=-1), lambda m: np.repeat(m, 3, axis=-1)),
    "repeat flat": (lambda m: g.repeat(m, 2), lambda m: np.repeat(m, 2)),
    "repeat none": (lambda m: g.repeat(m, 0, axis=0), lambda m: np.repeat(m, 0, axis=0)),
    "repeat unevenly": (lambda m: g.repeat(m, np.array([2, 0, 1]), axis=0), lambda m: np.repeat(m, [2, 0, 1], axis=0)),
    "tile": (lambda m: g.tile(m, (2, 3)), lambda m: np.tile(m, (2, 3))),
    "tile more axes": (lambda m: g.tile(m, (2, 1, 2)), lambda m: np.tile(m, (2, 1, 2))),
    "tile last": (lambda m: g.tile(m, (2,)), lambda m: np.tile(m, 2)),
    "tile none": (lambda m: g.tile(m, (0, 1)), lambda m: np.tile(m, (0, 1))),
    "tril": (g.tril, np.tril),
    "tril above": (lambda m: g.tril(m, k=1), lambda m: np.tril(m, k=1)),
    "triu": (g.triu, np.triu),
    "triu below": (lambda m: g.triu(m, k=-1), lambda m: np.triu(m, k=-1)),
    "diff": (g.diff, np.diff),
    "diff twice": (lambda m: g.diff(m, axis=0, n=2), lambda m: np.diff(m, axis=0, n=2)),
    "diff ends": (lambda m: g.diff(m, prepend=0, append=m[:, :2]), lambda m: np.diff(m, prepend=0, append=m[:, :2])),
    "meshgrid": (lambda m: g.stack(g.meshgrid(m[0], m[1, :2])), lambda m: np.stack(np.meshgrid(m[0], m[1, :2]))),
    "meshgrid ij": (
        lambda m: g.stack(g.meshgrid(m[0], m[1, :2], m[2, :3], indexing="ij")),
        lambda m: np.stack(np.meshgrid(m[0], m[1, :2], m[2, :3], indexing="ij")),
    ),
    "broadcast_arrays": (
        lambda m: g.stack(g.broadcast_arrays(m, m[:1], m[0])),
        lambda m: np.stack(np.broadcast_arrays(m, m[:1], m[0])),
    ),
    "unstack": (lambda m: g.add(*g.unstack(m[:, :2], axis=-1)), lambda m: m[:, 0] + m[:, 1]),
    "copied": (lambda m: g.reshape(m, (4, 3), copy=True), lambda m: m.reshape(4, 3)),
    "tensordot": (lambda m: g.tensordot(m, m), lambda m: np.tensordot(m, m)),
    "tensordot none": (lambda m: g.tensordot(m, m, axes=0), lambda m: np.tensordot(m, m, axes=0)),
    "tensordot pairs": (
        lambda m: g.tensordot(X, m, axes=((2, 1), (1, 0))),
        lambda m: np.tensordot(X, m, axes=((2, 1), (1, 0))),
    ),
    "vecdot": (lambda m: g.vecdot(m, m[0]), lambda m: np.vecdot(m, m[0])),
    "vecdot axis": (lambda m: g.vecdot(m, m[:, :1], axis=-2), lambda m: np.vecdot(m, m[:, :1], axis=-2)),
    "outer": (lambda m: g.outer(m[0], m[1]), lambda m: np.outer(m[0], m[1])),
    "diagonal": (g.diagonal, np.diagonal),
    "diagonal above": (lambda m: g.diagonal(m, offset=2), lambda m: np.diagonal(m, 2)),
    "diagonal below": (lambda m: g.diagonal(m, offset=-1), lambda m: np.diagonal(m, -1)),
    "diagonal outside": (lambda m: g.diagonal(m, offset=7), lambda m: np.diagonal(m, 7)),
    "trace": (g.trace, np.trace),
    "norm": (g.vector_norm, np.linalg.vector_norm),
    **{
        f"norm {p}": (
            lambda m, p=p: g.vector_norm(m, ord=p, axis=1, keepdims=True),
            lambda m, p=p: np.linalg.vector_norm(m, ord=p, axis=1, keepdims=True),
        )
        for p in (1, 2, 3, 0.5, -1, math.inf, -math.inf)
    },
    "einsum": (lambda m: g.einsum("ij,kj,j->ki", m, m, m[0]), lambda m: np.einsum("ij,kj,j->ki", m, m, m[0])),
    "prod with zeros": (lambda m: g.prod(m * _HOLES, axis=1), lambda m: np.prod(m * _HOLES, axis=1)),
    "scan": (lambda m: g.cumulative_prod(m * _HOLES, axis=1), lambda m: np.cumprod(m * _HOLES, axis=1)),
    "sort": (lambda m: g.sort(m, axis=0, descending=True), lambda m: -np.sort(-m, axis=0)),
    "apart": (lambda m: m[None, [0, 2], :, None][:, :, [1, 1]], lambda m: m[None, [0, 2], :, None][:, :, [1, 1]]),
}
_HOLES = np.array([[1, 0, 1, 1], [0, 1, 0, 1], [1, 1, 1, 1]])


@each_engine
@pytest.mark.parametrize("name", mostly_slow(FUNCTIONS, 12))
def test_values_and_second_order_gradients(engine, name):
    ours, theirs = FUNCTIONS[name]
    expected = theirs(M)
    for found in (ours(M), run(engine, ours, M)):
        assert np.shape(found) == np.shape(expected)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
    check_grads(ours, [M], order=2, engine=ENGINES[engine])


@each_engine
@pytest.mark.parametrize("dtype", ["bool", "int8", "float16"])
@together("name", ["tril", "triu", "diff", "trace", "diagonal", "sort", "roll", "repeat", "vecdot"])
def test_dtypes_are_kept(engine, name, dtype):
    x = np.array([[1, 0], [1, 1]], dtype)
    arguments = {"roll": (1,), "repeat": (2,), "vecdot": (x,)}.get(name, ())
    theirs = getattr(np, name)(x, *arguments)
    same(run(engine, lambda x: getattr(g, name)(x, *arguments), x), theirs)


SUBSCRIPTS = [
    "ij,jk", "ij,jk->ki", "ij,kj->ik", "ii", "ii->i", "i,i", "i,j->ji", "ij,ij->ij", "ij,ij->j", "ij->", "ijk->kji",
    "...ij,...jk->...ik", "i...,i...->...", "...i->...", "bij,bjk->bik", "bi,bij,bj->b", "ab,bc,cd->ad", "iij,jk->ik",
    "a b , b c -> a c", "ij,kl->", "aij,aik->ajk", "ijj,j",
]  # fmt: skip


@pytest.mark.diagonal("engine", "subscripts")
@each_engine
@pytest.mark.parametrize("subscripts", SUBSCRIPTS)
def test_einsum_is_numpys_and_differentiates_twice(engine, subscripts):
    letters = [part.replace("...", "") for part in subscripts.replace(" ", "").partition("->")[0].split(",")]
    dots = {"...ij": (2, 1), "...jk": (3,), "i...": (2,), "...i": (4, 1)}
    sizes = dict(zip("abcdijkl", (2, 3, 4, 2, 3, 3, 2, 4), strict=True))
    random = np.random.default_rng(len(subscripts))
    parts = subscripts.replace(" ", "").partition("->")[0].split(",")
    shapes = []
    for part, names in zip(parts, letters, strict=True):
        own = tuple(sizes[n] for n in names)
        hidden = dots.get(part, ())
        shapes.append(own + hidden if part.endswith("...") else hidden + own)
    arrays = [random.normal(size=shape) for shape in shapes]
    expected = np.einsum(subscripts, *arrays)
    for found in (run(engine, lambda *a: g.einsum(subscripts, *a), *arrays), g.einsum(subscripts, *arrays)):
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
    check_grads(lambda *a: g.einsum(subscripts, *a), arrays, order=2, engine=ENGINES[engine])


def test_einsum_of_two_matrices_is_one_matmul():
    graph = static.trace(lambda x, y: np.einsum("ij,jk->ik", x, y), np.ones((2, 3)), np.ones((3, 4)))
    assert graph.op_counts() == {"matmul": 1}


@pytest.mark.parametrize(
    ("subscripts", "shapes", "rule"),
    [
        ("ij,jk->ik", [(2, 3), (4, 2)], "'j' has sizes 3 and 4"),
        ("ij->ik", [(2, 3)], "that no input has"),
        ("ij->ii", [(2, 3)], "has a label twice"),
        ("ii->i", [(2, 3)], "of one operand"),
        ("ij,jk", [(2, 3)], "2 subscripts for 1 operands"),
        ("i", [(2, 3)], "names 1 axes of an operand with 2"),
        ("i1", [(2, 3)], "labels are letters"),
    ],
)
def test_einsum_refuses_what_does_not_fit(subscripts, shapes, rule):
    with pytest.raises(g.ShapeError, match=rf"einsum: .*{rule}.*test_array_functions.py"):
        g.einsum(subscripts, *map(np.ones, shapes))


def test_symbolic_sizes():
    specs = g.TensorSpec(("B", 3)), g.TensorSpec(("B", 3))
    functions = {
        "einsum": (lambda x, y: g.einsum("bi,bj->ij", x, y), ["3,3"]),
        "repeat": (lambda x, y: g.repeat(x, 2, axis=0), ["2*B,3"]),
        "tile": (lambda x, y: g.tile(x, (2, 2)), ["2*B,6"]),
        "diff": (lambda x, y: g.cumulative_sum(x, axis=0, include_initial=True), ["B+1,3"]),
        "tril": (lambda x, y: g.tril(x), ["B,3"]),
        "trace": (lambda x, y: g.trace(x @ y.T), [""]),
        "prod": (lambda x, y: g.prod(x, axis=0), ["3"]),
    }
    x, y = np.random.default_rng(0).normal(size=(2, 4, 3)).astype(np.float32)
    for f, shapes in functions.values():
        exe = static.compile(f, *specs)
        assert [str(o.spec)[4:-1] for o in exe.graph.outputs] == shapes
        np.testing.assert_allclose(exe(x, y), f(x, y), rtol=1e-5)


# Subgradients: PyTorch's --------------------------------------------------------------------------------------------

KINKS = [
    ("norm at 0", g.vector_norm, [0.0, 0.0], [0.0, 0.0]),
    ("norm 3 at 0", lambda x: g.vector_norm(x, ord=3), [0.0, 0.0], [0.0, 0.0]),
    ("norm 1 at 0", lambda x: g.vector_norm(x, ord=1), [0.0, 2.0], [0.0, 1.0]),
    ("norm inf of ties", lambda x: g.vector_norm(x, ord=np.inf), [2.0, -2.0, 1.0], [0.5, -0.5, 0.0]),
    ("sort of ties", lambda x: g.sort(x) * np.array([1.0, 2.0, 3.0]), [5.0, 1.0, 5.0], [2.0, 1.0, 3.0]),
    ("sort of ties down", lambda x: g.sort(x, descending=True) * np.array([1.0, 2, 3]), [5.0, 1.0, 5.0], [1, 3, 2]),
    ("clip at its limits", lambda x: g.clip(x, -1, 1), [-1.0, 1.0, 2.0], [1.0, 1.0, 0.0]),
    ("clip from below", lambda x: g.clip(x, 0), [0.0, -1.0, 1.0], [1.0, 0.0, 1.0]),
    ("hypot at 0", lambda x: g.hypot(x, x), [0.0], [0.0]),
    ("copysign at 0", lambda x: g.copysign(x, -1.0), [0.0, 2.0, -2.0], [0.0, -1.0, 1.0]),
    ("trunc is flat", g.trunc, [0.5, 1.0], [0.0, 0.0]),
    ("prod of three zeros", g.prod, [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
    ("cumulative_prod at 0", g.cumulative_prod, [2.0, 0.0, 3.0], [1.0, 8.0, 0.0]),
]


@pytest.mark.diagonal("engine", "f")
@each_engine
@pytest.mark.parametrize(("f", "x", "expected"), [case[1:] for case in KINKS], ids=[case[0] for case in KINKS])
def test_subgradients(engine, f, x, expected):
    (found,) = gradients(engine, lambda x: g.sum(f(x)), np.array(x))
    np.testing.assert_array_equal(found, expected)


@each_engine
@pytest.mark.parametrize("name", ["sum", "prod", "cumulative_sum", "cumulative_prod"])
def test_a_sum_in_a_wider_dtype_has_a_gradient_in_the_inputs(engine, name):
    f = getattr(g, name)
    (found,) = gradients(engine, lambda x: g.sum(f(x, dtype=np.float64)), np.array([2.0, 0.0, 3.0], np.float32))
    (expected,) = gradients(engine, lambda x: g.sum(f(x)), np.array([2.0, 0.0, 3.0]))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, expected)


@each_engine
def test_arrays_of_two_dtypes_joined_get_gradients_in_their_own(engine):
    found = gradients(engine, lambda x, y: g.sum(g.concat([x, y]) ** 2), np.ones(2, np.float32), np.ones(3))
    assert [f.dtype for f in found] == [np.float32, np.float64]


# Scatter ------------------------------------------------------------------------------------------------------------


@few
@given(st.integers(1, 5), st.integers(0, 20), st.integers(0, 3), st.sampled_from([np.float32, np.float64, np.int64]))
def test_scatter_add_is_add_at(size, count, width, dtype):
    random = np.random.default_rng(0)
    indices = random.integers(-size, size, count)
    values = random.integers(0, 9, (count, width)).astype(dtype)
    expected = np.zeros((size, width), dtype)
    np.add.at(expected, indices, values)
    same(g.scatter_add(values, indices, shape=(size, width), axis=0), expected)
    same(g.scatter_add(values.T, indices, shape=(width, size), axis=1), expected.T)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(("count", "size"), [(2000, 200), (1024, 90_000), (3000, 1), (4000, 40), (1500, 750)])
def test_sums_of_many_wide_rows_have_the_bits_of_add_at(count, size, dtype):
    random = np.random.default_rng(count)
    indices = random.integers(-size, size, count)
    indices[::2] = np.where(random.random((count + 1) // 2) < 0.3, 0, indices[::2])  # one row often, as of padding
    values = random.standard_normal((count, 33)).astype(dtype)
    values[:5] = -0.0
    expected = np.zeros((size, 33), dtype)
    np.add.at(expected, indices, values)
    found = g.scatter_add(values, indices, shape=(size, 33), axis=0)
    same(found, expected)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


def test_scatter_add_refuses_what_is_outside():
    for index in (3, -4):
        with pytest.raises(g.ShapeError, match="out of range for an axis of size 3"):
            g.scatter_add(np.ones((1, 2)), np.array([index]), shape=(3, 2), axis=0)


@few
@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 5), st.booleans(), st.sampled_from([np.float32, np.int64]))
def test_add_along_axis_is_add_at(rows, size, count, first, dtype):
    """Also of one index for each row, which are never the same place twice."""
    random = np.random.default_rng(0)
    indices = random.integers(-size, size, (rows, count))
    values = random.integers(1, 9, (rows, count)).astype(dtype)
    expected = np.zeros((rows, size), dtype)
    np.add.at(expected, (np.arange(rows)[:, None], indices), values)
    if first:
        same(g.add_along_axis(values.T, indices.T, shape=(size, rows), axis=0), expected.T)
    else:
        same(g.add_along_axis(values, indices, shape=(rows, size), axis=1), expected)


@pytest.mark.parametrize("index", [3, -4])
@pytest.mark.parametrize("count", [1, 2])
def test_add_along_axis_refuses_what_is_outside(index, count):
    with pytest.raises(g.ShapeError, match=r"out of bounds"):
        g.add_along_axis(np.ones((2, count)), np.full((2, count), index), shape=(2, 3), axis=1)


# NumPy functions ----------------------------------------------------------------------------------------------------

NUMPY = {
    "einsum": lambda m: np.einsum("ij,kj->ik", m, m, optimize=True),
    "dot": lambda m: np.dot(m, m.T),
    "dot of vectors": lambda m: np.dot(m[0], m[1]),
    "dot of many axes": lambda m: np.dot(m, X.transpose(0, 2, 1)),
    "inner": lambda m: np.inner(m, m),
    "outer": lambda m: np.outer(m, m[0]),
    "tensordot": lambda m: np.tensordot(m, m.T, axes=1),
    "vecdot": lambda m: np.vecdot(m, m, axis=0),
    "norm": np.linalg.norm,
    "norm of rows": lambda m: np.linalg.norm(m, axis=1, keepdims=True),
    "vector_norm": lambda m: np.linalg.vector_norm(m, ord=1),
    "trace": lambda m: np.trace(m, offset=1),
    "diagonal": lambda m: np.diagonal(m[None] * X[:, :, :4], axis1=1, axis2=2),
    "cumsum": lambda m: np.cumsum(m, 1),
    "cumprod": np.cumprod,
    "sum in a dtype": lambda m: np.sum(m, 0, np.float32),
    "count_nonzero": lambda m: np.count_nonzero(m > 0, axis=0),
    "sort": lambda m: np.sort(m, axis=None),
    "argsort": lambda m: np.argsort(m, 0, "stable"),
    "searchsorted": lambda m: np.searchsorted(np.sort(V), m, "right"),
    "diff": lambda m: np.diff(m, 2),
    "roll": lambda m: np.roll(m, 1, 0),
    "repeat": lambda m: np.repeat(m, 2, 1),
    "tile": lambda m: np.tile(m, 2),
    "tril": lambda m: np.tril(m, -1) + np.triu(m, 1),
    "swapaxes": lambda m: np.swapaxes(m, 0, -1) + m.swapaxes(1, 0),
    "vstack": lambda m: np.vstack([m, m[0]]),
    "hstack": lambda m: np.hstack([m, m]) + np.hstack([m[0], m[1]]),
    "column_stack": lambda m: np.column_stack([m[:, 0], m]),
    "split": lambda m: np.split(m, 2, axis=1)[1] + np.split(m, [1, 3], axis=1)[1],
    "meshgrid": lambda m: np.meshgrid(m[0], m[1])[1],
    "copy": np.copy,
    "arcsinh": np.arcsinh,
    "shifts": lambda m: m.astype(int) << 2 >> np.left_shift(1, m.astype(np.uint8) * 0),
    "slices": lambda m: m[1:, ::-1][..., None, ::2],
    "methods": lambda m: m.cumsum(0) + m.cumprod(1) * m.argsort(1),
}


@each_engine
@together("f", NUMPY.values(), ids=NUMPY)
def test_numpy_functions_trace(engine, f):
    found, expected = run(engine, f, M), f(M)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-6 if expected.dtype == np.float32 else 1e-12)


@each_engine
def test_logical_functions_take_any_dtype(engine):
    x, y = np.array([0.0, 2.0, -0.0, np.nan]), np.array([1, 0, 0, 3], np.int8)
    for name in ("logical_and", "logical_or", "logical_xor"):
        same(run(engine, getattr(g, name), x, y), getattr(np, name)(x, y))


@each_engine
def test_memory_in_any_order_that_may_only_be_read(engine):
    x = np.asfortranarray(X[::-1, ::2].T)
    x.flags.writeable = False
    for name in ("sort", "argsort", "cumulative_prod", "roll", "tril", "diff", "einsum", "take"):
        extra = {"einsum": lambda x: g.einsum("ijk,ijl->kl", x, x), "roll": lambda x: g.roll(x, 1)}
        f = extra.get(name) or {
            "cumulative_prod": lambda x: g.cumulative_prod(x, axis=1),
            "take": lambda x: g.take(x, np.array([0, 0, 1]), axis=1),
        }.get(name, getattr(g, name))
        np.testing.assert_array_equal(run(engine, f, x), f(np.array(x, order="C")))


@each_engine
@pytest.mark.parametrize(
    "call",
    [
        lambda x: g.sum(x, axis=(0, 0)),
        lambda x: g.flip(x, axis=(1, -1)),
        lambda x: g.permute_dims(x, (0, 0)),
        lambda x: g.tensordot(x, x, axes=((0, 0), (0, 1))),
        lambda x: g.expand_dims(x, (0, 0)),
        lambda x: g.squeeze(x, (0, 0)),
        lambda x: g.roll(x, (1, 2, 3), axis=(0, 1)),
        lambda x: g.sort(x, axis=2),
        g.cumulative_sum,
        lambda x: g.repeat(x, np.array([1, 2]), axis=1),
        lambda x: g.vecdot(x, x, axis=5),
        lambda x: g.trace(x[0]),
        lambda x: g.tril(x[0]),
        lambda x: g.searchsorted(x, x),
        lambda x: g.arange(0, 3, 0),
    ],
)
def test_axes_that_are_wrong_are_refused(engine, call):
    with pytest.raises(g.ShapeError):
        run(engine, call, M)


def test_counts_of_repeats_must_be_known():
    with pytest.raises(g.ControlFlowError, match=r"repeat: the size .*test_array_functions.py.*pass an int"):
        static.trace(lambda x, n: g.repeat(x, n, axis=0), np.ones(3), np.ones(3, int))


def test_operators_on_bits():
    x = dynamic.tensor(np.array([5, 3]))
    for f in (operator.lshift, operator.rshift, operator.and_, operator.or_, operator.xor):
        same(f(x, 2), f(np.array([5, 3]), 2))
        same(f(9, x), f(9, np.array([5, 3])))

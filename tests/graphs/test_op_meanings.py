"""What ops mean where it is a choice: subgradients at kinks, scalars and dtypes, indexing, and composites."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.special

import graphs as g
from graphs.testing import check_grads
from tests.helpers.engines import ENGINES, gradients, run
from tests.helpers.together import together

each_engine = pytest.mark.parametrize("engine", ENGINES)
X = np.random.default_rng(5).normal(size=(3, 4))

# Subgradients: PyTorch's choices ----------------------------------------------------------------------------------

KINKS = [
    ("relu at 0", g.relu, [0.0, 1.0, -1.0], [0.0, 1.0, 0.0]),
    ("relu of NaN and of infinities", g.relu, [np.nan, np.inf, -np.inf, -0.0], [1.0, 1.0, 0.0, 0.0]),
    ("abs at 0", g.abs, [0.0, 2.0, -2.0], [0.0, 1.0, -1.0]),
    ("sign is flat", g.sign, [0.0, 2.0], [0.0, 0.0]),
    ("round is flat", g.round, [0.5, 1.0], [0.0, 0.0]),
    ("floor is flat", g.floor, [0.5, 1.0], [0.0, 0.0]),
    ("clip at its limits", lambda x: g.clip(x, -1, 1), [-1.0, 1.0, 0.0, 2.0, -2.0], [1.0, 1.0, 1.0, 0.0, 0.0]),
    ("max of ties", g.max, [3.0, 1.0, 3.0], [0.5, 0.0, 0.5]),
    ("min of ties", g.min, [1.0, 1.0, 1.0], [1 / 3, 1 / 3, 1 / 3]),
    ("prod with one zero", g.prod, [2.0, 0.0, 3.0], [0.0, 6.0, 0.0]),
    ("prod with two zeros", g.prod, [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
    ("x ** 0 at 0", lambda x: x**0, [0.0, 2.0], [0.0, 0.0]),
    ("x ** 1 at 0", lambda x: x**1.0, [0.0, 2.0], [1.0, 1.0]),
    ("0 ** y", lambda y: g.pow(0.0, y), [1.0, 2.0], [0.0, 0.0]),
    ("maximum of ties", lambda x: g.maximum(x, 1.0), [1.0, 2.0, 0.0], [0.5, 1.0, 0.0]),
    ("minimum of ties", lambda x: g.minimum(x, 1.0), [1.0, 2.0, 0.0], [0.5, 0.0, 1.0]),
    ("sqrt far away", lambda x: g.where(x > 0, g.sqrt(g.where(x > 0, x, 1.0)), 0.0), [-1.0, 4.0], [0.0, 0.25]),
    ("stop_gradient", lambda x: x * g.stop_gradient(x), [2.0, 3.0], [2.0, 3.0]),
]


@each_engine
@pytest.mark.parametrize(("f", "x", "expected"), [case[1:] for case in KINKS], ids=[case[0] for case in KINKS])
def test_subgradients(engine, f, x, expected):
    (found,) = gradients(engine, lambda x: g.sum(f(x)), np.array(x))
    np.testing.assert_array_equal(found, expected)


# What PyTorch gives: the gradients of x ** y in x and in y, where x is zero of either sign, or negative.
INF, NAN = math.inf, math.nan
POWERS = [
    (0.0, -2.0, -INF, -INF), (0.0, -1.0, -INF, -INF), (0.0, -0.5, -INF, -INF), (0.0, 0.0, 0.0, 0.0),
    (0.0, 0.5, INF, 0.0), (0.0, 1.0, 1.0, 0.0), (0.0, 2.0, 0.0, 0.0), (-0.0, -2.0, INF, -INF), (-0.0, -1.0, -INF, INF),
    (-0.0, 0.0, 0.0, 0.0), (-0.0, 2.0, 0.0, 0.0), (0.0, NAN, NAN, NAN), (0.0, INF, NAN, 0.0), (0.0, -INF, -INF, -INF),
    (-2.0, 2.0, -4.0, NAN), (-2.0, 0.0, 0.0, NAN), (1.0, 3.0, 3.0, 0.0),
]  # fmt: skip


@each_engine
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_gradients_of_a_power_at_zero(engine, dtype):
    x, y, in_x, in_y = np.array(POWERS, dtype).T
    found = gradients(engine, lambda x, y: g.sum(x**y), x, y)
    np.testing.assert_array_equal(found[0], in_x)
    np.testing.assert_array_equal(found[1], in_y)


@each_engine
@pytest.mark.filterwarnings("error")
def test_a_power_of_zero_that_is_finite_warns_of_nothing(engine):
    found = gradients(engine, lambda x, y: g.sum(x**y), np.zeros(3), np.array([0.0, 1.0, 2.0]))
    np.testing.assert_array_equal(found, [[0, 1, 0], [0, 0, 0]])


@each_engine
def test_a_value_used_twice_gets_both_contributions(engine):
    found = gradients(engine, lambda x: g.sum(x * x + x), np.array([1.0, 2.0]))
    np.testing.assert_array_equal(found[0], [3.0, 5.0])


@each_engine
def test_what_does_not_reach_the_output_has_gradient_zero(engine):
    found = gradients(engine, lambda x, y: g.sum(x), np.ones(2), np.ones((2, 3)))
    np.testing.assert_array_equal(found[1], np.zeros((2, 3)))


# Dtypes -----------------------------------------------------------------------------------------------------------


@each_engine
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("f", [lambda x: x * 2.5, lambda x: 2 - x, lambda x: x**2, lambda x: g.maximum(x, 0)])
def test_python_numbers_take_the_tensors_dtype(engine, dtype, f):
    x = np.array([1, 2], dtype)
    result = run(engine, f, x)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, f(x))


@each_engine
@pytest.mark.parametrize(
    ("left", "right"),
    [("int32", "float32"), ("bool", "int8"), ("float32", "float64"), ("uint8", "int8"), ("int64", "float32")],
)
def test_promotion_is_numpys(engine, left, right):
    x, y = np.array([1, 0], left), np.array([1, 1], right)
    assert run(engine, g.add, x, y).dtype == np.result_type(left, right)


@each_engine
def test_gradients_have_the_dtype_of_their_input(engine):
    x, y = np.ones(3, np.float32), np.ones((2, 3), np.float64)
    found = gradients(engine, lambda x, y: g.sum(g.astype(x * y, "float32") * x), x, y)
    assert [f.dtype for f in found] == [np.float32, np.float64]


@each_engine
def test_integers_wrap_and_divide_as_numpys_do(engine):
    x = np.array([127, -128, 7], np.int8)
    np.testing.assert_array_equal(run(engine, lambda x: x + 1, x), x + np.int8(1))
    np.testing.assert_array_equal(run(engine, lambda x: (-x) // 2, x), (-x) // 2)
    np.testing.assert_array_equal(run(engine, lambda x: x % 3, x), x % 3)


@each_engine
def test_nan_infinity_and_negative_zero_are_kept(engine):
    x = np.array([np.nan, np.inf, -np.inf, -0.0])
    for f in (
        lambda x: x + 0.5,
        g.tanh,
        g.relu,
        g.abs,
        g.sigmoid,
        lambda x: g.where(x == x, x, 1.0),
        g.flip,
    ):
        result, expected = run(engine, f, x), np.asarray(f(x))
        np.testing.assert_array_equal(result, expected)
        np.testing.assert_array_equal(np.signbit(result), np.signbit(expected))


# Indexing ----------------------------------------------------------------------------------------------------------

Y = np.arange(2 * 5 * 4).reshape(2, 5, 4).astype(float)
KEYS = {
    "int": 1,
    "numpy int": np.int64(-1),
    "list": [1, 0, 1],
    "empty list": [],
    "int beside array": (0, np.array([1, 3])),
    "array beside int": (slice(None), np.array([1, 3]), 0),
    "numpy int beside array": (np.int64(1), np.array([1, 3])),
    "broadcast pair": (np.array([[0], [1]]), np.array([1, 3])),
    "negative pair": (slice(None), np.array([-1, 0]), np.array([-4, 3])),
    "none before array": (None, np.array([0, 0, 1])),
    "ellipsis before array": (..., np.array([0, 3])),
    "mask": np.array([True, False]),
    "mask of two axes": np.arange(10).reshape(2, 5) % 3 == 0,
    "mask after ellipsis": (..., np.array([True, False, False, True])),
    "no key": (),
    "arrays apart": (np.array([0, 1]), slice(1, 4), np.array([1, 2])),
    "int and array apart": (0, slice(None), np.array([1, 2])),
    "none between arrays": (np.array([0, 1]), None, np.array([1, 2])),
    "mask and array apart": (np.array([True, True]), slice(None), np.array([1, 2])),
}


@pytest.mark.diagonal("engine", "key")
@each_engine
@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_indexing_is_numpys(engine, key):
    of_arrays = run(engine, lambda x: g.index(x, key), Y)
    np.testing.assert_array_equal(of_arrays, Y[key])
    if not (engine == "dynamic" and key is KEYS["int and array apart"]):  # a tensor's int drops its axis first
        np.testing.assert_array_equal(run(engine, lambda x: x[key], Y), Y[key])
    check_grads(lambda x: g.index(x, key), [Y], engine=ENGINES[engine])


def test_an_int_of_a_tensors_key_drops_its_axis_before_arrays_are_looked_at_as_in_pytorch():
    key = KEYS["int and array apart"]
    np.testing.assert_array_equal(run("dynamic", lambda x: x[key], Y), Y[0][:, key[2]])


@each_engine
def test_an_index_may_be_a_tensor(engine):
    rows, columns = np.array([0, 1, 1]), np.array([-1, 0, -1])
    np.testing.assert_array_equal(run(engine, lambda x, i, j: x[i, j], Y, rows, columns), Y[rows, columns])


# No elements, and no axes ------------------------------------------------------------------------------------------


@each_engine
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("keepdims", [False, True])
def test_the_logsumexp_of_nothing_is_the_log_of_nothing(engine, keepdims):
    x = np.zeros((0, 3), np.float32)
    found = run(engine, lambda x: g.logsumexp(x, axis=0, keepdims=keepdims), x)
    np.testing.assert_array_equal(found, np.full((1, 3) if keepdims else 3, -np.inf, np.float32), strict=True)
    assert gradients(engine, lambda x: g.sum(g.logsumexp(x, axis=0)), x)[0].shape == (0, 3)


OF_ONE_AXIS = [
    g.sum, g.mean, g.prod, g.max, g.min, g.any, g.all, g.argmax, g.argmin, g.var, g.std, g.logsumexp, g.vector_norm,
    g.count_nonzero, g.softmax, g.log_softmax, g.sort, g.argsort, g.cumulative_sum, g.cumulative_prod, g.flip,
    g.squeeze, g.unstack, g.diff,
]  # fmt: skip


@each_engine
@pytest.mark.parametrize("axis", [0, -1])
@together("function", OF_ONE_AXIS, ids=lambda f: f.__name__)
def test_no_axes_have_no_axis_0(engine, function, axis):
    """As the array API has it; NumPy lets some reductions pass, and PyTorch most."""
    with pytest.raises(IndexError) as caught:
        run(engine, lambda x: function(x, axis=axis), np.array(2.0))
    assert str(caught.value).startswith(f"{function.__name__}: axis {axis} is out of range for 0 axes")
    assert isinstance(caught.value, ValueError)


@each_engine
@pytest.mark.parametrize("join", [g.concat, g.roll, g.repeat, g.take], ids=lambda f: f.__name__)
def test_joining_and_moving_along_no_axis(engine, join):
    others = {g.concat: (), g.roll: (1,), g.repeat: (2,), g.take: (np.array(0),)}[join]
    with pytest.raises(IndexError, match="axis 0 is out of range for 0 axes"):
        run(engine, lambda x: join([x] if join is g.concat else x, *others, axis=0), np.array(2.0))


# Composites --------------------------------------------------------------------------------------------------------

LABELS = np.array([1, 0, 3])
SCALE, SHIFT = np.linspace(0.5, 2, 4), np.linspace(-1, 1, 4)
COMPOSITES = [
    ("softmax", g.softmax, lambda x: scipy.special.softmax(x, axis=-1)),
    ("softmax of an axis", lambda x: g.softmax(x, axis=0), lambda x: scipy.special.softmax(x, axis=0)),
    ("log_softmax", g.log_softmax, lambda x: scipy.special.log_softmax(x, axis=-1)),
    ("logsumexp", g.logsumexp, scipy.special.logsumexp),
    (
        "logsumexp of axes",
        lambda x: g.logsumexp(x, axis=(0, 1), keepdims=True),
        lambda x: scipy.special.logsumexp(x, axis=(0, 1), keepdims=True),
    ),
    ("softplus", g.softplus, lambda x: np.logaddexp(x, 0)),
    ("silu", g.silu, lambda x: x * scipy.special.expit(x)),
    ("sigmoid", g.sigmoid, scipy.special.expit),
    ("var", lambda x: g.var(x, axis=1, correction=1), lambda x: np.var(x, axis=1, ddof=1)),
    ("std", lambda x: g.std(x, axis=(0, -1)), np.std),
    ("clip", lambda x: g.clip(x, -0.5, 0.5), lambda x: np.clip(x, -0.5, 0.5)),
    ("clip from below", lambda x: g.clip(x, min=-0.5), lambda x: np.clip(x, -0.5, None)),
    (
        "layer_norm",
        lambda x: g.layer_norm(x, SCALE, SHIFT),
        lambda x: (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * SCALE + SHIFT,
    ),
    (
        "cross_entropy",
        lambda x: g.cross_entropy(x, LABELS),
        lambda x: -np.mean(scipy.special.log_softmax(x, axis=-1)[np.arange(3), LABELS]),
    ),
    ("embedding", lambda x: g.embedding(x, LABELS % 3), lambda x: x[LABELS % 3]),
    ("stack", lambda x: g.stack([x, x * 2], axis=-1), lambda x: np.stack([x, x * 2], axis=-1)),
    ("unstack", lambda x: g.unstack(x, axis=1)[2], lambda x: x[:, 2]),
    ("flatten", g.flatten, np.ravel),
    ("matrix_transpose", g.matrix_transpose, np.transpose),
]


@pytest.mark.diagonal("engine", "f")
@each_engine
@pytest.mark.parametrize(("f", "oracle"), [case[1:] for case in COMPOSITES], ids=[case[0] for case in COMPOSITES])
def test_composites_equal_scipy_or_numpy_and_differentiate_twice(engine, f, oracle):
    expected = oracle(X)
    for found in (f(X), run(engine, f, X)):
        assert np.shape(found) == np.shape(expected)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    check_grads(f, [X], order=2, engine=ENGINES[engine])


@each_engine
@pytest.mark.parametrize("f", [g.softmax, g.log_softmax, g.logsumexp, g.sigmoid, g.softplus])
def test_large_values_do_not_overflow(engine, f):
    x = np.array([1000.0, -1000.0, 0.0])
    assert np.isfinite(run(engine, f, x)).all()
    assert np.isfinite(gradients(engine, lambda x: g.sum(f(x)), x)[0]).all()


@each_engine
def test_one_hot(engine):
    np.testing.assert_array_equal(run(engine, lambda i: g.one_hot(i, 4), LABELS), np.eye(4, dtype=np.float32)[LABELS])


@each_engine
def test_creation_from_a_shape_and_from_another_array(engine):
    for f, expected in [
        (lambda x: x * g.ones((4,), np.float32), np.ones((3, 4))),
        (g.zeros_like, np.zeros((3, 4))),
        (lambda x: g.full_like(x, 7, dtype=np.int8), np.full((3, 4), 7, np.int8)),
        (lambda x: x[0] + g.arange(4), np.ones(4) + np.arange(4)),
        (lambda x: x @ g.eye(4), np.ones((3, 4))),
        (lambda x: x[0] * g.linspace(0, 1, 4), np.linspace(0, 1, 4)),
    ]:
        result = run(engine, f, np.ones((3, 4)))
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result, expected)


def test_an_op_is_found_by_name_and_pickles_by_name():
    import pickle

    assert pickle.loads(pickle.dumps(g.tanh)) is g.tanh
    with pytest.raises(g.GraphError, match="no op is named 'tahn'"):
        g.op.get("tahn")


def test_a_name_is_taken_once():
    with pytest.raises(ValueError, match="an op named 'tanh' exists already"):
        g.Op("tanh", np.tanh, lambda x: x, cost=lambda x, out: 0, family="elementwise", doc="Again.")


@pytest.mark.parametrize(
    ("x", "shape"),
    [
        (np.ones(()), (3, 4)),
        (np.arange(3.0)[:, None], (2, 3, 4)),
        (np.arange(6.0).reshape(2, 3).T, (4, 3, 2)),  # not contiguous
        (np.ones((0, 1)), (0, 5)),
        (np.ones(1), (0,)),
        (np.ones(()), ()),
    ],
)
def test_a_broadcast_is_the_view_that_numpy_makes(x, shape):
    view, expected = g.broadcast_to(x, shape), np.broadcast_to(x, shape)
    np.testing.assert_array_equal(view, expected)
    assert (view.shape, view.strides, view.flags.writeable) == (expected.shape, expected.strides, False)
    assert not x.size or not view.size or np.shares_memory(view, x)


@pytest.mark.parametrize(("have", "shape"), [((2, 2), (2,)), ((3,), (4,)), ((3, 4), (3, 1)), ((1, 1), (1,))])
def test_what_does_not_broadcast_is_refused(have, shape):
    with pytest.raises(g.GraphError, match="broadcast"):
        g.broadcast_to(np.ones(have), shape)

"""NumPy functions, operators and methods on tensors and symbols: the op library's results, or a clear refusal."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest

import dynamic
import graphs as g
import static
from graphs.frontends.numpy.functions import FUNCTIONS as FUNCTIONS_OF_NUMPY
from tests.helpers.backends import BACKENDS
from tests.helpers.engines import ENGINES, gradients, run
from tests.helpers.together import together

each_engine = pytest.mark.parametrize("engine", ENGINES)
X = np.random.default_rng(3).normal(size=(2, 3, 4))
Y = np.random.default_rng(4).uniform(0.2, 0.8, size=(3, 4))

# Every function here runs on arrays as NumPy's own, and on tensors and symbols through the protocols.
UFUNCS = [
    np.sin, np.cos, np.tan, np.arcsin, np.arccos, np.arctan, np.sinh, np.cosh, np.tanh, np.exp, np.expm1, np.log,
    np.log2, np.log1p, np.sqrt, np.square, np.reciprocal, np.negative, np.abs, np.sign, np.floor, np.ceil, np.rint,
    np.isnan, np.isinf, np.isfinite, np.logical_not,
]  # fmt: skip
BINARY = [
    np.add, np.subtract, np.multiply, np.divide, np.floor_divide, np.remainder, np.power, np.maximum, np.minimum,
    np.arctan2, np.logaddexp, np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal,
    np.logical_and, np.logical_or, np.logical_xor,
]  # fmt: skip
INDICES = np.array([2, 0, -1])
FUNCTIONS = {
    "sum": lambda x: np.sum(x, axis=(0, 2), keepdims=True),
    "mean": lambda x: np.mean(x, 1),
    "prod": np.prod,
    "max": lambda x: np.max(x, axis=-1),
    "amin": lambda x: np.amin(x, axis=0),
    "any": lambda x: np.any(x > 0, axis=1),
    "all": lambda x: np.all(x > 0),
    "argmax": lambda x: np.argmax(x, axis=1),
    "argmin of all": np.argmin,
    "cumsum": lambda x: np.cumsum(x, axis=-1),
    "cumsum of all": np.cumsum,
    "var": lambda x: np.var(x, axis=0, ddof=1),
    "std": np.std,
    "reshape": lambda x: np.reshape(x, (4, -1)),
    "ravel": np.ravel,
    "transpose": lambda x: np.transpose(x, (1, 0, 2)),
    "transpose all": np.transpose,
    "matrix_transpose": np.matrix_transpose,
    "moveaxis": lambda x: np.moveaxis(x, 0, -1),
    "broadcast_to": lambda x: np.broadcast_to(x, (5, 2, 3, 4)),
    "expand_dims": lambda x: np.expand_dims(x, (0, 2)),
    "squeeze": lambda x: np.squeeze(x[:, :1], axis=1),
    "flip": lambda x: np.flip(x, axis=(0, 1)),
    "concatenate": lambda x: np.concatenate([x, np.zeros((2, 1, 4)), x * 2], axis=1),
    "concatenate all": lambda x: np.concatenate([x, x], axis=None),
    "stack": lambda x: np.stack([x, x + 1], axis=-1),
    "take": lambda x: np.take(x, INDICES, axis=1),
    "take of all": lambda x: np.take(x, INDICES),
    "take_along_axis": lambda x: np.take_along_axis(x, np.argmax(X, axis=1, keepdims=True), axis=1),
    "where": lambda x: np.where(x > 0, x, -1.0),
    "clip": lambda x: np.clip(x, -0.5, 0.5),
    "clip by name": lambda x: np.clip(x, min=-0.5, max=0.5),
    "round": np.round,
    "pad": lambda x: np.pad(x, ((0, 1), (1, 0), (2, 2))),
    "pad all axes alike": lambda x: np.pad(x, (1, 2), constant_values=5),
    "zeros_like": lambda x: x + np.zeros_like(x),
    "ones_like": lambda x: x + np.ones_like(x, dtype=np.float32),
    "full_like": lambda x: x + np.full_like(x, 3),
    "matmul": lambda x: np.matmul(x, np.ones((4, 2))),
    "array first": lambda x: np.ones((3, 4)) * x,
    "array matmul": lambda x: np.ones((5, 3)) @ x,
    "scalar first": lambda x: np.float64(2) * x,
    "shape": lambda x: x * len(np.shape(x)) * np.ndim(x) * np.size(x),
}
METHODS = {
    "sum": lambda x: x.sum(axis=0, keepdims=True),
    "mean": lambda x: x.mean(axis=(0, 1)),
    "prod": lambda x: x.prod(axis=-1),
    "max": lambda x: x.max(axis=1),
    "min": lambda x: x.min(),
    "any": lambda x: (x > 1).any(axis=1),
    "all": lambda x: (x > -9).all(),
    "argmax": lambda x: x.argmax(axis=2),
    "argmin": lambda x: x.argmin(),
    "reshape": lambda x: x.reshape(6, 4),
    "reshape to a tuple": lambda x: x.reshape((-1, 2)),
    "transpose": lambda x: x.transpose(2, 0, 1),
    "transpose all": lambda x: x.transpose(),
    "squeeze": lambda x: x[:1].squeeze(),
    "flatten": lambda x: x.flatten(),
    "astype": lambda x: x.astype(np.float32),
    "clip": lambda x: x.clip(-1, 1),
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "len": lambda x: x * len(x) * x.ndim,
    "iteration": lambda x: sum(row * (i + 1) for i, row in enumerate(x)),
    "unpacking": lambda x: _difference(*x),
    "operators": lambda x: -(+x) + 2 - x * 3 / (x**2 + 1) + (1 - x) ** 2 + abs(x) // 0.5 + x % 2 + 2 / (x**2 + 1),
    "power": lambda x: 2**x + (x**2) ** 0.5,
    "comparisons": lambda x: ((x < 1) & (x >= -1)) | ~(x != x) ^ (x == 0),
    "in place": lambda x: _added(x * 1),
}


def _difference(a, b):
    return a - b


def _added(x):
    x += 1
    x *= 2
    return x


@each_engine
@together("ufunc", UFUNCS, ids=lambda u: u.__name__)
def test_ufuncs(engine, ufunc):
    found = run(engine, ufunc, Y)
    np.testing.assert_array_equal(found, ufunc(Y))
    assert found.dtype == ufunc(Y).dtype


@each_engine
@together("ufunc", BINARY, ids=lambda u: u.__name__)
def test_binary_ufuncs_on_either_side(engine, ufunc):
    other = np.array([[0.5], [0.25], [0.75]])
    np.testing.assert_array_equal(run(engine, lambda x: ufunc(x, other), Y), ufunc(Y, other))
    np.testing.assert_array_equal(run(engine, lambda x: ufunc(other, x), Y), ufunc(other, Y))


@each_engine
@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor", "invert"])
def test_bitwise_ufuncs(engine, name):
    ufunc, x = getattr(np, name), np.array([5, -3, 0])
    f = ufunc if name == "invert" else lambda x: ufunc(x, 6)
    np.testing.assert_array_equal(run(engine, f, x), f(x))


@each_engine
@together("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_functions(engine, f):
    found, expected = run(engine, f, X), f(X)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-14)


@each_engine
@together("f", METHODS.values(), ids=METHODS)
def test_methods_and_operators(engine, f):
    found, expected = run(engine, f, X), f(X)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-14)


@each_engine
def test_gradients_go_through_numpy_functions(engine):
    def loss(x):
        return np.sum(np.tanh(np.concatenate([x, x * 2], axis=-1)) * np.where(x[:, :1] > 0, 1.0, 2.0))

    by_ops = gradients(
        engine,
        lambda x: g.sum(g.tanh(g.concat([x, x * 2], axis=-1)) * g.where(x[:, :1] > 0, 1.0, 2.0)),
        Y,
    )
    np.testing.assert_array_equal(gradients(engine, loss, Y)[0], by_ops[0])


@each_engine
def test_the_graph_holds_the_ops_of_the_library(engine):
    graph = (dynamic.record if engine == "dynamic" else static.trace)(lambda x: np.sum(np.arctan2(x, 2.0) @ x.T), Y)
    assert graph.op_counts() == {"atan2": 1, "permute_dims": 1, "matmul": 1, "sum": 1}


# Every function by NumPy's words ---------------------------------------------------------------------------------

SQUARE = np.arange(9.0).reshape(3, 3)
ROW = np.array([0.5, 1.5, 2.5])
RANDOM = np.random.default_rng(5).normal(size=(3, 3))
HOLES = np.where(SQUARE % 4 == 1, np.nan, SQUARE)
POSITIVE = SQUARE @ SQUARE.T / 50 + np.eye(3)
WORDS = [
    ((np.sum, np.prod, np.mean, np.any, np.all), {"a": SQUARE, "axis": 0, "out": None, "keepdims": True}),
    ((np.max, np.min, np.amax, np.amin), {"a": SQUARE, "axis": 0, "out": None, "keepdims": True}),
    ((np.argmax, np.argmin, np.count_nonzero), {"a": SQUARE, "axis": 1, "keepdims": True}),
    ((np.cumsum, np.cumprod), {"a": SQUARE, "axis": 1, "dtype": np.float32, "out": None}),
    ((np.var, np.std), {"a": SQUARE, "axis": 1, "dtype": None, "out": None, "ddof": 1, "keepdims": True}),
    ((np.reshape,), {"a": SQUARE, "shape": (9, 1), "order": "C"}),
    ((np.ravel,), {"a": SQUARE, "order": "C"}),
    ((np.transpose,), {"a": SQUARE, "axes": (1, 0)}),
    ((np.swapaxes,), {"a": SQUARE, "axis1": 0, "axis2": 1}),
    ((np.moveaxis,), {"a": SQUARE, "source": 0, "destination": 1}),
    ((np.broadcast_to,), {"array": SQUARE, "shape": (2, 3, 3), "subok": False}),
    ((np.expand_dims,), {"a": SQUARE, "axis": 1}),
    ((np.squeeze,), {"a": SQUARE[:1], "axis": 0}),
    ((np.flip,), {"m": SQUARE, "axis": 0}),
    ((np.roll,), {"a": SQUARE, "shift": 1, "axis": 0}),
    ((np.repeat,), {"a": SQUARE, "repeats": 2, "axis": 0}),
    ((np.tile,), {"A": SQUARE, "reps": (2, 1)}),
    ((np.tril, np.triu), {"m": SQUARE, "k": 1}),
    ((np.diff,), {"a": SQUARE, "n": 1, "axis": 0, "prepend": SQUARE[:1] * 2, "append": SQUARE[:1]}),
    ((np.pad,), {"array": SQUARE, "pad_width": 1, "mode": "constant"}),
    ((np.concatenate,), {"arrays": (SQUARE, SQUARE), "axis": 1, "out": None}),
    ((np.stack,), {"arrays": (SQUARE, SQUARE), "axis": 1, "out": None}),
    ((np.vstack, np.hstack, np.column_stack), {"tup": (SQUARE, SQUARE)}),
    ((np.split,), {"ary": SQUARE, "indices_or_sections": 3, "axis": 1}),
    ((np.copy,), {"a": SQUARE, "order": "K", "subok": False}),
    ((np.where,), {"condition": SQUARE, "x": SQUARE, "y": 1.0}),
    ((np.clip,), {"a": SQUARE, "a_min": 1.0, "a_max": 5.0, "out": None}),
    ((np.take,), {"a": SQUARE, "indices": [2, 0], "axis": 1, "out": None, "mode": "raise"}),
    ((np.take_along_axis,), {"arr": SQUARE, "indices": np.array([[1], [0], [2]]), "axis": 1}),
    ((np.sort, np.argsort), {"a": -SQUARE, "axis": 0, "kind": "stable", "order": None}),
    ((np.searchsorted,), {"a": ROW, "v": ROW - 1, "side": "right", "sorter": None}),
    ((np.nonzero, np.argwhere), {"a": SQUARE}),
    ((np.dot, np.outer), {"a": ROW, "b": ROW, "out": None}),
    ((np.inner,), {"a": ROW, "b": ROW}),
    ((np.tensordot,), {"a": SQUARE, "b": SQUARE, "axes": 1}),
    ((np.trace,), {"a": SQUARE, "offset": 1, "axis1": 1, "axis2": 0, "dtype": np.float32, "out": None}),
    ((np.diagonal,), {"a": SQUARE, "offset": 1, "axis1": 1, "axis2": 0}),
    ((np.linalg.norm,), {"x": ROW, "ord": 1, "axis": 0, "keepdims": True}),
    ((np.linalg.vector_norm,), {"x": SQUARE, "axis": 0, "keepdims": True, "ord": 3}),
    ((np.linalg.matmul, np.linalg.outer, np.linalg.vecdot), {"x1": ROW, "x2": ROW}),
    ((np.linalg.tensordot,), {"x1": SQUARE, "x2": SQUARE, "axes": 1}),
    ((np.linalg.trace,), {"x": SQUARE, "offset": 1, "dtype": np.float32}),
    ((np.linalg.diagonal,), {"x": SQUARE, "offset": 1}),
    ((np.linalg.matrix_transpose, np.matrix_transpose), {"x": SQUARE}),
    ((np.zeros_like, np.ones_like), {"a": SQUARE, "dtype": np.float32, "order": "K", "subok": True}),
    ((np.full_like,), {"a": SQUARE, "fill_value": 2, "dtype": np.float32, "order": "K", "subok": True, "shape": None}),
    ((np.size,), {"a": SQUARE, "axis": None}),
    ((np.shape, np.ndim), {"a": SQUARE}),
    ((np.cumulative_sum, np.cumulative_prod), {"x": SQUARE, "axis": 1, "include_initial": True}),
    ((np.unstack,), {"x": SQUARE, "axis": 1}),
    ((np.append,), {"arr": SQUARE, "values": SQUARE[:1], "axis": 0}),
    ((np.cross,), {"a": SQUARE, "b": ROW, "axisa": -1, "axisb": 0, "axisc": -1, "axis": None}),
    ((np.linalg.cross,), {"x1": SQUARE, "x2": SQUARE[::-1], "axis": 0}),
    ((np.diag,), {"v": SQUARE, "k": 1}),
    ((np.fliplr, np.flipud), {"m": SQUARE}),
    ((np.rot90,), {"m": SQUARE, "k": 3, "axes": (1, 0)}),
    ((np.kron,), {"a": SQUARE, "b": ROW}),
    ((np.sinc,), {"x": SQUARE}),
    ((np.nan_to_num,), {"x": SQUARE, "copy": True, "nan": 1.0, "posinf": 2.0, "neginf": 3.0}),
    ((np.linalg.cholesky,), {"a": POSITIVE, "upper": True}),
    ((np.linalg.det, np.linalg.inv, np.linalg.slogdet), {"a": POSITIVE}),
    ((np.linalg.eigvalsh,), {"a": POSITIVE, "UPLO": "U"}),
    ((np.linalg.svdvals,), {"x": POSITIVE}),
    ((np.linalg.solve,), {"a": POSITIVE, "b": SQUARE}),
    ((np.linalg.matrix_norm,), {"x": SQUARE, "keepdims": True, "ord": 1}),
    ((np.linalg.matrix_power,), {"a": SQUARE, "n": 3}),
    ((np.linalg.matrix_rank,), {"A": SQUARE, "rtol": 1e-9}),
    ((np.linalg.pinv,), {"a": POSITIVE, "rtol": 1e-9}),
    ((np.round, np.around), {"a": SQUARE / 7, "decimals": 2, "out": None}),
    ((np.average,), {"a": SQUARE, "axis": 1, "weights": ROW, "returned": False, "keepdims": True}),
    ((np.cov,), {"m": SQUARE**2, "y": ROW, "rowvar": False, "bias": False, "ddof": 0}),
    ((np.corrcoef,), {"x": RANDOM, "y": RANDOM[::-1], "rowvar": True}),
    ((np.trapezoid,), {"y": SQUARE, "x": ROW**2, "dx": 1.0, "axis": 0}),
    ((np.nansum, np.nanprod, np.nanmean), {"a": HOLES, "axis": 1, "dtype": None, "out": None, "keepdims": True}),
    ((np.nanmax, np.nanmin), {"a": HOLES, "axis": 1, "out": None, "keepdims": True}),
    ((np.nanvar, np.nanstd), {"a": HOLES, "axis": 1, "dtype": None, "out": None, "ddof": 1, "keepdims": True}),
    ((np.ptp,), {"a": SQUARE, "axis": 0, "out": None, "keepdims": True}),
    ((np.quantile,), {"a": RANDOM, "q": (0.25, 0.9), "axis": 1, "out": None, "overwrite_input": False}),
    ((np.percentile,), {"a": RANDOM, "q": 30, "axis": 0, "out": None, "overwrite_input": False}),
    ((np.median,), {"a": RANDOM, "axis": (0, 1), "out": None, "overwrite_input": False, "keepdims": True}),
    ((np.interp,), {"x": SQUARE / 3, "xp": ROW, "fp": ROW**2, "left": -1.0, "right": None}),
    ((np.polyval,), {"p": ROW, "x": SQUARE}),
    ((np.vander,), {"x": ROW, "N": 4, "increasing": False}),
    ((np.convolve, np.correlate), {"a": np.arange(5.0), "v": ROW, "mode": "same"}),
    ((np.array_split, np.split), {"ary": SQUARE, "indices_or_sections": (1,), "axis": 1}),
    ((np.hsplit, np.vsplit), {"ary": SQUARE, "indices_or_sections": 3}),
    ((np.dsplit,), {"ary": SQUARE.reshape(1, 3, 3), "indices_or_sections": 3}),
    ((np.dstack,), {"tup": (SQUARE, SQUARE)}),
    ((np.block,), {"arrays": [[SQUARE, SQUARE], [SQUARE[:1], SQUARE[:1]]]}),
    ((np.rollaxis,), {"a": SQUARE.reshape(1, 3, 3), "axis": 2, "start": 1}),
    ((np.diagflat,), {"v": SQUARE[:2, :2], "k": 1}),
    ((np.delete,), {"arr": SQUARE, "obj": 1, "axis": 0}),
    ((np.apply_along_axis,), {"func1d": np.sum, "axis": 0, "arr": SQUARE}),
    ((np.select,), {"condlist": [SQUARE > 3, SQUARE > 1], "choicelist": [SQUARE, SQUARE * 2], "default": 7}),
    ((np.isclose,), {"a": HOLES, "b": HOLES + 1e-9, "rtol": 1e-5, "atol": 1e-8, "equal_nan": True}),
    ((np.ediff1d,), {"ary": SQUARE, "to_end": None, "to_begin": None}),
    ((np.flatnonzero,), {"a": SQUARE}),
    ((np.vdot,), {"a": SQUARE, "b": SQUARE}),
    ((np.fix,), {"x": SQUARE / 2, "out": None}),
    ((np.real, np.imag), {"val": SQUARE}),
    ((np.iscomplexobj, np.isrealobj), {"x": SQUARE}),
]
BY_WORDS = {function: words for functions, words in WORDS for function in functions}
# Of any number of arrays.
NO_WORDS = {np.broadcast_arrays, np.meshgrid, np.einsum, np.result_type, np.gradient}
NO_WORDS |= {np.atleast_1d, np.atleast_2d, np.atleast_3d}
# Of no values, or in NumPy itself of no words; or a bool of Python's in NumPy, which a graph cannot tell.
NO_VALUES = {np.empty_like, np.unique_all, np.unique_counts, np.unique_inverse, np.unique_values}
NO_VALUES |= {np.allclose, np.array_equal}
NO_VALUES |= {np.linalg.eigh, np.linalg.svd, np.linalg.qr}  # whose vectors may have other signs: in test_linalg.py


def ways_to_call(function, words):
    """The arguments all by name, and as many by position as have one; what has no name by position in both."""
    bound = inspect.signature(function).bind_partial()
    bound.arguments |= words
    parameters = [bound.signature.parameters[name] for name in words]
    if function is not np.linalg.vector_norm and list(words) == list(bound.signature.parameters)[: len(words)]:
        yield bound.args, bound.kwargs
    unnamed = [p.name for p in parameters if p.kind is p.POSITIONAL_ONLY]
    yield tuple(words[name] for name in unnamed), {name: words[name] for name in words if name not in unnamed}


def tensors_in(value):
    if isinstance(value, np.ndarray) and value.dtype == np.float64:
        return dynamic.tensor(value)
    return tuple(map(tensors_in, value)) if isinstance(value, tuple) else value


def test_the_words_of_every_function_are_tried():
    assert {*FUNCTIONS_OF_NUMPY} == {*BY_WORDS} | NO_WORDS | NO_VALUES


def tells_its_words(function):
    try:
        return inspect.signature(function) is not None
    except ValueError:  # of a function in C, before NumPy 2.4
        return False


@pytest.mark.filterwarnings("ignore:numpy.fix is deprecated:DeprecationWarning")  # by NumPy 2.5, of its own arrays
@together("function", filter(tells_its_words, BY_WORDS), ids=lambda f: f"{f.__module__}.{f.__name__}")
def test_functions_are_called_by_numpys_words_and_by_position(function):
    for args, options in ways_to_call(function, BY_WORDS[function]):
        expected = g.tree.leaves(function(*args, **options))
        found = function(*tensors_in(args), **{name: tensors_in(value) for name, value in options.items()})
        for ours, theirs in zip(g.tree.leaves(found), expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-13)
            assert getattr(ours, "dtype", None) == getattr(theirs, "dtype", None)


def test_a_buffer_for_the_result_is_refused_by_position_too():
    x, buffer = dynamic.tensor(SQUARE), np.zeros(3)
    for call in (
        lambda: np.max(x, 0, buffer),
        lambda: np.mean(x, axis=0, out=buffer),
        lambda: np.stack([x], 0, buffer),
    ):
        with pytest.raises(TypeError, match="takes no out here"):
            call()


def test_corrections_by_both_words():
    x = dynamic.tensor(SQUARE)
    np.testing.assert_allclose(np.std(x, correction=1), np.std(SQUARE, ddof=1))
    np.testing.assert_allclose(np.var(x, None, None, None, 2), np.var(SQUARE, ddof=2))


@each_engine
@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.einsum(x, [0, 1], x, [0, 1], []),
        lambda x: np.einsum(x, [0, 2], x, [1, 2]),
        lambda x: np.einsum(x, [40, 3], x, [3, 40], [3]),
        lambda x: np.einsum(x, [..., 0], x, [..., 0], [...]),
        lambda x: np.einsum("ij,jk", x, x, optimize=True),
    ],
)
def test_einsum_by_numbers_of_axes(engine, call):
    np.testing.assert_allclose(run(engine, call, SQUARE), call(SQUARE), rtol=1e-14)


def test_einsum_without_subscripts_is_refused():
    with pytest.raises(g.DTypeError, match=r"einsum: subscripts are a string, not ndarray \(test_numpy_protocol"):
        g.einsum(SQUARE, [0, 1])


# Refusals ----------------------------------------------------------------------------------------------------------

UNKNOWN = [
    (np.histogram, "np.histogram has no counterpart in graphs", "functions in graphs"),
    (np.nancumsum, "np.nancumsum has no counterpart", "functions in graphs"),
    (np.spacing, "np.spacing has no counterpart", "functions in graphs"),
    (np.linalg.eig, "np.linalg.eig has no counterpart", "graphs"),
    (lambda x: np.max(x, where=x > 0), "np.max: where needs initial", "graphs"),
    (lambda x: np.std(x, where=x > 0), "np.std: ", "graphs"),
    (np.fft.fft, "np.fft.fft has no counterpart", "graphs"),
    (np.add.reduce, "np.add.reduce has no counterpart", "graphs.sum"),
    (lambda x: np.tanh(x, where=x > 0), "np.tanh takes no where here", "alone"),
    (lambda x: np.median(x, overwrite_input=True), "np.median: ", "graphs"),
    (lambda x: np.mean(x, dtype=np.float32), "np.mean: ", "graphs"),
]


@each_engine
@pytest.mark.parametrize(("f", "rule", "remedy"), UNKNOWN, ids=[case[1].split()[0] for case in UNKNOWN])
def test_what_has_no_counterpart_is_refused_by_name(engine, f, rule, remedy):
    with pytest.raises(TypeError) as caught:
        run(engine, f, Y)
    before, _, after = str(caught.value).partition(";")
    assert before.startswith(rule)
    assert re.search(r"\((test_numpy_protocol|engines)\.py:\d+\)", before)  # where f is called, if f is NumPy's
    assert remedy in after


def test_a_symbol_never_becomes_an_array():
    for f in (np.asarray, np.array, lambda x: np.asarray([x]), lambda x: np.ones(3) + np.asarray(x), float, int, list):
        with pytest.raises(g.ControlFlowError, match=r"test_numpy_protocol.py:\d+"):
            static.trace(f, TensorSpec_0D if f is not list else g.TensorSpec(("B",)))


TensorSpec_0D = g.TensorSpec((), "float32")


def test_a_tensor_becomes_an_array_when_asked():
    x = dynamic.tensor(Y)
    np.testing.assert_array_equal(np.asarray(x), Y)
    np.testing.assert_array_equal(np.asarray(x, dtype=np.float32), Y.astype(np.float32))
    assert float(dynamic.tensor(2.5)) == 2.5


@each_engine
def test_a_0d_tensor_has_no_length(engine):
    with pytest.raises(TypeError, match="len\\(\\) of a 0-d tensor"):
        run(engine, lambda x: x * len(x), np.array(1.0))


OF_INTS = {
    "median": (np.median, np.array([1, 2, 2, 9])),
    "median of an even number": (np.median, np.array([1, 2])),
    "median of bools along an axis": (lambda x: np.median(x, axis=0), np.array([[True], [False]])),
    "percentiles": (lambda x: np.percentile(x, [25, 50, 99.5]), np.arange(12, dtype=np.uint8)),
    "quantile": (lambda x: np.quantile(x, 0.3, axis=1, keepdims=True), np.arange(12, dtype=np.int32).reshape(3, 4)),
    "norm": (np.linalg.norm, np.array([3, 4])),
    "norm of order 1": (lambda x: np.linalg.norm(x, 1), np.array([3, -4])),
    "norm of order infinity": (lambda x: np.linalg.norm(x, np.inf), np.array([3, -128], np.int8)),
    "number of what is not 0": (lambda x: np.linalg.norm(x, 0), np.array([3, 0, 4])),
    "norm of a matrix": (lambda x: np.linalg.norm(x, 1), np.array([[100, 2], [100, 4]], np.int8)),
    "gradient of samples": (np.gradient, np.array([3, 1, 250], np.uint8)),
    "gradient along descending places": (
        lambda x: np.gradient(np.array([0.0, 2, 4]), x),
        np.array([3, 2, 1], np.uint8),
    ),
    "gradient along far places": (lambda x: np.gradient(np.array([0.0, 100]), x), np.array([-100, 100], np.int8)),
    "covariance without freedom": (lambda x: np.cov(x, ddof=5), np.array([[0, 1, 2], [2, 1, 0]])),
    "one point": (lambda x: np.interp(x, np.array([1.0]), np.array([3.0])), np.array([0, 1, 2])),
    "one point and its sides": (lambda x: np.interp(x, np.array([1.0]), np.array([3.0]), 7, 8), np.array([0, 1, 2])),
    "between equal points": (lambda x: np.interp(x, np.array([-np.inf, np.inf]), np.array([4.0, 4.0])), np.array([1])),
    "between an infinity": (lambda x: np.interp(x, np.array([0.0, 2.0]), np.array([-np.inf, 4.0])), np.array([1])),
    "two places of one": (lambda x: np.interp(x, np.array([0.0, 1, 1, 2]), np.array([0.0, 1, 5, 6])), np.array([1])),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OF_INTS)
def test_statistics_of_ints_are_numpys(name):
    f, x = OF_INTS[name]
    wanted = np.asarray(f(x))
    with np.errstate(all="ignore"):
        for found in (f(dynamic.tensor(x)), *[static.jit(f, backend=backend)(x) for backend in BACKENDS]):
            np.testing.assert_array_equal(np.asarray(found), wanted)
            assert np.asarray(found).dtype == wanted.dtype


def test_a_median_of_an_array_is_that_of_a_tensor():
    for x in (np.array([1, 2]), np.array([1.0, 2.0], np.float32), np.array([[3, 1], [2, 2]], np.uint8)):
        assert float(g.median(x)) == float(np.asarray(g.median(dynamic.tensor(x)))) == float(np.median(x))

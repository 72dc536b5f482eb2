"""The array API standard 2024.12: every function with its signature, and what the namespace says of itself."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import dynamic
import graphs as g
import static
from graphs.op import Op
from static.trace.symbol import Symbol
from tests.helpers.arrays import BINARY, STANDARD, UNARY, same
from tests.helpers.engines import ENGINES, gradients, run
from tests.helpers.slow import examples
from tests.helpers.together import together

M = np.random.default_rng(2).normal(size=(3, 4))
V = M[0]
each_engine = pytest.mark.parametrize("engine", ENGINES)
few = examples(0.4)
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # overflow and 0 / 0 are part of what is tested

# Names and signatures -----------------------------------------------------------------------------------------------

SIGNATURES = {
    **dict.fromkeys(UNARY, "x, /"),
    **dict.fromkeys(BINARY, "x1, x2, /"),
    "clip": "x, /, min=None, max=None",
    "where": "condition, x1, x2, /",
    # creation
    "arange": "start, /, stop=None, step=1, *, dtype=None, device=None",
    "asarray": "obj, /, *, dtype=None, device=None, copy=None",
    "empty": "shape, *, dtype=None, device=None",
    "empty_like": "x, /, *, dtype=None, device=None",
    "eye": "n_rows, n_cols=None, /, *, k=0, dtype=None, device=None",
    "from_dlpack": "x, /, *, device=None, copy=None",
    "full": "shape, fill_value, *, dtype=None, device=None",
    "full_like": "x, /, fill_value, *, dtype=None, device=None",
    "linspace": "start, stop, /, num, *, dtype=None, device=None, endpoint=True",
    "meshgrid": "*arrays, indexing='xy'",
    "ones": "shape, *, dtype=None, device=None",
    "ones_like": "x, /, *, dtype=None, device=None",
    "tril": "x, /, *, k=0",
    "triu": "x, /, *, k=0",
    "zeros": "shape, *, dtype=None, device=None",
    "zeros_like": "x, /, *, dtype=None, device=None",
    # dtypes
    "astype": "x, dtype, /, *, copy=True, device=None",
    "can_cast": "from_, to, /",
    "finfo": "type, /",
    "iinfo": "type, /",
    "isdtype": "dtype, kind",
    "result_type": "*arrays_and_dtypes",
    # indexing, searching, sorting, sets
    "take": "x, indices, /, *, axis=0",
    "take_along_axis": "x, indices, /, *, axis=-1",
    "argmax": "x, /, *, axis=None, keepdims=False",
    "argmin": "x, /, *, axis=None, keepdims=False",
    "count_nonzero": "x, /, *, axis=None, keepdims=False",
    "nonzero": "x, /",
    "searchsorted": "x1, x2, /, *, side='left', sorter=None",
    "argsort": "x, /, *, axis=-1, descending=False, stable=True",
    "sort": "x, /, *, axis=-1, descending=False, stable=True",
    "unique_all": "x, /",
    "unique_counts": "x, /",
    "unique_inverse": "x, /",
    "unique_values": "x, /",
    # linear algebra
    "matmul": "x1, x2, /",
    "matrix_transpose": "x, /",
    "tensordot": "x1, x2, /, *, axes=2",
    "vecdot": "x1, x2, /, *, axis=-1",
    # manipulation
    "broadcast_arrays": "*arrays",
    "broadcast_to": "x, /, shape",
    "concat": "arrays, /, *, axis=0",
    "expand_dims": "x, /, *, axis=0",
    "flip": "x, /, *, axis=None",
    "moveaxis": "x, source, destination, /",
    "permute_dims": "x, /, axes",
    "repeat": "x, repeats, /, *, axis=None",
    "reshape": "x, /, shape, *, copy=None",
    "roll": "x, /, shift, *, axis=None",
    "squeeze": "x, /, axis",
    "stack": "arrays, /, *, axis=0",
    "tile": "x, repetitions, /",
    "unstack": "x, /, *, axis=0",
    # statistics and utilities
    "cumulative_prod": "x, /, *, axis=None, dtype=None, include_initial=False",
    "cumulative_sum": "x, /, *, axis=None, dtype=None, include_initial=False",
    "max": "x, /, *, axis=None, keepdims=False",
    "mean": "x, /, *, axis=None, keepdims=False",
    "min": "x, /, *, axis=None, keepdims=False",
    "prod": "x, /, *, axis=None, dtype=None, keepdims=False",
    "std": "x, /, *, axis=None, correction=0.0, keepdims=False",
    "sum": "x, /, *, axis=None, dtype=None, keepdims=False",
    "var": "x, /, *, axis=None, correction=0.0, keepdims=False",
    "all": "x, /, *, axis=None, keepdims=False",
    "any": "x, /, *, axis=None, keepdims=False",
    "diff": "x, /, *, axis=-1, n=1, prepend=None, append=None",
    "__array_namespace_info__": "",
}
LINALG = {
    "cholesky": "x, /, *, upper=False",
    "cross": "x1, x2, /, *, axis=-1",
    "det": "x, /",
    "diagonal": "x, /, *, offset=0",
    "eigh": "x, /",
    "eigvalsh": "x, /",
    "inv": "x, /",
    "matmul": "x1, x2, /",
    "matrix_norm": "x, /, *, keepdims=False, ord='fro'",
    "matrix_power": "x, n, /",
    "matrix_rank": "x, /, *, rtol=None",
    "matrix_transpose": "x, /",
    "outer": "x1, x2, /",
    "pinv": "x, /, *, rtol=None",
    "qr": "x, /, *, mode='reduced'",
    "slogdet": "x, /",
    "solve": "x1, x2, /",
    "svd": "x, /, *, full_matrices=True",
    "svdvals": "x, /",
    "tensordot": "x1, x2, /, *, axes=2",
    "trace": "x, /, *, offset=0, dtype=None",
    "vecdot": "x1, x2, /, *, axis=-1",
    "vector_norm": "x, /, *, axis=None, keepdims=False, ord=2",
}
_OPERATORS = (
    "abs add and eq floordiv ge getitem gt invert le lshift lt matmul mod mul ne neg or pos pow rshift sub truediv xor"
)


def parameters(function):
    """What a function takes; an op without a `prepare` takes its inputs by position alone."""
    if not isinstance(function, Op):
        return inspect.signature(function).parameters
    if function.prepare is not None:
        return inspect.signature(function.prepare).parameters
    return {f"x{i}": inspect.Parameter(f"x{i}", inspect.Parameter.POSITIONAL_ONLY) for i in range(function.arity)}


@together(
    ("space", "name", "signature"),
    [(g, *item) for item in SIGNATURES.items()] + [(g.linalg, *item) for item in LINALG.items()],
)
def test_every_function_takes_what_the_standard_says(space, name, signature):
    wanted = inspect.signature(eval(f"lambda {signature}: None")).parameters.values()
    ours = parameters(getattr(space, name))
    by_position = [p for p in ours.values() if p.kind is not p.KEYWORD_ONLY]
    for i, parameter in enumerate(wanted):
        if parameter.kind is parameter.POSITIONAL_ONLY:
            assert i < len(by_position)
            assert by_position[i].default == parameter.default
        elif parameter.kind is parameter.VAR_POSITIONAL:
            assert by_position[i].kind is parameter.VAR_POSITIONAL
        else:
            mine = ours[parameter.name]
            assert mine.kind is not parameter.POSITIONAL_ONLY
            assert parameter.default in (mine.default, parameter.empty)
            if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
                assert by_position[i] is mine


def test_every_name_is_public_and_documented():
    names = [*SIGNATURES, *STANDARD, "e", "pi", "inf", "nan", "newaxis", "__array_api_version__"]
    assert set(names) <= set(g.__all__)
    assert set(LINALG) <= set(g.linalg.__all__)
    assert all(getattr(g, name).__doc__.rstrip().endswith(".") for name in SIGNATURES)
    assert all(getattr(g.linalg, name).__doc__.rstrip().endswith(".") for name in LINALG)
    assert (g.newaxis, g.__array_api_version__) == (None, "2024.12")


@pytest.mark.parametrize("kind", [dynamic.Tensor, Symbol])
def test_every_operator_and_attribute_is_there(kind):
    for name in _OPERATORS.split():
        assert hasattr(kind, f"__{name}__")
    for name in ("bool", "float", "index", "int", "dlpack", "dlpack_device", "array_namespace"):
        assert hasattr(kind, f"__{name}__")
    assert all(hasattr(kind, name) for name in ("dtype", "device", "mT", "ndim", "shape", "size", "T", "to_device"))


# Creation, dtypes, namespace ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda xp: xp.arange(0.5, 2.0, 0.25), np.arange(0.5, 2.0, 0.25)),
        (lambda xp: xp.arange(3, dtype=xp.float32), np.arange(3, dtype=np.float32)),
        (lambda xp: xp.arange(5, 0, -2), np.arange(5, 0, -2)),
        (lambda xp: xp.linspace(0, 1, 4, endpoint=False), np.linspace(0, 1, 4, endpoint=False)),
        (lambda xp: xp.linspace(0, 1, num=3, dtype=xp.float32), np.linspace(0, 1, 3, dtype=np.float32)),
        (lambda xp: xp.eye(2, 3, k=1, dtype=xp.int8), np.eye(2, 3, 1, np.int8)),
        (lambda xp: xp.full((2,), True), np.full(2, True)),
        (lambda xp: xp.full(shape=(), fill_value=2.5, dtype=xp.float32), np.full((), 2.5, np.float32)),
        (lambda xp: xp.zeros((2, 0), dtype=xp.uint8, device="cpu"), np.zeros((2, 0), np.uint8)),
        (lambda xp: xp.asarray([[1, 2], [3, 4]]), np.array([[1, 2], [3, 4]])),
        (lambda xp: xp.asarray([1, 2], dtype=xp.float32, copy=True), np.array([1, 2], np.float32)),
        (lambda xp: xp.from_dlpack(np.arange(3)), np.arange(3)),
    ],
)
def test_creation(call, expected):
    same(call(g), expected)


@each_engine
def test_asarray_keeps_what_is_traced(engine):
    same(run(engine, lambda x: g.asarray(x, dtype=np.float32) * 2, V), V.astype(np.float32) * 2)
    same(run(engine, lambda x: g.asarray(x, copy=True), V), V)
    same(run(engine, lambda x: g.empty_like(x) * 0 + x, V), V)
    x = dynamic.tensor(V)
    assert g.asarray(x) is x
    assert g.astype(x, x.dtype, copy=False) is x
    with pytest.raises(ValueError, match="only in a copy"):
        g.asarray(x, dtype=np.float32, copy=False)


def test_reshape_may_be_told_not_to_copy():
    assert np.shares_memory(g.reshape(M, (4, 3), copy=False), M)
    assert not np.shares_memory(g.reshape(M, (3, 4), copy=True), M)
    with pytest.raises(g.ShapeError, match=r"reshape: .*without a copy"):
        g.reshape(M.T, (12,), copy=False)


def test_limits_of_dtypes():
    info = g.finfo(np.ones(1, np.float32))
    assert (info.bits, info.eps, info.max, info.dtype) == (32, 2.0**-23, float(np.finfo("f4").max), np.float32)
    assert all(type(v) is float for v in (info.eps, info.max, info.min, info.smallest_normal))
    assert (g.iinfo(g.uint8).max, g.iinfo(dynamic.tensor([1])).min, g.iinfo(g.int16).bits) == (255, -(2**63), 16)
    with pytest.raises(g.DTypeError, match="use iinfo"):
        g.finfo(g.int8)
    with pytest.raises(g.DTypeError, match="use finfo"):
        g.iinfo(g.float64)


def test_kinds_and_casts():
    assert g.isdtype(g.float32, "real floating")
    assert g.isdtype(np.dtype("int8"), ("bool", "signed integer"))
    assert not g.isdtype(g.uint8, g.int8)
    assert g.can_cast(g.int8, g.int16)
    assert not g.can_cast(np.ones(1), g.float32)
    assert g.result_type(g.float32, 1.5) == np.float32
    assert g.result_type(dynamic.tensor([1]), g.float16) == np.float64


def test_the_namespace_describes_itself():
    info = g.__array_namespace_info__()
    assert set(STANDARD) == set(info.dtypes())
    assert set(info.dtypes(kind="real floating")) == {"float32", "float64"}
    assert info.default_dtypes()["integral"] == np.int64
    assert (info.default_device(), info.devices()) == ("cpu", ["cpu"])
    assert info.capabilities()["boolean indexing"] is True


@each_engine
def test_a_program_for_any_namespace_runs_here(engine):
    def standardised(x):
        xp = x.__array_namespace__(api_version="2022.12")
        centred = x - xp.mean(x, axis=0, keepdims=True)
        return xp.astype(centred / xp.std(x, axis=0, correction=1, keepdims=True), xp.float32)

    same(np.round(run(engine, standardised, M), 5), np.round(standardised(M), 5))
    with pytest.raises(ValueError, match=r"no version '1999.01' of the array API"):
        run(engine, lambda x: x.__array_namespace__(api_version="1999.01"), M)


def test_there_is_one_device():
    x = dynamic.tensor(V)
    assert (x.device, x.to_device("cpu") is x) == ("cpu", True)
    for call in (lambda: x.to_device("cuda"), lambda: g.zeros(3, device="cuda")):
        with pytest.raises(ValueError, match="no device 'cuda'"):
            call()


def test_dlpack_takes_the_options_of_the_standard():
    options = inspect.signature(dynamic.Tensor.__dlpack__).parameters
    assert [*options] == ["self", "stream", "max_version", "dl_device", "copy"]
    assert all(p.kind is p.KEYWORD_ONLY and p.default is None for name, p in options.items() if name != "self")
    x = dynamic.tensor(V)
    for given in ({}, {"stream": None}, {"stream": None, "max_version": None, "copy": None}):
        assert "dltensor" in repr(x.__dlpack__(**given))
    with pytest.raises((RuntimeError, ValueError)):
        x.__dlpack__(stream=1)  # NumPy knows none


@pytest.mark.parametrize("engine", ENGINES)
def test_nested_lists_of_tensors_are_stacked(engine):
    def f(x):
        return g.asarray([[x[0], x[1] * 2], (x[1], 3.0)])

    np.testing.assert_array_equal(run(engine, f, V[:2]), [[V[0], V[1] * 2], [V[1], 3.0]])
    found = run(engine, lambda x: g.asarray([x[0], x[1]], dtype=np.float32), V[:2])
    assert found.dtype == np.float32
    (slope,) = gradients(engine, lambda x: g.sum(f(x)), V[:2])
    np.testing.assert_array_equal(slope, [1.0, 3.0])
    with pytest.raises((ValueError, g.GraphError)):
        run(engine, lambda x: g.asarray([x[0], x[1]], copy=False), V[:2])


def test_dlpack_shares_the_memory_of_a_detached_tensor():
    x = dynamic.tensor(V, requires_grad=True)
    assert x.detach().__dlpack_device__() == V.__dlpack_device__()
    shared = np.from_dlpack(x.detach())
    assert np.shares_memory(shared, x.detach().numpy())
    same(shared, V)
    with pytest.raises(g.GraphError, match="detach"):
        np.from_dlpack(x)
    with pytest.raises(g.ControlFlowError):
        static.trace(np.from_dlpack, V)

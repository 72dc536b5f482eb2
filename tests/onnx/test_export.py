"""Graphs written as models of ONNX: well formed, right in onnxruntime, and right when they are read again."""

from __future__ import annotations

import collections
import itertools
import operator
import re

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dynamic as torch
import graphs as g
import static
from compare import workloads
from graphs import op as registry
from graphs import tree
from graphs.errors import ControlFlowError, GraphError, OptionError
from graphs.onnx import load
from graphs.testing import samples
from static.exporting.writer import UnwritableError
from static.trace.tracing import is_traced
from tests.helpers.slow import examples
from tests.helpers.together import check_each, together

onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
from onnxruntime.capi.onnxruntime_pybind11_state import (  # noqa: E402
    Fail,
    InvalidArgument,
    NotImplemented,
    RuntimeException,
)

WITHOUT_SAMPLES = {
    "constant",
    "fused",
    "input",
    "part",
    "result",
    "scan",
    "switch",
    "while_loop",
    "while_loop_gradient",
}
CALLED = sorted(registry.registered_ops().keys() - WITHOUT_SAMPLES)
CLOSE = 1e-6  # of the largest element
RNG = np.random.default_rng(0)


def checked(data: bytes) -> onnx.ModelProto:
    """A model that was found well formed."""
    proto = onnx.load_from_string(data)
    onnx.checker.check_model(proto, full_check=True)
    onnx.shape_inference.infer_shapes(proto, check_type=True, strict_mode=True, data_prop=True)
    return proto


def by_onnxruntime(data: bytes, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """The outputs of a model that was found well formed."""
    proto = checked(data)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(data, options)
    return session.run(None, dict(zip((value.name for value in proto.graph.input), arrays, strict=True)))


def close(results, expected) -> None:
    results = results if isinstance(results, (tuple, list)) else (results,)
    for result, wanted in zip(results, expected, strict=True):
        assert np.asarray(result).dtype == wanted.dtype
        scale = np.abs(wanted).max(initial=0) if wanted.dtype.kind == "f" else 0
        np.testing.assert_allclose(np.asarray(result), wanted, rtol=0, atol=CLOSE * scale)


def arrays_of(args) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in tree.leaves(args) if is_traced(leaf)]


def check(f, *args, convert: bool = False) -> None:
    """`f` in onnxruntime, and read again, gives what it gives compiled."""
    data = static.export(f, *args, convert=convert)
    arrays = arrays_of(args)
    expected = tree.leaves(static.compile(f, *args, convert=convert)(*args))
    close(by_onnxruntime(data, arrays), expected)
    again = load(data)
    close(again(*arrays), expected)
    try:
        compiled = static.compile(again, *arrays)
    except ControlFlowError as error:  # a gradient through a loop that values end, whose states are stacked
        assert "a Loop that stacks results" in str(error)  # noqa: PT017  (an expected refusal, and no other)
    else:
        close(compiled(*arrays), expected)


def slow_but(quick: set[str], names) -> list:
    return [name if name in quick else pytest.param(name, marks=pytest.mark.slow) for name in names]


@pytest.mark.parametrize("name", slow_but({"tiny_mlp", "branch_on_sum", "fixed_point"}, workloads.names()))
def test_every_workload_and_its_gradients_are_the_same_in_onnxruntime_and_read_again(name: str) -> None:
    workload = workloads.get(name)
    case = workload.case(next(iter(workload.sizes)))
    loss, convert = case.static_loss or case.loss, case.branches and case.static_loss is None
    check(loss, case.params, *case.examples[0], convert=convert)
    if case.argnum is not None:
        check(static.value_and_grad(loss), case.params, *case.examples[0], convert=convert)


DTYPES = [
    "bool",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    "float16",
    "float32",
    "float64",
]
MEANT = {"searchsorted", "window_argmax"}  # samples that are as the op takes them before they are made integers alone


def check_sample(sample, counts: collections.Counter[str]) -> None:
    """A model of a call passes the checker, and gives the same read again and where onnxruntime has it."""
    with np.errstate(all="ignore"):
        try:
            expected = [np.asarray(sample(*sample.arrays))]
        except GraphError:
            return
    counts["calls"] += 1
    try:
        data = static.export(sample, *sample.arrays)
    except UnwritableError as refusal:
        assert re.match(rf"{sample.op.name} \(.+:\d+\): \S", str(refusal)), refusal  # noqa: PT017  (named)
        counts["refused"] += 1
        return
    checked(data)
    with np.errstate(all="ignore"):
        same(load(data)(*sample.arrays), expected, sample)
    try:
        results = by_onnxruntime(data, sample.arrays)
    except (NotImplemented, Fail, InvalidArgument, RuntimeException):  # it lacks the op for that dtype
        counts["not in onnxruntime"] += 1
        return
    same(results, expected, sample)
    counts["in onnxruntime"] += 1


def same(results, expected, sample) -> None:
    for result, wanted in zip(results if isinstance(results, (tuple, list)) else [results], expected, strict=True):
        result = np.asarray(result)
        assert (result.shape, result.dtype) == (wanted.shape, wanted.dtype)
        if wanted.dtype.kind == "f" or sample.op.name not in MEANT:
            close = {"rtol": 2e-3, "atol": 3e-3} if wanted.dtype == np.float16 else {"rtol": 1e-5, "atol": 2e-6}
            np.testing.assert_allclose(result, wanted, **close)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_op_in_every_dtype_is_what_onnx_allows_and_right_or_refused_by_name() -> None:
    calls = [s.cast(dtype) for name in CALLED for s in _some(samples(name)) for dtype in DTYPES]
    counts: collections.Counter[str] = collections.Counter()
    check_each(calls, lambda sample: check_sample(sample, counts))
    assert counts["in onnxruntime"] >= 1500, counts


def _some(calls):
    return [calls[0], *calls[len(calls) // 2 :: len(calls)]]


def test_operands_of_several_dtypes_are_cast_to_what_they_are_together() -> None:
    pairs = itertools.product(DTYPES, repeat=2)

    def check_pair(pair) -> None:
        x, y = (np.array([1, 0, 3]).astype(dtype) for dtype in pair)
        for op in (g.add, g.maximum, g.less, g.where):
            call = (lambda x, y: g.where(x > 1, x, y)) if op is g.where else op
            try:
                expected = [np.asarray(call(x, y))]
                data = static.export(call, x, y)
            except GraphError as refusal:
                assert isinstance(refusal, UnwritableError) or "add" in str(refusal)  # noqa: PT017  (uint64 beside int64)
                continue
            checked(data)
            close(load(data)(x, y), expected)

    check_each(pairs, check_pair)


def hard(dtype: str) -> np.ndarray:
    """Numbers at which formulas overflow, cancel, or are not defined."""
    ends = np.finfo(dtype)
    numbers = [0, 1, 0.5, 2, 2.5, 3.7, 6, 0.1, 1e-8, 100, 89, 1e10, np.inf, ends.tiny, ends.max, ends.max / 2, ends.eps]
    return np.array([np.nan, *numbers, *(-number for number in numbers)], dtype)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_elementwise_ops_are_right_at_values_that_are_hard() -> None:
    """Tiny, huge, infinite and NaN, alone and in pairs; 1e-40 is 0 for onnxruntime's sigmoid."""
    calls = [samples(name)[0] for name, op in registry.registered_ops().items() if op.family == "elementwise"]
    calls = [call for call in calls if all(array.dtype.kind == "f" for array in call.arrays)]

    def check_hard(sample) -> None:
        count = len(sample.arrays)
        for dtype in ("float32", "float64"):
            arrays = [part.ravel() for part in np.meshgrid(*[hard(dtype)[: 12 if count > 2 else None]] * count)]
            with np.errstate(all="ignore"):
                try:
                    data = static.export(sample, *arrays)
                except UnwritableError:
                    return
                expected = np.asarray(sample(*arrays))
                results = [load(data)(*arrays)]
                if dtype == "float32":
                    results += by_onnxruntime(data, arrays)
            for result in results:
                np.testing.assert_allclose(result, expected, rtol=1e-5, atol=np.finfo(dtype).tiny * 4)

    check_each(calls, check_hard)


@together(
    ("op", "args", "wanted"),
    [
        (g.hypot, (3e30, 4e30), 5e30),
        (g.hypot, (3e-30, 4e-30), 5e-30),
        (g.hypot, (np.inf, np.nan), np.inf),
        (g.log1p, (np.inf,), np.inf),
        (g.log1p, (3e38,), 88.596846),
        (g.floor_divide, (6.0, 0.1), 59.0),
        (g.floor_divide, (-1.0, np.inf), -1.0),
        (g.floor_divide, (1.0, 0.0), np.inf),
        (g.searchsorted, ([1.0, 2.0, np.nan], np.nan), 2),
    ],
    ids=str,
)
def test_numbers_that_were_wrong_in_onnx(op, args, wanted) -> None:
    arrays = [np.array(arg, np.float32) for arg in args]
    data = static.export(op, *arrays)
    with np.errstate(all="ignore"):
        for result in (load(data)(*arrays), *by_onnxruntime(data, arrays)):
            np.testing.assert_allclose(result, wanted, rtol=1e-6)


def test_shifts_are_those_of_numpy_for_every_number_of_bits() -> None:
    for dtype in (np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64):
        ends = np.iinfo(dtype)
        bits = np.array([0, 1, ends.bits - 1, ends.bits, 100], dtype)
        x = np.array([[ends.min], [ends.max], [5], [ends.max // 3]], dtype)
        for shift in (g.bitwise_left_shift, g.bitwise_right_shift):
            data = static.export(shift, x, bits)
            checked(data)
            np.testing.assert_array_equal(load(data)(x, bits), shift(x, bits))
            if dtype not in (np.uint8, np.int8):
                np.testing.assert_array_equal(by_onnxruntime(data, [x, bits])[0], shift(x, bits))


bounds = st.none() | st.integers(-7, 7)
keys = st.lists(
    st.none() | st.integers(-9, 9) | st.builds(slice, bounds, bounds, st.sampled_from([None, 1, 2, -1, -3]))
)


@examples(5)
@given(st.lists(st.integers(0, 5), max_size=2), keys, st.booleans())
def test_slices_and_their_gradients_are_the_same_in_onnx(shape, key, symbolic) -> None:
    """Beyond the ends, backwards and of nothing, for sizes that are known and for any."""
    x = np.arange(1, np.prod(shape) + 1, dtype=np.float32).reshape(shape)
    key = tuple(key)
    try:
        x[key]
    except IndexError:
        return
    spec = g.TensorSpec([f"n{axis}" for axis in range(x.ndim)] if symbolic else x.shape)
    for f in (lambda x: x[key] + 0, static.grad(lambda x: (x[key] ** 2).sum())):
        try:
            expected = [static.compile(f, spec)(x)]
            data = static.export(f, spec)
        except GraphError:  # a step over a symbolic size
            assert symbolic
            return
        close(by_onnxruntime(data, [x]), expected)
        close(load(data)(x), expected)
        try:
            compiled = static.compile(load(data), spec)
        except ControlFlowError as error:  # how much is padded where both ends may lie beyond
            assert symbolic
            assert "pad: " in str(error)  # noqa: PT017
        else:
            close(compiled(x), expected)


def test_names_of_arguments_are_never_those_of_other_values() -> None:
    def f(Add_1, result, constant_2):
        return (Add_1 + result) * constant_2 + 2

    x = np.ones(2, np.float32)
    check(f, x, x * 3, x * 5)
    check(lambda result: result + 1, x)


def test_symbolic_sizes_are_the_models_own() -> None:
    def normed(x, w):
        h = g.tanh(x @ w)
        return g.concat([h, h[1:]], axis=0).reshape((-1,)) / h.shape[0]

    specs = g.TensorSpec(("N", 3)), g.TensorSpec((3, 2))
    data = static.export(normed, *specs)
    proto = onnx.load_from_string(data)
    assert [d.dim_param for d in proto.graph.input[0].type.tensor_type.shape.dim] == ["N", ""]
    w = RNG.standard_normal((3, 2)).astype(np.float32)
    for count in (2, 5):
        x = RNG.standard_normal((count, 3)).astype(np.float32)
        expected = [normed(x, w)]
        close(by_onnxruntime(data, [x, w]), expected)
        close(static.compile(load(data), *specs)(x, w), expected)


def test_a_scan_of_any_length_with_its_gradients_is_a_loop() -> None:
    def loss(w, xs):
        return g.scan(lambda s, x: ((h := g.tanh(s @ w + x)), g.sum(h)), g.zeros((2, 3), np.float32), xs)[1].sum()

    step = static.value_and_grad(loss)
    data = static.export(step, g.TensorSpec((3, 3)), g.TensorSpec(("T", 2, 3)))
    w = RNG.standard_normal((3, 3)).astype(np.float32)
    for length in (1, 4):
        xs = RNG.standard_normal((length, 2, 3)).astype(np.float32)
        close(by_onnxruntime(data, [w, xs]), tree.leaves(static.compile(step, w, xs)(w, xs)))


def test_a_switch_of_several_branches_is_ifs() -> None:
    def chosen(index, x):
        return g.switch(index, [operator.neg, lambda v: v * 2, lambda v: v + 1], x)

    x = np.arange(3, dtype=np.float32)
    data = static.export(chosen, np.array(0), x)
    for index in range(3):
        close(by_onnxruntime(data, [np.array(index), x]), [chosen(index, x)])


def test_inputs_and_outputs_are_named_as_the_leaves_of_arguments_and_result() -> None:
    def f(params, x):
        return {"y": x @ params["w"]}, x

    data = static.export(f, {"w": np.ones((3, 2))}, np.ones((4, 3)))
    graph = onnx.load_from_string(data).graph
    assert [value.name for value in graph.input] == ["params['w']", "x"]
    assert [value.name for value in graph.output] == ["result[0]['y']", "result[1]"]


def test_an_executable_writes_a_file(tmp_path) -> None:
    path = tmp_path / "f.onnx"
    x = np.arange(3, dtype=np.float32)
    static.compile(g.exp, x).to_onnx(path)
    close(by_onnxruntime(path.read_bytes(), [x]), [np.exp(x)])


@pytest.mark.parametrize(
    "draw",
    [
        lambda x: x + torch.randn(2, 3),
        lambda x: torch.bernoulli(torch.full((2, 3), 0.5)) * x,
        torch.nn.functional.dropout,
    ],
    ids=["randn", "bernoulli", "dropout"],
)
def test_random_numbers_are_not_written_as_constants(draw):
    with pytest.raises(UnwritableError, match=r"draws .*call eval\(\) on a model, and pass random numbers"):
        static.export(draw, torch.ones(2, 3))


def test_an_op_that_onnx_has_not_is_refused_by_name_and_line() -> None:
    with pytest.raises(UnwritableError, match=r"gammaln \(test_export.py:\d+\): ONNX has no such op"):
        static.export(lambda x: g.special.gammaln(x) + 1, np.ones(3))
    with pytest.raises(OptionError, match="'onnx', not 'pb'"):
        static.export(g.exp, np.ones(3), format="pb")

"""Graphs written as models of ONNX: well formed, right in onnxruntime, and right when they are read again."""

from __future__ import annotations

import operator

import numpy as np
import onnx
import pytest

import graphs as g
import static
from compare import workloads
from graphs import tree
from graphs.errors import ControlFlowError, OptionError
from graphs.onnx import load
from graphs.testing import samples
from static.exporting import model  # noqa: F401  (fills the table)
from static.exporting.writer import RULES, UnwritableError
from static.trace.tracing import is_traced
from tests.helpers.together import check_each

onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

WRITTEN = sorted(RULES.keys() - {"part", "switch", "while_loop", "while_loop_gradient", "scan"})
CLOSE = 1e-6  # of the largest element
RNG = np.random.default_rng(0)


def by_onnxruntime(data: bytes, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """The outputs of a model that was found well formed."""
    proto = onnx.load_from_string(data)
    onnx.checker.check_model(proto, full_check=True)
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


@pytest.mark.slow
def test_every_op_that_is_written_is_right_on_its_samples() -> None:
    """In onnxruntime, and read again; of the ops that have no rule each sample is refused."""
    calls = [sample.cast("float32") for name in WRITTEN for sample in samples(name)]

    def check_sample(sample) -> None:
        try:
            data = static.export(sample, *sample.arrays)
        except UnwritableError:  # windows with less than no padding, softmax over several axes
            return
        with np.errstate(all="ignore"):
            expected = [np.asarray(sample(*sample.arrays))]
            for results in (by_onnxruntime(data, sample.arrays), load(data)(*sample.arrays)):
                result = np.asarray(results[0] if isinstance(results, list) else results)
                assert (result.shape, result.dtype) == (expected[0].shape, expected[0].dtype)
                np.testing.assert_allclose(result, expected[0], rtol=1e-5, atol=2e-6)

    check_each(calls, check_sample)


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


def test_an_op_that_onnx_has_not_is_refused_by_name_and_line() -> None:
    with pytest.raises(UnwritableError, match=r"gammaln \(test_export.py:\d+\): ONNX has no such op"):
        static.export(lambda x: g.special.gammaln(x) + 1, np.ones(3))
    with pytest.raises(OptionError, match="'onnx', not 'pb'"):
        static.export(g.exp, np.ones(3), format="pb")

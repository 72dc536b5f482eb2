"""Models read from ONNX: what they are to their user, in every engine, and what is refused."""

from __future__ import annotations

import itertools

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import dynamic
import static
from graphs.errors import ArgumentError, ControlFlowError, ShapeError
from graphs.frontends.onnx.reading import UntranslatedError
from graphs.onnx import load
from tests.helpers.backends import BACKENDS
from tests.helpers.together import together

F = TensorProto.FLOAT
I = TensorProto.INT64  # noqa: E741
RNG = np.random.default_rng(0)


def model_of(nodes, inputs, outputs, weights=(), opset=18, functions=(), imports=()) -> bytes:
    """The bytes of a model; inputs and outputs are (name, type, shape)."""
    values = [[helper.make_tensor_value_info(*value) for value in side] for side in (inputs, outputs)]
    initial = [numpy_helper.from_array(array, name) for name, array in weights]
    graph = helper.make_graph(nodes, "tested", *values, initializer=initial)
    opsets = [helper.make_opsetid("", opset), *imports]
    return helper.make_model(graph, opset_imports=opsets, functions=list(functions), ir_version=9).SerializeToString()


W, B = RNG.standard_normal((4, 3)).astype(np.float32), RNG.standard_normal(3).astype(np.float32)
X = RNG.standard_normal((5, 4)).astype(np.float32)


def perceptron() -> bytes:
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["h"]),
        helper.make_node("Relu", ["h"], ["y"]),
    ]
    return model_of(nodes, [("x", F, ["N", 4])], [("y", F, ["N", 3])], [("w", W), ("b", B)])


def test_a_model_has_inputs_with_symbolic_sizes_outputs_and_weights() -> None:
    model = load(perceptron())
    assert {name: str(spec) for name, spec in model.inputs.items()} == {"x": "f32[N,4]"}
    assert model.outputs == ("y",)
    np.testing.assert_array_equal(model.weights["w"], W)
    assert repr(model) == "<model tested(x: f32[N,4]) -> y>"


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_a_model_is_one_function_in_every_engine(backend: str) -> None:
    if backend == "native":
        pytest.importorskip("llvmlite")
    model = load(perceptron())
    expected = np.maximum(X @ W + B, 0)
    np.testing.assert_allclose(model(X), expected, rtol=1e-6)
    np.testing.assert_allclose(model(x=dynamic.tensor(X)).numpy(), expected, rtol=1e-6)
    compiled = static.compile(model, *model.inputs.values(), backend=backend)
    for rows in (X, X[:2]):
        np.testing.assert_allclose(compiled(rows), np.maximum(rows @ W + B, 0), rtol=1e-6)


def test_weights_are_trained() -> None:
    model = load(perceptron())

    def loss(weights):
        return model(X, weights=weights).sum()

    gradients = dynamic.grad(loss)({"w": W})
    np.testing.assert_allclose(gradients["w"], X.T @ (X @ W + B > 0).astype(np.float32), rtol=1e-5)
    np.testing.assert_allclose(static.jit(static.grad(loss))({"w": W})["w"], gradients["w"], rtol=1e-5)


def test_other_inputs_are_refused_by_name() -> None:
    with pytest.raises(ArgumentError, match="tested: takes x; 2 inputs"):
        load(perceptron())(X, X)
    with pytest.raises(ArgumentError, match="and z were given"):
        load(perceptron())(z=X)


def test_arithmetic_on_symbolic_sizes_stays_symbolic() -> None:
    """Reshape(x, Concat(Shape(x)[0] * Shape(x)[1], -1)), as exporters write `x.reshape(n * t, -1)`."""
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["n"], axis=0),
        helper.make_node("Slice", ["shape", "one", "two"], ["t"]),
        helper.make_node("Mul", ["n", "t"], ["rows"]),
        helper.make_node("Concat", ["rows", "rest"], ["wanted"], axis=0),
        helper.make_node("Reshape", ["x", "wanted"], ["y"]),
    ]
    weights = [("zero", np.array(0)), ("one", np.array([1])), ("two", np.array([2])), ("rest", np.array([-1]))]
    model = load(model_of(nodes, [("x", F, ["N", "T", 2, 3])], [("y", F, ["M", 6])], weights))
    graph = static.trace(model, *model.inputs.values())
    assert [str(output.spec) for output in graph.outputs] == ["f32[N*T,6]"]
    x = RNG.standard_normal((2, 5, 2, 3)).astype(np.float32)
    compiled = static.compile(model, *model.inputs.values())
    np.testing.assert_array_equal(compiled(x), x.reshape(10, 6))


def test_a_shape_that_values_decide_is_refused_in_a_trace_alone() -> None:
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"])]
    model = load(model_of(nodes, [("x", F, [6]), ("shape", I, [2])], [("y", F, None)]))
    x, shape = np.arange(6, dtype=np.float32), np.array([2, 3])
    assert model(dynamic.tensor(x), dynamic.tensor(shape)).shape == (2, 3)
    with pytest.raises(ControlFlowError, match="computed from values") as caught:
        static.compile(model, x, shape)
    assert "Reshape (node 0, domain ai.onnx)" in "".join(caught.value.__notes__)


@together("backend,shape", itertools.product(BACKENDS, ([2, 3], (3, 2), [-1, 6])))
def test_ints_of_pythons_are_known_in_a_graph_and_decide_its_shapes(backend, shape) -> None:
    nodes = [
        helper.make_node("Mul", ["shape", "one"], ["product"]),
        helper.make_node("Reshape", ["x", "product"], ["y"]),
    ]
    inputs = [("x", F, ["N"]), ("shape", I, [2])]
    model = load(model_of(nodes, inputs, [("y", F, None)], [("one", np.ones(2, np.int64))]))
    x = np.arange(6, dtype=np.float32)
    compiled = static.compile(model, x, shape, backend=backend)
    np.testing.assert_array_equal(compiled(x, shape), x.reshape(shape))
    np.testing.assert_array_equal(model(dynamic.tensor(x), shape), x.reshape(shape))
    with pytest.raises(ShapeError, match="shape"):
        model(x, [2, 2])


@pytest.mark.parametrize(
    ("node", "options", "message"),
    [
        (("TfIdfVectorizer", ["x"], ["y"]), {}, r"TfIdfVectorizer \(node 0, domain ai.onnx\) has no translation"),
        (("Own", ["x"], ["y"]), {"domain": "org.example"}, r"org.example.Own \(node 0, domain org.example\) has no"),
        (("Softmax", ["x"], ["y"]), {"axis": 1.5}, r"Softmax .*: the attribute axis, of type FLOAT, is not read"),
        (("LSTM", ["x", "x", "x"], ["y"]), {"hidden_size": 1, "clip": 1.0}, r"LSTM .*: the attribute clip"),
        (("Cast", ["x"], ["y"]), {"to": TensorProto.BFLOAT16}, r"Cast .*: tensors here hold .* not BFLOAT16"),
    ],
)
def test_what_cannot_be_read_is_refused_when_it_is_loaded(node, options, message) -> None:
    imports = [helper.make_opsetid("org.example", 1)]
    with pytest.raises(UntranslatedError, match=message):
        load(model_of([helper.make_node(*node, **options)], [("x", F, [2])], [("y", F, [2])], imports=imports))


def test_a_model_of_an_older_opset_is_converted_and_says_so() -> None:
    """Softmax was over all axes from one on then, and PRelu had a slope for each channel, which onnx forgets."""
    x = RNG.standard_normal((2, 3, 4)).astype(np.float32)
    softmax = load(
        model_of([helper.make_node("Softmax", ["x"], ["y"])], [("x", F, [2, 3, 4])], [("y", F, None)], opset=11)
    )
    assert repr(softmax) == "<model tested(x: f32[2,3,4]) -> y, converted from opset 11>"
    exponents = np.exp(x)
    np.testing.assert_allclose(softmax(x), exponents / exponents.sum((1, 2), keepdims=True), rtol=1e-6)
    slope = np.array([0.5, 2, 3], np.float32)
    nodes = [helper.make_node("PRelu", ["x", "s"], ["y"])]
    prelu = load(model_of(nodes, [("x", F, [2, 3, 4])], [("y", F, None)], [("s", slope)], opset=6))
    np.testing.assert_array_equal(prelu(x), np.where(x < 0, x * slope[:, None], x))
    assert load(perceptron()).converted_from is None


def resized(opset: int, scales, mode: str, op: str = "Resize") -> bytes:
    nodes = [helper.make_node(op, ["x", "s"], ["y"], mode=mode)]
    weights = [("s", np.array(scales, np.float32))]
    return model_of(nodes, [("x", F, [1, 1, 1, 4])], [("y", F, None)], weights, opset=opset)


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (resized(9, [1, 1, 1, 1.5], "nearest", "Upsample"), [0, 0, 1, 2, 2, 3]),
        (resized(10, [1, 1, 1, 1.5], "nearest"), [0, 0, 1, 2, 2, 3]),
        (resized(10, [1, 1, 1, 0.6], "nearest"), [0, 2]),
        (resized(10, [1, 1, 1, 2], "linear"), [0, 0.5, 1, 1.5, 2, 2.5, 3, 3]),
    ],
)
def test_images_were_resized_from_the_corner_before_opset_11(data: bytes, wanted) -> None:
    """The values are those of onnxruntime."""
    x = np.arange(4, dtype=np.float32).reshape(1, 1, 1, 4)
    np.testing.assert_allclose(load(data)(x).ravel(), wanted)


def test_what_onnx_converts_wrongly_is_refused() -> None:
    """An axis of examples in Scan, all axes from one on in Hardmax, rounding that scales decide in Resize."""
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "i"], ["t"]), helper.make_node("Identity", ["t"], ["o"])], "body",
        [helper.make_tensor_value_info(name, F, [2]) for name in "si"],
        [helper.make_tensor_value_info(name, F, [2]) for name in "to"],
    )  # fmt: skip
    node = helper.make_node("Scan", ["", "a", "x"], ["b", "y"], body=body, num_scan_inputs=1)
    inputs = [("a", F, [1, 2]), ("x", F, [1, 3, 2])]
    scan = model_of([node], inputs, [("b", F, None), ("y", F, None)], opset=8)
    hardmax = model_of([helper.make_node("Hardmax", ["x"], ["y"])], [("x", F, [2, 3])], [("y", F, None)], opset=11)
    resize = resized(10, [1, 1, 2, 0.5], "nearest")
    for data, why in (
        (scan, "an axis of examples"),
        (hardmax, "was over all axes"),
        (resize, "its scales are not known"),
    ):
        with pytest.raises(UntranslatedError, match="is older than") as caught:
            load(data)
        assert why in "".join(caught.value.__notes__)


def over_any(node, weights=(), sizes=("N",)):
    """The function of a node, compiled for any sizes of x."""
    data = model_of([node], [("x", F, [*sizes])], [(name, F, None) for name in node.output], weights)
    model = load(data)
    return static.compile(model, *model.inputs.values())


def test_over_symbolic_sizes_nothing_is_dropped_or_guessed() -> None:
    split = over_any(helper.make_node("Split", ["x"], ["p", "q", "r"], num_outputs=3))
    for count in (7, 6, 2):
        x = np.arange(count, dtype=np.float32)
        np.testing.assert_array_equal(np.concatenate(split(x)), x)
        assert [len(part) for part in split(x)] == [[3, 3, 1], [2, 2, 2], [1, 1, 0]][(7, 6, 2).index(count)]
    with pytest.raises(ShapeError, match="whether axis 0 of size N goes is unknown"):
        over_any(helper.make_node("Squeeze", ["x"], ["y"]), sizes=("N", 1))
    squeezed = over_any(helper.make_node("Squeeze", ["x", "a"], ["y"]), [("a", np.array([1]))], sizes=("N", 1))
    assert squeezed(np.ones((1, 1), np.float32)).shape == (1,)
    resize = helper.make_node("Resize", ["x", "", "s"], ["y"], mode="nearest")
    larger = over_any(resize, [("s", np.array([1, 2], np.float32))], sizes=("N", 2))
    np.testing.assert_array_equal(larger(np.array([[1, 2]] * 3, np.float32)), [[1, 1, 2, 2]] * 3)


def test_a_range_may_end_at_a_size() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Squeeze", ["shape"], ["count"]),
        helper.make_node("Range", ["zero", "count", "one"], ["y"]),
    ]
    weights = [("zero", np.array(0)), ("one", np.array(1))]
    model = load(model_of(nodes, [("x", F, ["N"])], [("y", I, None)], weights))
    exe = static.compile(model, *model.inputs.values())
    assert [exe(np.ones(count, np.float32)).tolist() for count in (0, 3)] == [[], [0, 1, 2]]


def test_functions_of_a_model_and_of_onnx_are_read_as_what_they_are_made_of() -> None:
    twice = helper.make_function(
        "org.example", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])],
        [helper.make_opsetid("", 18)],
    )  # fmt: skip
    nodes = [
        helper.make_node("Twice", ["x"], ["d"], domain="org.example"),
        helper.make_node("Celu", ["d"], ["y"]),
    ]
    imports = [helper.make_opsetid("org.example", 1)]
    model = load(model_of(nodes, [("x", F, [5, 4])], [("y", F, [5, 4])], functions=[twice], imports=imports))
    doubled = 2 * X
    np.testing.assert_allclose(model(X), np.where(doubled > 0, doubled, np.exp(np.minimum(doubled, 0)) - 1), rtol=1e-5)


def test_a_file_is_read(tmp_path) -> None:
    path = tmp_path / "small-model.onnx"
    path.write_bytes(perceptron())
    assert load(path).__name__ == "small-model"
    onnx.checker.check_model(str(path))

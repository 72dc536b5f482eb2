"""Models of strangers: names of any kind, data in other files, functions without end, and models that are wrong."""

from __future__ import annotations

import inspect
import re

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import static
from graphs.errors import ArtifactError, GraphError
from graphs.onnx import load
from tests.fuzz import onnx_models
from tests.helpers.together import together
from tests.onnx.test_load import F, W, model_of, perceptron

# Names and files of strangers ---------------------------------------------------------------------------------------


def test_names_that_are_no_identifiers_are_names_of_their_own() -> None:
    nodes = [helper.make_node("Sum", ["in", "class", "a.1", "a_1", "weights"], ["y"])]
    names = ["in", "class", "a.1", "a_1", "weights"]
    model = load(model_of(nodes, [(name, F, ["n"]) for name in names], [("y", F, ["n"])]))
    assert list(inspect.signature(model).parameters) == ["_in", "_class", "a_1_", "a_1", "_weights"]
    rows = [np.array([number], np.float32) for number in (1, 10, 100, 1000, 10000)]
    assert model(*rows) == model(**dict(zip(names[:-1], rows, strict=False)), _weights=rows[-1]) == 11111
    assert model(_in=rows[0], _class=rows[1], a_1_=rows[2], a_1=rows[3], _weights=rows[4]) == 11111
    assert static.compile(model, *model.inputs.values())(*rows) == 11111


def test_sizes_of_several_names_are_several_sizes() -> None:
    """Also where one is named as another would be that has no name."""
    inputs = [("x", F, ["n.1"]), ("y", F, ["n_1"]), ("z", F, [None, "in"]), ("w", F, ["z_0", "日"])]
    model = load(model_of([helper.make_node("Neg", ["x"], ["u"])], inputs, [("u", F, None)]))
    names = [str(size) for spec in model.inputs.values() for size in spec.shape]
    assert len(set(names)) == 6
    assert names[1] == "n_1"
    exe = static.compile(model, *model.inputs.values())
    exe(*(np.ones(shape, np.float32) for shape in ([2], [3], [4, 5], [6, 7])))


def external(location: str, **place: str) -> bytes:
    """A model whose weight lies in another file."""
    proto = onnx.load_from_string(perceptron())
    weight = proto.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **place}.items():
        weight.external_data.add(key=key, value=value)
    return proto.SerializeToString()


def test_data_of_other_files_are_read_from_the_folder_of_the_model_alone(tmp_path, monkeypatch) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    path = folder / "m.onnx"
    for place in (tmp_path, folder):
        (place / "w.bin").write_bytes(b"head" + W.tobytes())
    (folder / "link.bin").symlink_to(tmp_path / "w.bin")
    monkeypatch.chdir(folder)
    with pytest.raises(ArtifactError, match=r"the tensor w, which lies in the file 'w.bin', is not read .* from bytes"):
        load(external("w.bin"))
    path.write_bytes(external("w.bin", offset="4"))
    np.testing.assert_array_equal(load(path).weights["w"], W)
    np.testing.assert_array_equal(load("m.onnx").weights["w"], W)
    for location in ("../w.bin", str(tmp_path / "w.bin"), "link.bin", "none.bin", "", ".", "a\0b"):
        path.write_bytes(external(location))
        with pytest.raises(ArtifactError, match="no such file in the folder of the model"):
            load(path)
    for place in (
        {"offset": "x"},
        {"offset": "-1"},
        {"offset": "60"},
        {"length": "999"},
        {"length": "-1"},
        {"length": "8"},
    ):
        path.write_bytes(external("w.bin", **place))
        with pytest.raises(ArtifactError, match="the tensor w"):
            load(path)


def doubling(depth: int, calls: int = 2) -> bytes:
    """A model of functions that each call the one before `calls` times."""
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("f", 1)]
    functions = [
        helper.make_function(
            "f", f"f{level}", ["a"], ["b"],
            [
                helper.make_node(*("Neg",) if not level else (f"f{level - 1}",), [f"v{call}" if call else "a"],
                                 [f"v{call + 1}" if call + 1 < calls else "b"], domain="f" if level else "")
                for call in range(calls)
            ],
            imports,
        )
        for level in range(depth)
    ]  # fmt: skip
    nodes = [helper.make_node(f"f{depth - 1}", ["x"], ["y"], domain="f")]
    return model_of(nodes, [("x", F, [2])], [("y", F, [2])], functions=functions, imports=imports[1:])


def test_functions_may_not_stand_for_any_number_of_nodes() -> None:
    assert load(doubling(8))(np.ones(2, np.float32)).tolist() == [1, 1]
    with pytest.raises(ArtifactError, match="its functions stand for more than 20000 nodes"):
        load(doubling(16))
    with pytest.raises(ArtifactError, match=r"the function f.* is called inside 100 others"):
        load(doubling(5000, 1))
    endless = onnx.load_from_string(doubling(2))
    endless.functions[0].node[0].op_type, endless.functions[0].node[0].domain = "f1", "f"
    with pytest.raises(ArtifactError, match=r"the function f. calls itself"):
        load(endless.SerializeToString())


# Models that are wrong ----------------------------------------------------------------------------------------------

X4 = [("x", F, [1, 1, 4, 4])]
WEIGHT = [("w", np.ones((1, 1, 2, 2), np.float32))]
LSTM = [("w", np.ones((1, 4, 1), np.float32)), ("r", np.ones((1, 4, 1), np.float32))]


def a_node(op, inputs="x", weights=(), outputs="y", at=X4, opset=18, **attributes):
    return model_of(
        [helper.make_node(op, list(inputs), list(outputs), **attributes)], at, [(name, F, None) for name in outputs],
        [(name, np.asarray(value)) for name, value in weights], opset,
    )  # fmt: skip


def a_weight(shape, data, kind=F):
    proto = onnx.load_from_string(a_node("Add", "xw", at=[("x", F, [2])]))
    proto.graph.initializer.add(name="w", dims=shape, data_type=kind, raw_data=data)
    return proto.SerializeToString()


def nodes(*triples):
    return model_of([helper.make_node(op, list(i), list(o)) for op, i, o in triples], [("x", F, [2])], [("y", F, None)])


WRONG = {
    # names
    "undefined": (nodes(("Add", "xq", "y")), r"Add \(node 0, domain ai.onnx\): reads 'q', which nothing makes"),
    "cycle": (
        nodes(("Add", "xb", "a"), ("Neg", "a", "b"), ("Neg", "b", "y")),
        "Add .*: reads 'b', which a node after it",
    ),
    "of itself": (nodes(("Add", "xy", "y")), "Add .*: reads 'y', which a node after it makes, or itself"),
    "made twice": (nodes(("Neg", "x", "y"), ("Abs", "x", "y")), r"Abs \(node 1, .*: makes 'y', which is made already"),
    "no output": (nodes(("Neg", "x", "z")), "the graph tested: no node makes its output 'y'"),
    "inputs of one name": (a_node("Neg", at=[*X4, *X4]), "two of its inputs or weights have one name"),
    # form
    "one input": (a_node("Add"), "Add .*: has 1 inputs, and takes 2"),
    "three inputs": (a_node("Add", "xxx"), "Add .*: has 3 inputs, and takes 2"),
    "left out": (a_node("Add", ["x", ""]), "Add .*: its input 1, B, is left out"),
    "few inputs": (a_node("BatchNormalization", "xx"), "BatchNormalization .*: has 2 inputs, and takes 5"),
    "no attribute": (a_node("MaxPool"), "MaxPool .*: the attribute kernel_shape is missing"),
    "no branch": (a_node("If", "c", at=[("c", TensorProto.BOOL, [])]), "If .*: the attribute else_branch is missing"),
    "types": (
        a_node("Add", "xw", [("w", [1])], at=[("x", F, [1])]),
        r"Add .*one type, not tensor\(float\) and tensor\(int64",
    ),
    "another type": (a_node("And", "xx"), r"And .*: its input 'x' is a tensor\(float\), which it does not take"),
    # attributes
    "stride 0": (
        a_node("Conv", "xw", WEIGHT, strides=[0, 1]),
        r"Conv .*: the attribute strides has numbers of 1 or more",
    ),
    "stride -1": (a_node("MaxPool", kernel_shape=[2, 2], strides=[-1, 1]), "MaxPool .*: the attribute strides has"),
    "dilation 0": (
        a_node("ConvTranspose", "xw", WEIGHT, dilations=[0, 1]),
        "ConvTranspose .*: the attribute dilations has",
    ),
    "kernel 0": (a_node("AveragePool", kernel_shape=[0, 2]), "AveragePool .*: the attribute kernel_shape has"),
    "no groups": (
        a_node("Conv", "xw", WEIGHT, group=0),
        "Conv .*: the attribute group has numbers of 1 or more, not 0",
    ),
    "block 0": (a_node("DepthToSpace", blocksize=0), "DepthToSpace .*: the attribute blocksize has"),
    "padding": (
        a_node("Conv", "xw", WEIGHT, auto_pad="SOME"),
        "Conv .*: the attribute auto_pad is one of NOTSET, SAME_",
    ),
    "mode": (
        a_node("Resize", ["x", "", "s"], [("s", np.ones(4, "f"))], mode="no"),
        "Resize .*: the attribute mode is one of",
    ),
    "direction": (
        a_node("LSTM", "xwr", LSTM, at=[("x", F, [2, 1, 1])], hidden_size=1, direction="up"),
        "LSTM .*direction is",
    ),
    "kind": (a_node("Concat", axis=1.5), "Concat .*: the attribute axis, of type FLOAT, is not read"),
    "type 999": (a_node("Cast", to=999), "Cast .*: tensors here hold bools, ints or floats, not the type 999"),
    "other kernel": (
        a_node("Conv", "xw", WEIGHT, kernel_shape=[3, 3]),
        "kernel_shape is .3, 3., and the weight has .2, 2.*Conv",
    ),
    "ranks": (
        a_node("Conv", "xw", WEIGHT, strides=[1, 1, 1]),
        r"Conv .*: does not take float32\[1, 1, 4, 4\], float32",
    ),
    "axis": (a_node("Softmax", axis=9), "axis 9 is out of range for 4 axes.*in Softmax .node 0"),
    "flat axis": (a_node("Flatten", axis=9), "axis 9 is out of range for 4 axes.*in Flatten .node 0"),
    "permutation": (a_node("Transpose", perm=[0, 0, 1, 2]), "are no permutation of 4 axes.*in Transpose"),
    # values that decide about shapes
    "shape": (a_node("Reshape", "xs", [("s", [-5, 2])]), "no shape for .1, 1, 4, 4.*in Reshape"),
    "zero beyond": (a_node("Reshape", "xs", [("s", [0] * 5)]), "no shape for .1, 1, 4, 4.*in Reshape"),
    "negative size": (
        a_node("ConstantOfShape", "s", [("s", [-2, 1])], at=[]),
        "sizes are 0 or more.*in ConstantOfShape",
    ),
    "no room": (a_node("ConstantOfShape", "s", [("s", [2**40, 2**20])], at=[]), "ConstantOfShape .*: .*MemoryError"),
    "depth": (a_node("OneHot", "idv", [("i", [0]), ("d", -3), ("v", [0.0, 1])], at=[]), "a depth of -3.*in OneHot"),
    "step 0": (
        a_node("Slice", "xabcd", [("a", [0]), ("b", [3]), ("c", [1]), ("d", [0])]),
        "step cannot be zero.*in Slice",
    ),
    "range": (a_node("Range", "abc", [("a", 0), ("b", 3), ("c", 0)], at=[]), "a step of 0 never arrives.*in Range"),
    "k": (a_node("TopK", "xk", [("k", [99])], "yz"), "the first 99 of 4 elements.*in TopK"),
    "parts": (a_node("Split", "xs", [("s", [3, 9])], "yz", axis=2), "do not make up a size of 4.*in Split"),
    "outputs": (a_node("Split", "x", outputs="y", num_outputs=3), "3 parts for 1 outputs.*in Split"),
    "index": (a_node("Gather", "xi", [("i", [9])]), "out of bounds for axis 0.*in Gather"),
    "scales": (a_node("Resize", ["x", "", "s"], [("s", np.zeros(4, "f"))]), "the scales are .*in Resize"),
    "ratio": (a_node("Dropout", "xrt", [("r", np.float32(1)), ("t", True)]), "the ratio is 1.*in Dropout"),
    # tensors
    "truncated": (a_weight([2], b"1234567"), r"the tensor w: its data do not fill float32\[2\]"),
    "too long": (a_weight([2], b"123456789"), r"the tensor w: its data do not fill float32\[2\]"),
    "nothing": (a_weight([2], b""), r"the tensor w: its data do not fill float32\[2\]"),
    "huge": (a_weight([2**62, 2**62, 4], b""), "the tensor w: its data do not fill"),
    "no type": (a_weight([2], b"12345678", 0), "the tensor w: tensors here hold .*, not UNDEFINED"),
    "type 77": (a_weight([2], b"12345678", 77), "the tensor w: tensors here hold .*, not the type 77"),
    "text": (a_weight([2], b"", TensorProto.STRING), "the tensor w: tensors here hold .*, not STRING"),
    "input of no type": (a_node("Neg", at=[("x", 99, [2])]), "the input x: tensors here hold .*, not the type 99"),
    # files
    "empty": (b"", "no model of ONNX, or damaged: there is no graph"),
    "junk": (b"\x00\x01junk", "no model of ONNX, or damaged"),
    "opset 0": (a_node("Neg", opset=0), "there is no opset 0 of ai.onnx"),
    "opset 99": (a_node("Neg", opset=99), "opset 99 is newer than 28"),
    "no text": (a_node("Neg", name="QQQQ").replace(b"QQQQ", b"\xff" * 4), "is no text, and stands for a name"),
}


def run_on_ones(model) -> None:
    model(*(np.ones(spec.shape, spec.dtype) for spec in model.inputs.values()))


@together("name", WRONG)
def test_a_wrong_model_is_refused_with_its_node_and_what_is_wrong(name: str) -> None:
    data, message = WRONG[name]
    with pytest.raises(GraphError) as caught:
        run_on_ones(load(data))
    text = " ".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    assert re.search(message, text, re.DOTALL), text


@pytest.mark.parametrize("count", [30, pytest.param(440, marks=pytest.mark.slow)])
def test_altered_models_are_read_or_refused_and_never_break(count: int, capsys) -> None:
    """A slice of `python -m tests.fuzz.onnx_models --count 500`."""
    counts = onnx_models.fuzz(count, seed=count)
    assert not {*counts} & onnx_models.BAD, counts
    assert counts["refused"]
    assert counts["ran"]

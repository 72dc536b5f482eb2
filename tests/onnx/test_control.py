"""If, Loop and Scan of a model: as Python when it runs, as control flow when it is traced."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

import dynamic
import static
from graphs.errors import ControlFlowError
from graphs.onnx import load
from tests.onnx.test_load import F, I, model_of

B = TensorProto.BOOL


def graph_of(nodes, inputs, outputs):
    sides = [[helper.make_tensor_value_info(*value) for value in side] for side in (inputs, outputs)]
    return helper.make_graph(nodes, "inner", *sides)


def both(model, *args):
    """The results in the dynamic engine, after those of a compiled graph were found equal."""
    eager = model(*map(dynamic.Tensor, args))
    compiled = static.compile(model, *args)(*args)
    eager, compiled = ([*value] if isinstance(value, tuple) else [value] for value in (eager, compiled))
    for value, other in zip(eager, compiled, strict=True):
        np.testing.assert_allclose(np.asarray(value), other, rtol=1e-6)
    return [np.asarray(value) for value in eager]


def test_if_runs_one_branch_on_values_of_the_graph_around() -> None:
    def branch(op: str):
        return graph_of([helper.make_node(op, ["x", "x"], ["z"])], [], [("z", F, [3])])

    node = helper.make_node("If", ["c"], ["y"], then_branch=branch("Add"), else_branch=branch("Mul"))
    model = load(model_of([node], [("c", B, []), ("x", F, [3])], [("y", F, [3])]))
    x = np.array([1, 2, 3], np.float32)
    np.testing.assert_array_equal(both(model, np.array(True), x)[0], x + x)
    np.testing.assert_array_equal(both(model, np.array(False), x)[0], x * x)
    assert "switch" in static.trace(model, np.array(True), x).op_counts()


def looped(nodes, stacked: bool = False):
    """A Loop of at most `m` turns over a state, which the nodes make `next` and `go` of."""
    outputs = [("go", B, []), ("next", F, [2]), *([("row", F, [2])] if stacked else [])]
    body = graph_of(nodes, [("i", I, []), ("c", B, []), ("s", F, [2])], outputs)
    results = ["y", *(["rows"] if stacked else [])]
    node = helper.make_node("Loop", ["m", "", "x"], results, body=body)
    return [node]


def test_a_loop_that_values_end_is_a_while_loop() -> None:
    nodes = [
        helper.make_node("Add", ["s", "s"], ["next"]),
        helper.make_node("ReduceMax", ["next"], ["most"], keepdims=0),
        helper.make_node("Less", ["most", "limit"], ["go"]),
    ]
    weights = [("limit", np.array(100, np.float32))]
    model = load(model_of(looped(nodes), [("m", I, []), ("x", F, [2])], [("y", F, [2])], weights))
    x = np.array([1, 3], np.float32)
    np.testing.assert_array_equal(both(model, np.array(50), x)[0], x * 64)
    np.testing.assert_array_equal(both(model, np.array(2), x)[0], x * 4)
    assert "while_loop" in static.trace(model, np.array(5), x).op_counts()


def test_a_loop_that_stacks_is_a_scan_of_a_known_length() -> None:
    nodes = [
        helper.make_node("Add", ["s", "s"], ["next"]),
        helper.make_node("Identity", ["c"], ["go"]),
        helper.make_node("Identity", ["next"], ["row"]),
    ]
    wanted = [("y", F, [2]), ("rows", F, [3, 2])]
    model = load(model_of(looped(nodes, True), [("x", F, [2])], wanted, [("m", np.array(3))]))
    x = np.array([1, 3], np.float32)
    last, rows = both(model, x)
    np.testing.assert_array_equal(last, x * 8)
    np.testing.assert_array_equal(rows, np.stack([x * 2, x * 4, x * 8]))
    assert "scan" in static.trace(model, x).op_counts()


@pytest.mark.parametrize("count", [0, -2])
def test_a_loop_of_no_turns_stacks_nothing(count: int) -> None:
    nodes = [
        helper.make_node("Add", ["s", "s"], ["next"]),
        helper.make_node("Identity", ["c"], ["go"]),
        helper.make_node("Identity", ["next"], ["row"]),
    ]
    wanted = [("y", F, [2]), ("rows", F, None)]
    model = load(model_of(looped(nodes, True), [("x", F, [2])], wanted, [("m", np.array(count))]))
    x = np.array([1, 3], np.float32)
    last, rows = both(model, x)
    np.testing.assert_array_equal(last, x)
    assert (rows.shape, rows.dtype) == ((0, 2), np.float32)


def test_a_loop_that_stacks_and_ends_where_values_decide_runs_in_the_dynamic_engine_alone() -> None:
    nodes = [
        helper.make_node("Add", ["s", "s"], ["next"]),
        helper.make_node("ReduceMax", ["next"], ["most"], keepdims=0),
        helper.make_node("Less", ["most", "limit"], ["go"]),
        helper.make_node("Identity", ["next"], ["row"]),
    ]
    weights = [("limit", np.array(10, np.float32)), ("m", np.array(9))]
    model = load(model_of(looped(nodes, True), [("x", F, [2])], [("y", F, [2]), ("rows", F, None)], weights))
    x = np.array([1, 3], np.float32)
    assert model(dynamic.tensor(x))[1].shape == (2, 2)
    with pytest.raises(ControlFlowError, match="may end it"):
        static.compile(model, x)


def test_scan_goes_along_an_axis_in_a_direction() -> None:
    body = graph_of(
        [helper.make_node("Add", ["s", "x_t"], ["sum"]), helper.make_node("Identity", ["sum"], ["y_t"])],
        [("s", F, [2]), ("x_t", F, [2])],
        [("sum", F, [2]), ("y_t", F, [2])],
    )
    node = helper.make_node(
        "Scan", ["start", "x"], ["last", "y"], body=body, num_scan_inputs=1, scan_input_axes=[1],
        scan_input_directions=[1], scan_output_axes=[1],
    )  # fmt: skip
    model = load(model_of([node], [("start", F, [2]), ("x", F, [2, 4])], [("last", F, [2]), ("y", F, [2, 4])]))
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    last, y = both(model, np.zeros(2, np.float32), x)
    np.testing.assert_array_equal(last, x.sum(1))
    np.testing.assert_array_equal(y, np.cumsum(x[:, ::-1], 1))

"""The intermediate representation: what the verifier catches, how a graph prints, and when two are the same graph."""

from __future__ import annotations

import textwrap

import networkx as nx
import numpy as np
import pytest

import dynamic
import graphs as g
import static
from graphs import Graph, Node, TensorSpec, VerificationError, isomorphic
from graphs.ir import CONSTANT, INPUT, format_attr, graph_cost, node_cost

F32 = TensorSpec((2, 3))


def an_input(name="x", spec=F32):
    return Node(INPUT, (), {"name": name, "spec": spec}, spec)


def a_graph(*nodes, inputs=None, outputs=None):
    inputs = [n for n in nodes if n.op is INPUT] if inputs is None else inputs
    return Graph("f", inputs, nodes, [nodes[-1]] if outputs is None else outputs)


# The verifier -----------------------------------------------------------------------------------------------------


def test_a_right_graph_passes():
    x = an_input()
    y = Node(g.tanh, [x], {}, F32)
    z = Node(g.sum, [y], {"axis": (0,), "keepdims": False}, TensorSpec((3,)))
    graph = a_graph(x, y, z)
    assert len(graph) == 3
    assert graph.op_counts() == {"tanh": 1, "sum": 1}
    assert graph.users() == {x: [y], y: [z], z: []}
    assert [n.op.name for n in graph.calls] == ["tanh", "sum"]


def read_too_early():
    x = an_input()
    y = Node(g.tanh, [x], {}, F32)
    return a_graph(x, Node(g.exp, [y], {}, F32), y)


def read_from_elsewhere():
    return a_graph(an_input(), Node(g.tanh, [an_input("y")], {}, F32))


def listed_twice():
    x = an_input()
    return a_graph(x, x)


def too_few_inputs():
    x = an_input()
    return a_graph(x, Node(g.add, [x], {}, F32))


def wrong_shape():
    x = an_input()
    return a_graph(x, Node(g.tanh, [x], {}, TensorSpec((3, 2))))


def wrong_dtype():
    x = an_input()
    return a_graph(x, Node(g.tanh, [x], {}, TensorSpec((2, 3), "float64")))


def wrong_symbolic_size():
    x = an_input(spec=TensorSpec(("B", 3)))
    return a_graph(x, Node(g.tanh, [x], {}, TensorSpec(("T", 3))))


def an_op_that_refuses():
    x, y = an_input(), an_input("y")
    return a_graph(x, y, Node(g.matmul, [x, y], {}, F32))


def attributes_missing():
    x = an_input()
    return a_graph(x, Node(g.sum, [x], {"axis": (0,)}, TensorSpec((3,))))


def attributes_unknown():
    x = an_input()
    return a_graph(x, Node(g.tanh, [x], {"axis": 0}, F32))


def output_from_elsewhere():
    x = an_input()
    return a_graph(x, outputs=[Node(g.tanh, [x], {}, F32)])


def input_from_elsewhere():
    x = an_input()
    return a_graph(x, inputs=[x, an_input("y")])


def input_left_out():
    x, y = an_input(), an_input("y")
    return a_graph(x, y, inputs=[x])


def input_listed_twice():
    x = an_input()
    return a_graph(x, inputs=[x, x])


def input_that_is_computed():
    x = an_input()
    y = Node(g.tanh, [x], {}, F32)
    return a_graph(x, y, inputs=[x, y])


BROKEN = {
    read_too_early: "%1 = exp: reads <tanh f32[2,3]> before it is computed",
    read_from_elsewhere: "%1 = tanh: reads <input f32[2,3]> before it is computed",
    listed_twice: "%1 = input: appears twice",
    too_few_inputs: "%1: add has 1 inputs, not 2",
    wrong_shape: "%1 = tanh: the spec says f32[3,2], the op gives f32[2,3]",
    wrong_dtype: "%1 = tanh: the spec says f64[2,3], the op gives f32[2,3]",
    wrong_symbolic_size: "%1 = tanh: the spec says f32[T,3], the op gives f32[B,3]",
    an_op_that_refuses: "%2 = matmul: inner dimensions differ",
    attributes_missing: "%1 = sum: ",
    attributes_unknown: "%1 = tanh: ",
    output_from_elsewhere: "<tanh f32[2,3]> is an input or output of graph f but not one of its nodes",
    input_from_elsewhere: "the inputs of graph f are not its input nodes, each once",
    input_left_out: "the inputs of graph f are not its input nodes, each once",
    input_listed_twice: "the inputs of graph f are not its input nodes, each once",
    input_that_is_computed: "the inputs of graph f are not its input nodes, each once",
}


@pytest.mark.parametrize("broken", BROKEN, ids=lambda f: f.__name__)
def test_the_verifier_catches(broken):
    with pytest.raises(VerificationError) as caught:
        broken()
    assert str(caught.value).startswith(BROKEN[broken])


# Printing ---------------------------------------------------------------------------------------------------------


def model(params, x):
    hidden = g.tanh(x @ params["w"] + params["b"])
    return hidden[:, ::-1].sum(axis=0)


PARAMS = {"b": np.zeros(4, np.float32), "w": np.zeros((3, 4), np.float32)}


def test_a_graph_prints_with_specs_attributes_and_source_lines():
    line = model.__code__.co_firstlineno
    first, second = f"# test_ir.py:{line + 1}", f"# test_ir.py:{line + 2}"
    expected = f"""\
        graph model(%0 params['b']: f32[4], %1 params['w']: f32[3,4], %2 x: f32[B,3]) -> f32[4]
          %3: f32[B,4] = matmul(%2, %1)                                     {first}
          %4: f32[B,4] = add(%3, %0)                                        {first}
          %5: f32[B,4] = tanh(%4)                                           {first}
          %6: f32[B,4] = getitem(%5, key=(:, ::-1))                         {second}
          %7: f32[4] = sum(%6, axis=(0), keepdims=False)                    {second}
          return %7"""
    assert str(static.trace(model, PARAMS, TensorSpec(("B", 3)))) == textwrap.dedent(expected)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.array([1.5, 2.0]), "[1.5, 2.0]"),
        (np.zeros((3, 4), np.float32), "<f32[3,4]>"),
        (np.dtype("float32"), "float32"),
        (slice(1, None), "1::"),
        (slice(None), ":"),
        ((slice(None), None, 1), "(:, None, 1)"),
        (g.dim("B") + 1, "B+1"),
        (True, "True"),
    ],
)
def test_attributes_print_short(value, text):
    assert format_attr(value) == text


def test_constants_print_their_values():
    text = str(static.trace(lambda x: x * np.array([1.0, 2.0]), np.zeros(2)))
    assert "= constant(value=[1.0, 2.0], dtype=float64)" in text


# networkx and isomorphism ----------------------------------------------------------------------------------------


def test_networkx_has_ops_specs_and_argument_positions():
    network = static.trace(lambda x, y: (x - y) * (y - x) + (x - x), np.zeros(3), np.zeros(3)).to_networkx()
    assert nx.is_directed_acyclic_graph(network)
    names = nx.get_node_attributes(network, "op")
    assert sorted(names.values()) == ["add", "input", "input", "multiply", "subtract", "subtract", "subtract"]
    assert set(nx.get_node_attributes(network, "spec").values()) == {"f64[3]"}
    assert all(s.startswith("test_ir.py:") for n, s in network.nodes(data="source") if names[n] != "input")
    into = [sorted(p for *_, p in network.in_edges(n, data="positions")) for n in network if names[n] == "subtract"]
    assert sorted(into) == [[(0,), (1,)], [(0,), (1,)], [(0, 1)]]


def test_labels_say_what_a_node_is_and_not_where_it_stands():
    def f(x):
        return g.fori_loop(0, 3, lambda i, y: y * 2.5, x + np.arange(9.0)) + np.arange(9.0, 0.0, -1)

    graph = static.trace(f, np.zeros(9))
    labels = [node.label for node in graph.nodes]
    assert labels[0] == "input f64[9]"
    digests = {label.split()[-1] for label in labels if label.startswith("constant f64[9]")}
    assert len(digests) == 2  # of the data, which is too long to be shown
    assert any("<graph" in label for label in labels)
    assert list(nx.get_node_attributes(graph.to_networkx(), "label").values()) == labels
    other = static.trace(lambda x: f(x + 0.0), np.zeros(9))
    assert set(labels) <= {node.label for node in other.nodes}


def trace(f, *shapes):
    return static.trace(f, *(np.zeros(s) for s in shapes))


def sine_first(x):
    sine = g.sin(x)
    return sine + g.cos(x)


def cosine_first(x):
    cosine = g.cos(x)
    return g.sin(x) + cosine


def shared(x):
    sine = g.sin(x)
    return sine * sine


SAME = {
    "written in another order": (
        trace(sine_first, 3),
        trace(cosine_first, 3),
    ),
    "named otherwise": (trace(lambda x: x * x, 3), trace(lambda other: other * other, 3)),
    "equal constants": (trace(lambda x: x * np.ones(3), 3), trace(lambda x: x * np.ones(3), 3)),
    "of symbolic sizes": tuple(static.trace(g.tanh, TensorSpec(("B",))) for _ in range(2)),
}
DIFFERENT = {
    "another op": (trace(g.sin, 3), trace(g.cos, 3)),
    "operands swapped": (trace(lambda x, y: x - y, 3, 3), trace(lambda x, y: y - x, 3, 3)),
    "another shape": (trace(g.sin, 3), trace(g.sin, 4)),
    "another attribute": (trace(lambda x: g.sum(x, axis=0), (3, 3)), trace(lambda x: g.sum(x, axis=1), (3, 3))),
    "another constant": (trace(lambda x: x * 2.0, 3), trace(lambda x: x * 3.0, 3)),
    "one node more": (trace(g.sin, 3), trace(lambda x: g.sin(g.sin(x)), 3)),
    "computed twice": (trace(shared, 3), trace(lambda x: g.sin(x) * g.sin(x), 3)),
    "another symbolic size": (static.trace(g.tanh, TensorSpec(("B",))), static.trace(g.tanh, TensorSpec(("T",)))),
    "another output": (trace(lambda x: [g.sin(x), x][0], 3), trace(lambda x: [g.sin(x), x][1], 3)),
}


@pytest.mark.parametrize(("first", "second"), SAME.values(), ids=SAME)
def test_isomorphic(first, second):
    assert isomorphic(first, second)
    assert isomorphic(second, first)


@pytest.mark.parametrize(("first", "second"), DIFFERENT.values(), ids=DIFFERENT)
def test_not_isomorphic(first, second):
    assert not isomorphic(first, second)
    assert not isomorphic(second, first)


def test_outputs_are_part_of_a_graph():
    both = [static.trace(lambda x, i=i: (g.sin(x), g.cos(x))[:: 1 - 2 * i], np.zeros(3)) for i in range(2)]
    assert not isomorphic(*both)


def test_a_run_and_a_trace_of_one_function_are_isomorphic():
    x = np.ones((2, 3), np.float32)
    assert isomorphic(dynamic.record(model, PARAMS, x), static.trace(model, PARAMS, x))
    training = dynamic.value_and_grad(lambda p, x: g.sum(model(p, x)))
    traced = static.value_and_grad(lambda p, x: g.sum(model(p, x)))
    assert isomorphic(dynamic.record(training, PARAMS, x), static.trace(traced, PARAMS, x))


# Cost --------------------------------------------------------------------------------------------------------------


def test_cost_counts_flops_and_bytes_and_views_are_free():
    graph = static.trace(lambda x, w: g.sum(g.permute_dims(x @ w)), np.zeros((2, 3)), np.zeros((3, 4)))
    product, view, total = graph.calls
    assert (node_cost(product).flops, node_cost(product).bytes) == (2 * 2 * 3 * 4, 8 * (6 + 12 + 8))
    assert (node_cost(view).flops, node_cost(view).bytes) == (0, 0)
    assert graph_cost(graph).flops == node_cost(product).flops + node_cost(total).flops


def test_cost_of_symbolic_sizes_is_an_expression():
    graph = static.trace(lambda x, w: x @ w, TensorSpec(("B", 3)), TensorSpec((3, 4)))
    assert str(graph_cost(graph).flops) == "24*B"


def test_a_source_has_no_kernel_to_run():
    with pytest.raises(g.GraphError, match="the input x of a graph has no value of its own"):
        INPUT.kernel(name="x", spec=F32)
    assert CONSTANT.kernel(value=1, dtype=np.dtype("float32")).dtype == np.float32

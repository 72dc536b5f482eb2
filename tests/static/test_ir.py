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
from graphs.ir import CONSTANT, INPUT, format_attr, graph_cost, intern_spec, node_cost
from graphs.spec import OfTensor
from tests.helpers.together import together

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


# What is wrong: the nodes of a graph, with what else it is made of; x, y and rows are inputs.
X, Y, ROWS = an_input(), an_input("y"), an_input(spec=TensorSpec(("B", 3)))
TANH = Node(g.tanh, [X], {}, F32)
NOT_ITS_INPUTS = "the inputs of graph f are not its input nodes, each once"
BROKEN = {
    "read too early": ([X, Node(g.exp, [TANH], {}, F32), TANH], {}, "%1 = exp: reads <tanh f32[2,3]> before it is"),
    "read from elsewhere": ([Y, TANH], {}, "%1 = tanh: reads <input f32[2,3]> before it is computed"),
    "listed twice": ([X, X], {}, "%1 = input: appears twice"),
    "too few inputs": ([X, Node(g.add, [X], {}, F32)], {}, "%1: add has 1 inputs, not 2"),
    "a wrong shape": (
        [X, Node(g.tanh, [X], {}, TensorSpec((3, 2)))],
        {},
        "%1 = tanh: the spec says f32[3,2], the op gives f32[2,3]",
    ),
    "a wrong dtype": (
        [X, Node(g.tanh, [X], {}, TensorSpec((2, 3), "float64"))],
        {},
        "%1 = tanh: the spec says f64[2,3], the op gives f32[2,3]",
    ),
    "a wrong symbolic size": (
        [ROWS, Node(g.tanh, [ROWS], {}, TensorSpec(("T", 3)))],
        {},
        "%1 = tanh: the spec says f32[T,3], the op gives f32[B,3]",
    ),
    "an op that refuses": ([X, Y, Node(g.matmul, [X, Y], {}, F32)], {}, "%2 = matmul: inner dimensions differ"),
    "attributes missing": ([X, Node(g.sum, [X], {"axis": (0,)}, TensorSpec((3,)))], {}, "%1 = sum: "),
    "attributes unknown": ([X, Node(g.tanh, [X], {"axis": 0}, F32)], {}, "%1 = tanh: "),
    "an output from elsewhere": (
        [X],
        {"outputs": [TANH]},
        "<tanh f32[2,3]> is an input or output of graph f but not one of its nodes",
    ),
    "an input from elsewhere": ([X], {"inputs": [X, Y]}, NOT_ITS_INPUTS),
    "an input left out": ([X, Y], {"inputs": [X]}, NOT_ITS_INPUTS),
    "an input listed twice": ([X], {"inputs": [X, X]}, NOT_ITS_INPUTS),
    "an input that is computed": ([X, TANH], {"inputs": [X, TANH]}, NOT_ITS_INPUTS),
}


@together("nodes,others,error", list(BROKEN.values()), list(BROKEN))
def test_the_verifier_catches(nodes, others, error):
    with pytest.raises(VerificationError) as caught:
        a_graph(*nodes, **others)
    assert str(caught.value).startswith(error)


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


def test_a_spec_of_another_type_is_never_given_for_an_equal_one():
    for kinds in ((OfTensor, TensorSpec), (TensorSpec, OfTensor)):
        shape = (7, 11 + len(kinds[0].__name__))
        assert [type(intern_spec(kind(shape, np.dtype(np.float32)))) for kind in kinds] == list(kinds)

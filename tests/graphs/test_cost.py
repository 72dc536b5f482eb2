"""Flops and bytes from specs alone, against counts by hand."""

from __future__ import annotations

import numpy as np
import pytest

import graphs
import static
from graphs.errors import ShapeError
from graphs.ir import Cost, graph_cost, node_cost

F32 = 4  # bytes


def f32(*shape):
    return graphs.TensorSpec(shape, "float32")


def node_of(graph, name):
    return next(node for node in graph.calls if node.op.name == name)


def cost_by_op(graph):
    totals = {}
    for node in graph.calls:
        totals[node.op.name] = totals.get(node.op.name, Cost(0, 0)) + node_cost(node)
    return totals


# By hand --------------------------------------------------------------------------------------------------------


def test_mlp():
    batch, inputs, hidden, outputs = 32, 20, 50, 10

    def mlp(x, w, b, v):
        return graphs.relu(x @ w + b) @ v

    graph = static.trace(mlp, f32(batch, inputs), f32(inputs, hidden), f32(hidden), f32(hidden, outputs))
    products = 2 * batch * inputs * hidden + 2 * batch * hidden * outputs
    assert graph_cost(graph).flops == products + 2 * batch * hidden  # an addition and a maximum each
    layer, result = batch * hidden, batch * outputs
    assert graph_cost(graph).bytes == F32 * (
        (batch * inputs + inputs * hidden + layer)  # x @ w
        + (layer + hidden + layer)  # + b
        + (layer + layer)  # relu
        + (layer + hidden * outputs + result)  # @ v
    )


def test_the_gradient_of_a_product_costs_two_more():
    def loss(w, x):
        return graphs.sum(x @ w)

    graph = static.trace(static.grad(loss, (0, 1)), f32(20, 50), f32(32, 20))
    assert cost_by_op(graph)["matmul"].flops == 3 * 2 * 32 * 20 * 50


@pytest.mark.parametrize("groups", [1, 2])
def test_convolution(groups):
    batch, channels, features, height, width = 4, 6, 8, 10, 12
    kernel = (3, 2)

    def conv(x, w, b):
        return graphs.conv2d(x, w, b, stride=2, groups=groups)

    shapes = (batch, channels, height, width), (features, channels // groups, *kernel), (features,)
    graph = static.trace(conv, *(f32(*shape) for shape in shapes))
    results = batch * features * ((height - 3) // 2 + 1) * ((width - 2) // 2 + 1)
    cost = node_cost(node_of(graph, "convolution"))
    assert cost.flops == 2 * results * channels // groups * 3 * 2
    assert cost.bytes == F32 * (np.prod(shapes[0]) + np.prod(shapes[1]) + results)
    assert graph_cost(graph).flops == cost.flops + results  # the bias

    def loss(x, w, b):
        return graphs.sum(conv(x, w, b))

    gradient = static.trace(static.grad(loss, (0, 1, 2)), *(f32(*shape) for shape in shapes))
    by_op = cost_by_op(gradient)
    assert {by_op[n].flops for n in by_op if n.startswith("convolution")} == {cost.flops}
    assert sum(n.startswith("convolution") for n in by_op) == 3


def test_attention_with_symbolic_sizes():
    heads, width = 4, 8

    def attend(q, k, v):
        return graphs.attention(q, k, v)

    spec = f32("B", heads, "T", width)
    graph = static.trace(attend, spec, spec, spec)
    by_op = cost_by_op(graph)
    for batch, length in ((1, 1), (3, 7), (2, 100)):
        rows = batch * heads * length
        scores = rows * length
        assert by_op["matmul"].at(B=batch, T=length).flops == 2 * (2 * scores * width)
        expected = {
            "multiply": rows * width,  # q scaled
            "softmax": (1 + 1 + 10 + 1 + 1) * scores,  # max, subtract, exp, sum, divide
        }
        assert {n: c.at(B=batch, T=length).flops for n, c in by_op.items() if n in expected} == expected
        total = 4 * scores * width + sum(expected.values())
        assert graph_cost(graph).at(B=batch, T=length).flops == total
        matrices = 2 * (2 * rows * width + scores)  # two products: two matrices in, one out, one of them the scores
        assert by_op["matmul"].at(B=batch, T=length).bytes == F32 * matrices


def test_pooling_takes_one_operation_for_each_element_of_each_window():
    graph = static.trace(lambda x: graphs.max_pool2d(x, 3, 2), f32(2, 4, 9, 9))
    assert graph_cost(graph).flops == 2 * 4 * (4 * 4) * 9


# Bytes ----------------------------------------------------------------------------------------------------------


def test_an_input_used_twice_is_read_once():
    graph = static.trace(lambda x: x * x, f32(100))
    assert graph_cost(graph).bytes == F32 * (100 + 100)


def test_looking_up_rows_reads_those_rows():
    graph = static.trace(graphs.embedding, f32(10_000, 8), graphs.TensorSpec((5,), "int64"))
    assert graph_cost(graph).bytes == F32 * (5 * 8 + 5 * 8) + 8 * 5


def test_views_move_nothing():
    graph = static.trace(lambda x: graphs.reshape(x.T, (4, 5))[1:], f32(4, 5))
    assert cost_by_op(graph)["permute_dims"].bytes == 0
    assert cost_by_op(graph)["getitem"] == Cost(0, 0)


def test_the_parts_add_up():
    def loss(w, x):
        return graphs.mean(graphs.softmax(x @ w) ** 2)

    graph = static.trace(static.value_and_grad(loss), f32(3, 4), f32("B", 3))
    parts = cost_by_op(graph)
    total = graph_cost(graph)
    assert sum(cost.at(B=6).flops for cost in parts.values()) == total.at(B=6).flops
    assert sum(cost.at(B=6).bytes for cost in parts.values()) == total.at(B=6).bytes
    assert graph_cost(static.trace(static.value_and_grad(loss), f32(3, 4), f32(6, 3))) == total.at(B=6)


def test_a_missing_size_is_named():
    total = graph_cost(static.trace(lambda x: x + 1, f32("B")))
    with pytest.raises(ShapeError, match="nothing tells the size B"):
        total.at(T=3)

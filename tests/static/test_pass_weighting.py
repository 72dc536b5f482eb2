"""Weighting: printed before and after each rule, and the gradient of attention as a whole."""

import numpy as np
import pytest

import graphs as g
import static
from static.passes import pipeline
from static.passes.reassociation import reassociate
from tests.helpers.printed import check

LONG = g.TensorSpec((8, 2))
WIDE = g.TensorSpec((2, 8))
TALL = g.TensorSpec((8, 8))
COLUMN = g.TensorSpec((8, 1))


def after(f, *specs):
    """The ops of a function after the pass and what it leaves behind, in order."""
    graph, _ = pipeline.run(static.trace(f, *specs), [reassociate, *pipeline.SIMPLIFY])
    return [node.op.name for node in graph.calls]


def test_a_number_beside_a_product_goes_to_the_smaller_operand():
    check(
        reassociate,
        lambda a, b: (a @ b) * 0.3,
        [g.TensorSpec((8, 2)), g.TensorSpec((2, 4))],
        "f32[8,4] matmul(%0, multiply(%1, 0.30000001192092896))",
    )


def test_it_stays_where_the_product_is_the_smallest():
    assert after(lambda a, b: (a @ b) * 0.3, WIDE, LONG) == ["matmul", "multiply"]


def test_it_stays_where_the_product_is_read_without_it():
    def f(a, b):
        product = a @ b
        return product * 0.3, g.tanh(product)

    assert after(f, LONG, WIDE) == ["matmul", "multiply", "tanh"]


def test_a_number_on_a_large_operand_goes_to_the_product():
    ops = after(lambda x, b: (g.tanh(x) * 0.3) @ b, TALL, LONG)
    assert ops == ["tanh", "matmul", "multiply"]


def test_it_goes_to_each_product_where_they_are_smaller_together():
    def f(x, b, c):
        scaled = g.tanh(x) * 0.3
        return scaled @ b, c @ scaled

    assert after(f, TALL, LONG, WIDE) == ["tanh", "matmul", "multiply", "matmul", "multiply"]
    assert after(lambda x, b: f(x, b, b.T), TALL, g.TensorSpec((8, 4))).count("multiply") == 1


def softmax_gradient(e, r, x):
    p = e * r
    scaled = x * r
    return p, (scaled - g.sum(p * scaled, axis=-1, keepdims=True)) * e


def test_the_gradient_of_a_softmax_weights_once():
    assert after(softmax_gradient, TALL, COLUMN, TALL) == ["multiply", "multiply", "sum", "subtract", "multiply"]
    across = g.TensorSpec((1, 8))  # varies along what is summed
    assert after(softmax_gradient, TALL, across, TALL).count("multiply") == 4


def weighted(p, d, v, *, transposed=True):
    mixed = p @ v
    scores = d @ (v.T if transposed else v)
    return mixed, g.sum(p * scores, axis=-1, keepdims=True), scores


def test_the_sum_of_weighted_products_is_that_over_the_shorter_axis():
    square = g.TensorSpec((2, 2))
    graph, _ = pipeline.run(static.trace(weighted, TALL, LONG, LONG), [reassociate, *pipeline.SIMPLIFY])
    (product,) = [node for node in graph.calls if node.op.name == "multiply"]
    assert product.spec.shape == (8, 2)
    graph = reassociate(static.trace(lambda *a: weighted(*a, transposed=False), square, square, square))
    (product,) = [node for node in graph.calls if node.op.name == "multiply"]
    assert {source.op.name for source in product.inputs} == {"input", "matmul"}
    assert product.inputs[0] is graph.inputs[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_attention_and_its_gradients_are_what_they_are_without_passes(dtype):
    def loss(params, x):
        q, k, v = (g.permute_dims(g.reshape(x @ w, (2, 16, 2, 4)), (0, 2, 1, 3)) for w in params)
        weights = g.softmax((q @ g.matrix_transpose(k)) / 3, axis=-1)
        return g.sum(g.square(g.permute_dims(weights @ v, (0, 2, 1, 3))))

    rng = np.random.default_rng(0)
    params, x = (
        [rng.standard_normal((8, 8)).astype(dtype) for _ in range(3)],
        rng.standard_normal((2, 16, 8)).astype(dtype),
    )
    step = static.value_and_grad(loss)
    plain, fast = static.compile(step, params, x, passes=()), static.compile(step, params, x)
    expected, found = plain(params, x), fast(params, x)
    large = [node.op.name for node in fast.graph.calls if node.spec.shape == (2, 2, 16, 16) and not node.op.view]
    assert large.count("multiply") <= 2  # by 1 / sum, and of the gradient
    for one, other in zip([expected[0], *expected[1]], [found[0], *found[1]], strict=True):
        np.testing.assert_allclose(other, one, rtol=0, atol=64 * np.finfo(dtype).eps * np.abs(one).max())

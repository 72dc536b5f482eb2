"""Reverse mode: the shared accumulation, and the gradient checker that watches over it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as npst

import dynamic
import graphs as g
import static
from graphs import NotDifferentiableError, TensorSpec, reverse
from graphs.testing import check_grads
from tests.helpers.engines import ENGINES, gradients

each_engine = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
each_name = pytest.mark.parametrize("engine", ENGINES)

# accumulate -------------------------------------------------------------------------------------------------------


def test_contributions_add_up_in_the_order_they_arrive():
    edges = {"c": [("a", 1.0), ("b", 2.0)], "b": [("a", 10.0)]}
    cotangents = {"c": np.array(1.0)}
    reverse.accumulate("cb", cotangents, lambda e, ct: ((s, ct * w) for s, w in edges[e]))
    assert cotangents == {"a": 1.0 + 20.0}


def test_entries_without_a_cotangent_are_passed_over():
    asked = []

    def pull(entry, cotangent):
        asked.append(entry)
        return iter([("x", cotangent)])

    cotangents = {"used": np.array(3.0)}
    reverse.accumulate(["unused", "used"], cotangents, pull)
    assert asked == ["used"]
    assert cotangents == {"x": 3.0}


# conform: unbroadcasting, once for every op ----------------------------------------------------------------------


@given(npst.mutually_broadcastable_shapes(num_shapes=2, min_side=0, max_side=4, max_dims=4))
def test_conform_is_the_adjoint_of_broadcasting(drawn):
    """<broadcast(x), c> = <x, conform(c)>."""
    shape = drawn.input_shapes[0]
    cotangent = np.random.default_rng(0).normal(size=drawn.result_shape)
    x = np.random.default_rng(1).normal(size=shape)
    back = reverse.conform(cotangent, shape, np.dtype(np.float64))
    assert back.shape == shape
    assert np.isclose(np.sum(np.broadcast_to(x, drawn.result_shape) * cotangent), np.sum(x * back))


def test_conform_returns_what_already_fits():
    cotangent = np.ones((2, 3))
    assert reverse.conform(cotangent, (2, 3), cotangent.dtype) is cotangent


def test_conform_casts_back_to_the_inputs_dtype():
    assert reverse.conform(np.ones((2, 3)), (3,), np.dtype(np.float32)).dtype == np.float32


def test_conform_sums_symbolic_axes_and_keeps_size_1():
    def loss(row, column, x):
        return g.sum(x * row * column)

    specs = [TensorSpec(("T",)), TensorSpec(("B", 1)), TensorSpec(("B", "T"))]
    exe = static.compile(static.grad(loss, (0, 1)), *specs)
    arrays = [np.arange(1.0, 4, dtype=np.float32), np.ones((2, 1), np.float32), np.ones((2, 3), np.float32)]
    row, column = exe(*arrays)
    np.testing.assert_array_equal(row, [2, 2, 2])
    np.testing.assert_array_equal(column, [[6], [6]])


# What may be differentiated ---------------------------------------------------------------------------------------


@each_name
def test_an_output_that_is_no_scalar_is_refused(engine):
    with pytest.raises(NotDifferentiableError, match=r"shape \(3,\).*only scalars"):
        gradients(engine, lambda x: x * 2, np.ones(3))


@each_name
def test_an_integer_output_is_refused(engine):
    with pytest.raises(NotDifferentiableError, match="only floating point outputs have gradients"):
        gradients(engine, g.argmax, np.ones(3))


@each_name
def test_an_integer_argument_is_refused(engine):
    with pytest.raises(NotDifferentiableError, match="gradient with respect to int64 values"):
        gradients(engine, lambda x: g.sum(x * 1.0), np.arange(3))


def test_a_seed_of_another_shape_is_refused():
    with pytest.raises(NotDifferentiableError, match=r"the cotangent has shape \(2,\), the output \(3,\)"):
        reverse.check_seed(np.ones(3), np.ones(2))


@each_name
def test_higher_orders_of_one_function(engine):
    module = ENGINES[engine]
    f = lambda x: g.sum(g.sin(x))  # noqa: E731  (nested below as a value)
    expected = [np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x), np.sin]
    x = np.array([0.3, -1.2])
    for derivative in expected:
        (found,) = gradients(engine, f, x)
        np.testing.assert_allclose(found, derivative(x), rtol=1e-12)
        f = lambda x, f=f: g.sum(module.grad(f)(x))  # noqa: E731


@each_name
def test_nested_containers_of_parameters(engine):
    params = {"layers": [{"w": np.ones((2, 3)), "b": np.zeros(3)}], "scale": np.array(2.0)}

    def loss(p):
        return g.sum(g.tanh(p["layers"][0]["w"] + p["layers"][0]["b"])) * p["scale"]

    (found,) = gradients(engine, loss, params)
    assert found.keys() == params.keys()
    slope = 2 * (1 - np.tanh(1.0) ** 2)
    np.testing.assert_allclose(found["layers"][0]["w"], np.full((2, 3), slope))
    np.testing.assert_allclose(found["layers"][0]["b"], np.full(3, 2 * slope))
    assert np.isclose(found["scale"], 6 * np.tanh(1.0))


@each_name
def test_a_deep_chain_needs_no_recursion(engine):
    def loss(x):
        for _ in range(3000):
            x = x * 1.0
        return g.sum(x)

    np.testing.assert_array_equal(gradients(engine, loss, np.ones(2))[0], [1, 1])


# check_grads ------------------------------------------------------------------------------------------------------


def wrong(module, factor):
    """An engine whose gradients are too large by a factor."""

    def value_and_grad(f, argnums=0):
        def both(*args):
            value, gradient = module.value_and_grad(f, argnums)(*args)
            return value, g.tree_map(lambda leaf: leaf * factor, gradient)

        return both

    extras = {"compile": module.compile} if module is static else {}
    grad = lambda f, argnums=0: lambda *args: value_and_grad(f, argnums)(*args)[1]  # noqa: E731
    return SimpleNamespace(__name__=module.__name__, value_and_grad=value_and_grad, grad=grad, **extras)


@each_engine
@pytest.mark.parametrize("factor", [1.001, -1.0, 0.0, np.nan])
def test_a_wrong_gradient_is_found_and_named(engine, factor):
    params = {"w": np.array([1.0, 2.0])}
    with pytest.raises(AssertionError) as caught:
        check_grads(lambda p, x: g.sin(p["w"]) * x, [params, np.ones(2)], engine=wrong(engine, factor))
    message = str(caught.value)
    assert message.startswith(f"{engine.__name__}: the gradient of order 1 in p['w'] is ")
    assert "by reverse mode but" in message
    assert message.endswith("by central differences, along the direction of seed (0, 1, 0)")


@each_engine
def test_right_gradients_pass_to_third_order(engine):
    check_grads(lambda x, y: g.tanh(x @ y) * g.exp(x[0]), [np.ones((2, 2)) / 3, np.ones((2, 2)) / 5], 3, engine=engine)


def test_a_wrong_second_derivative_is_found():
    """A rule whose gradient is right but was computed outside the ops: its own derivative is lost."""

    def value_and_grad(f, argnums=0):
        def both(x):
            value, gradient = dynamic.value_and_grad(f, argnums)(x)
            return value, g.tree_map(g.stop_gradient, gradient)

        return both

    grad = lambda f: lambda x: value_and_grad(f)(x)[1]  # noqa: E731
    engine = SimpleNamespace(__name__="dynamic", value_and_grad=value_and_grad, grad=grad)
    check_grads(g.sin, [np.array([0.3, 0.4])], engine=engine)
    with pytest.raises(AssertionError, match="the gradient of order 2 in x"):
        check_grads(g.sin, [np.array([0.3, 0.4])], 2, engine=engine)


@each_engine
def test_only_the_chosen_arguments_are_checked(engine):
    check_grads(g.take, [np.ones(3), np.array([0, 2])], engine=engine)
    floor_kink = np.array([1.0])  # a difference across it would be huge
    check_grads(lambda x, y: x * g.floor(y), [np.ones(1), floor_kink], argnums=[0], engine=engine)
    with pytest.raises(AssertionError, match="in y"):
        check_grads(lambda x, y: x * g.floor(y), [np.ones(1), floor_kink], engine=engine)


def test_every_imported_engine_is_checked_by_default():
    check_grads(g.tanh, [np.ones(2, np.float32)])


def test_float32_arguments_are_checked_in_float64():
    check_grads(lambda x: g.sum(g.exp(x)), [np.linspace(0, 3, 5, dtype=np.float32)], rtol=1e-8, engine=dynamic)


def test_a_function_without_a_floating_result_is_refused():
    with pytest.raises(g.GraphError, match="return a floating value"):
        check_grads(g.argmax, [np.ones(3)], engine=dynamic)


@each_engine
def test_results_may_be_containers(engine):
    check_grads(lambda x: {"a": g.sin(x), "b": [g.cos(x), g.argmax(x)]}, [np.array([0.1, 0.7])], engine=engine)

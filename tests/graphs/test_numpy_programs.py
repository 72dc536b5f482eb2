"""Programs in the style of autograd's examples run with `import graphs as np`, and leave autograd's losses behind."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic
import graphs as g
import static
from graphs.errors import ControlFlowError
from tests.helpers.slow import mostly_slow
from tests.programs import arrays

# It indexes an array of NumPy's by what it computes, which only the dynamic engine can do.
READS_VALUES = ("fluid",)


@pytest.mark.parametrize("engine", ["dynamic", "static"])
@pytest.mark.parametrize("name", mostly_slow(arrays.NAMES, 2))
def test_losses_are_autograds(name, engine):
    if engine == "static" and name in READS_VALUES:
        with pytest.raises(ControlFlowError, match=f"{name}.py:.*; use the functions in graphs"):
            arrays.losses(name, engine)
        return
    found = arrays.losses(name, engine)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, arrays.losses(name, "autograd"), rtol=1e-5, atol=1e-8)


def test_names_are_numpys_where_graphs_has_none():
    assert g.concatenate is np.concatenate
    assert g.random is np.random
    assert g.linalg.norm is np.linalg.norm
    assert g.ndarray is np.ndarray
    with pytest.raises(AttributeError, match="neither has NumPy"):
        _ = g.no_such_name
    with pytest.raises(AttributeError, match="neither has NumPy; did you mean 'tanh'"):
        _ = g.tanhh
    with pytest.raises(AttributeError, match=r"neither has numpy\.linalg"):
        _ = g.linalg.no_such_name
    with pytest.raises(g.ShapeError, match=r"identity.*use eye\(3\)"):
        g.identity(3)


@pytest.mark.parametrize("engine", [dynamic, static])
def test_nested_lists_of_tensors_are_arrays(engine):
    def loss(x):
        return g.sum(g.array([[x[0], 1.0], [x[1] * x[0], 2.0]], ndmin=3)[0] ** 2)

    np.testing.assert_array_equal(engine.grad(loss)(np.array([1.0, 2.0])), [10, 4])
    assert g.array([1, 2], dtype=float, ndmin=2).shape == (1, 2)
    x = np.ones(2)
    assert g.array(x) is not x


@pytest.mark.parametrize("engine", [dynamic, static])
def test_elementwise_gradients_nest(engine):
    x = np.linspace(-2, 2, 5)
    first, second = engine.elementwise_grad(np.tanh), engine.elementwise_grad(engine.elementwise_grad(np.tanh))
    np.testing.assert_allclose(first(x), 1 - np.tanh(x) ** 2)
    np.testing.assert_allclose(second(x), -2 * np.tanh(x) * (1 - np.tanh(x) ** 2))
    product = engine.elementwise_grad(lambda a, b: a * b, 1)
    np.testing.assert_array_equal(product(x, np.ones(5)), x)


@pytest.mark.parametrize("engine", [dynamic, static])
def test_transforms_take_autograds_parameters(engine):
    x, y, v = np.array([1.0, 2.0]), np.array([3.0, 4.0]), np.array([0.5, -1.0])

    def loss(x, y):
        return g.sum(x**3 * y**2)

    np.testing.assert_allclose(engine.grad(loss, argnum=1)(x, y), 2 * x**3 * y)
    np.testing.assert_allclose(engine.grad(loss, argnum=(1, 0))(x, y)[1], 3 * x**2 * y**2)
    np.testing.assert_allclose(engine.value_and_grad(loss, argnum=1)(x, y)[1], 2 * x**3 * y)
    np.testing.assert_allclose(engine.elementwise_grad(lambda x, y: x * y, argnum=1)(x, y), x)
    np.testing.assert_allclose(engine.jacobian(lambda x, y: x * y, argnum=1)(x, y), np.diag(x))
    np.testing.assert_allclose(engine.hessian(loss, argnum=1)(x, y), np.diag(2 * x**3))
    for argnum, expected in ((0, 6 * x * y**2 * v), (1, 2 * x**3 * v), (-1, 2 * x**3 * v)):
        np.testing.assert_allclose(engine.hessian_vector_product(loss, argnum)(x, y, v), expected)


@pytest.mark.parametrize("engine", [dynamic, static])
def test_one_number_has_a_gradient_whatever_its_shape(engine):
    for shape in ((), (1,), (1, 1)):
        value, gradient = engine.value_and_grad(lambda x, shape=shape: g.reshape(g.sum(x**2), shape))(
            np.array([1.0, 3.0])
        )
        assert value.shape == shape
        np.testing.assert_array_equal(gradient, [2, 6])
    with pytest.raises(g.NotDifferentiableError, match=r"shape \(2,\)"):
        engine.grad(lambda x: x**2)(np.ones(2))

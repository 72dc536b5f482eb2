"""Gradients of functions, the same in both engines: containers, argnums, nesting, ownership, refusals."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dynamic
import graphs
import static
from graphs.errors import NotDifferentiableError
from tests.helpers.engines import ENGINES


class Layer(NamedTuple):
    weight: Any
    bias: Any


each_engine = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)


def arrays(*values: Any) -> list[Any]:
    return [np.array(v, np.float64) for v in values]


def same(one: Any, other: Any) -> None:
    """Equal containers of equal arrays."""
    (left, structure), (right, expected) = graphs.tree.flatten(one), graphs.tree.flatten(other)
    assert structure == expected
    for a, b in zip(left, right, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


# Values, containers and argnums -------------------------------------------------------------------------------


@each_engine
def test_value_and_gradient(engine):
    value, gradient = engine.value_and_grad(lambda x: (x**3).sum())(*arrays([1, 2]))
    assert value == 9
    assert gradient.tolist() == [3, 12]
    assert engine.grad(lambda x: (x**3).sum())(*arrays([1, 2])).tolist() == [3, 12]


@each_engine
def test_nested_containers_keep_their_structure(engine):
    w, b, s = arrays([[1, 2], [3, 4]], [5, 6], 2)
    params = {"layers": [Layer(w, b), (s,)], "none": None, "empty": {}}

    def loss(p: Any, x: Any) -> Any:
        layer, (scale,) = p["layers"]
        return ((x @ layer.weight + layer.bias) * scale).sum()

    x = np.array([1.0, -1.0])
    expected = {
        "layers": [Layer(np.array([[2.0, 2], [-2, -2]]), np.array([2.0, 2])), (np.array(3.0 + 4.0),)],
        "none": None,
        "empty": {},
    }
    gradient = engine.grad(loss)(params, x)
    same(gradient, expected)
    assert isinstance(gradient["layers"][0], Layer)
    same(engine.grad(loss, argnums=(1,))(params, x), (np.array([6.0, 14.0]),))


@each_engine
@pytest.mark.parametrize("argnums", [0, 1, -1, (0,), (0, 2), (2, 0), (0, 1, 2)])
def test_argnums_pick_and_order(engine, argnums):
    values = arrays(2, 3, 5)
    every = (15.0, 10.0, 6.0)
    gradient = engine.grad(lambda a, b, c: a * b * c, argnums=argnums)(*values)
    if isinstance(argnums, int):
        assert gradient == every[argnums]
    else:
        assert isinstance(gradient, tuple)
        assert [float(g) for g in gradient] == [every[i] for i in argnums]


@each_engine
def test_the_same_array_given_twice_is_two_arguments(engine):
    x = np.array(3.0)
    a, b = engine.grad(lambda a, b: a * a * b, argnums=(0, 1))(x, x)
    assert (a, b) == (18, 9)
    shared = {"a": x, "b": x}
    gradient = engine.grad(lambda p: p["a"] * p["a"] * p["b"])(shared)
    assert (gradient["a"], gradient["b"]) == (18, 9)


@each_engine
def test_what_is_not_used_has_zeros(engine):
    x, unused = arrays([1, 2], [[1, 2, 3]])
    value, gradient = engine.value_and_grad(lambda p: p["x"].sum())({"x": x, "unused": unused.astype("float32")})
    assert value == 3
    assert gradient["unused"].tolist() == [[0, 0, 0]]
    assert gradient["unused"].dtype == np.float32


@each_engine
@pytest.mark.parametrize("constant", [3.0, np.float64(3), np.array(3.0)], ids=["float", "scalar", "array"])
def test_a_constant_function_has_zero_gradient(engine, constant):
    value, gradient = engine.value_and_grad(lambda x: constant)(np.ones(2))
    assert isinstance(value, np.ndarray)
    assert value == 3
    assert gradient.tolist() == [0, 0]


@each_engine
def test_nothing_flows_through_integers_bools_and_stop_gradient(engine):
    def loss(x: Any) -> Any:
        steps = graphs.astype(graphs.astype(x, "int64"), "float64")
        return (x * graphs.stop_gradient(x) + steps + graphs.where(x > 1, x, 0.0)).sum()

    assert engine.grad(loss)(np.array([1.0, 2.0, 3.0])).tolist() == [1, 3, 4]


@each_engine
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_gradients_have_the_dtype_of_their_argument(engine, dtype):
    x, w = np.ones(3, dtype), np.ones(3, "float64")
    gx, gw = engine.grad(lambda x, w: (x * w).sum(), argnums=(0, 1))(x, w)
    assert (gx.dtype, gw.dtype) == (x.dtype, w.dtype)


# What comes out ---------------------------------------------------------------------------------------------


@each_engine
def test_arrays_in_arrays_out(engine):
    for leaf in graphs.tree.leaves(
        engine.value_and_grad(lambda p, x: (p["w"] * x).sum())({"w": np.ones(2)}, np.ones(2))
    ):
        assert type(leaf) is np.ndarray


def test_a_value_that_needs_no_gradient_is_an_array_too():
    value, gradient = dynamic.value_and_grad(lambda p, x: x.sum())(np.ones(2), np.ones(3))
    assert type(value) is np.ndarray
    assert type(gradient) is np.ndarray


def test_tensors_in_tensors_out():
    x = dynamic.tensor([1.0, 2.0])
    value, gradient = dynamic.value_and_grad(lambda x, c: (x * x * c).sum())(x, np.float32(2))
    assert isinstance(value, dynamic.Tensor)
    assert isinstance(gradient, dynamic.Tensor)
    assert gradient.tolist() == [4, 8]
    assert not gradient.requires_grad
    assert x.grad is None


VIEWS = {
    "the argument": lambda x: x,
    "its reshape": lambda x: graphs.reshape(x, (1,)).reshape(()),
    "the argument plus nothing": lambda x: x + 0,
    "its stop_gradient": graphs.stop_gradient,
}


@each_engine
@pytest.mark.parametrize("name", VIEWS)
def test_results_own_their_memory(engine, name):
    x = np.array(3.0)
    step = engine.value_and_grad(lambda x, y: VIEWS[name](x), argnums=(0, 1))
    value, (gx, gy) = step(x, x)
    held = [x, value, gx, gy]
    assert not any(np.shares_memory(a, b) for i, a in enumerate(held) for b in held[:i])
    for result in (value, gx, gy):
        result[...] = 7
    again, (gx, gy) = step(x, x)
    assert (x, again) == (3, 3)
    assert gy == 0


@each_engine
def test_a_captured_array_is_never_handed_out(engine):
    captured = np.array(5.0)
    value, _ = engine.value_and_grad(lambda x: captured)(np.ones(1))
    value[...] = 0
    assert captured == 5


@each_engine
def test_arguments_are_never_changed(engine):
    params = {"w": np.arange(6.0).reshape(2, 3), "b": np.ones(3)}
    x = np.asfortranarray(np.arange(8.0).reshape(4, 2))
    before = [a.copy() for a in (*params.values(), x)]
    for array in (*params.values(), x):
        array.flags.writeable = False
    engine.value_and_grad(lambda p, x: (np.tanh(x @ p["w"] + p["b"]) ** 2).mean())(params, x)
    for array, copy in zip((*params.values(), x), before, strict=True):
        np.testing.assert_array_equal(array, copy)


# Nesting ----------------------------------------------------------------------------------------------------


@each_engine
@pytest.mark.parametrize(("order", "expected"), [(1, 32), (2, 48), (3, 48), (4, 24), (5, 0)])
def test_orders_of_x_to_the_fourth(engine, order, expected):
    f = lambda x: x * x * x * x  # noqa: E731
    for _ in range(order):
        f = engine.grad(f)
    assert f(np.array(2.0)) == expected


@each_engine
def test_the_inner_function_closes_over_the_outer_variable(engine):
    def outer(x: Any) -> Any:
        return engine.grad(lambda z: (z**3 * x).sum())(x).sum()  # 3 z² x at z = x

    same(engine.grad(outer)(np.array([1.0, 2.0])), np.array([9.0, 36.0]))


@each_engine
def test_the_inner_gradient_at_a_constant_point(engine):
    def outer(x: Any) -> Any:
        return engine.grad(lambda z: (z * z * x).sum())(np.array([5.0, 7.0])).sum()

    same(engine.grad(outer)(np.array([1.0, 2.0])), np.array([10.0, 14.0]))


@each_engine
def test_perturbations_of_two_levels_are_not_confused(engine):
    """d/dx [x * d/dy (x + y)] is 1, not 2 (Siskind and Pearlmutter, 2005)."""
    f = engine.grad(lambda x: x * engine.grad(lambda y: x + y)(np.array(1.0)))
    assert f(np.array(3.0)) == 1


@each_engine
def test_an_inner_value_may_be_the_outer_variable(engine):
    def outer(x: Any) -> Any:
        value, gradient = engine.value_and_grad(lambda z: x)(np.ones(2))
        return value * 2 + gradient.sum()

    assert engine.grad(outer)(np.array(3.0)) == 2


@each_engine
def test_a_hessian_vector_product(engine):
    v = np.array([1.0, 0.5])

    def slope(x: Any) -> Any:
        return (engine.grad(lambda x: (x**2).sum() * x[0])(x) * v).sum()

    x = np.array([2.0, 3.0])
    hessian = np.array([[6 * x[0], 2 * x[1]], [2 * x[1], 2 * x[0]]])
    same(engine.grad(slope)(x), hessian @ v)


@given(st.floats(-2, 2), st.floats(-2, 2))
def test_both_engines_nest_alike(a, b):
    def nested(engine: Any) -> Any:
        def inner(z: Any, x: Any) -> Any:
            return graphs.sum(graphs.tanh(z * x) * z)

        return engine.value_and_grad(lambda x: engine.grad(inner)(x * x, x).sum())(np.array([a, b]))

    same(nested(dynamic), nested(static))


def test_a_functional_gradient_is_part_of_an_outer_tape():
    x = dynamic.tensor([1.0, 2.0], requires_grad=True)
    dynamic.grad(lambda z: (z**3).sum())(x).sum().backward()
    assert x.grad.tolist() == [6, 12]


def test_leaves_of_the_caller_keep_their_gradients():
    w = dynamic.tensor([3.0], requires_grad=True)
    gradient = dynamic.grad(lambda x: (x * w).sum())(np.ones(1, np.float32))
    assert w.grad is None
    gradient.sum().backward()
    assert w.grad.tolist() == [1]


def test_gradients_are_taken_under_no_grad_too():
    with dynamic.no_grad():
        assert dynamic.grad(lambda x: (x * x).sum())(np.ones(2)).tolist() == [2, 2]
        assert not dynamic.is_grad_enabled()


# Refusals ---------------------------------------------------------------------------------------------------


@each_engine
@pytest.mark.parametrize(
    ("f", "x", "words"),
    [
        (lambda x: x * 2, np.ones(2), "only scalars have one gradient"),
        (lambda x: x.sum() > 0, np.ones(2), "gradient of bool values"),
        (lambda x: x.sum(), np.ones(2, int), "gradient with respect to int64 values"),
        (lambda p: p["x"].sum(), {"x": np.ones(2), "name": "w"}, "gradient with respect to <U1 values"),
        (graphs.argmax, np.ones(2), "gradient of int64 values"),
        (lambda x: None, np.ones(2), "gradient of None: the function returns nothing"),
    ],
    ids=["vector", "bool", "int argument", "text argument", "int result", "nothing"],
)
def test_refusals(engine, f, x, words):
    with pytest.raises(NotDifferentiableError) as caught:
        engine.grad(f)(x)
    assert words in str(caught.value)
    assert "test_functional.py:" in str(caught.value)


@each_engine
def test_an_error_inside_leaves_the_engine_usable(engine):
    def broken(x: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        engine.grad(broken)(np.ones(2))
    assert engine.grad(lambda x: x.sum())(np.ones(2)).tolist() == [1, 1]

"""vjp, jvp, jacobian, hessian and hvp: the same names, meanings, containers and refusals in both engines."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dynamic
import graphs as g
import static
from graphs.errors import ControlFlowError, NotDifferentiableError, ShapeError
from tests.helpers.engines import ENGINES

each_engine = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
X = np.array([0.5, -1.0, 2.0])
V = np.array([1.0, 0.25, -0.5])
W = np.array([[0.5, -0.25, 1.0], [0.75, 0.1, -0.6]])


class Pair(NamedTuple):
    first: Any
    second: Any


def close(found: Any, expected: Any) -> None:
    (left, structure), (right, wanted) = g.tree.flatten(found), g.tree.flatten(expected)
    assert structure == wanted
    for a, b in zip(left, right, strict=True):
        assert a.shape == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def cubes(x: Any) -> Any:
    return (x**3).sum()


def affine(w: Any, x: Any) -> Any:
    return g.tanh(w @ x)


# vjp and jvp ----------------------------------------------------------------------------------------------------


@each_engine
def test_a_pullback_gives_a_tuple_of_gradients_and_can_be_called_again(engine):
    outputs, pullback = engine.vjp(lambda a, b: a * b, X, V)
    close(outputs, X * V)
    for scale in (1.0, -2.0):
        close(pullback(scale * np.ones(3)), (scale * V, scale * X))


@each_engine
def test_pullbacks_and_outputs_own_their_memory(engine):
    outputs, pullback = engine.vjp(g.exp, X)  # the gradient of exp reads its output
    expected = np.exp(X)
    outputs[...] = 0
    cotangent = np.ones(3)
    (first,) = pullback(cotangent)
    first[...] = 7
    close(pullback(cotangent), (expected,))
    (same,) = engine.vjp(lambda x: x, X)[1](cotangent)
    assert not np.shares_memory(same, cotangent)


@each_engine
def test_containers_in_and_out(engine):
    params = {"layers": [Pair(W, X[:2])], "none": None}

    def f(p: Any, x: Any) -> Any:
        layer = p["layers"][0]
        hidden = layer.first @ x + layer.second
        return Pair(hidden, {"sum": hidden.sum(), "steps": g.astype(hidden, "int64")})

    outputs, pullback = engine.vjp(f, params, V)
    close(outputs.first, W @ V + X[:2])
    assert outputs.second["steps"].dtype == np.int64
    gradients = pullback(Pair(np.array([1.0, 0.0]), {"sum": np.array(2.0), "steps": np.zeros(2, np.int64)}))
    weights = np.array([3.0, 2.0])
    close(gradients, ({"layers": [Pair(np.outer(weights, V), weights)], "none": None}, weights @ W))


@each_engine
def test_pushing_a_tangent_agrees_with_the_jacobian_and_pulling(engine):
    jacobian = engine.jacobian(affine, argnums=(0, 1))(W, X)
    tangents = (np.ones_like(W), V)
    outputs, pushed = engine.jvp(affine, (W, X), tangents)
    close(outputs, np.tanh(W @ X))
    close(pushed, np.einsum("iab,ab->i", jacobian[0], tangents[0]) + jacobian[1] @ V)
    u = np.array([2.0, -1.0])
    close(engine.vjp(affine, W, X)[1](u)[1], u @ jacobian[1])


@each_engine
def test_tangents_of_containers_and_of_integer_outputs(engine):
    outputs, pushed = engine.jvp(
        lambda p: {"y": p["a"] * p["b"], "n": g.astype(p["a"], "int32"), "constant": 3.0},
        ({"a": X, "b": V},), ({"a": np.ones(3), "b": np.zeros(3)},),
    )  # fmt: skip
    close(pushed["y"], V)
    assert pushed["n"].tolist() == [0, 0, 0]
    assert float(pushed["constant"]) == 0
    close(outputs["y"], X * V)


@each_engine
def test_nothing_that_flows_is_zeros(engine):
    close(engine.vjp(lambda a, b: a.sum(), X, V)[1](np.array(2.0)), (np.full(3, 2.0), np.zeros(3)))
    close(engine.jvp(g.stop_gradient, (X,), (V,))[1], np.zeros(3))
    close(engine.jacobian(lambda a: np.ones(2))(X), np.zeros((2, 3)))


@each_engine
def test_numbers_are_scalars(engine):
    outputs, pullback = engine.vjp(lambda a: a * a, 3.0)
    close(outputs, 9.0)
    close(pullback(1.0), (6.0,))
    close(engine.jvp(g.exp, (0.0,), (2.0,))[1], 2.0)
    close(engine.hvp(lambda a: a**3, (2.0,), (1.0,)), (12.0,))


@each_engine
@given(st.lists(st.floats(-2, 2), min_size=3, max_size=3), st.lists(st.floats(-2, 2), min_size=2, max_size=2))
def test_pushing_and_pulling_are_adjoint(engine, tangent, cotangent):
    t, u = np.array(tangent), np.array(cotangent)
    pushed = engine.jvp(lambda x: affine(W, x), (X,), (t,))[1]
    (pulled,) = engine.vjp(lambda x: affine(W, x), X)[1](u)
    np.testing.assert_allclose(u @ pushed, pulled @ t, rtol=1e-9, atol=1e-9)


@each_engine
def test_cotangents_take_the_dtype_of_the_output(engine):
    x = X.astype(np.float32)
    outputs, pullback = engine.vjp(lambda x: x * 2, x)
    (gradient,) = pullback(np.ones(3, np.float64))
    assert (outputs.dtype, gradient.dtype) == (np.float32, np.float32)


# Matrices of derivatives ----------------------------------------------------------------------------------------


@each_engine
def test_jacobian_shapes_are_output_then_input(engine):
    close(engine.jacobian(lambda x: W @ x)(X), W)
    close(engine.jacobian(lambda x: (x * x).sum())(X), 2 * X)
    close(engine.jacobian(lambda w: w.T)(W), np.einsum("ja,ib->ijab", np.eye(2), np.eye(3)))
    both = engine.jacobian(lambda w, x: w @ x, argnums=(1, 0))(W, X)
    close(both, (W, np.einsum("ia,b->iab", np.eye(2), X)))


@each_engine
def test_jacobian_of_containers(engine):
    found = engine.jacobian(lambda p: [p["a"] * 2, (p["a"] * p["b"]).sum()])({"a": X, "b": V})
    close(found, [{"a": 2 * np.eye(3), "b": np.zeros((3, 3))}, {"a": V, "b": X}])


@each_engine
def test_jacobian_over_nothing(engine):
    empty = np.zeros((0, 2))
    close(engine.jacobian(lambda x: x * 2)(empty), np.zeros((0, 2, 0, 2)))
    close(engine.jacobian(lambda x: x[:0])(X), np.zeros((0, 3)))


@each_engine
def test_hessians(engine):
    close(engine.hessian(cubes)(X), np.diag(6 * X))
    blocks = engine.hessian(lambda a, b: (a * a * b).sum(), argnums=(0, 1))(X, V)
    close(blocks, ((np.diag(2 * V), np.diag(2 * X)), (np.diag(2 * X), np.zeros((3, 3)))))
    nested = engine.hessian(lambda p: (p["a"] * p["a"]).sum())({"a": X})
    close(nested, {"a": {"a": 2 * np.eye(3)}})
    close(engine.hessian(lambda x: x**3)(np.array([2.0, 3.0])).ravel()[[0, 7]], np.array([12.0, 18.0]))


@each_engine
def test_hessian_vector_products(engine):
    def f(a: Any, b: Any) -> Any:
        return (g.tanh(a) * a * b).sum()

    hessian = engine.hessian(f, argnums=(0, 1))(X, V)
    t = (np.array([1.0, 2.0, 3.0]), np.array([-1.0, 0.0, 0.5]))
    expected = tuple(row[0] @ t[0] + row[1] @ t[1] for row in hessian)
    close(engine.hvp(f, (X, V), t), expected)
    forward_over_reverse = engine.jvp(engine.grad(f, argnums=(0, 1)), (X, V), t)[1]
    close(forward_over_reverse, expected)


@each_engine
def test_transforms_nest(engine):
    slope = lambda x: engine.jvp(g.sin, (x,), (np.ones(3),))[1]  # noqa: E731
    close(engine.jvp(slope, (X,), (np.ones(3),))[1], -np.sin(X))
    close(engine.grad(lambda x: slope(x).sum())(X), -np.sin(X))
    close(engine.grad(lambda x: engine.vjp(g.exp, x)[1](x)[0].sum())(X), np.exp(X) * (1 + X))
    close(engine.grad(lambda x: engine.hvp(cubes, (x,), (V,))[0].sum())(X), 6 * V)
    close(engine.jacobian(engine.grad(cubes))(X), np.diag(6 * X))
    close(engine.grad(lambda c: engine.jacobian(lambda x: x * x * c)(X).sum())(V), 2 * X)


@each_engine
def test_tangents_of_two_levels_are_not_confused(engine):
    """d/dx [x * d/dy (x + y)] is 1, not 2 (Siskind and Pearlmutter, 2005)."""
    one = np.array(1.0)
    inner = lambda x: x * engine.jvp(lambda y: x + y, (one,), (one,))[1]  # noqa: E731
    close(engine.jvp(inner, (np.array(3.0),), (one,))[1], 1.0)


@each_engine
def test_auxiliary_results_pass_through(engine):
    f = lambda x: (cubes(x), {"twice": x * 2, "n": 3.0})  # noqa: E731
    (value, aux), gradient = engine.value_and_grad(f, has_aux=True)(X)
    close((value, gradient), ((X**3).sum(), 3 * X**2))
    close(aux["twice"], 2 * X)
    gradient, aux = engine.grad(f, has_aux=True)(X)
    close(gradient, 3 * X**2)
    assert float(aux["n"]) == 3


# Arrays, tensors and traces -------------------------------------------------------------------------------------


def test_arrays_in_arrays_out_and_tensors_in_tensors_out():
    for wrap, kind in ((np.asarray, np.ndarray), (dynamic.tensor, dynamic.Tensor)):
        x, v = wrap(X), wrap(V)
        outputs, pullback = dynamic.vjp(g.exp, x)
        results = [outputs, pullback(V), dynamic.jvp(g.exp, (x,), (V,)), dynamic.jacobian(g.exp)(x)]
        results += [dynamic.hessian(cubes)(x), dynamic.hvp(cubes, (x,), (v,))]
        assert all(type(leaf) is kind for leaf in g.tree.leaves(results))
        assert not any(getattr(leaf, "requires_grad", False) for leaf in g.tree.leaves(results))


def test_results_are_part_of_an_outer_tape():
    x = dynamic.tensor(X, requires_grad=True)
    dynamic.jvp(g.exp, (x,), (V,))[1].sum().backward()
    close(x.grad.numpy(), np.exp(X) * V)
    assert not dynamic.no_grad()(lambda: dynamic.jacobian(g.exp)(x))().requires_grad


def test_a_gradient_under_no_grad_is_that_of_a_leaf_too():
    x = dynamic.tensor(X, requires_grad=True)
    with dynamic.no_grad():
        gradient = dynamic.grad(cubes)(x)
    close(gradient.numpy(), 3 * X**2)
    assert not gradient.requires_grad


def test_one_function_in_a_trace_and_symbolic_sizes():
    x = g.TensorSpec(("N",), "float64")

    def everything(x: Any, v: Any) -> Any:
        outputs, pullback = static.vjp(g.exp, x)
        return outputs, pullback(v), static.jvp(g.exp, (x,), (v,))[1], static.hvp(cubes, (x,), (v,)), \
            static.jacobian(lambda x: x * x.sum())(x), static.hessian(cubes)(x)  # fmt: skip

    exe = static.compile(everything, x, x)
    for n in (1, 3, 2):
        a, b = X[:n], V[:n]
        expected = (
            np.exp(a), (np.exp(a) * b,), np.exp(a) * b, (6 * a * b,),
            np.eye(n) * a.sum() + np.outer(a, np.ones(n)), np.diag(6 * a),
        )  # fmt: skip
        close(exe(a, b), expected)


def test_outside_a_trace_what_was_compiled_is_kept():
    traces = []

    def f(x: Any) -> Any:
        traces.append(1)
        return g.tanh(x).sum()

    for _ in range(3):
        static.jvp(f, (X,), (V,))
        static.hvp(f, (X,), (V,))
        _outputs, pullback = static.vjp(f, X)
        pullback(np.array(1.0))
    assert len(traces) == 4
    jacobian = static.jacobian(f)
    jacobian(X), jacobian(V)
    assert len(traces) == 5


def test_a_pullback_is_used_inside_its_trace():
    kept: list[Any] = []

    def f(x: Any) -> Any:
        outputs, pullback = static.vjp(g.exp, x)
        kept.append(pullback)
        return outputs

    static.compile(f, X)
    with pytest.raises((NotDifferentiableError, ControlFlowError), match="after its trace had ended"):
        kept[0](V)


def test_a_pullback_may_be_called_in_the_body_of_a_loop():
    def f(x: Any, rows: Any) -> Any:
        _, pullback = static.vjp(lambda z: g.scan(lambda s, c: (g.sin(s * c), s), z, V[:2])[0], x)
        return g.scan(lambda s, row: (s, pullback(row)[0]), (), rows)[1]

    rows = np.eye(3)
    expected = dynamic.jacobian(lambda z: g.sin(g.sin(z * V[0]) * V[1]))(X)
    close(static.compile(f, X, rows)(X, rows), expected)


# Refusals -------------------------------------------------------------------------------------------------------


REFUSALS = {
    "cotangent structure": (ShapeError, "laid out as", lambda e: e.vjp(g.exp, X)[1]((X,))),
    "cotangent shape": (ShapeError, r"\(2,\) where the outputs have \(3,\)", lambda e: e.vjp(g.exp, X)[1](X[:2])),
    "tangent structure": (ShapeError, "the tangents are laid out as", lambda e: e.jvp(g.exp, (X,), (X, X))),
    "tangent shape": (ShapeError, "jvp: the tangents have the shape", lambda e: e.jvp(g.exp, (X,), (W,))),
    "hvp tangents": (ShapeError, "hvp: the tangents", lambda e: e.hvp(cubes, (X,), (W,))),
    "int primals of vjp": (NotDifferentiableError, "respect to int64", lambda e: e.vjp(lambda x: x * 2, np.arange(3))),
    "int primals of jvp": (NotDifferentiableError, "respect to int64", lambda e: e.jvp(g.abs, (np.arange(3),), (X,))),
    "int outputs": (NotDifferentiableError, "jacobian of int64", lambda e: e.jacobian(g.argmax)(X)),
    "vector for hvp": (NotDifferentiableError, "only scalars", lambda e: e.hvp(g.exp, (X,), (V,))),
    "container": (NotDifferentiableError, "gradient of a tuple", lambda e: e.grad(lambda x: (x.sum(), x))(X)),
    "argnums": (ValueError, "argnums is 2", lambda e: e.grad(cubes, argnums=2)(X)),
    "argnums of jacobian": (ValueError, r"argnums is \(0, 1\)", lambda e: e.jacobian(cubes, argnums=(0, 1))(X)),
    "no pair": (g.GraphError, "returns a pair", lambda e: e.grad(cubes, has_aux=True)(X)),
}  # fmt: skip


@each_engine
@pytest.mark.parametrize("case", REFUSALS)
def test_refusals_say_what_is_wrong_and_where(engine, case):
    kind, words, call = REFUSALS[case]
    with pytest.raises(kind, match=words) as caught:
        call(engine)
    assert "test_transforms.py:" in str(caught.value)


@each_engine
def test_an_argument_asked_for_twice_is_given_twice(engine):
    close(engine.grad(cubes, argnums=(0, -1))(X), (3 * X**2, 3 * X**2))


@each_engine
def test_arguments_by_name_are_not_differentiated(engine: Any) -> None:
    def scaled(x: Any, *, by: Any) -> Any:
        return (x**2 * by).sum()

    close(engine.grad(scaled)(X, by=V), 2 * X * V)
    close(engine.value_and_grad(scaled)(X, by=V), ((X**2 * V).sum(), 2 * X * V))
    close(engine.jacobian(lambda x, by: x * by)(X, by=V), np.diag(V))
    close(engine.hessian(scaled)(X, by=V), np.diag(2 * V))
    close(dynamic.func.grad_and_value(scaled)(X, by=V)[0], 2 * X * V)
    rows = dynamic.func.vmap(lambda x, by: x * by)(dynamic.tensor(X), by=dynamic.tensor(2.0))
    assert rows.tolist() == (2 * X).tolist()

"""Ops of the user's own: in both engines, differentiated, checked, saved and loaded."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic
import graphs
import static
from graphs import op as registry
from graphs.ir import graph_cost
from graphs.testing import check_grads
from tests.helpers.engines import ENGINES, gradients, run

each_engine = pytest.mark.parametrize("engine", ENGINES)


@pytest.fixture(autouse=True)
def _names_of_its_own(monkeypatch):
    """Ops that a test defines are forgotten after it."""
    monkeypatch.setattr(registry, "_registry", registry.registered_ops())


def values(*shape):
    return np.asarray(np.random.default_rng(shape).normal(size=shape))


def swish():
    return graphs.custom_op(
        "swish",
        forward=lambda x, *, beta=1.0: x / (1 + np.exp(-beta * x)),
        spec=lambda x, *, beta: x,
        vjp=lambda g, x, out, beta: g * (graphs.sigmoid(beta * x) * (1 + beta * (x - out))),
    )


def distances():
    """The distance of each of N points to each of K centres, with a parameter `out`."""

    def forward(points, centres, *, out=None):
        return np.sqrt(np.sum((points[:, None] - centres) ** 2, axis=-1), out=out)

    def pull(g, points, centres, out):
        return graphs.expand_dims(g / out, -1) * (graphs.expand_dims(points, 1) - centres)

    return graphs.custom_op(
        "distances",
        forward,
        spec=lambda p, c: graphs.TensorSpec((p.shape[0], c.shape[0]), np.result_type(p.dtype, c.dtype)),
        vjp=(
            lambda g, points, centres, out: graphs.sum(pull(g, points, centres, out), axis=1),
            lambda g, points, centres, out: -graphs.sum(pull(g, points, centres, out), axis=0),
        ),
        cost=lambda p, c, *, out: out.size * p.shape[1] * 3,
    )


@each_engine
@pytest.mark.parametrize("make", [swish, distances])
def test_values_and_gradients_to_second_order(engine, make):
    op = make()
    arrays = (values(4, 3),) if make is swish else (values(4, 3), values(2, 3))
    np.testing.assert_array_equal(run(engine, op, *arrays), op(*arrays))
    check_grads(op, arrays, order=2, engine=ENGINES[engine])


@each_engine
def test_options_have_the_defaults_of_forward(engine):
    op, x = swish(), values(5)
    np.testing.assert_array_equal(run(engine, op, x), run(engine, lambda x: op(x, beta=1.0), x))
    got = run(engine, lambda x: op(x, beta=2.0), x)
    np.testing.assert_allclose(got, x / (1 + np.exp(-2 * x)))
    check_grads(lambda x: op(x, beta=2.0), (x,), order=2, engine=ENGINES[engine])


def test_it_is_one_node_of_both_graphs():
    op = swish()

    def f(x):
        return op(x * 2) + 1

    graph = static.trace(f, values(5))
    assert graph.op_counts() == {"multiply": 1, "swish": 1, "add": 1}
    assert graphs.isomorphic(graph, dynamic.record(f, values(5)))
    assert static.compile(f, values(5)).graph.op_counts()["swish"] == 1


def test_symbolic_sizes_pass_through():
    op = distances()
    exe = static.compile(op, graphs.TensorSpec(("N", 3), "float64"), graphs.TensorSpec(("K", 3), "float64"))
    for n, k in ((0, 2), (1, 1), (5, 3)):
        points, centres = values(n, 3), values(k, 3)
        np.testing.assert_array_equal(exe(points, centres), op(points, centres))
    cost = graph_cost(exe.graph)
    assert cost.at(N=5, K=2).flops == 5 * 2 * 3 * 3


def test_the_default_spec_broadcasts_and_sums_the_gradient_back():
    op = graphs.custom_op(
        "product",
        lambda a, b: a * b,
        vjp=(lambda g, b: g * b, lambda g, a: g * a),
    )
    for module in ENGINES.values():
        check_grads(op, (values(2, 1), values(3)), order=2, engine=module)
        check_grads(lambda x: op(x, 2.0), (values(3),), engine=module)
    assert op(np.ones(2, np.float32), 2.0).dtype == np.float32


def test_a_custom_op_of_many_inputs():
    op = graphs.custom_op(
        "fourth",
        lambda a, b, c, d, e: a + b + c + d * e,
        vjp=[
            lambda g: g,
            None,
            lambda g, c_shape: graphs.reshape(g * 1, c_shape),
            lambda g, e: g * e,
            lambda g, d: g * d,
        ],
    )
    arrays = [values(3) for _ in range(5)]
    for module in ENGINES.values():
        check_grads(op, arrays, order=2, engine=module, argnums=(0, 2, 3, 4))


def test_without_a_rule_there_is_no_gradient():
    op = graphs.custom_op("halves", lambda x: x / 2)
    assert not dynamic.tensor(op(dynamic.tensor([1.0], requires_grad=True))).requires_grad
    (gradient,) = gradients("static", lambda x: graphs.sum(op(x) + x), np.ones(2))
    np.testing.assert_array_equal(gradient, [1, 1])


def test_a_rule_runs_each_time_so_that_a_breakpoint_in_it_is_met():
    met = []

    def rule(g):
        met.append(g.shape)
        return g * 3.0

    triple = graphs.custom_op("triple", lambda x: x * 3.0, spec=lambda x: x, vjp=rule)
    x = dynamic.tensor([1.0, 2.0], requires_grad=True)
    for _ in range(4):
        triple(x).sum().backward()
    assert met == [(2,)] * 4
    assert x.grad.tolist() == [12.0, 12.0]


def test_a_wrong_rule_is_found():
    op = graphs.custom_op("cubed", lambda x: x**3, vjp=lambda g, x: g * x**2 * 2)
    with pytest.raises(AssertionError, match="the gradient of order 1"):
        check_grads(op, (values(3),))


def test_saved_and_loaded_where_it_is_defined(tmp_path, monkeypatch):
    op, x = swish(), values(4)
    exe = static.compile(static.grad(lambda x: graphs.sum(op(x, beta=2.0))), x)
    exe.save(tmp_path / "f.graph")
    np.testing.assert_array_equal(static.load(tmp_path / "f.graph")(x), exe(x))
    held = {name: op for name, op in registry.registered_ops().items() if name != "swish"}
    monkeypatch.setattr(registry, "_registry", held)
    with pytest.raises(graphs.ArtifactError, match="no op is named 'swish'; import the module that defines it"):
        static.load(tmp_path / "f.graph")


def test_what_forward_returns_is_never_the_memory_of_an_input():
    op = graphs.custom_op("itself", lambda x: x[::-1], vjp=graphs.flip)
    x = values(3)
    assert not np.shares_memory(op(x), x)
    exe = static.compile(lambda x: op(x) * 2 + x, x)
    np.testing.assert_array_equal(exe(x), x[::-1] * 2 + x)


# Refusals -------------------------------------------------------------------------------------------------------


def test_a_taken_name_is_refused_but_an_own_op_may_be_defined_again():
    first = swish()
    assert swish() is not first
    with pytest.raises(ValueError, match="an op named 'tanh' exists already"):
        graphs.custom_op("tanh", lambda x: x)


def test_a_rule_that_names_something_unknown_is_refused():
    with pytest.raises(TypeError, match=r"half: a gradient rule asks for y; it may name out, x, x_shape, x_dtype"):
        graphs.custom_op("half", lambda x: x / 2, vjp=lambda g, y: g / 2)
    with pytest.raises(TypeError, match="1 gradient rules for 2 inputs"):
        graphs.custom_op("half", lambda x, y: x / y, vjp=lambda g, y: g / y)
    with pytest.raises(TypeError, match="names its inputs and options"):
        graphs.custom_op("half", lambda *arrays: arrays[0])


@each_engine
def test_a_result_that_is_not_what_the_spec_says_is_named(engine):
    op = graphs.custom_op("summed", lambda x: x.sum(axis=0))
    with pytest.raises(graphs.ShapeError, match=r"summed.*forward gave f64\[3\], its spec says f64\[2,3\]"):
        run(engine, op, values(2, 3))


@each_engine
def test_an_error_in_forward_names_the_op(engine):
    op = graphs.custom_op("inverse", np.linalg.inv, spec=lambda a: a)
    with pytest.raises(graphs.GraphError, match=r"inverse: LinAlgError"):
        run(engine, op, np.zeros((2, 2)))


WORDS = (
    "g",
    "index",
    "shapes",
    "x",
    "y",
    "z",
    "input0",
    "input1",
    "x_shape",
    "x_dtype",
    "out_shape",
    "inputs",
    "attrs",
)
OPTION = """
def forward(a, b, *, {name}=1, scale=1): return a * b * {name} * scale
def of_a(g_, b, {name}, scale): return g_ * b * ({name} * scale)
def of_b(g_, other=2, *, scale, a, {name}): return g_ * a * ({name} * scale)
"""


@each_engine
@pytest.mark.parametrize("name", WORDS)
def test_an_option_may_have_the_name_of_a_word_of_rules(engine, name):
    written = {}
    exec(OPTION.format(name=name), written)
    op = graphs.custom_op("worded", written["forward"], vjp=[written["of_a"], written["of_b"]])
    a, b = np.array([1.0, 2.0]), np.array([3.0, 5.0])
    for _ in range(3):  # the compiled tape learns a call that comes again
        got = gradients(engine, lambda a, b: graphs.sum(op(a, b, **{name: 3}, scale=7)), a, b)
        np.testing.assert_array_equal(got, [21 * b, 21 * a])


@each_engine
@pytest.mark.parametrize("name", ["self", "args", "attrs", "options"])
def test_an_option_may_have_the_name_of_a_parameter_of_calls(engine, name):
    written = {}
    exec(f"def forward(x, *, {name}=2): return x * {name}\ndef rule(g_, {name}): return g_ * {name}", written)
    op = graphs.custom_op("named_as_parameters", written["forward"], vjp=written["rule"])
    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(op(x, **{name: 3}), 3 * x)
    np.testing.assert_array_equal(run(engine, lambda x: op(x, **{name: 3}), x), 3 * x)
    np.testing.assert_array_equal(gradients(engine, lambda x: graphs.sum(op(x, **{name: 3})), x)[0], [3, 3])


def test_an_option_that_is_called_as_what_an_input_has_is_refused():
    with pytest.raises(TypeError, match="a_shape for what an input has; rename"):
        graphs.custom_op("of_a_shape", lambda a, *, a_shape=1: a, vjp=lambda g_, a_shape: g_)
    with pytest.raises(ValueError, match="'index' is a word of gradient rules"):
        registry.Op(
            "of_index",
            np.copy,
            lambda x, *, index: x,
            rules=[lambda g, index: g],
            cost=0,
            family="custom",
            listed=False,
        )

"""The debugging tools of both engines: the first NaN by name and line, node by node, and where gradients stop."""

import threading

import numpy as np
import pytest

import dynamic
import graphs as g
import static
from graphs.analysis import nodes_without_gradient
from graphs.errors import AnomalyError, InplaceError, ShapeError

X = np.array([[1.0, -2.0], [0.0, 4.0]], np.float32)
W = np.array([[1.0, 0.5], [0.25, 1.0]], np.float32)


def line_of(function, offset):
    return f"test_debug.py:{function.__code__.co_firstlineno + offset}"


def logs(p, x):
    hidden = x @ p["w"]
    return g.sum(g.log(g.relu(hidden)))


def length(p, x):
    squares = g.square(x @ p["w"])
    return g.sum(g.sqrt(g.sum(squares, axis=1)))


def looped(p, x):
    def body(state, row):
        state = state + g.sqrt(row @ p["w"])
        return state, g.sum(state)

    return g.sum(g.scan(body, g.zeros(2, np.float32), x)[1])


def dynamic_check(f, *args, **options):
    with dynamic.detect_anomaly(**options):
        return dynamic.value_and_grad(f)(*args)


def static_check(f, *args, **options):
    return static.debug.check(static.compile(static.value_and_grad(f), *args), *args, **options)


CHECKS = pytest.mark.parametrize("check", [dynamic_check, static_check])


@CHECKS
def test_the_first_infinity_is_named_with_op_inputs_and_line(check):
    with pytest.raises(AnomalyError, match=r"log: makes infinity, f32\[2,2\].*input 0 lies in \[0, 4\]") as caught:
        check(logs, {"w": W}, X)
    assert f"({line_of(logs, 2)})" in str(caught.value)


@CHECKS
def test_what_backward_makes_is_put_down_to_the_forward_line(check):
    with pytest.raises(AnomalyError, match="divide: makes infinity") as caught:
        check(length, {"w": W}, np.zeros((2, 2), np.float32))
    assert f"({line_of(length, 2)})" in str(caught.value)


@CHECKS
def test_nan_in_the_body_of_a_loop_is_named_there(check):
    with pytest.raises(AnomalyError, match="sqrt: makes NaN") as caught:
        check(looped, {"w": W}, -abs(X))
    assert f"({line_of(looped, 2)})" in str(caught.value)


@CHECKS
def test_nan_that_comes_with_the_data_is_passed_on_not_made(check):
    with pytest.raises(AnomalyError, match=r"matmul: passes NaN on.*input 0 holds NaN"):
        check(logs, {"w": W}, np.full((2, 2), np.nan, np.float32))


@CHECKS
def test_a_healthy_step_gives_what_it_gives_unchecked(check):
    loss, gradient = check(length, {"w": W}, X)
    expected, expected_gradient = dynamic.value_and_grad(length)({"w": W}, X)
    np.testing.assert_array_equal(loss, expected)
    np.testing.assert_array_equal(gradient["w"], expected_gradient["w"])


@CHECKS
def test_infinity_is_let_pass_where_it_is_meant(check):
    def masked(p, x):
        return g.sum(g.softmax(g.where(x > 0, x @ p["w"], -np.inf), axis=1))

    assert np.isfinite(check(masked, {"w": W}, abs(X) + 1)[0])
    check(lambda p, x: g.sum(p["w"]) + g.sum(g.exp(g.where(x > 0, -np.inf, x))), {"w": W}, X)
    check(logs, {"w": W}, abs(X) * 0 + 1, infinite=False)
    value, _ = check(lambda p, x: g.sum(p["w"]) + g.sum(g.exp(abs(x) * 1e3)), {"w": W}, X, infinite=False)
    assert np.isinf(value)


def test_an_error_in_backward_is_told_with_its_forward_line():
    x = dynamic.tensor([0.5, 1.0], requires_grad=True)

    def changed():
        hidden = g.exp(x)
        hidden *= 2
        hidden.sum().backward()

    with pytest.raises(InplaceError) as caught, dynamic.detect_anomaly():
        changed()
    assert caught.value.__notes__ == [f"in the gradient of exp ({line_of(changed, 1)})"]


def test_detect_anomaly_leaves_nothing_behind_and_nests():
    def overflow():
        return g.exp(dynamic.tensor([1e4]))

    with dynamic.detect_anomaly():
        with pytest.raises(AnomalyError), dynamic.detect_anomaly():
            overflow()
        with pytest.raises(AnomalyError):
            overflow()
    with np.errstate(over="ignore"):
        assert np.isinf(overflow().item())


def test_detect_anomaly_is_a_decorator_and_second_order_keeps_the_line():
    def cube(x):
        return g.sqrt(g.sum(x * x))

    @dynamic.detect_anomaly()
    def curvature(x):
        return dynamic.hessian(cube)(x)

    np.testing.assert_allclose(curvature(np.array([3.0, 4.0])), np.array([[16, -12], [-12, 9]]) / 125)
    with pytest.raises(AnomalyError, match=rf"in the gradient of sqrt.*{line_of(cube, 1)}"):
        curvature(np.zeros(2))


# Node by node


def test_steps_are_all_that_a_call_computes_in_order():
    exe = static.compile(logs, {"w": W}, abs(X))
    steps = list(static.debug.steps(exe, {"w": W}, abs(X)))
    names = [step.node.op.name for step in steps]
    assert names == [node.op.name for node in exe.traced.graph.calls]
    np.testing.assert_array_equal(steps[names.index("matmul")].value, abs(X) @ W)
    assert steps[-1].value == exe({"w": W}, abs(X))
    assert all(step.node.source.startswith("test_debug.py:") for step in steps if step.node.op.name == "log")


def test_a_run_node_by_node_gives_what_a_call_gives_also_with_symbolic_sizes_and_branches():
    def f(x, w):
        rows = g.broadcast_to(w[0], x.shape)
        bigger = g.cond(g.sum(x) > 0, lambda v: v * 2, lambda v: v - 1, x)
        return {"y": bigger + rows, "n": x.shape[0] * g.ones(())}

    exe = static.compile(f, g.TensorSpec(("B", 2), "float32"), W)
    for x in (X, -X[:1], np.concatenate([X, X, X])):
        found, expected = static.debug.run(exe, x, W, visit=lambda step: None), exe(x, W)
        for key in expected:
            np.testing.assert_array_equal(found[key], expected[key])


def test_a_loop_is_visited_as_often_as_it_runs():
    exe = static.compile(looped, {"w": W}, abs(X))
    steps = list(static.debug.steps(exe, {"w": W}, abs(X)))
    assert sum(step.node.op.name == "sqrt" for step in steps) == 2


def test_a_kernel_that_fails_names_op_and_line_node_by_node_too():
    def chosen(table, i):
        return g.take(table, i, axis=0)

    i = np.array([5])
    exe = static.compile(chosen, W, i)
    with pytest.raises(ShapeError, match=rf"take: IndexError.*{line_of(chosen, 1)}"):
        static.debug.run(exe, W, i, visit=lambda step: None)


def test_what_a_failed_trace_had_reached():
    def broken(x, w):
        hidden = g.tanh(x @ w)
        return hidden @ g.ones((7,))

    with pytest.raises(ShapeError) as caught:
        static.compile(broken, X, W)
    nodes = static.debug.nodes_before_error(caught.value)
    assert [node.op.name for node in nodes if node.op.family != "source"][:2] == ["matmul", "tanh"]
    assert static.debug.nodes_before_error(ValueError("elsewhere")) == []


@pytest.mark.parametrize("optimised", [False, True])
def test_nodes_of_fused_groups_and_of_nested_bodies_are_visited(optimised):
    def f(x):
        def body(s, row):
            s = g.cond(g.sum(row) > 0, lambda s: g.tanh(s) + 1, lambda s: s - 1, s)
            return s, g.sum(s)

        return g.sum(g.exp(g.sin(x) * 2) + 1), g.scan(body, g.zeros(()), x)[1]

    x = np.linspace(-1, 1, 1 << 19).reshape(4, -1)
    exe = static.compile(f, x)
    steps = list(static.debug.steps(exe, x, optimised=optimised))
    names = [step.node.op.name for step in steps]
    assert names.count("tanh") == 2
    assert ("fused" in names) is optimised
    tanh = next(step for step in steps if step.node.op.name == "tanh")
    assert [node.op.name for node in tanh.inside] == ["scan", "switch"]
    assert str(tanh) == f"scan > switch > tanh: f64[]  # {line_of(f, 2)}"
    assert all(tanh.values[source] is value for source, value in zip(tanh.node.inputs, tanh.inputs, strict=True))
    for found, expected in zip(
        static.debug.run(exe, x, visit=lambda _: None, optimised=optimised), exe(x), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_steps_are_made_when_they_are_asked_for():
    stops = []
    exe = static.compile(lambda x: g.breakpoint(g.sin(x), hook=stops.append) + 1, X)
    before = threading.active_count()
    steps = static.debug.steps(exe, X)
    assert next(steps).node.op.name == "sin"
    assert not stops
    assert next(steps).node.op.name == "breakpoint"
    assert len(stops) == 1
    steps.close()
    assert threading.active_count() == before
    assert list(steps) == []


def test_what_stops_a_run_comes_out_of_the_steps():
    exe = static.compile(lambda x, i: g.take(g.sin(x), i, axis=0), X, np.array([5]))
    seen = []
    with pytest.raises(ShapeError, match="take"):
        seen += (step.node.op.name for step in static.debug.steps(exe, X, np.array([5])))
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        list(static.debug.steps(static.compile(g.log, X), X * 0))


def test_running_until_an_op_a_line_or_a_condition():
    exe = static.compile(looped, {"w": W}, abs(X))
    args = {"w": W}, abs(X)
    everything = list(static.debug.steps(exe, *args))
    until = static.debug.until
    assert until(exe, *args, op="sqrt").node is next(s.node for s in everything if s.node.op.name == "sqrt")
    assert until(exe, *args, line=line_of(looped, 2)).node.op.name == "matmul"
    second = until(exe, *args, op="sqrt", when=lambda step: step.value.sum() > 2.9)
    np.testing.assert_array_equal(second.value, np.sqrt(abs(X[1]) @ W))
    assert [value.shape for value in second.values.values()][:3] == [(2,), (2,), (2, 2)]
    assert until(exe, *args, op="conv2d") is None


# Where gradients stop


def test_inputs_without_a_gradient_are_named_with_what_stops_it():
    def f(p, x):
        hidden = g.tanh(x @ p["w"]) + g.stop_gradient(p["stopped"])
        return g.sum(hidden * g.astype(p["compared"] > 0, np.float32))

    p = {"w": W, "stopped": W, "compared": W, "unused": W, "fine": W}
    found = nodes_without_gradient(static.trace(lambda p, x: f(p, x) + g.sum(p["fine"]), p, X))
    assert {name: [stop.op.name for stop in stops] for name, stops in found.items()} == {
        "p['stopped']": ["stop_gradient"],
        "p['compared']": ["greater"],
        "p['unused']": [],
    }
    assert found["p['stopped']"][0].source == line_of(f, 1)


def test_gradients_reach_through_control_flow():
    assert nodes_without_gradient(static.trace(looped, {"w": W}, X)) == {}


def test_what_is_computed_and_thrown_away_gets_no_gradient():
    def f(p, x):
        g.sum(p["lost"])
        return g.sum(x @ p["w"])

    assert nodes_without_gradient(dynamic.record(f, {"w": W, "lost": W}, X)) == {"p['lost']": []}

"""Gradients through control flow, against finite differences and between the engines; random nested programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dynamic
import graphs as g
import static
from graphs.errors import NotDifferentiableError
from graphs.testing import check_grads
from tests.helpers.control_flow import DIFFERENTIABLE, LOOPS, ROWS, W, X, Y, agree, arguments, close, each_engine, rnn
from tests.helpers.engines import ENGINES
from tests.helpers.random_control import draw, evaluate
from tests.helpers.slow import mostly_slow

# Gradients against finite differences ---------------------------------------------------------------------------


@each_engine
@pytest.mark.parametrize("name", mostly_slow(DIFFERENTIABLE, 5))
def test_gradients_to_second_order(engine, name):
    f = DIFFERENTIABLE[name]
    check_grads(f, arguments(name, f), order=2, engine=ENGINES[engine])


@pytest.mark.parametrize("name", mostly_slow(DIFFERENTIABLE, 9))
def test_both_engines_agree(name):
    f = DIFFERENTIABLE[name]
    args = arguments(name, f)
    agree(f, *args)
    close(static.jvp(f, args, args), dynamic.jvp(f, args, args))
    close(static.hvp(f, args, args), dynamic.hvp(f, args, args))


@pytest.mark.parametrize("name", LOOPS)
def test_gradients_of_while_loops(name):
    f = LOOPS[name]
    args = arguments(name, f)
    check_grads(f, args, order=1, engine=static)
    check_grads(f, args, order=2, engine=dynamic)
    agree(f, *args)
    close(static.jvp(f, args, args), dynamic.jvp(f, args, args))


@pytest.mark.parametrize("name", LOOPS)
def test_a_second_gradient_of_a_while_loop_is_refused_in_a_graph(name):
    f = LOOPS[name]
    args = arguments(name, f)
    with pytest.raises(NotDifferentiableError, match=r"its gradient has no gradient in a graph .*; use scan") as caught:
        static.hvp(f, args, args)
    assert "control_flow.py:" in str(caught.value)  # the line of the loop


TURNS = [0, 1, 3, 40]


def limited(limit: int) -> Any:
    """A loop whose state is a number and two arrays, and whose body is not finite where it is run past its end."""

    def f(x: Any) -> Any:
        start = (0, x, 0.5)
        turn = lambda s: (s[0] + 1, g.sqrt(25 - s[1] * s[1]) * 0.1 + s[1] * 1.5, s[2] * x.sum())  # noqa: E731
        count, y, z = g.while_loop(lambda s: (s[1] * s[1]).sum() < 20, turn, start, limit=limit)
        return g.sum(y) * z + count

    return f


@pytest.mark.parametrize("limit", mostly_slow(TURNS, 1))
def test_a_loop_with_a_limit_has_gradients_of_any_order(limit):
    f, x = limited(limit), np.array([0.3, 0.2, 0.5])
    agree(f, x)
    close(static.hessian(f)(x), dynamic.hessian(f)(x))
    third = [engine.grad(lambda x, e=engine: g.sum(e.hessian(f)(x)))(x) for engine in (static, dynamic)]
    close(*third)


def test_a_limit_stops_a_loop_after_so_many_turns():
    def count(limit: int) -> Any:
        return lambda x: g.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] * x), (0, x), limit=limit)

    for limit, turns in ((0, 0), (3, 3), (5, 5), (9, 5)):
        for run in (count(limit), static.jit(count(limit))):
            found = run(np.array(2.0))
            assert (int(found[0]), float(found[1])) == (turns, 2.0 ** (turns + 1))
    with pytest.raises(ValueError, match="the limit is -1; give the number of turns that are allowed, 0 or more"):
        count(-1)(np.array(2.0))


def test_jacobians_through_control_flow():
    for f in (
        lambda w: g.scan(lambda s, x: (g.tanh(s @ w + x), s), np.zeros(3), ROWS)[1],
        lambda w: g.while_loop(lambda s: (s * s).sum() < 9, lambda s: s * 1.5 + w.sum(0), w[0]),
        lambda w: g.cond(w.sum() > 0, lambda: w @ w, lambda: w),
    ):
        close(static.jacobian(f)(W), dynamic.jacobian(f)(W))
    close(static.hessian(lambda w: rnn(w, ROWS))(W), dynamic.hessian(lambda w: rnn(w, ROWS))(W))


def test_one_trace_may_be_pulled_through_again_and_again():
    def f(x: Any, y: Any) -> Any:
        outputs, pullback = static.vjp(LOOPS["while_loop"], x, y)
        first, second = pullback(1.0), pullback(2.0)
        return outputs, first, second, static.grad(LOOPS["while_loop"])(x, y), static.grad(DIFFERENTIABLE["cond"])(x, y)

    value, first, second, again, other = static.compile(f, X, Y)(X, Y)
    close((value, first), dynamic.value_and_grad(LOOPS["while_loop"], (0, 1))(X, Y))
    close(second, tuple(2 * a for a in first))
    close(again, first[0])
    close(other, dynamic.grad(DIFFERENTIABLE["cond"])(X, Y))


def test_only_what_is_asked_for_is_differentiated():
    """Data that goes through a scan gets no cotangents, and so its gradient neither stacks nor sums any."""
    data = static.trace(static.grad(rnn), W, ROWS)
    both = static.trace(static.grad(rnn, (0, 1)), W, ROWS)
    rows = [[node.attrs["rows"] for node in graph.calls if node.op.name == "scan"][-1] for graph in (data, both)]
    assert [len(r) for r in rows] == [0, 1]


def test_what_loops_keep_is_not_what_buffers_are_reused_for():
    """The first state of a loop is computed in the arena, which later nodes write to before the gradient reads it."""

    def f(x: Any) -> Any:
        last = g.while_loop(lambda s: s.sum() < 40, lambda s: s * s * 0.5 + 1, (x + 1) * 2)
        return g.exp(g.sin(last) * 3 + g.cos(last)).sum() * g.tanh(last).sum()

    agree(f, np.array([0.5, 1.0, 1.5]))
    for start in (-1.0, 50.0):  # with and without an iteration
        exe = static.compile(
            lambda x: (g.while_loop(lambda s: s < 40, lambda s: s * 2 + 9, x * 2), x * 3), np.array(start)
        )
        held = exe(np.array(start))
        before = [h.copy() for h in held]
        exe(np.array(start + 1))
        close(held, tuple(before))


# Random programs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", mostly_slow(range(100), 5))
def test_random_nested_programs_agree(seed):
    rng = np.random.default_rng(seed)
    program = draw(rng, 3, 2, loops=seed % 2 == 0)
    x, y = rng.uniform(-1, 1, (2, 3))
    f = lambda x, y: g.sum(evaluate(program, [x, y]))  # noqa: E731
    agree(f, x, y)
    close(dynamic.value_and_grad(f)(x, y)[0], evaluate(program, [x, y]).sum())
    if seed % 10 == 0:
        close(static.jvp(f, (x, y), (y, x)), dynamic.jvp(f, (x, y), (y, x)))
    if seed % 10 == 1:
        close(static.hvp(f, (x, y), (y, x)), dynamic.hvp(f, (x, y), (y, x)))


def test_third_order():
    f = lambda x: g.scan(lambda s, _: (s + 0.1 * g.sin(s), ()), x, length=3)[0].sum()  # noqa: E731

    def third(engine: Any) -> Any:
        squared = lambda h: lambda x: (engine.grad(h)(x) ** 2).sum()  # noqa: E731
        return engine.grad(squared(squared(f)))(X)

    close(third(static), third(dynamic))

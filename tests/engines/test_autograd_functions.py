"""Functions with a backward of the user's own, in both engines, to the second order: numbers are PyTorch's.

Most backwards are made up, so that no engine can give what they say by differentiating forward.
"""

from __future__ import annotations

import functools
import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynamic
import graphs as g
import static
from dynamic.autograd.function import once_differentiable
from graphs.errors import ControlFlowError, InplaceError, NotDifferentiableError
from tests.helpers.backends import BACKENDS
from tests.helpers.together import check_each, together

X = np.array([1.0, 2.0])
Loss = Callable[[Any], Any]


def losses(torch: Any) -> dict[str, Loss]:  # noqa: C901  (a table: what is short stands in its row)
    """A loss of two numbers for each situation, over `torch` or what stands for it."""

    def function(forward: Callable[..., Any], backward: Callable[..., Any], setup: Any = None) -> Any:
        members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
        if setup is not None:
            members["setup_context"] = staticmethod(setup)
        return type("Own", (torch.autograd.Function,), members).apply

    def saving(*which: str) -> Any:
        def forward(ctx: Any, x: Any) -> Any:
            out = x * torch.exp(x)
            ctx.save_for_backward(*[{"x": x, "out": out}[name] for name in which])
            return out

        return forward

    def of_both(ctx: Any, g: Any) -> Any:
        x, out = ctx.saved_tensors
        return g * (torch.exp(x) + out)

    def by_attribute(ctx: Any, x: Any) -> Any:
        ctx.scale, ctx.result = 3.0, torch.sin(x)
        return ctx.result

    def two(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x[0], x[1] * 1

    def normed(ctx: Any, a: Any, b: Any) -> Any:
        (x,) = ctx.saved_tensors
        g = torch.stack([a, b])
        return g / torch.sqrt((g * g).sum()) * x**2

    def two_saved(ctx: Any, x: Any) -> Any:
        y = torch.exp(x)
        out = (x * y).sum(), y
        ctx.save_for_backward(x, *out)
        return out

    def of_results(ctx: Any, g: Any, h: Any) -> Any:
        x, total, y = ctx.saved_tensors
        return g * (y + x * y) * total + h * y

    def with_ints(ctx: Any, x: Any) -> Any:
        order, plain = x.argmax(), x * 2
        ctx.mark_non_differentiable(order, plain)
        ctx.save_for_backward(x)
        return plain, x**2, order

    def past_ints(ctx: Any, g: Any, h: Any, _: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * 100 + h * x**3

    def unfilled(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    def of_one(ctx: Any, g: Any, h: Any) -> Any:
        return h**3 if g is None else g

    def changed(ctx: Any, x: Any) -> Any:
        out = torch.nn.functional.relu(x, inplace=True)
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x if out is x else out

    def of_changed(ctx: Any, g: Any) -> Any:
        (out,) = ctx.saved_tensors
        return g * out**2

    def many(ctx: Any, x: Any, scale: float, y: Any) -> Any:
        ctx.save_for_backward(x, y)
        ctx.scale = scale
        return x * y * scale

    def of_many(ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        return g * y**2 * ctx.scale, None, (g * x).sum() if not ctx.needs_input_grad[0] else g * x**2

    def plain(x: Any, power: float = 3.0) -> Any:
        return x**power

    def noted(ctx: Any, inputs: Any, output: Any) -> None:
        x, ctx.power = inputs
        ctx.save_for_backward(x, output)

    def of_noted(ctx: Any, g: Any) -> Any:
        x, out = ctx.saved_tensors
        return g * ctx.power * out / x, None

    def same_twice(ctx: Any, x: Any) -> Any:
        out = x * x
        ctx.save_for_backward(x, out)
        return x * 3, out, out

    def of_same(ctx: Any, f: Any, g: Any, h: Any) -> Any:
        x, out = ctx.saved_tensors
        return f * 7 + g * 2 + h * x * out

    own, twice, results = function(saving("x", "out"), of_both), function(two, normed), function(two_saved, of_results)
    attribute = function(by_attribute, lambda ctx, g: g * ctx.result * ctx.scale)
    ints, one_of_two = function(with_ints, past_ints), function(unfilled, of_one)
    in_place, several = function(changed, of_changed), function(many, of_many)
    apart = function(plain, of_noted, noted)
    same = function(same_twice, of_same)
    passed = function(lambda ctx, x: x, lambda ctx, g: g**2 * 5)
    ones = function(lambda ctx, x: x * 1, lambda ctx, g: g.reshape(1, 2) * torch.tanh(g).reshape(1, 2))

    def through(pair: Callable[..., Any]) -> Loss:
        return lambda x: pair(*twice(x * 2))

    return {
        "saved input and output": lambda x: (own(x) ** 2).sum(),
        "after an op": lambda x: own(x * x).sum(),
        "one input twice": lambda x: several(x * 3, 2.0, x * 3).sum(),
        "attribute": lambda x: (attribute(x) * x).sum(),
        "setup_context, default": lambda x: apart(x).sum() + apart(x, 2.0).sum(),
        "several outputs": through(lambda a, b: 3 * a**2 + 4 * b),
        "one of several outputs": lambda x: (results(x)[1] ** 2).sum(),
        "several saved outputs": lambda x: (results(x)[0] ** 2 + results(x)[1].sum()) * 0.01,
        "non-differentiable": lambda x: (ints(x)[0] * ints(x)[1] + ints(x)[2]).sum(),
        "one result twice": lambda x: (same(x)[0] * same(x)[1] * 3 + same(x)[2] * x).sum(),
        "no zeros": lambda x: (one_of_two(x**2)[1] * x).sum(),
        "in place": lambda x: (in_place(x * 2) * x).sum(),
        "the input itself": lambda x: (passed(x) * x).sum(),
        "a gradient to be summed": lambda x: (ones(x) ** 2).sum(),
    }


def penalty(torch: Any, loss: Loss) -> Loss:
    """What a gradient penalty is: a loss of the gradient."""
    return lambda x: (torch.grad(loss)(x) ** 2).sum()


VALUES: dict[str, tuple[Any, Any, Any]] = {
    "saved input and output": (
        [29.556224, 655.1778],
        [[103.446785, 0.0], [0.0, 1856.337101]],
        [6114.992804, 2432461.717426],
    ),
    "after an op": ([10.873127, 1091.963001], [[43.492509, 0.0], [0.0, 5787.403904]], [945.799181, 12639261.865057]),
    "one input twice": ([81.0, 324.0], [[162.0, 0.0], [0.0, 324.0]], [26244.0, 209952.0]),
    "attribute": ([3.365884, 6.365082], [[12.622065, 0.0], [0.0, 21.823138]], [84.96881, 277.812128]),
    "setup_context, default": ([5.0, 16.0], [[8.0, 0.0], [0.0, 14.0]], [80.0, 448.0]),
    "several outputs": ([7.589466, 10.119289], [[23.178933, 0.0], [-8.0, 10.119289]], [222.4, 204.8]),
    "one of several outputs": ([14.778112, 109.1963], [[29.556224, 0.0], [0.0, 218.3926]], [873.570401, 47695.327793]),
    "several saved outputs": (
        [33.312414, 135.791848],
        [[411.869583, 1475.678632], [1475.678632, 6197.996783]],
        [428210.997462, 1781591.710624],
    ),
    "non-differentiable": ([2.0, 32.0], [[6.0, 0.0], [0.0, 48.0]], [24.0, 3072.0]),
    "one result twice": ([32.0, 248.0], [[64.0, 0.0], [0.0, 752.0]], [4096.0, 372992.0]),
    "no zeros": ([5.0, 44.0], [[10.0, 0.0], [0.0, 68.0]], [2080.0, 2731520.0]),
    "in place": ([10.0, 68.0], [[80.0, 0.0], [0.0, 1088.0]], [1600.0, 147968.0]),
    "the input itself": ([6.0, 22.0], [[15.0, 0.0], [0.0, 25.0]], [840.0, 10560.0]),
    "a gradient to be summed": ([1.928055, 3.997317], [[2.158152, 0.0], [0.0, 1.938424]], [8.524542, 16.064308]),
}
"""The gradient, the Hessian, and the gradient of a gradient penalty at X, as PyTorch 2.13 gives them."""

MODES: dict[str, Callable[[Loss], Loss]] = {
    **{backend: functools.partial(static.jit, backend=backend) for backend in BACKENDS},
    "converted": lambda f: static.jit(f, convert=True),
}


def derivatives(engine: Any, loss: Loss, run: Callable[[Loss], Loss] = lambda f: f) -> list[Any]:
    """The gradient, the Hessian, and the gradient of a gradient penalty, in an engine."""
    wanted = engine.grad(loss), engine.hessian(loss), engine.grad(penalty(engine, loss))
    return [np.asarray(run(f)(X)) for f in wanted]


@together("name", VALUES)
def test_derivatives_are_pytorchs(name):
    loss = losses(dynamic)[name]
    for found, wanted in zip(derivatives(dynamic, loss), VALUES[name], strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("mode", MODES)
def test_a_trace_takes_them(mode):
    def check(name: str) -> None:
        for found, wanted in zip(derivatives(static, losses(dynamic)[name], MODES[mode]), VALUES[name], strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)

    check_each(VALUES, check)


def test_the_numbers_are_those_of_pytorch_where_it_is_installed():
    torch = pytest.importorskip("torch")

    def check(name: str) -> None:
        x, loss = torch.tensor(X, requires_grad=True), losses(torch)[name]
        (g,) = torch.autograd.grad(loss(x), x, create_graph=True)
        again = [torch.autograd.grad(v, x, retain_graph=True)[0] for v in (g[0], g[1], (g**2).sum())]
        found = g.detach(), torch.stack(again[:2]), again[2]
        for one, wanted in zip(found, VALUES[name], strict=True):
            np.testing.assert_allclose(one, wanted, rtol=1e-6, atol=1e-6)

    check_each(VALUES, check)


def own(forward: Callable[..., Any], backward: Callable[..., Any]) -> Any:
    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Own", (dynamic.autograd.Function,), members).apply


def roots(ctx: Any, x: Any) -> Any:
    out = g.sqrt(x)
    ctx.save_for_backward(out)
    return out


ROOT = own(roots, lambda ctx, cotangent: cotangent / ctx.saved_tensors[0])  # twice the derivative


def unread(x: Any) -> Any:
    y = ROOT(x - 1)
    return g.cond(x[0] > 5, y.sum, x.sum)


INSIDE: dict[str, Loss] = {
    "a branch": lambda x: g.cond(x[0] > 0, lambda: ROOT(x).sum(), (x * 2).sum),
    "beside a branch that is not taken": lambda x: g.cond(x[0] > 5, lambda: ROOT(x - 1).sum(), (x * 2).sum),
    "a value that no branch reads": unread,
    "a scan": lambda x: g.fori_loop(0, 3, lambda i, s: ROOT(s) * (i + 1), x).sum(),
    "a loop": lambda x: g.while_loop(lambda s: s[0] < 1.5, lambda s: ROOT(s) + x, x).sum(),
}


@together("place", INSIDE)
def test_a_rule_of_ones_own_runs_inside_of_control_flow(place):
    for run in MODES.values():
        with np.errstate(invalid="ignore"):
            found = run(static.grad(INSIDE[place]))(X)
        np.testing.assert_allclose(found, dynamic.grad(INSIDE[place])(X), rtol=1e-12)


def test_what_forward_and_backward_decide_by_values_is_converted():
    decide = own(lambda ctx, x: x * 2 if x.sum() > 0 else x * 3, lambda ctx, c: c * 5 if c.sum() > 0 else c * 7)
    for sign in (1.0, -1.0):
        loss = lambda x, sign=sign: (decide(x) * sign).sum()  # noqa: E731
        assert static.jit(static.grad(loss), convert=True)(X).tolist() == dynamic.grad(loss)(X).tolist()
    for number in (lambda ctx, x: x * x.sum().item(), lambda ctx, x: x * float(x.sum())):
        with pytest.raises(ControlFlowError, match=r"test_autograd_functions\.py.*keep it a tensor"):
            static.jit(own(number, lambda ctx, c: c))(X)


def test_a_tensor_that_a_trace_reads_has_the_rule_too():
    w = dynamic.tensor(X, requires_grad=True)
    found = static.jit(static.grad(lambda x: ROOT(w * x).sum()))
    assert found(X).tolist() == dynamic.grad(lambda x: ROOT(w * x).sum())(X).tolist()
    assert static.jit(static.grad(lambda x: (paused(x) * x).sum()))(X).tolist() == np.sqrt(X).tolist()


def paused(x: Any) -> Any:
    with dynamic.no_grad():
        return ROOT(x)


def test_a_cotangent_computes_as_a_tensor_does():
    def turned(ctx: Any, c: Any, of_nothing: Any) -> Any:
        return c.transpose(0, 1) + of_nothing.transpose(0, 1)

    pair = own(lambda ctx, x: (x.transpose(0, 1) * 2, x.transpose(0, 1) * 3), turned)
    x = dynamic.tensor([[1.0, 2.0, 5.0], [3.0, 4.0, 6.0]])
    loss = lambda x: pair(x)[0].sum()  # noqa: E731
    assert static.jit(static.grad(loss))(x).tolist() == dynamic.grad(loss)(x).tolist() == [[1, 1, 1], [1, 1, 1]]


def test_what_is_differentiable_once_is_refused_the_second_time():
    once = own(roots, once_differentiable(lambda ctx, c: c / ctx.saved_tensors[0]))
    loss = lambda x: (once(x) ** 2).sum()  # noqa: E731
    for engine in (dynamic, static):
        np.testing.assert_allclose(engine.grad(loss)(X), [2, 2])
        np.testing.assert_allclose(engine.grad(lambda x: once(g.exp(x * 2)).sum())(X), 2 * np.exp(X))
        with pytest.raises(NotDifferentiableError, match="once_differentiable backward has none"):
            engine.hessian(loss)(X)


def test_changes_in_place_are_those_of_a_tensor():
    def double(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(2)

    change = own(double, lambda ctx, c: c * 2)
    leaf = dynamic.tensor(X, requires_grad=True)
    with pytest.raises(InplaceError, match="change of a leaf"):
        change(leaf)
    base = leaf * 1
    with pytest.raises(InplaceError, match="change of a view"):
        change(base[:1])
    y = ROOT(leaf.detach().requires_grad_())
    y.add_(1)
    with pytest.raises(InplaceError, match="Own: a value that backward needs was changed in place"):
        y.sum().backward()
    free = own(lambda ctx, x: x * 2, lambda ctx, c: c * 5)(leaf)
    free.mul_(3)
    free.sum().backward()
    assert leaf.grad.tolist() == [15, 15]


def test_a_trace_follows_a_value_that_forward_changes_through_a_view():
    def changed(ctx: Any, x: Any) -> Any:
        x[1:].mul_(2)
        ctx.mark_dirty(x)
        return x

    def made(ctx: Any, x: Any) -> Any:
        y = x * 1
        y[1:].mul_(2)
        return y

    for change in (own(changed, lambda ctx, c: c * 3), own(made, lambda ctx, c: c * 3)):
        loss = lambda x, change=change: change(x + 0).sum()  # noqa: E731
        for engine in (dynamic, static):
            value, gradient = engine.value_and_grad(loss)(X)
            assert (value, np.asarray(gradient).tolist()) == (5, [3, 3])


def test_a_call_does_not_hold_itself():
    def pair(ctx: Any, x: Any) -> Any:
        out = x * 2, x * 3
        ctx.save_for_backward(*out)
        return out

    x = dynamic.tensor(X, requires_grad=True)
    gc.disable()
    try:
        for call in (ROOT, own(pair, lambda ctx, a, b: a * ctx.saved_tensors[0] + b)):
            outs = call(x) if call is ROOT else call(x)[0]
            held = weakref.ref(outs._data)
            outs.sum().backward()
            del outs
            assert held() is None
    finally:
        gc.enable()


def test_the_name_of_its_backward_is_that_of_the_class():
    x = dynamic.tensor(X, requires_grad=True)
    assert ROOT(x).grad_fn.name() == "OwnBackward"
    assert own(lambda ctx, x: (x, x * 2), lambda ctx, a, b: a)(x)[1].grad_fn.name() == "OwnBackward"

"""The compiled tape holds nothing after a step, whether it ends or fails."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynamic
import graphs as g
from tests.helpers.both_tapes import compiled_only
from tests.helpers.growth import assert_nothing_grows, failing, growth
from tests.helpers.native_model import MODEL, NAN, ZEROS, W, X, loss, raises, watched
from tests.helpers.slow import mostly_slow

pytestmark = pytest.mark.usefixtures("nothing_unusual")


def _name(step: Callable[[], Any]) -> str:
    return step.__name__.strip("_")


def _train() -> Any:
    params, x, y = MODEL
    return dynamic.value_and_grad(loss)(params, x, y)


def _tape() -> None:
    x, w = dynamic.tensor(X, requires_grad=True), dynamic.tensor(W, requires_grad=True)
    h = g.sin(2.0 * x - 1) * (x @ w) / 3
    (h.sum(axis=0) ** 2).mean().backward(retain_graph=True)
    (h + w[0]).sum().backward()
    with dynamic.no_grad():
        assert (h * 2.5).grad_fn is None


def _items() -> None:
    x = dynamic.tensor(X, requires_grad=True)
    several = [x[0], x[1:][0], x[..., 1:3, :][-1], x[None, 2, 0:][0]]
    (g.stack(several, axis=1).sum() + g.concat(several).mean() + x[:, 1].sum()).backward()
    with dynamic.no_grad():
        assert x[0].grad_fn is None


def _several() -> None:
    x, at = dynamic.tensor(X, requires_grad=True), dynamic.tensor(np.array([2, 0]))
    for axis in (0, 1, -1):
        y = g.where(g.take(x, at, axis=axis) > 0, 1.5, g.take(x, at, axis=axis))
        (g.multiply.apply((y, y), {}) + g.clip(y, 0, True) + X[:1, :1]).sum().backward()
    g.roll(x, (1, 2), axis=(0, 1))
    g.pad(x, ((0, 1), (1, 0)), 0.5)


def _no_item() -> Any:
    return dynamic.tensor(X, requires_grad=True)[9]


def _no_key() -> Any:
    return dynamic.tensor(X, requires_grad=True)[0:1, 0:1, 0:1]


def _no_index() -> Any:
    return g.take(dynamic.tensor(X, requires_grad=True), dynamic.tensor(np.array([9])), axis=1)


def _no_stack() -> Any:
    return g.stack([dynamic.tensor(X, requires_grad=True), dynamic.tensor(W)])


def _general_watcher_raises() -> Any:
    operands = dynamic.tensor(X > 1), dynamic.tensor(X, requires_grad=True), 0.5
    g.where.apply(operands, {})  # an op that is new to the compiled tape runs in Python
    with watched(raises):
        return g.where.apply(operands, {})


def _numbers() -> None:
    x = dynamic.tensor(X, requires_grad=True)
    for number in (0, 0.0, -0.0, 2, 2.5, True, NAN):
        (x * number + number - (number - x)).sum().backward()


def _hooks() -> None:
    x = dynamic.tensor(X, requires_grad=True)
    h = x * x
    x.register_hook(lambda gradient: gradient * 2.0)
    h.register_hook(lambda gradient: None)
    h.retain_grad()
    h.sum().backward()
    assert x.grad is not None


def _unlike_arguments() -> Any:
    return dynamic.grad(lambda p, q: g.sum(p["a"] * p["b"][0] * q[0]))({"a": X, "b": [X]}, [X])


def _shared() -> Any:
    return dynamic.grad(lambda p, q: g.sum(p["a"] + p["b"] + q), (0, 1))({"a": X, "b": X}, X)


def _mixed_dtypes() -> None:
    x, half = dynamic.tensor(X, requires_grad=True), dynamic.tensor(X[:1].astype(np.float16), requires_grad=True)
    (x * half + half).sum().backward()


def _no_shape() -> Any:
    return dynamic.tensor(X, requires_grad=True) * dynamic.tensor(W, requires_grad=True)


def _no_axis() -> Any:
    return dynamic.tensor(X, requires_grad=True).sum(axis=7)


def _no_number() -> Any:
    return dynamic.tensor(np.ones(2, np.int64)) * 2**70


def _hook_raises() -> None:
    x = dynamic.tensor(X, requires_grad=True)
    h = g.sin(x)
    h.register_hook(raises)
    (h * x).sum().backward()


def _leaf_hook_raises() -> None:
    x = dynamic.tensor(X, requires_grad=True)
    x.register_hook(raises)
    (x * x).sum().backward()


def _freed_twice() -> None:
    x = dynamic.tensor(X, requires_grad=True)
    y = (x * x * 2.0).sum()
    y.backward()
    y.backward()


def _kernel_raises_on_the_way_back() -> None:
    x = dynamic.tensor(ZEROS, requires_grad=True)
    y = g.abs(g.sqrt(x))
    with np.errstate(all="raise"):
        y.backward(ZEROS + 1)


def _kernel_raises() -> Any:
    # Of an array that is made in the call NumPy 2.4 loses a reference to the dtype.
    with np.errstate(all="raise"):
        return g.log(dynamic.tensor(ZEROS, requires_grad=True))


def _watcher_raises() -> Any:
    with watched(raises):
        return g.sin(dynamic.tensor(X, requires_grad=True))


def _watcher_raises_on_the_way_back() -> None:
    x = dynamic.tensor(X, requires_grad=True)
    y = (g.sin(x) * x * x).sum()
    with watched(raises):
        y.backward()


def _changed_in_place() -> None:
    x = dynamic.tensor(X, requires_grad=True)
    h = x * 2.0
    y = (h * h).sum()
    h += 1.0
    y.backward()


def _function_raises() -> Any:
    return dynamic.grad(lambda p: raises(p["a"] * 2.0))({"a": X})


def _ints() -> Any:
    return dynamic.grad(lambda p: g.sum(p["a"]))({"a": X, "b": np.arange(3)})


STEPS = (_train, _tape, _items, _several, _numbers, _hooks, _unlike_arguments, _shared, _mixed_dtypes)
FAILING = {
    _no_shape: g.ShapeError,
    _no_axis: g.ShapeError,
    _no_item: g.ShapeError,
    _no_key: g.ShapeError,
    _no_index: g.ShapeError,
    _no_stack: g.ShapeError,
    _general_watcher_raises: ZeroDivisionError,
    _no_number: g.DTypeError,
    _hook_raises: ZeroDivisionError,
    _leaf_hook_raises: ZeroDivisionError,
    _freed_twice: g.NotDifferentiableError,
    _kernel_raises: FloatingPointError,
    _kernel_raises_on_the_way_back: FloatingPointError,
    _watcher_raises: ZeroDivisionError,
    _watcher_raises_on_the_way_back: ZeroDivisionError,
    _changed_in_place: g.InplaceError,
    _function_raises: ZeroDivisionError,
    _ints: g.NotDifferentiableError,
}


@compiled_only
@pytest.mark.parametrize("step", mostly_slow(STEPS, 2), ids=_name)
def test_a_step_holds_nothing_afterwards(step: Callable[[], Any]) -> None:
    assert_nothing_grows(step)


@compiled_only
@pytest.mark.parametrize("step", mostly_slow(FAILING, 3), ids=_name)
def test_a_step_that_fails_holds_nothing_afterwards(step: Callable[[], Any]) -> None:
    assert_nothing_grows(lambda: failing(step, FAILING[step]))


def test_a_leak_is_noticed() -> None:
    held: list[Any] = []
    found = growth(lambda: held.append((None, [])), 2000)
    assert found["references"] >= 1000 or sys.version_info >= (3, 12)  # where None is immortal
    assert found["objects"] >= 1000
    assert found["bytes"] >= 16 * 2000

"""Rules of a user's op may read what changes: they run each time, where those of the library are written down once."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dynamic
import graphs as g
from graphs import op as registry
from graphs.custom import custom_op
from graphs.op import is_ours
from graphs.ops import families
from graphs.spec import TensorSpec

_numbers = itertools.count()
factor = 1.0  # which the rules read


def scale() -> float:
    return factor


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """No op of a test is left in the registry, and the factor is 1 again."""
    global factor  # noqa: PLW0603
    before = registry.registered_ops()
    yield
    factor = 1.0
    for name in set(registry.registered_ops()) - set(before):
        del registry._registry[name]


def name() -> str:
    return f"own_{next(_numbers)}"


def of_one(read: Callable[[], float]) -> Any:
    return families.elementwise(name(), np.negative, lambda g_: g.multiply(g_, read()), doc="-x")


def of_two(read: Callable[[], float]) -> Any:
    rules = (lambda g_, y: g.multiply(g.multiply(g_, y), read()), lambda g_, x: g_ * x)
    op = families.elementwise(name(), np.multiply, *rules, doc="x * y")
    return lambda x: op(x, np.ones(3))


def beside_a_number(read: Callable[[], float]) -> Any:
    rules = (lambda g_: g.multiply(g_, read()), lambda g_: g_)
    op = families.elementwise(name(), np.add, *rules, doc="x + y")
    return lambda x: op(x, 2.0)


def reducing(read: Callable[[], float]) -> Any:
    def rule(g_: Any, x_shape: Any) -> Any:
        return g.multiply(g.broadcast_to(g_, x_shape), read())

    def kernel(x: Any, *, axis: Any, keepdims: bool, out: Any = None) -> Any:
        return np.sum(x, axis=axis, keepdims=keepdims, out=out)

    return families.reduction(name(), kernel, rule, dtype=lambda dtype: dtype, doc="the sum")


def moving(read: Callable[[], float]) -> Any:
    def prepare(x: Any, /) -> Any:
        return (x,), {"times": read()}

    def kernel(x: Any, *, times: float, out: Any = None) -> Any:
        return np.multiply(x, times, out=out)

    return families.movement(
        name(),
        kernel,
        lambda x, *, times: TensorSpec(x.shape, x.dtype),
        lambda g_, times: g_ * times,
        prepare=prepare,
        doc="the same",
    )


def custom(read: Callable[[], float]) -> Any:
    return custom_op(name(), lambda x: x * 1.0, vjp=lambda g_: g.multiply(g_, read()))


MADE = [of_one, of_two, beside_a_number, reducing, moving, custom]


def gradient(f: Any) -> float:
    x = dynamic.tensor(np.full(3, 2.0), requires_grad=True)
    g.sum(f(x)).backward()
    assert x.grad is not None
    return float(x.grad[0])


def in_a_batch(f: Any) -> float:
    x = dynamic.tensor(np.full(3, 2.0), requires_grad=True)
    with dynamic.batched():
        y = g.sum(f(x))
    y.backward()
    assert x.grad is not None
    return float(x.grad[0])


def by_a_transform(f: Any) -> float:
    return float(dynamic.grad(lambda x: g.sum(f(x)))(np.full(3, 2.0))[0])


@pytest.mark.parametrize("run", [gradient, in_a_batch, by_a_transform])
@pytest.mark.parametrize("made", MADE)
def test_a_rule_reads_what_is_there_when_it_runs(made: Any, run: Callable[[Any], float]) -> None:
    global factor  # noqa: PLW0603
    by_global, held = made(scale), [1.0]
    by_closure = made(lambda: held[0])
    found = []
    for value in (1.0, 2.0, 2.0, -0.5, 3.0):
        factor = held[0] = value
        found.append((run(by_global), run(by_closure)))
    assert found == [(value, value) for value in (1.0, 2.0, 2.0, -0.5, 3.0)]


def test_the_rules_of_the_library_are_told_from_others() -> None:
    for op in (op for op in registry.registered_ops().values() if op.family != "custom"):  # other tests make some
        assert all(rule.is_ours for rule in op.rules if rule), op
        assert op.prepare is None or is_ours(op.prepare), op
    own = custom_op(name(), lambda x: np.sin(x) * 1, vjp=lambda g_, x: g.multiply(g_, g.cos(x)))
    assert [rule.is_ours for rule in own.rules if rule] == [False]
    assert not is_ours(np.sin)
    assert not is_ours(print)

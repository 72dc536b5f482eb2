"""Functions with Python's own control flow, converted: the same values and gradients as in the dynamic engine."""

from __future__ import annotations

import traceback
from typing import Any

import numpy as np
import pytest

import dynamic
import graphs
import static
from graphs.errors import ControlFlowError, ShapeError

INPUTS = [np.array(row) for row in ([1.0, -0.5, 2.0], [-3.0, -2.0, 0.5], [0.1, 0.2, -0.4])]


def check(f: Any, inputs: Any = INPUTS) -> Any:
    """The converted function agrees with the plain one, in value and gradient; one compilation serves all inputs."""
    step = static.jit(static.value_and_grad(f), convert=True)
    for x in inputs:
        for found, wanted in zip(step(x), dynamic.value_and_grad(f)(x), strict=True):
            np.testing.assert_allclose(found, np.asarray(wanted), rtol=1e-10)
    assert step.stats.compiles == 1
    return step


def branch_on_sum(x: Any) -> Any:
    if graphs.sum(x) > 0:
        y = x * 2
    else:
        y = x - 2
    return graphs.sum(y)


def early_return(x: Any) -> Any:
    for value in x:
        if value < -1:
            return value * 3
        if value > 1:
            break
    else:
        return graphs.sum(x)
    return graphs.sum(x * x)


def newton(x: Any) -> Any:
    y, rounds = graphs.sum(x * x), 0
    target = y
    while abs(y * y - target) > 1e-10:
        y = (y + target / y) / 2
        rounds += 1
    return y * rounds


class Counter:
    """An object whose attributes a loop writes to."""

    def __init__(self) -> None:
        self.total, self.seen = 0.0, [0, 0]

    def add(self, value: Any) -> None:
        if value > 0:
            self.total = self.total + value
            self.seen[0] += 1
        else:
            self.seen[1] += 1


def writes(x: Any) -> Any:
    counter = Counter()
    rest = graphs.sum(x * x)
    while rest > 0.5:
        counter.add(rest - 1)
        rest = rest / 2
    return counter.total * counter.seen[0] - counter.seen[1] * rest


def nested_function(x: Any) -> Any:
    count = 1

    def bump(value: Any) -> Any:
        nonlocal count
        if value > 0:
            count += 1
        return value * count

    return sum(bump(value) for value in x)


@pytest.mark.parametrize("f", [branch_on_sum, early_return, newton, writes, nested_function], ids=lambda f: f.__name__)
def test_python_control_flow_agrees_with_the_dynamic_engine(f: Any) -> None:
    check(f)


def test_lambdas_at_one_line_are_told_apart() -> None:
    first, second = lambda x: graphs.sum(x) if x[0] > 0 else x[1], lambda x: x[0] if x[1] > 0 else graphs.sum(x * x)
    check(first)
    check(second)


def test_numbers_stay_python_numbers() -> None:
    def f(x: Any) -> Any:
        n = 7
        if graphs.sum(x) > 0:
            n = 3
        small = graphs.astype(x, np.float32) * 0.1
        for _ in range(n):
            small = small * (n // 2)
        return graphs.sum(small) + n / 2

    step = check(f)
    assert step(INPUTS[0])[0].dtype == np.dtype(np.float32)


def test_why_names_what_was_converted_and_what_not() -> None:
    @static.plain
    def half(x: Any) -> Any:
        return x / 2

    def f(x: Any) -> Any:
        return half(graphs.sum(x)) if x[0] > 0 else graphs.sum(x)

    step = static.jit(f, convert=True)
    step(INPUTS[0])
    names = {one.name.split(".")[-1]: one.reason for one in static.why(step).functions}
    assert names == {"f": ""}
    with pytest.raises(ValueError, match="call it first"):
        static.why(half)


def test_a_function_of_numpys_own_is_converted_as_it_is() -> None:
    assert static.jit(np.median, convert=True)(np.array([1, 4, 2, 3])) == 2.5
    with pytest.raises(ValueError, match="call it first"):
        static.why(np.median)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: graphs.sum(x) if x[0] > 0 else (x, x),
        lambda x: x if x[0] > 0 else x[1:],
        lambda x: [value for value in x if value > 0],
        lambda x: f"{x[0]}",
    ],
)
def test_what_no_graph_can_hold_is_refused_with_the_line(f: Any) -> None:
    with pytest.raises(ControlFlowError, match=r"test_convert\.py:\d+"):
        static.compile(f, INPUTS[0], convert=True)


def test_a_refusal_cannot_be_swallowed() -> None:
    def f(x: Any) -> Any:
        try:
            y = x[:2] if x[0] > 0 else x
        except Exception:  # noqa: BLE001  (as users do)
            y = x * 5
        return graphs.sum(y)

    with pytest.raises(ControlFlowError, match="one structure, shape and dtype"):
        static.jit(f, convert=True)(INPUTS[0])


_calls = {"count": 0}


def test_state_that_outlives_the_call_is_refused_and_put_back() -> None:
    def f(x: Any) -> Any:
        _calls["count"] += 1
        return graphs.sum(x) * _calls["count"]

    with pytest.raises(ControlFlowError, match="lasts beyond the call"):
        static.jit(f, convert=True)(INPUTS[0])
    assert _calls == {"count": 0}


def test_an_error_shows_the_line_of_the_user() -> None:
    def f(x: Any) -> Any:
        if x[0] > 0:
            y = x @ np.ones((7, 2))
        else:
            y = x
        return y

    with pytest.raises(ShapeError) as caught:
        static.jit(f, convert=True)(INPUTS[0])
    lines = [frame.line for frame in traceback.extract_tb(caught.value.__traceback__) if frame.filename == __file__]
    assert lines[-1] == "y = x @ np.ones((7, 2))"


def test_a_node_of_control_flow_is_at_the_line_that_decides() -> None:
    def f(x: Any) -> Any:
        if graphs.sum(x) > 0:
            x = x * 2

        while graphs.sum(x) > 3:
            x = x / 2
        for step in range(2):
            if graphs.sum(x) < step:
                break
        if graphs.max(x) > 5:
            return x
        return x * 3

    start = f.__code__.co_firstlineno
    nodes = [node for node in static.trace(static.converted(f), INPUTS[0]).nodes if node.subgraphs]
    assert [(node.op.name, int(node.source.rpartition(":")[2]) - start) for node in nodes] == [
        ("switch", 1),
        ("while_loop", 4),
        ("switch", 6),  # whether there is a second round
        ("switch", 9),
    ]


def test_a_converted_function_runs_in_a_loop_of_its_caller() -> None:
    def halved(x: Any) -> Any:
        return x / 2 if graphs.max(x) > 1 else x * 3

    def f(x: Any) -> Any:
        return graphs.sum(graphs.fori_loop(0, 3, lambda _, y: halved(y), x))

    check(f)


def test_loops_of_so_many_rounds_have_gradients_of_any_order() -> None:
    def growing(x: Any) -> Any:
        y, rounds = x * 1.0, 0
        while graphs.sum(y * y) < 30:
            y = y * 1.5 + x * x
            rounds += 1
        return graphs.sum(y * y) + rounds

    second = static.jit(static.hessian(static.converted(growing, max_rounds=20)))
    for x in INPUTS:
        np.testing.assert_allclose(second(x), dynamic.hessian(growing)(x), rtol=1e-9)
    short = static.jit(static.converted(growing, max_rounds=2))
    big = 8 * INPUTS[0]  # which takes no round
    np.testing.assert_allclose(short(big), growing(big), rtol=1e-12)
    with pytest.raises(ControlFlowError, match=r"more than the 2 rounds that max_rounds allows.*test_convert\.py:\d+"):
        short(INPUTS[2])

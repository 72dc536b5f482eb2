"""Every part of a compilation takes time in proportion to the nodes: shown by the lines of Python that it runs.

Lines are the same on every machine and in every run. The shapes are those that a part was once quadratic in, and those
that it would show in first. What a built-in function does inside one line is not seen: `benchmarks.compile_time` is.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphs as g
import static
from benchmarks import deep
from graphs.ir import Node
from static import clock, memory
from static.memory import planner, schedule
from static.passes import pipeline
from static.passes.views import eliminate_views
from tests.helpers.slow import mostly_slow

NODES = 100
GROWTH = 2.3  # of lines, where nodes double: quadratic are 4
FEW = 2000  # lines, less of which say nothing
SEARCH = {"plan": 200_000}  # lines for a search that small instances get, and large ones do not
PHASES = {"trace", "differentiate", "schedule", "lower", "plan", "bind", "save", "load"}


def lines_by_phase(run: Callable[[], Any]) -> Counter[str]:
    """How many lines of Python run in each phase of `static.clock`, what is called from there included."""
    lines: Counter[str] = Counter()

    def count(_frame: Any, event: str, _arg: Any) -> Any:
        if event == "line":
            lines[clock.current()] += 1
        return count

    before = sys.gettrace()
    sys.settrace(lambda *_: count)
    try:
        run()
    finally:
        sys.settrace(before)
    return lines


def compiled(name: str, steps: int, file: Path) -> Counter[str]:
    f, args = deep.program(name, steps)

    def run() -> None:
        executable = static.compile(f, *args)
        executable.report()
        str(executable.graph)
        executable.save(file)
        static.load(file)

    return lines_by_phase(run)


@pytest.mark.parametrize("nodes", [NODES, pytest.param(4 * NODES, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", mostly_slow(deep.SHAPES, 1))
def test_twice_the_nodes_take_twice_the_lines(name, nodes, tmp_path):
    small, middle, large = (compiled(name, deep.steps(name, nodes) * k, tmp_path / "graph") for k in (1, 2, 4))
    assert {*PHASES, *(one.__name__ for one in pipeline.DEFAULT)} <= {*large}
    lines = {part: (small[part], middle[part], most) for part, most in large.items() if most > FEW}
    assert {part: n for part, n in lines.items() if n[1] > GROWTH * n[0] + SEARCH.get(part, 0)} == {}
    assert {part: n for part, n in lines.items() if n[2] > GROWTH * n[1] + SEARCH.get(part, 0)} == {}


@pytest.mark.slow
def test_a_quadratic_pass_is_seen():
    def quadratic(graph: Any) -> Any:
        for end in range(len(graph)):
            for node in graph.nodes[:end]:
                assert node.spec.ndim <= 1
        return graph

    def lines(steps: int) -> int:
        f, args = deep.program("tanh", steps)
        return lines_by_phase(lambda: static.compile(f, *args, passes=[quadratic]))["quadratic"]

    assert lines(100) > 3 * lines(50)


# Parts of it that are fast, so that what is quadratic in them shows late in the whole ------------------------------


def joined(count: int, read: bool = False, cut: bool = False) -> g.Graph:
    """Values that a concat reads, and before that others too, or whoever reads the concat in parts."""

    def f(x: Any) -> Any:
        values = [g.sin(x * float(i)) for i in range(count)]
        before = [g.exp(value) for value in values if read]
        whole = g.concat(values)
        return [*before, g.cos(whole), *(g.tanh(whole[2 * i : 2 * i + 2]) for i in range(count) if cut)]

    return static.trace(f, np.ones(2))


def bytes_of(graph: g.Graph) -> dict[Node, int]:
    return {node: int(node.spec.nbytes) for node in graph.nodes if node.inputs}


def flow_of(graph: g.Graph) -> schedule.Flow:
    return schedule.Flow(graph, schedule.views(graph.nodes).owner, bytes_of(graph))


def eager(count: int) -> Callable[[], Any]:
    graph = joined(count, read=True)
    return lambda: flow_of(graph).eager(range(len(graph)))


def demanded(count: int) -> Callable[[], Any]:
    graph = joined(count)
    return lambda: flow_of(graph).demand_order()


def without_views(count: int) -> Callable[[], Any]:
    graph = joined(count, cut=True)
    return lambda: eliminate_views(graph)


def differentiated(count: int) -> Callable[[], Any]:
    def loss(xs: list[Any]) -> Any:
        return g.sum(g.concat(xs))

    return lambda: static.trace(static.value_and_grad(loss), [np.ones(2)] * count)


def with_holes(count: int) -> Callable[[], Any]:
    """Every other buffer ends while the rest live on, each hole of another size; then all are filled."""
    lives = [(i, 3 * count if i % 2 else count, 8 * (count - i)) for i in range(count)]
    later = [(count + i, 3 * count, 8 * (count - i)) for i in range(0, count, 2)]
    return lambda: memory.best_fit([*lives, *later])


def in_stretches(count: int) -> Callable[[], Any]:
    """Stretches in which buffers fit together badly, but less badly than in the first one."""
    one = [(0, 3, 4), (2, 6, 8), (5, 8, 4), (1, 5, 4), (4, 9, 8)]
    lives = [(10 * k + lower, 10 * k + upper, size) for k in range(count) for lower, upper, size in one]
    return lambda: planner.improve([*lives, (-10, 0, 20)], [40 * (i % 5) for i in range(len(lives) + 1)], None)


def planned(count: int) -> Callable[[], Any]:
    lives = [(i, i + 2 + i * 7919 % 101, 8 + i * 7919 % 1009) for i in range(4 * count)]
    return lambda: memory.plan(lives)


PARTS = {
    "eager": eager,
    "demanded": demanded,
    "eliminate_views": without_views,
    "differentiate": differentiated,
    "best_fit": with_holes,
    "improve": in_stretches,
    "plan": planned,
}


@pytest.mark.parametrize("name", mostly_slow(PARTS, 3))
def test_a_part_takes_twice_the_lines_for_twice_as_much(name):
    small, large = (lines_by_phase(PARTS[name](count)).total() for count in (250, 500))
    assert small > 250
    assert large < GROWTH * small


# The shapes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", deep.SHAPES)
def test_the_shapes_are_about_as_large_as_they_say(name):
    f, args = deep.program(name, deep.steps(name, 2000))
    assert 1400 < len(static.trace(f, *args)) < 2600


@pytest.mark.parametrize("name", ["chain", "row", "joined", "sizes"])
def test_the_shapes_compute_what_they_say(name):
    shape = deep.SHAPES[name]
    loss = shape.make(7)
    value, gradient = static.compile(static.value_and_grad(loss), *shape.args)(*shape.args)
    assert value == pytest.approx(loss(*shape.args))
    step = np.zeros_like(gradient)
    step[1] = 1e-6
    slope = (loss(shape.args[0] + step) - loss(shape.args[0] - step)) / 2e-6
    np.testing.assert_allclose(gradient[1], slope, rtol=1e-6)


# Time -------------------------------------------------------------------------------------------------------------


def test_the_report_tells_the_seconds_of_each_phase():
    exe = static.compile(static.value_and_grad(lambda x: g.sum(g.tanh(x) ** 2)), np.ones(3))
    seconds = exe.report().seconds
    names = {*PHASES - {"save", "load"}, *(one.__name__ for one in pipeline.DEFAULT)}
    assert {*seconds} == names
    assert all(s >= 0 for s in seconds.values())
    last = str(exe.report()).rpartition("\n  compiled")[2]
    assert max(map(len, str(exe.report()).splitlines())) <= 80
    assert last.startswith(f" in {sum(seconds.values()) * 1e3:,.1f} ms of CPU: ")
    slowest = max(seconds, key=lambda name: seconds[name])
    assert f": {slowest} " in last


def test_a_phase_does_not_count_the_phases_inside_it(monkeypatch):
    now = iter([0.0, 1.0, 4.0, 10.0])
    monkeypatch.setattr(clock.time, "thread_time", lambda: next(now))
    seconds: clock.Seconds = {}
    with clock.adding_to(seconds), clock.phase("outer"):
        with clock.phase("inner"):
            assert clock.current() == "inner"
        assert clock.current() == "outer"
    assert seconds == {"inner": 3.0, "outer": 7.0}
    assert clock.current() == ""


def test_the_plans_of_later_sizes_count():
    exe = static.compile(lambda x: g.sum(g.tanh(x) * 2), g.TensorSpec(("N",), "float64"))
    assert "plan" not in exe.report().seconds
    exe(np.ones(5))
    assert exe.report().seconds["plan"] > 0


def test_a_compilation_inside_a_trace_has_seconds_of_its_own():
    def f(x: Any) -> Any:
        inner = static.compile(lambda y: y + 1, np.ones(2))
        assert inner.report().seconds["lower"] > 0
        return x * float(inner(np.ones(2))[0])

    outer = static.compile(f, np.ones(2), passes=())
    assert {*outer.report().seconds} == {"trace", "schedule", "lower", "plan", "bind"}


@pytest.mark.slow
def test_a_memory_budget_for_twice_the_nodes_takes_twice_the_lines():
    x = np.full(64, 0.5)

    def lines(steps: int) -> int:
        def loss(x: Any) -> Any:
            for _ in range(steps):
                x = g.tanh(x * x)
            return g.sum(x)

        step = static.value_and_grad(loss)
        budget = static.compile(step, x, passes=pipeline.SIMPLIFY).plan.peak // 2
        found: list[Any] = []
        counted = lines_by_phase(
            lambda: found.append(static.compile(step, x, passes=pipeline.SIMPLIFY, memory_budget=budget))
        )
        assert found[0].plan.peak <= budget
        return counted["recompute"]

    small, large = lines(30), lines(60)
    assert FEW < small < large < GROWTH * small

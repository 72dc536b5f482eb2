"""Native compilation takes time in proportion to the nodes: shown by the lines of Python that it runs."""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np
import pytest

import graphs as g
import static
from benchmarks import deep
from static import clock
from tests.helpers.slow import mostly_slow

pytest.importorskip("llvmlite", reason="native code needs llvmlite")

from static.native import grouping

NODES = 600
GROWTH = 2.3  # of lines, where nodes double: quadratic are 4
PHASES = ("group", "lower", "bind")


def lines_by_phase(name, nodes):
    f, args = deep.program(name, deep.steps(name, nodes))
    lines = Counter()

    def count(_frame, event, _arg):
        if event == "line":
            lines[clock.current()] += 1
        return count

    before = sys.gettrace()
    sys.settrace(lambda *_: count)
    try:
        static.compile(f, *args, backend="native")
    finally:
        sys.settrace(before)
    return lines


@pytest.mark.parametrize("name", mostly_slow(deep.SHAPES, 1))
def test_each_phase_grows_with_the_nodes(name):
    few, many = (lines_by_phase(name, nodes) for nodes in (NODES, 2 * NODES))
    for phase in PHASES:
        assert few[phase] > 100, f"{phase} was not counted"
        assert many[phase] < GROWTH * few[phase], f"{name}: {phase}"


def steps(numbers):
    def loss(x):
        for number in numbers:
            x = g.tanh(x * number) + number / 2
        return g.sum(x)

    return static.value_and_grad(loss)


def test_code_that_differs_in_floats_alone_is_the_same():
    x, rng = np.ones((4, 25), "f4"), np.random.default_rng(0)
    one, other = (static.compile(steps(rng.random(100)), x, backend="native") for _ in range(2))
    assert {kernel.recipe for kernel in one.kernels} == {kernel.recipe for kernel in other.kernels}
    assert len(one.kernels) < 10, "parts of a long chain do the same"


def test_a_chain_that_is_cut_is_cut_into_short_groups():
    x = np.ones(50, "f4")
    (whole,) = static.compile(steps([0.5] * 10), x, backend="native").kernels
    assert len(whole.recipe.steps) > grouping.OF_MANY
    for kernel in static.compile(steps([0.5] * 100), x, backend="native").kernels:
        assert len(kernel.recipe.steps) <= grouping.OF_MANY

"""Native compilation takes time in proportion to the nodes: shown by the lines of Python that it runs."""

from __future__ import annotations

import sys
from collections import Counter

import pytest

import static
from benchmarks import deep
from static import clock
from tests.helpers.slow import mostly_slow

pytest.importorskip("llvmlite", reason="native code needs llvmlite")

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

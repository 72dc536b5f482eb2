"""Graphs deeper than the stack: nothing in either engine recurses over a graph. No time is asserted.

The stack of C ends at some 100,000 ops, that of Python at a thousand.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import numpy as np
import pytest

import dynamic
import static
from static.passes import pipeline

DEPTH = 100_000
BEYOND_PYTHON = 4_000
GROWTH = 1.00001


def chain(x: Any, depth: int = DEPTH) -> Any:
    for _ in range(depth):
        x = x * GROWTH
    return x.sum()


EXPECTED = GROWTH**DEPTH


def test_the_depth_is_beyond_the_stack():
    assert sys.getrecursionlimit() * 10 < DEPTH
    assert sys.getrecursionlimit() * 2 < BEYOND_PYTHON


def test_the_dynamic_engine_goes_down_and_back():
    x = dynamic.tensor(np.ones(2), requires_grad=True)
    loss = chain(x)
    assert dynamic.tape_stats(loss).nodes == DEPTH + 1
    loss.backward()
    np.testing.assert_allclose(x.grad.numpy(), EXPECTED, rtol=1e-9)
    assert loss.item() == pytest.approx(2 * EXPECTED)


def test_a_deep_tape_that_is_dropped_is_freed_without_recursion():
    x = dynamic.tensor(np.ones(2), requires_grad=True)
    loss = chain(x)
    del loss
    x.sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_a_tape_of_many_paths_visits_every_entry_once():
    """2**1000 paths, 3000 entries."""
    x = dynamic.tensor(np.ones(1), requires_grad=True)
    h = x
    for _ in range(1000):
        h = h * 0.25 + h * 0.25
    assert dynamic.tape_stats(h).nodes == 3000
    h.sum().backward()
    assert x.grad.item() == 0.5**1000


@pytest.mark.parametrize("depth", [BEYOND_PYTHON, pytest.param(DEPTH, marks=pytest.mark.slow)])
def test_the_static_engine_goes_down_and_back(depth: int):
    # The rungs above would make one product of the chain.
    step = static.value_and_grad(partial(chain, depth=depth))
    exe = static.compile(step, np.ones(2), passes=pipeline.SIMPLIFY)
    assert len(exe.graph) > depth
    value, gradient = exe(np.ones(2))
    assert value == pytest.approx(2 * GROWTH**depth)
    assert exe.plan.peak <= 4 * 64  # however deep, a chain needs a few buffers
    np.testing.assert_allclose(gradient, GROWTH**depth, rtol=1e-9)

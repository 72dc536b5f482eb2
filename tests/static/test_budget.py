"""Compiling within a memory budget: the same bits, no more memory than allowed, and a refusal that says what is."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import numpy as np
import pytest

import graphs as g
import static
from graphs.errors import GraphError
from static.passes import pipeline
from tests.helpers.arena import check_arena
from tests.helpers.random_graphs import random_program

WIDTH = 64
RNG = np.random.default_rng(0)
WEIGHTS = [RNG.standard_normal((WIDTH, WIDTH)) / 8 for _ in range(12)]


def deep(weights: list[Any], x: Any) -> Any:
    """A tanh network whose activations all wait for the backward pass."""
    for w in weights:
        x = g.tanh(x @ w)
    return g.mean(x * x)


def noisy(key: Any, x: Any) -> Any:
    noise = g.normal(key, (256, WIDTH))
    for w in WEIGHTS[:4]:
        x = g.tanh(x @ w * noise)
    return g.mean(x * x * noise)


STEP = static.value_and_grad(deep)
X = RNG.standard_normal((256, WIDTH))


def equal(one: Any, other: Any) -> None:
    for a, b in zip(g.tree.leaves(one), g.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(a, b)


def smallest(f: Any, *args: Any) -> int:
    with pytest.raises(GraphError, match="the smallest that it fits into is") as refused:
        static.compile(f, *args, memory_budget=0)
    return int(str(refused.value).rsplit(" is ", 1)[1].split()[0].replace(",", ""))


def test_less_memory_and_the_same_bits():
    free = static.compile(STEP, WEIGHTS, X)
    expected = free(WEIGHTS, X)
    sizes = []
    for share in (1.0, 0.6, 0.35):
        budget = int(free.plan.peak * share)
        exe = static.compile(STEP, WEIGHTS, X, memory_budget=budget)
        assert exe.plan.peak <= budget
        equal(exe(WEIGHTS, X), expected)
        equal(g.tree.unflatten(exe.traced.outputs, check_arena(exe, [*WEIGHTS, X])), expected)
        sizes.append(len(exe.graph))
    assert sizes == sorted(sizes)  # less memory, more work
    assert sizes[0] == len(free.graph) < sizes[-1]


@pytest.mark.slow
def test_the_smallest_budget_is_one_that_is_met():
    least = smallest(STEP, WEIGHTS, X)
    assert least <= static.compile(STEP, WEIGHTS, X).plan.peak / 3
    assert static.compile(STEP, WEIGHTS, X, memory_budget=least).plan.peak == least
    with pytest.raises(GraphError, match=f"memory_budget of {least - 1:,} bytes.* is {least:,}"):
        static.compile(STEP, WEIGHTS, X, memory_budget=least - 1)


@pytest.mark.slow
def test_the_memory_is_really_less():
    """Of one call with everything it holds: arena, results and what kernels allocate on the way."""
    x = np.ones((2048, WIDTH))
    results = sum(w.nbytes for w in WEIGHTS)

    def traced_peak(**options: Any) -> int:
        tracemalloc.start()
        try:
            exe = static.compile(STEP, WEIGHTS, x, **options)
            gc.collect()  # what the compiler dropped is no part of the call
            tracemalloc.reset_peak()
            exe(WEIGHTS, x)
            peak = tracemalloc.get_traced_memory()[1]
            del exe
            gc.collect()
            return peak - tracemalloc.get_traced_memory()[0]  # what is left is the process's, such as caches
        finally:
            tracemalloc.stop()

    budget = 5 * x.nbytes
    assert traced_peak() > 12 * x.nbytes
    assert traced_peak(memory_budget=budget) < budget + results + (1 << 20)


def test_groups_that_run_in_blocks_run_again_too():
    def f(x: Any, y: Any) -> Any:
        kept = g.tanh(x * y) + x
        folded = g.exp(-kept * kept)
        return g.sum(g.matmul(g.matrix_transpose(folded), kept) ** 2)

    x, y = RNG.standard_normal((2, 4096, 64))
    free = static.compile(static.value_and_grad(f), x, y)
    assert "fused" in free.graph.op_counts()
    least = smallest(static.value_and_grad(f), x, y)
    exe = static.compile(static.value_and_grad(f), x, y, memory_budget=least)
    assert exe.plan.peak == least <= free.plan.peak
    equal(exe(x, y), free(x, y))


def test_random_numbers_are_drawn_once():
    step = static.value_and_grad(noisy, 1)
    key = g.random_key(0)
    free = static.compile(step, key, X)
    exe = static.compile(step, key, X, memory_budget=smallest(step, key, X))
    assert exe.plan.peak < free.plan.peak
    assert exe.graph.op_counts()["normal"] == 1
    equal(exe(key, X), free(key, X))


@pytest.mark.slow
def test_random_programs_keep_their_bits():
    less = 0
    for seed in range(16):
        program = random_program(seed)
        point, step = list(program.inputs), static.value_and_grad(program)
        free = static.compile(step, point)
        try:
            exe = static.compile(step, point, memory_budget=int(free.plan.peak * 0.9))
        except GraphError:
            continue
        less += exe.plan.peak < free.plan.peak
        equal(exe(point), free(point))
        check_arena(exe, point)
    assert less > 1


def test_a_budget_that_is_met_changes_nothing():
    free = static.compile(STEP, WEIGHTS, X)
    exe = static.compile(STEP, WEIGHTS, X, memory_budget=free.plan.peak)
    assert exe.graph.op_counts() == free.graph.op_counts()
    assert exe.plan == free.plan
    (step,) = (step for step in exe.steps if step.name == "recompute")
    assert (step.before, step.after, step.exact) == (len(free.graph), len(free.graph), True)


@pytest.mark.slow
def test_the_report_says_what_was_computed_again():
    exe = static.compile(STEP, WEIGHTS, X, memory_budget=smallest(STEP, WEIGHTS, X))
    step = exe.steps[-1]
    assert step.name == "recompute"
    assert step.after > step.before
    assert step.exact
    assert "recompute" in str(exe.report())


@pytest.mark.parametrize(
    ("options", "args", "message"),
    [
        ({}, (g.TensorSpec(("B", WIDTH), "float64"),), "sizes that are numbers, and B has none"),
        ({"arena": False, "passes": pipeline.REPLAY}, (X,), "needs an arena"),
    ],
)
def test_a_budget_without_a_plan_is_refused(options, args, message):
    with pytest.raises(GraphError, match=message):
        static.compile(STEP, WEIGHTS, *args, memory_budget=1 << 20, **options)

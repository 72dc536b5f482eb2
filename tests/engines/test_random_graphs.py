"""The two engines against each other and against NumPy in float64, on random graphs.

`RANDOM_GRAPHS=20000 pytest tests/engines/test_random_graphs.py` tries more than the default. A failure names the
seed and prints the program; `random_program(seed)` makes it again.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynamic
import graphs
import static
from tests.helpers.arena import check_arena
from tests.helpers.random_graphs import BATCH, Program, random_program
from tests.helpers.random_ops import KINDS
from tests.helpers.slow import mostly_slow

COUNT = int(os.environ.get("RANDOM_GRAPHS", "2000"))
BLOCKS = 40
STEP = 1e-6

QUICK = 1  # blocks, of programs that differ in nothing but the seed from those of the others

each_block = pytest.mark.parametrize("block", mostly_slow(range(BLOCKS), QUICK))


def each_program(check: Callable[[Program, list[np.ndarray]], Any], seeds: range) -> None:
    """Run a check on the program of each seed; a failure prints the program."""
    for seed in seeds:
        program = random_program(seed)
        try:
            check(program, list(program.inputs))
        except Exception as error:
            error.add_note(str(program))
            raise


def precision(point: list[np.ndarray], double: float, single: float) -> float:
    return single if any(x.dtype == np.float32 for x in point) else double


def close(one: Any, other: Any, tolerance: float) -> None:
    for a, b in zip(graphs.tree.leaves(one), graphs.tree.leaves(other), strict=True):
        assert np.shape(a) == np.shape(b)
        scale = 1 + np.max(np.abs(b), initial=0)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * scale)


def equal(one: Any, other: Any) -> None:
    for a, b in zip(graphs.tree.leaves(one), graphs.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(a, b)


# Values and gradients -----------------------------------------------------------------------------------------------


@each_block
def test_every_value_is_that_of_numpy(block):
    def check(program: Program, point: list[np.ndarray]) -> None:
        tolerance = precision(point, 1e-10, 3e-4)
        for i, (ours, numpy) in enumerate(zip(program.values(point), program.reference_values(point), strict=True)):
            np.testing.assert_equal(ours.shape, numpy.shape, err_msg=f"v{i}")
            close(ours, numpy, tolerance)

    each_program(check, range(block, COUNT, BLOCKS))


@each_block
def test_engines_agree_on_values_and_gradients(block):
    """Dynamic, static with an arena and without, and again with what the first call left in the arena."""

    def check(program: Program, point: list[np.ndarray]) -> None:
        value, gradient = dynamic.value_and_grad(program)(point)
        assert [g.dtype for g in gradient] == [x.dtype for x in point]
        close(value, program.reference(point), precision(point, 1e-10, 3e-4))
        exe = static.compile(static.value_and_grad(program), point)
        close(exe(point), (value, gradient), precision(point, 1e-11, 1e-4))
        no_arena = static.Executable(exe.traced, exe.graph, exe.steps, arena=False)
        close(no_arena(point), exe(point), precision(point, 1e-11, 1e-4))
        if program.smooth:
            check_slope(program, point, gradient)
        equal(exe(point), graphs.tree.unflatten(exe.traced.outputs, check_arena(exe, point)))

    each_program(check, range(block, COUNT, BLOCKS))


def check_slope(program: Program, point: list[np.ndarray], gradient: list[np.ndarray]) -> None:
    """The gradient along a random direction is the central difference of the NumPy evaluation."""
    random = np.random.default_rng(program.seed)
    directions = [random.normal(size=x.shape) for x in point]
    sides = [
        program.reference([x.astype(np.float64) + s * STEP * d for x, d in zip(point, directions, strict=True)])
        for s in (1, -1)
    ]
    slope = sum(float(np.sum(g * d)) for g, d in zip(gradient, directions, strict=True))
    size = sum(float(np.sum(np.abs(g * d))) for g, d in zip(gradient, directions, strict=True))
    tolerance = precision(point, 1e-5, 1e-3)
    np.testing.assert_allclose(slope, (sides[0] - sides[1]) / (2 * STEP), rtol=tolerance, atol=tolerance * (1 + size))


def batched(x: np.ndarray) -> bool:
    return x.ndim > 0 and x.shape[0] in BATCH


@each_block
def test_a_symbolic_batch_gives_what_numbers_give(block):
    """Traced with the first axis symbolic, run for the size of the program and for another."""
    outcomes: Counter[str] = Counter()

    def check(program: Program, point: list[np.ndarray]) -> None:
        if not any(map(batched, point)):
            return
        specs = [graphs.TensorSpec(("B", *x.shape[1:]) if batched(x) else x.shape, x.dtype) for x in point]
        try:
            exe = static.compile(static.value_and_grad(program), specs)
        except (graphs.ShapeError, graphs.ControlFlowError):  # the program says a number where the size is
            outcomes["refused"] += 1
            return
        outcomes["compiled"] += 1
        larger = [np.concatenate([x, x[:2] * 0.5]) if batched(x) else x for x in point]
        for arrays in (point, larger, point):
            close(exe(arrays), dynamic.value_and_grad(program)(arrays), precision(point, 1e-11, 1e-4))

    each_program(check, range(block, COUNT, BLOCKS * 3))
    assert outcomes["compiled"] > 5 * outcomes["refused"]


# The graph itself ---------------------------------------------------------------------------------------------------


@each_block
def test_the_tape_and_the_unoptimised_graph_are_one_graph(block):
    def check(program: Program, point: list[np.ndarray]) -> None:
        if program.plain:
            recorded = dynamic.record(dynamic.value_and_grad(program), point)
            traced = static.trace(static.value_and_grad(program), point)
            assert recorded.op_counts() == traced.op_counts()
            assert graphs.isomorphic(recorded, traced)

    each_program(check, range(block, COUNT, BLOCKS * 2))


@each_block
def test_a_saved_graph_gives_the_same(block, tmp_path):
    def check(program: Program, point: list[np.ndarray]) -> None:
        exe = static.compile(static.value_and_grad(program), point)
        exe.save(tmp_path / "program.graph")
        equal(static.load(tmp_path / "program.graph")(point), exe(point))

    each_program(check, range(20 * block, COUNT, 20 * BLOCKS))


def test_the_check_of_the_arena_finds_a_buffer_given_out_twice():
    exe = static.compile(lambda x: graphs.sin(x) * graphs.cos(x) + 1, np.ones(300))
    (binding,) = exe._bindings.values()
    names = [name for name, *_ in exe.program.slots]
    buffers = [
        i for i, name in enumerate(names) if name.startswith("b") and binding.run.__defaults__[i].shape == (300,)
    ]
    defaults = list(binding.run.__defaults__)
    defaults[buffers[1]] = defaults[buffers[0]]
    check_arena(exe, [np.ones(300)])
    binding.run.__defaults__ = tuple(defaults)
    with pytest.raises(AssertionError, match="overwrites"):
        check_arena(exe, [np.ones(300)])


# The programs -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_programs_hold_what_they_are_meant_to():
    programs = [random_program(seed) for seed in range(1000)]
    used = Counter(step.kind.name for program in programs for step in program.steps)
    assert set(used) == set(KINDS)
    assert min(used.values()) >= 20
    shapes = [shape for program in programs for shape in (x.shape for x in program.inputs)]
    assert sum(0 in shape for shape in shapes) > 20
    assert sum(1 in shape for shape in shapes) > 100
    assert sum(len({x.dtype for x in program.inputs}) > 1 for program in programs) > 100
    assert sum(program.smooth for program in programs) > 600
    assert sum(program.plain for program in programs) > 500


def test_the_same_seed_gives_the_same_program():
    first, second = random_program(7), random_program(7)
    assert str(first) == str(second)
    equal(list(first.inputs), list(second.inputs))


# What random graphs have found ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [0.1, 2.0])
def test_a_loop_hands_out_no_memory_of_its_operands(start):
    """After no step at all the state is the operand, whose buffer is given out again."""

    def f(x: Any) -> Any:
        last = graphs.while_loop(lambda v: graphs.sum(v * v) > 2.0, lambda v: v * 0.75, graphs.tanh(x) * 2)
        return graphs.sum(graphs.sin(graphs.tanh(graphs.square(last) + 0.5) * 0.9))

    x = np.array([start, start / 2])
    close(static.compile(static.grad(f), x)(x), dynamic.grad(f)(x), 1e-12)


@pytest.mark.parametrize("arena", [True, False])
def test_a_reshape_that_need_not_copy_hands_out_no_input(arena):
    x = np.arange(6.0)
    result = static.compile(lambda x: graphs.reshape(graphs.flip(x), x.shape), x, arena=arena)(x)
    assert not np.shares_memory(result, x)
    equal(result, x[::-1])

"""The order in which nodes run and what shares memory: what is written over what, and where it pays to wait."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphs as g
import static
from benchmarks import memory_plan
from graphs.ir import Graph, Node
from graphs.ops.control import part
from static.memory import max_live
from static.memory import schedule as scheduling
from static.memory.schedule import Schedule, schedule
from static.passes import pipeline
from tests.helpers.arena import check_arena
from tests.helpers.random_control import draw, evaluate
from tests.helpers.random_graphs import random_program
from tests.helpers.slow import mostly_slow

N = 64
X = np.random.default_rng(0).normal(size=(N, N))
BYTES = X.nbytes


def compiled(f: Any, *args: Any) -> static.Executable:
    """The graph as it was traced, planned."""
    return static.compile(f, *args, passes=pipeline.REPLAY)


def checked(f: Any, *args: np.ndarray) -> static.Executable:
    """Compiled as it was traced, run as planned and as the graph says, with the same results."""
    exe = compiled(f, *args)
    results = check_arena(exe, args)
    for ours, plain in zip(results, exe.graph(*args), strict=True):
        np.testing.assert_allclose(ours, plain, rtol=1e-12)  # sums over memory in another order
    return exe


# The bars ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "rows",
    mostly_slow([memory_plan.programs, lambda: memory_plan.cells(["small"], examples=1)], 1),
    ids=["programs", "workloads"],
)
def test_plans_are_near_the_bound_and_far_below_the_naive_sum(rows):
    found = list(rows())
    assert len(found) >= 8
    for row in found:
        assert row.bound <= row.peak <= 1.02 * row.bound, row
        assert row.peak <= 0.6 * row.naive or row.peak == row.bound, row  # no plan is better than the bound
    assert sum(row.peak <= 0.6 * row.naive for row in found) >= len(found) - 1


def test_buffers_of_a_file_are_placed(tmp_path):
    path = tmp_path / "buffers.csv"
    path.write_text("id,lower,upper,size\na,0,3,100\nb,1,4,50\n\nc,3,5,100\n", "utf-8")
    head, *rows, peak = memory_plan.place_buffers(path).splitlines()
    assert head == "id,lower,upper,size,offset"
    assert rows == ["a,0,3,100,0", "b,1,4,50,100", "c,3,5,100,0"]
    assert peak == "peak 150, lower bound 150, gap 0.00%"


# Writing over an operand ------------------------------------------------------------------------------------------


def test_a_chain_of_elementwise_ops_takes_one_buffer():
    exe = checked(lambda x: g.sum(g.exp(g.tanh(x * 2) + 1)), X)
    assert exe.plan.peak == BYTES
    (binding,) = exe._bindings.values()
    written = {
        id(value) for value in binding.run.__defaults__ if isinstance(value, np.ndarray) and value.shape == (N, N)
    }
    assert len(written) == 1  # one object too, so that no kernel has to find out that it may write over its operand


def test_what_is_still_to_be_read_is_not_written_over():
    def f(x: Any) -> Any:
        y = g.tanh(x)
        return g.sum(g.exp(y) * y)

    assert checked(f, X).plan.peak == 2 * BYTES


@pytest.mark.parametrize(
    ("f", "buffers"),
    [
        (lambda y: y @ y, 2),  # reads each element often
        (lambda y: y + y.T, 2),  # the same memory in another order
        (lambda y: y.T * 2, 2),
        (lambda y: g.reshape(y, (N * N,)) * 2, 1),  # the same memory in the same order
        (lambda y: y * y, 1),
        (lambda y: y[:1] * y, 1.02),  # a part of itself, which is needed for every row: a buffer of its own
        (lambda y: g.flip(y, axis=0) * 2, 2),
        (lambda y: g.where(y > 0, y, X), 1.2),  # would overwrite y with X before it is read
        (lambda y: g.where(X > 0, X, y), 1),
        (lambda y: g.clip(y, -1, 1), 1),
        (g.relu, 1),
        (g.sigmoid, 1),
        (g.erf, 2),  # in blocks of its own
        (lambda y: g.astype(y, "float32"), 1.5),
        (lambda y: y > 0, 1.125),
        (lambda y: y[0] * 2, 1.02),
    ],
)
def test_one_op_on_a_value_that_nobody_else_reads(f, buffers):
    exe = checked(lambda x: g.sum(f(g.tanh(x))), X)
    assert exe.plan.peak >= BYTES
    if buffers == 1:
        assert exe.plan.peak == BYTES
    else:
        assert exe.plan.peak > BYTES


def test_inputs_and_constants_are_never_written_over():
    weights = X.copy()
    x = X.copy()
    exe = checked(lambda x: (g.tanh(x), g.sum(g.exp(weights) * x)), x)
    exe(x)
    np.testing.assert_array_equal(weights, X)
    np.testing.assert_array_equal(x, X)


def test_groups_write_over_operands_too():
    big = np.random.default_rng(1).normal(size=(2048, 256))
    f = lambda x: g.sum(g.matmul(g.exp(g.tanh(x @ W) * 2) + 1, W))  # noqa: E731
    exe = static.compile(f, big)
    assert "fused" in exe.graph.op_counts()
    assert exe.plan.lower_bound < 2.5 * big.nbytes  # the product, and the blocks of the group; then the next product
    np.testing.assert_array_equal(check_arena(exe, [big])[0], exe(big))


W = np.random.default_rng(2).normal(size=(256, 256)) / 16


# Joined parts -----------------------------------------------------------------------------------------------------


def test_parts_are_computed_where_they_are_joined():
    def f(x: Any) -> Any:
        return g.sum(g.concat([g.expand_dims(g.matmul(x, x + i), 0) for i in range(5)]) ** 2)

    exe = checked(f, X)
    places = exe.program.schedule.place
    joined = next(node for node in places if node.op.name == "concat")
    assert [places[p.inputs[0]].buffer for p in joined.inputs] == [joined] * 5
    assert [places[p.inputs[0]].offset for p in joined.inputs] == [i * BYTES for i in range(5)]
    assert exe.plan.peak < 6.1 * BYTES


def test_a_part_that_is_joined_twice_is_copied_once():
    def f(x: Any) -> Any:
        y = g.tanh(x)
        return g.sum(g.concat([y, y, x]) * 2) + g.sum(y)

    assert checked(f, X).plan.peak < 3.01 * BYTES


def test_parts_along_another_axis_are_copied():
    exe = checked(lambda x: g.sum(g.concat([g.tanh(x), g.exp(x)], axis=1) ** 2), X)
    assert all(place.offset == 0 for place in exe.program.schedule.place.values())


# Loops ------------------------------------------------------------------------------------------------------------


def test_what_a_scan_stacks_and_what_its_body_needs_is_planned():
    def f(x: Any) -> Any:
        last, rows = g.scan(lambda s, row: (g.tanh(s + row @ X * 2), s), X[0], x)
        return last.sum() + (rows * 2).sum()

    exe = checked(f, X)
    assert any(node.op is part for node in exe.program.schedule.place)
    assert exe.arena_bytes == exe.plan.peak >= BYTES + N * 8


def test_a_result_of_a_scan_is_the_callers():
    exe = static.compile(lambda x: g.scan(lambda s, row: (s + row, s * 2), x[0], x), X)
    first = exe(X)
    kept = [value.copy() for value in first]
    exe(X + 1)
    for value, before in zip(first, kept, strict=True):
        np.testing.assert_array_equal(value, before)


@pytest.mark.slow
@pytest.mark.parametrize("block", mostly_slow(range(4), 1))
def test_random_programs_with_loops_need_nothing_that_is_planned_for_others(block):
    for seed in range(block, 40, 4):
        rng = np.random.default_rng(seed)
        program = draw(rng, 3, 2, loops=seed % 2 == 0)
        x, y = rng.uniform(-1, 1, (2, 3))
        step = static.value_and_grad(lambda x, y, program=program: g.sum(evaluate(program, [x, y])), (0, 1))
        exe = static.compile(step, x, y)
        no_arena = static.Executable(exe.traced, exe.graph, exe.steps, arena=False)
        for ours, plain in zip(check_arena(exe, [x, y]), g.tree.leaves(no_arena(x, y)), strict=True):
            np.testing.assert_array_equal(ours, plain)


# Orders -----------------------------------------------------------------------------------------------------------


def bound(graph: Graph, order: Any) -> int:
    """The most bytes live when the nodes run in this order."""
    seen = scheduling.views(graph.nodes)
    planned = scheduling.in_arena(graph.nodes, graph.outputs, seen.owner)
    return live(Schedule.of(order, seen, scheduling.places(order, seen, planned)))


def live(plan: Schedule) -> int:
    return max_live([(*steps, node.spec.nbytes) for node, steps in plan.lives.items()])


def test_values_that_are_reduced_do_not_wait():
    def f(x: Any) -> Any:
        products = [x @ (x + i) for i in range(6)]
        return sum(g.sum(p * p) for p in products)

    exe = checked(f, X)
    assert bound(exe.graph, exe.graph.nodes) >= 6 * BYTES
    assert exe.plan.peak < 2.1 * BYTES


def test_values_that_are_needed_late_are_computed_late():
    def f(x: Any) -> Any:
        early = [g.outer(x[0] + i, x[1]) for i in range(6)]  # large, of what is small and there anyway
        y = x
        for e in early:
            y = y @ e
        return g.sum(y)

    exe = checked(f, X)
    assert bound(exe.graph, exe.graph.nodes) >= 6 * BYTES
    assert exe.plan.peak < 3.1 * BYTES


def test_the_users_order_stays_where_nothing_is_gained():
    exe = compiled(static.value_and_grad(lambda x: g.sum(g.tanh(x @ x) ** 2)), X)
    assert exe.nodes() == exe.graph.nodes


@pytest.mark.parametrize("block", mostly_slow(range(4), 1))
def test_every_order_computes_the_graph_and_the_chosen_one_is_no_worse(block):
    for seed in range(block, 160, 4):
        program = random_program(seed)
        graph = static.trace(static.value_and_grad(program), list(program.inputs))
        seen = scheduling.views(graph.nodes)
        sizes = {n: n.spec.nbytes for n in scheduling.in_arena(graph.nodes, graph.outputs, seen.owner)}
        flow = scheduling.Flow(graph, seen.owner, sizes)
        late = flow.demand_order()
        for numbers in (late, flow.eager(flow.own), flow.eager(late)):
            order = [graph.nodes[number] for number in numbers]
            done: set[Node] = set()
            for node in order:
                assert done.issuperset(node.inputs)
                done.add(node)
            assert done == set(graph.nodes)
            assert len(order) == len(graph)
        chosen = schedule(graph)
        assert chosen.order == schedule(graph).order
        assert live(chosen) <= bound(graph, graph.nodes)

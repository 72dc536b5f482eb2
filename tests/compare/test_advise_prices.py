"""Prices of curves, work, steps and memory, each with a known answer."""

from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphs as g
import static
from compare import advice
from compare.advice import calibration, memory, returned, synthetic, work
from compare.advice.costs import Curve, Kernel, Overhead, Returned
from compare.advice.structures import structure
from compare.records.job import Job
from graphs.spec import TensorSpec
from static.memory import ALIGNMENT
from tests.helpers.fake_workloads import BRANCH
from tests.helpers.prices import FLAT, FREE, US, X, costs, square_sum

# Curves


def test_a_curve_is_straight_between_points_and_beyond_the_last():
    curve = Curve(((10.0, 1.0), (20.0, 3.0), (40.0, 4.0)))
    assert [curve.at(x) for x in (0, 10, 15, 20, 30, 40, 60)] == [1.0, 1.0, 2.0, 3.0, 3.5, 4.0, 5.0]


def test_a_curve_of_one_point_is_flat_and_one_of_none_is_an_error():
    assert Curve(((1.0, 2.0),)).at(1e9) == 2.0
    with pytest.raises(ValueError, match="a curve needs a point"):
        Curve(()).at(1.0)


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=8))
def test_a_rising_curve_never_falls_and_keeps_what_rose(seconds):
    curve = Curve(tuple((float(i), y) for i, y in enumerate(seconds))).rising()
    found = [y for _, y in curve.points]
    assert found == list(np.maximum.accumulate(seconds))


# Work


@pytest.mark.parametrize(
    ("f", "shapes", "key", "amount", "rows"),
    [
        (lambda x, y: x + y, [(4, 6), (4, 6)], "add", 24, 0),
        (lambda x, y: x + y, [(4, 6), (6,)], "add", 24, 4),
        (lambda x, y: x + y, [(4, 6), (4, 1)], "add", 24, 4),
        (lambda x, y: x + y, [(4, 6), ()], "add", 24, 1),
        (lambda x, y: x + y, [(4, 6, 5), (6, 5)], "add", 120, 4),
        (lambda x: g.sum(x, axis=1), [(128, 32)], "sum:rows", 4096, 128 - 4096 / synthetic.LANE),
        (lambda x: g.sum(x, axis=0), [(4, 64)], "sum:columns", 256, 4 - 256 / synthetic.LANE),
        (lambda x, y: x @ y, [(2, 3), (3, 5)], "matmul", 60, 0),
        (lambda x, y: x @ y, [(7, 2, 3), (7, 3, 5)], "matmul", 60, 0),
        (lambda x: g.astype(x, "float64"), [(10,)], "astype", 20, 0),
    ],
)
def test_the_work_of_a_kernel_comes_from_its_specs(f, shapes, key, amount, rows):
    (node,) = static.trace(f, *[TensorSpec(shape, "float32") for shape in shapes]).calls
    assert (work.key(node), work.amount(node), work.rows(node)) == (key, amount, rows)


def test_a_batch_of_products_takes_the_call_once_and_each_product():
    line = Kernel(Curve(((0.0, 1.0), (60.0, 3.0))))
    priced = costs(kernels={"matmul": line, "matmul:thin": Kernel(Curve(((0.0, 0.0),)))})
    (node,) = static.trace(g.matmul, TensorSpec((7, 2, 3), "float32"), TensorSpec((7, 3, 5), "float32")).calls
    assert work.kernel_seconds(node, priced) == 7 * 3.0 - 6 * 1.0


def test_a_thin_product_takes_what_reading_its_matrix_does():
    thin = Kernel(Curve(((0.0, 0.0), (1e6, 1.0))))
    (node,) = static.trace(g.matmul, TensorSpec((1000, 1000), "float32"), TensorSpec((1000, 2), "float32")).calls
    priced = costs(kernels={"matmul": FLAT, "matmul:thin": thin})
    assert work.kernel_seconds(node, priced) == 1.0


@pytest.mark.parametrize("shapes", [((30, 20), (20,)), ((30,), (30, 20)), ((30, 20), (20, 1)), ((1, 30), (30, 20))])
def test_a_product_with_a_vector_takes_what_reading_its_matrix_does(shapes):
    line = Kernel(Curve(((0.0, 0.0), (1e6, 1.0))))
    (node,) = static.trace(g.matmul, *[TensorSpec(shape, "float32") for shape in shapes]).calls
    priced = costs(kernels={"matmul": FLAT, "matmul:thin": FLAT, "matmul:vector": line})
    assert work.kernel_seconds(node, priced) == pytest.approx(600e-6)


def test_short_rows_cost_reductions_by_their_own_class():
    (node,) = static.trace(lambda x: g.sum(x, axis=1), TensorSpec((4096, 2), "float32")).calls
    rows = 4096 - 8192 / synthetic.LANE
    assert work.kernel_seconds(node, costs(row=1.0, lane=US)) == pytest.approx(US + rows * US)


def test_an_op_that_was_not_calibrated_is_priced_as_its_family():
    (node,) = static.trace(g.erf, TensorSpec((4,), "float32")).calls
    assert work.kernel_seconds(node, costs()) == US


# Parts of a step


def test_the_dynamic_engine_pays_for_each_op_by_its_kind_and_each_array():
    step = structure(square_sum, (X,), 0)
    calls = len(list(step.dynamic.calls))
    others = [node for node in step.dynamic.calls if node.op.family != "elementwise"]
    assert 0 < len(others) < calls
    found = step.predicted(costs(dynamic=Overhead(call=1.0, array=10.0, op=100.0, other=1000.0))).dynamic
    assert found.kernels == pytest.approx(calls * US)
    assert (found.call, found.ops, found.count) == (1.0 + 10.0 * 3, 100.0 * calls + 1000.0 * len(others), calls)


def test_new_arrays_cost_dynamic_alone():
    step = structure(square_sum, (X,), None)
    found = step.predicted(costs(fresh=Curve(((0.0, 1.0),))))
    assert (found.dynamic.new, found.static.new) == (2.0, 0.0)


# Memory


def chain(depth):
    def f(x):
        for _ in range(depth):
            x = g.tanh(x)
        return g.sum(x)

    return f


def test_a_tape_holds_what_backward_reads():
    step = structure(chain(10), (np.ones(1000, np.float32),), 0)
    found = memory.touched(step.dynamic)
    assert found.largest == 4000
    # ten results, the cotangent, and the factor of one step while it is made
    assert 11 * 4000 <= found.held <= 13 * 4000
    assert memory.touched(structure(chain(10), (np.ones(1000, np.float32),), None).dynamic).held == 8000


def test_what_was_touched_last_is_near_and_what_the_tape_kept_is_far():
    graph = static.trace(lambda x: g.tanh(g.tanh(x)) * x, TensorSpec((100,), "float32"))
    found = memory.touched(graph)
    first, second, product = graph.calls
    whole = 400 * 3  # what the step holds at most, with its input
    assert found.by_op[first] == [(400, whole), (400, whole)]  # both were touched in the step before
    assert found.by_op[second] == [(400, 0), (400, whole)]
    assert found.by_op[product] == [(400, 0), (400, 800), (400, 0)]  # into the memory of the first, let go of just now


def test_a_view_is_memory_of_what_it_shows():
    graph = static.trace(lambda x: g.sum((x * 2)[:10]), TensorSpec((100,), "float32"))
    *_, total = graph.calls
    assert memory.touched(graph).by_op[total][0] == (40, 0)


def test_bytes_out_of_cache_bound_a_kernel_from_below():
    step = structure(chain(1), (np.ones(1000, np.float32),), None)
    found = step.predicted(costs(moved=Curve(((0.0, 1.0),)), planned=Curve(((0.0, 10.0),))))
    assert found.dynamic.kernels == 4000 * 3 + 4  # tanh reads and writes, sum reads, and writes one number
    assert found.static.kernels == 10 * (4000 * 3 + 4)
    assert step.predicted(costs(moved=Curve(((0.0, 1e-12),)))).dynamic.kernels == pytest.approx(2 * US)


def test_memory_that_a_step_gives_back_costs_dynamic_by_what_it_holds():
    step = structure(chain(10), (np.ones(1000, np.float32),), 0)
    held = memory.touched(step.dynamic).held
    line = Curve(((0.0, 0.0), (1e6, 1.0)))
    known = Returned(1000.0, FREE), Returned(4000.0, line), Returned(8000.0, FREE)
    found = step.predicted(costs(returned=known))
    assert found.dynamic.new == pytest.approx(held / 1e6)  # by the next size below that of its arrays
    assert found.static.new == 0
    assert step.predicted(costs(returned=known[2:])).dynamic.new == 0


def test_steps_that_hold_equally_many_of_their_largest_array_are_alike():
    priced = costs(returned=(Returned(1000.0, Curve(((1000.0, 0.0), (2000.0, 0.0), (4000.0, 8.0)))),))
    assert [priced.faulted(1500.0, held) for held in (1500.0, 3000.0, 6000.0)] == [0.0, 0.0, 12.0]
    assert priced.faulted(10.0, 4000.0) == 8.0  # smaller ones share what the process keeps
    assert priced.faulted(0.0, 0.0) == 0.0


def test_what_a_worker_finds_of_returned_memory_never_falls_below_nothing():
    record = returned.measure(Job("returned memory", size=str(returned.LEAST), seed=3))
    assert [held for held, _ in record.points] == [2**n for n in range(16, 27)]
    assert all(seconds >= 0 for _, seconds in record.points)


def test_calibrated_arrays_lie_as_buffers_of_a_plan_do():
    for shape in ((), (3,), (5, 7)):
        made = calibration.aligned(np.full(shape, 2, np.int32))
        assert made.ctypes.data % ALIGNMENT == 0
        assert (made.shape, made.dtype) == (shape, np.int32)
        assert (made == 2).all()


def test_without_gradients_other_overheads_hold():
    step = structure(square_sum, (X,), None)
    found = step.predicted(costs(dynamic=Overhead(inf, inf, inf), plain=Overhead(1.0, 0.0, 0.0)))
    assert found.dynamic.call == 1.0


def test_compiling_costs_each_node_that_was_traced():
    step = structure(square_sum, (X,), 0)
    assert step.predicted(costs(compile=Overhead(1.0, 0.0, 10.0))).compile == 1.0 + 10.0 * len(step.dynamic)


def test_a_fused_group_runs_its_ops_once_for_each_block():
    def f(x):
        return g.tanh(x * 2 + 1) * x

    x = np.ones((2048, 2048), np.float32)
    step = structure(f, (x,), None)
    priced = costs(block=1.0)
    found = step.predicted(priced).static
    blocks = found.ops / 4
    assert blocks == round(blocks) > 8
    assert found.count == 4


def test_a_loop_is_priced_by_how_often_dynamic_turned():
    def loss(x):
        while g.sum(x) < 100:
            x = x * 2
        return g.sum(x)

    def static_loss(x):
        return g.sum(g.while_loop(lambda x: g.sum(x) < 100, lambda x: x * 2, x))

    found = [structure(loss, (np.full(4, start, np.float32),), None, static_loss) for start in (1.0, 10.0, 20.0)]
    assert [one.trips for one in found] == sorted((one.trips for one in found), reverse=True)
    assert found[0].trips == pytest.approx(5, abs=0.7)


def test_what_static_refuses_is_said_and_dynamic_is_advised():
    case = BRANCH.case("small")
    found = advice.advise_case(case, costs())
    assert (found.winner, found.static, found.ratio, found.break_even) == ("dynamic", None, None, None)
    assert "ControlFlowError" in found.refused
    assert "Take dynamic: static refuses the function." in str(found)

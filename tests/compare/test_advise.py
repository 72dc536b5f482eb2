"""Advice: prices with a known answer, the arithmetic of break-even, what is refused, and the command."""

import json
from math import inf
from statistics import NormalDist

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import compare
import dynamic
import graphs as g
import static
from compare import advice
from compare.advice import calibration, evaluation, memory, prediction, returned, synthetic, work
from compare.advice.costs import Costs, Curve, Kernel, Overhead, Returned, load, save
from compare.advice.structures import Predicted, output_of, structure
from compare.advice.work import Parts
from compare.cli.command import graphduel
from compare.errors import CompareError, InputsError
from compare.own.case import differentiates
from compare.records import machines
from compare.run.environment import environment
from compare.run.job import Job
from compare.run.progress import Reporter
from graphs.spec import TensorSpec
from static.memory import ALIGNMENT
from tests.helpers.fake_workloads import BRANCH, STREAM, TINY

US = 1e-6
FLAT = Kernel(Curve(((1.0, US),)))
FREE = Curve(((0.0, 0.0),))
MACHINE = {"cpu": "one", "numpy": "2"}


def costs(**change):
    """A machine on which every kernel takes a microsecond, and nothing else anything."""
    nothing = Overhead(0.0, 0.0, 0.0)
    names = ("add", "sum:rows", "matmul", "matmul:thin", "matmul:vector", "concat")
    given = {
        "machine": MACHINE, "kernels": dict.fromkeys(names, FLAT), "fresh": FREE, "returned": (), "moved": FREE,
        "planned": FREE, "row": 0.0, "lane": 0.0, "block": 0.0, "dynamic": nothing, "plain": nothing,
        "static": nothing, "compile": nothing, "spread": 0.1,
    }  # fmt: skip
    return Costs(**{**given, **change})


def square_sum(x):
    return g.sum(x * x)


X = np.ones(8, np.float32)


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


# The advice


def parts(total):
    return Parts(kernels=total)


@pytest.mark.parametrize(
    ("compile", "dynamic", "static", "runs"),
    [(10.0, 3.0, 1.0, 5), (10.0, 3.5, 0.5, 4), (0.0, 2.0, 1.0, 0), (10.0, 1.0, 1.0, None), (10.0, 1.0, 2.0, None)],
)
def test_a_compilation_is_paid_back_by_what_each_call_saves(compile, dynamic, static, runs):
    assert prediction.break_even(compile, dynamic, static) == runs


@given(st.floats(1e-6, 1e3), st.floats(1e-6, 1.0), st.floats(1e-6, 1.0))
def test_from_break_even_on_compiling_has_cost_no_more(compile, dynamic, static):
    runs = prediction.break_even(compile, dynamic, static)
    if runs is None:
        assert dynamic <= static
    else:
        assert compile + runs * static <= runs * dynamic * (1 + 1e-9)
        assert runs == 0 or compile + (runs - 1) * static >= (runs - 1) * dynamic * (1 - 1e-9)


@pytest.mark.parametrize(
    ("ratio", "said"),
    [
        (4.0, "static"), (1.3, "static"), (1.25, "too close to call"), (1.0, "too close to call"),
        (0.8, "too close to call"), (0.79, "dynamic"),
    ],
)  # fmt: skip
def test_inside_the_tie_zone_nobody_wins(ratio, said):
    assert prediction.winner(ratio) == said


def test_the_engine_with_less_overhead_is_advised_with_reasons():
    priced = costs(dynamic=Overhead(0.0, 0.0, 3 * US), compile=Overhead(1e-3, 0.0, 0.0))
    found = advice.advise(square_sum, [(X,)], costs=priced)
    assert found.winner == "static"
    assert found.dynamic.ops == pytest.approx(3 * US * found.dynamic.count)
    saved = found.dynamic.total - found.static.total
    assert found.break_even == int(np.ceil(1e-3 / saved))
    assert found.confidence == pytest.approx(NormalDist(0, 0.1).cdf(np.log(found.ratio)))
    assert "recording is 75% of it" in found.reasons[0]
    assert f"paid back after {found.break_even:,} calls" in found.reasons[2]
    assert json.loads(json.dumps(found.to_dict()))["tie_zone"] == [0.8, 1.25]


def test_equal_engines_are_too_close_to_call():
    found = advice.advise(lambda x, y: x @ y, [(np.ones((4, 4)), np.ones((4, 4)))], costs=costs())
    assert found.ratio == 1.0
    assert "Too close to call" in str(found)
    assert found.break_even is None


@pytest.mark.parametrize(
    ("ratio", "compile", "said", "never"),
    [
        (
            1.1,
            1.0,
            ["Too close to call", "static is faster with probability 83%", "too close to call whether"],
            "after",
        ),
        (0.9, 1.0, ["Too close to call", "dynamic is faster with probability 85%"], "after"),
        (2.0, 1.0, ["Take static", "static is faster with probability over 99%", "paid back after 1 call "], "1 calls"),
        (2.0, 1.5, ["Take static", "paid back after 2 calls"], "Too close"),
        (0.5, 1.0, ["Take dynamic", "dynamic is faster with probability over 99%", "never paid back"], "after"),
    ],
)
def test_the_words_say_what_the_numbers_do(monkeypatch, ratio, compile, said, never):
    step = structure(square_sum, (X,), None)
    monkeypatch.setattr(type(step), "predicted", lambda *_: Predicted(parts(ratio), parts(1.0), compile))
    found = prediction.weigh([step], costs())
    words = " ".join(str(found).split()) + " "
    assert [one for one in said if one not in words] == []
    assert never not in words
    assert (found.break_even is None) == (found.winner != "static")
    assert max(map(len, str(found).splitlines())) < 80


def test_a_function_is_traced_and_not_run():
    vast = np.broadcast_to(np.float32(0.5), (1 << 20, 1 << 20))  # of 4 TiB, if anything were computed of it
    found = advice.advise(lambda x: g.sum(g.tanh(x) * 2), [(vast,)], costs=costs())
    assert found.ran is False
    assert "was traced, not run" in str(found)
    assert found.dynamic.count > 4  # gradients and all


def test_a_function_that_branches_on_values_is_run_and_says_so():
    runs = []

    def f(x):
        runs.append(isinstance(x, dynamic.Tensor))
        return g.sum(x) if g.sum(x) > 0 else g.sum(-x)

    found = advice.advise(f, [(X,)], costs=costs())
    assert True in runs
    assert found.ran is True
    assert "your function was run, as it branches on values" in " ".join(str(found).split())


def test_gradients_are_taken_where_a_run_would_say_so():
    for f in (g.sum, lambda x: x * 2, lambda x: (g.sum(x), 1.0), lambda _: 2.0, g.argmax):
        for x in (X, np.arange(3)):
            assert differentiates(f, (x,), None, output_of) is differentiates(f, (x,), None)


def test_a_stream_compiles_once_for_each_shape():
    case = STREAM.case("small")
    found = advice.advise_case(case, costs(compile=Overhead(1.0, 0.0, 0.0)))
    assert (found.compiles, found.compile) == (3, 3.0)
    assert "each new shape or structure is compiled again" in found.reasons[-1]


def test_inputs_that_cannot_be_used_are_refused():
    with pytest.raises(InputsError, match="holds no NumPy array"):
        compare.advise(square_sum, [(1.0,)], costs=costs())


# The calibration


def test_a_calibration_is_kept_and_read_again(tmp_path):
    path = tmp_path / "costs.json"
    made = costs(kernels={"add": Kernel(Curve(((1.0, 2.0), (3.0, 4.0))), 0.5)}, seconds=3.0)
    save(made, path)
    assert load(path, MACHINE) == made


def test_a_calibration_of_another_machine_is_refused(tmp_path):
    path = tmp_path / "costs.json"
    save(costs(), path)
    with pytest.raises(CompareError, match=r"calibrated elsewhere or with other code \(cpu one and two\); remove it"):
        load(path, {"cpu": "two", "numpy": "2"})


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"calibration": 99}', '{"calibration": 1, "kernels": {}}'])
def test_a_file_that_is_no_calibration_is_refused(tmp_path, text):
    path = tmp_path / "costs.json"
    path.write_text(text)
    with pytest.raises(CompareError, match="no calibration"):
        load(path, MACHINE)


def test_overheads_are_found_again_from_what_they_add_up_to():
    counts = [[1.0, 2.0, float(ops), float(recorded)] for ops, recorded in ((3, 1), (10, 4), (40, 11), (7, 0))]
    true = np.array([5.0, 0.0, 2.0, 1.5])
    found = calibration.fit([(float(np.dot(row, true)), row) for row in counts])
    assert np.dot(counts, found) == pytest.approx(np.dot(counts, true))
    assert min(found) >= 0


def test_no_overhead_is_negative_whatever_the_times():
    rows = [(1.0, [1.0, 1.0]), (0.5, [1.0, 5.0]), (0.2, [1.0, 9.0])]
    assert min(calibration.fit(rows)) >= 0


@pytest.mark.parametrize("f", [lambda x: g.mean(x, axis=1), lambda x: x * 2, lambda x: x[1:], lambda x: g.take(x, [0])])
def test_a_kernel_is_timed_by_the_expression_that_generated_code_has(f):
    (node, *_) = (n for n in static.trace(f, TensorSpec((4, 6), "float32")).calls)
    assert 0 < calibration.timed(node) < 1


def test_the_kernels_of_a_step_are_calibrated():
    known = {work.key(node) for graph in synthetic.kernels() for node in graph.calls}
    case = TINY.case("small")
    used = structure(case.loss, (case.params, *case.examples[0]), 0).dynamic.calls
    assert {work.key(node) for node in used} <= known


def test_a_calibration_has_a_price_for_everything(monkeypatch):
    monkeypatch.setattr(synthetic, "SIZES", (1, 256))
    monkeypatch.setattr(synthetic, "SIDES", (4, 8))
    monkeypatch.setattr(synthetic, "TOUCHED", (1 << 18, 1 << 19))
    monkeypatch.setattr(calibration, "PASSES", 1)
    monkeypatch.setattr(synthetic, "larger", lambda: synthetic.tiny()[:2])
    monkeypatch.setattr(synthetic, "thin_products", lambda: list(thin())[:2])
    monkeypatch.setattr(calibration, "BLOCK_SECONDS", 1e-6)
    monkeypatch.setattr(calibration, "BLOCKS", 1)
    found = calibration.measured()
    assert len(found.kernels) > 100
    assert all(y > 0 for kernel in found.kernels.values() for _, y in kernel.out.points)
    assert min(found.row, found.block, found.dynamic.call, found.compile.op) >= 0
    assert found.dynamic.call + found.dynamic.array + found.dynamic.op > 0  # blocks so short cannot tell them apart
    assert Costs.from_dict(json.loads(json.dumps(found.to_dict()))) == found


thin = synthetic.thin_products


# The evaluation


def row(name, predicted, ratio):
    return evaluation.Row(name, predicted, ratio, (predicted, ratio), (1.0, 1.0), (5.0, 5.0), 0.9)


def test_only_what_is_called_counts_and_a_wrong_call_is_a_miss():
    rows = [row("a", 4.0, 2.0), row("b", 0.5, 0.9), row("c", 1.1, 0.5), row("d", 2.0, 0.9)]
    found = evaluation.summary(rows)
    assert (found["called"], found["hits"], found["always_static"]) == (3, 2, 1)
    assert found["rate"] == pytest.approx(2 / 3)
    assert found["met"] is False
    assert [one["hit"] for one in found["rows"]] == [True, True, None, False]
    assert found["ratio_off_by"] == pytest.approx(2.0, rel=0.12)


def test_over_few_calls_the_compilation_decides():
    found = evaluation.summary([row("a", 4.0, 2.0)])
    assert found["over_calls"]["1"] == {
        "called": 1, "hits": 1, "rate": 1.0, "interval": found["interval"], "always_static": 0,
    }  # fmt: skip
    assert found["over_calls"]["100"]["always_static"] == 1


def test_nothing_called_has_no_rate():
    found = evaluation.summary([row("a", 1.0, 3.0)])
    assert (found["called"], found["rate"], found["interval"], found["met"]) == (0, None, None, False)


def test_a_row_is_predicted_then_measured_and_one_that_fails_is_left_out(monkeypatch):
    monkeypatch.setattr(evaluation, "BUDGET", calibration_free())
    rows = {"tiny": lambda: TINY.case("small"), "branch": lambda: BRANCH.case("small")}
    found = evaluation.evaluate(rows, costs(), Reporter())
    assert [one["name"] for one in found["rows"]] == ["tiny"]
    assert found["rows"][0]["measured_ratio"] > 0
    assert "ControlFlowError" in found["left_out"]["branch"]


def calibration_free():
    from compare.run.job import Budget

    return Budget(2, 1, 0.01, 1e-5)


def test_the_cells_of_the_evaluation_are_chosen_as_those_of_a_run():
    assert list(evaluation.cases(only="tiny_mlp/small")) == ["tiny_mlp/small"]
    assert len(evaluation.cases()) > 20


# The command


def test_the_evaluation_is_told_beside_those_who_name_one_engine(monkeypatch, saved):
    rows = evaluation.summary([row("a", 4.0, 2.0), row("b", 2.0, 0.9), row("c", 0.5, 0.9)])
    monkeypatch.setattr(evaluation, "evaluate", lambda *_: {**rows, "left_out": {}})
    done = advise("--evaluate", "--calibration", saved)
    assert done.exit_code == 0, done.output
    words = " ".join(done.stdout.split())
    assert "Right once warm: 2 of 3, 67%" in words
    assert "naming static each time: 1, naming dynamic: 2." in words
    assert "Right over 1 call with the compilation: " in words
    assert "Right over 10 calls with the compilation: " in words


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "costs.json"
    save(costs(machine=machines.fingerprint(environment()), dynamic=Overhead(0.0, 0.0, US)), path)
    return path


MINE = """
import numpy as np, graphs as g
def loss(w, x):
    return g.mean(g.tanh(x @ w))
def broken(w, x):
    raise ValueError("mine")
inputs = [(np.ones((3, 2), np.float32), np.ones((4, 3), np.float32))]
"""


def advise(*arguments):
    return CliRunner().invoke(graphduel, ["advise", *map(str, arguments)])


def test_the_command_advises_on_a_function_and_writes_json(tmp_path, saved):
    file, out = tmp_path / "mine.py", tmp_path / "advice.json"
    file.write_text(MINE)
    done = advise(f"{file}:loss", "--calibration", saved, "--json", out)
    assert done.exit_code == 0, done.output
    assert "once warm dynamic takes" in done.stdout
    assert json.loads(out.read_text())["winner"] == "static"


@pytest.mark.parametrize(
    ("arguments", "said", "code"),
    [
        ((), "give a function, as FILE.py:FUNCTION, or --evaluate", 2),
        (("x.py:f", "--evaluate"), "give a function, as FILE.py:FUNCTION, or --evaluate", 2),
        (("x.py:f", "--only", "a"), "--rows and --only are for --evaluate", 2),
    ],
)
def test_options_that_do_not_go_together_are_a_usage_error(arguments, said, code):
    done = advise(*arguments)
    assert done.exit_code == code
    assert said in " ".join(done.stderr.split())


def test_an_error_of_the_functions_own_names_its_line(tmp_path, saved):
    file = tmp_path / "mine.py"
    file.write_text(MINE)
    done = advise(f"{file}:broken", "--calibration", saved)
    assert done.exit_code == 1
    assert "mine.py:6: ValueError: mine" in done.stderr


def test_a_foreign_calibration_ends_the_command(tmp_path):
    path = tmp_path / "costs.json"
    save(costs(), path)
    done = advise("x.py:f", "--calibration", path)
    assert done.exit_code == 2
    assert "calibrated elsewhere" in done.stderr

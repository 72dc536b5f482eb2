"""Time part by part: the programs compute what the step does, and the parts add up to it."""

from dataclasses import replace
from math import isfinite

import numpy as np
import pytest

import static
from compare.errors import UnsupportedError
from compare.instruments import parts as programs
from compare.instruments.parts import DYNAMIC, ENGINES, STATIC, UNEXPLAINED, measure_parts
from compare.records.job import Budget
from compare.records.record import Cell
from compare.report.figures import parts
from compare.report.figures.parts import stages, step_parts
from compare.report.summary import summarise
from compare.stats import ratio_interval, sum_interval, unpaired_ratio_interval
from tests.helpers import fake_workloads
from tests.helpers.records import plain, typed

# Seconds of each part of an engine that is made up, and what its programs then take.
KNOWN = {"into": 3.0, "whole": 3.5, "forward": 1.0, "kept": 1.25, "plain": 1.75, "recorded": 2.5, "passes": 6.0}
KNOWN |= {"wrapped": 1.5, "bare": 0.75, "made": 0.25, "anew": 6.375, "step": 7.25}
SHARES = {
    "kernel": 3.0, "allocation": 0.5, "dispatch": 0.75, "recording": 0.5, "backward": 1.25, "containers": 1.0,
    "in place": 0.125, UNEXPLAINED: 0.125,
}  # fmt: skip
COMPILED = {"step": 4.0, "call": 3.0, "guard": 0.5, "run": 2.5, "calls": 0.5, "fresh": 0.75, "filled": 0.25}


def record(process=0, unexplained=0.0, noise=(1.0, 1.5, 1.25)):
    known = {**KNOWN, "step": KNOWN["step"] + unexplained}
    engines = {
        engine: {name: [seconds * n for n in noise] for name, seconds in of.items()}
        for engine, of in (("dynamic", known), ("static", COMPILED))
    }
    once = [{"whole": 10.0, "tracing": 2.0, "passes": 3.0, "planning": 4.0}]
    head = {"kind": "parts", "workload": "tiny", "size": "small", "process": process}
    return {**head, "engines": engines, "off_core": 0.0, "once": once}


def test_the_parts_of_an_engine_with_known_ones_are_found():
    dynamic_parts, static_parts = step_parts(typed([record(0), record(1)]))
    expected = {part: seconds / 7.25 for part, seconds in SHARES.items()}
    assert {part: share.estimate for part, share in dynamic_parts.shares.items()} == pytest.approx(expected)
    found = {part: share.estimate * 4 for part, share in static_parts.shares.items()}
    assert found == pytest.approx(
        {"kernel": 1.5, "allocation": 0.5, "dispatch": 0.5, "guard": 0.5, "cache lookup": 1.0, UNEXPLAINED: 0.0}
    )
    assert dynamic_parts.note is None


def test_records_of_another_versions_programs_are_left_out():
    older = record(0)
    older["engines"]["dynamic"]["ran"] = older["engines"]["dynamic"].pop("anew")
    assert step_parts(typed([older])) == []
    assert [one.engine for one in step_parts(typed([older, record(1)]))] == ["dynamic", "static"]
    assert parts.draw_parts(summarise(typed([older]))).figure is None


@pytest.mark.parametrize("unexplained", [-0.875, 0.0, 0.875])
def test_a_bar_ends_at_the_whole_step(unexplained):
    for one in step_parts(typed([record(unexplained=unexplained)])):
        shares = parts.positive_shares(one)
        assert min(shares.values()) > 0
        assert sum(shares.values()) == pytest.approx(1)
        assert shares.keys() <= one.shares.keys()


def test_what_is_unexplained_beyond_five_percent_is_told():
    found = step_parts(typed([record(i, unexplained=0.875) for i in range(3)]))[0]
    assert not found.adds_up
    assert found.note.startswith("tiny (small), dynamic: 12.3% of a step is unexplained [12.3%, 12.3%], more than 5%")


@pytest.mark.parametrize("parts", [DYNAMIC, STATIC])
def test_the_parts_sum_to_the_step_whatever_the_programs_take(parts):
    total = {}
    for weights in parts.values():
        for name, weight in weights.items():
            total[name] = total.get(name, 0) + weight
    assert {name: weight for name, weight in total.items() if weight} == {"step": 1}


def test_programs_of_both_engines_run_and_keep_the_schema():
    budget = Budget(rounds=2, least=2, seconds=0.01, block_seconds=1e-5)
    job = fake_workloads.job("parts", "TINY", process=0, budget=budget)
    found = plain(measure_parts(job, fake_workloads.make_tiny()))
    assert typed(found)
    for one in step_parts(typed([found])):
        assert sum(share.estimate for share in one.shares.values()) == pytest.approx(1)
        assert set(found["engines"][one.engine]) == {n for ws in ENGINES[one.engine].values() for n in ws}
    assert set(stages(typed([found]), Cell("tiny", "small"))) == {"tracing", "passes", "planning", UNEXPLAINED}


def test_straight_code_computes_the_step():
    case = fake_workloads.make_tiny()
    made = programs.dynamic_programs(case)
    loss, gradients = made["step"]()
    for name in ("whole", "into"):
        value, gradient = made[name]()
        np.testing.assert_array_equal(value, loss)
        np.testing.assert_array_equal(gradient, gradients["w"])
    np.testing.assert_array_equal(made["forward"]()[0], loss)
    *kept, value = made["kept"]()
    np.testing.assert_array_equal(value, loss)
    tanh = np.tanh(fake_workloads.X @ fake_workloads.W)
    assert [k.shape for k in kept] == [tanh.shape]  # what backward reads, and no more
    np.testing.assert_allclose(kept[0], tanh, rtol=1e-6)


def test_a_step_on_leaves_made_anew_runs_the_loss_and_backward_once_and_leaves_the_others_alone():
    ran = []

    def loss(params, x):
        ran.append(params["w"])
        return fake_workloads.tiny_loss(params, x)

    made = programs.dynamic_programs(replace(fake_workloads.make_tiny(), loss=loss))
    _, gradients = made["step"]()
    ran.clear()
    made["anew"]()
    made["anew"]()
    first, second = ran
    assert first is not second  # each step makes its own
    np.testing.assert_array_equal(first.grad.numpy(), gradients["w"])
    (params, _), (again, _) = made["made"](), made["made"]()
    assert params["w"] is not again["w"]
    assert params["w"].requires_grad
    assert made["bare"]() is None


def test_hollow_programs_give_outputs_without_kernels():
    made = programs.static_programs(fake_workloads.make_tiny())
    loss, gradients = made["call"]()
    for name in ("step", "guard"):
        again, others = made[name]()
        np.testing.assert_array_equal(again, loss)
        np.testing.assert_array_equal(others["w"], gradients["w"])
    assert [one for one in made["calls"]() if isinstance(one, np.ndarray)] == []


def test_a_case_without_gradients_is_refused():
    with pytest.raises(UnsupportedError, match="takes no gradients"):
        programs.dynamic_programs(replace(fake_workloads.make_tiny(), argnum=None))


def test_the_figure_has_a_bar_for_each_engine_and_tells_what_is_unexplained():
    drawing = parts.draw_parts(summarise(typed([record(i, unexplained=0.875) for i in range(3)])))
    assert drawing.figure is not None
    assert "12.3% of a step is unexplained" in drawing.caption
    rows = {(row[2], row[3]): row[4:] for row in drawing.table.rows}
    assert rows["static", "guard"] == ("12.5%", "[12.5%, 12.5%]", "617 ms")
    assert rows["compiling once", UNEXPLAINED][-1] == "1 s"


# The interval of a sum of ratios


def test_terms_that_cancel_have_no_width():
    rng = np.random.default_rng(0)
    noisy, base = rng.lognormal(size=(3, 8)).tolist(), rng.lognormal(size=(3, 8)).tolist()
    none = sum_interval([(1, noisy), (-1, noisy)], base)
    assert (none.low, none.estimate, none.high) == (0, 0, 0)
    assert sum_interval([], base).estimate == 0
    twice = sum_interval([(2, base)], base)
    assert twice.bounds() == pytest.approx([2, 2])


def test_the_interval_of_a_sum_holds_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(60):
        base = np.exp(0.1 * rng.standard_normal((4, 10)))
        tops = [base * ratio * np.exp(0.1 * rng.standard_normal((4, 10))) for ratio in (0.5, 0.2)]
        found = sum_interval([(1, tops[0].tolist()), (-1, tops[1].tolist())], base.tolist(), resamples=300)
        held += found.low <= 0.3 <= found.high
    assert held >= 54


def test_times_of_a_damaged_file_lie_farther_apart_than_floats_reach():
    rows = [[1e300, 1e-300], [1e-300, 1e300], [1e300, 1e300], [1.0, 1.0]]
    far = sum_interval([(3.0, rows), (-1.0, rows[::-1])], [[1e-300, 1e-300]] * 4)
    assert all(map(isfinite, (far.estimate, far.low)))
    huge, tiny = [[1e300]] * 3, [[1e-300]] * 3
    assert ratio_interval(huge, tiny).estimate == unpaired_ratio_interval(huge, tiny).estimate > 1e300


def test_terms_need_the_blocks_of_the_denominator():
    with pytest.raises(ValueError, match="paired by index"):
        sum_interval([(1, [[1.0]])], [[1.0, 2.0]])
    alone = sum_interval([(1, [[1.0]])], [[2.0]])
    assert (alone.estimate, alone.bounded, alone.bounds()) == (0.5, False, None)
    (found, _) = step_parts(typed([record(0, unexplained=0.875), record(1, unexplained=0.875)]))
    assert "12.3% of a step is unexplained (no interval), more than 5%" in found.note


@pytest.mark.parametrize("example", [(np.ones(3),), ({"x": np.ones(3), "times": 2},)], ids=["arrays", "a static value"])
def test_the_guard_runs_no_kernel(example):
    def f(given):
        return given["x"] * given["times"] if isinstance(given, dict) else given * 2

    exe = static.compile(f, *example)
    guard = exe.with_run(lambda *_: (np.zeros(3),))
    assert guard(*example).tolist() == [0, 0, 0]
    assert exe(*example).tolist() == [2, 2, 2]

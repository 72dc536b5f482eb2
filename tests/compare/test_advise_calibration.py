"""The calibration of prices, and the evaluation of advice."""

import json

import numpy as np
import pytest

import graphs as g
import static
from compare.advice import calibration, evaluation, fitting, synthetic, work
from compare.advice.costs import Costs, Curve, Kernel, load, save
from compare.advice.structures import structure
from compare.errors import CompareError
from compare.run.progress import Reporter
from graphs.spec import TensorSpec
from tests.helpers.fake_workloads import BRANCH, TINY
from tests.helpers.prices import MACHINE, advise, costs

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
    with pytest.raises(CompareError, match="is not a calibration"):
        load(path, MACHINE)


def test_overheads_are_found_again_from_what_they_add_up_to():
    counts = [[1.0, 2.0, float(ops), float(recorded)] for ops, recorded in ((3, 1), (10, 4), (40, 11), (7, 0))]
    true = np.array([5.0, 0.0, 2.0, 1.5])
    found = fitting.prices([(row, float(np.dot(row, true))) for row in counts])
    assert np.dot(counts, found) == pytest.approx(np.dot(counts, true))
    assert min(found) >= 0


def test_no_overhead_is_negative_whatever_the_times():
    rows = [([1.0, 1.0], 1.0), ([1.0, 5.0], 0.5), ([1.0, 9.0], 0.2)]
    assert min(fitting.prices(rows)) >= 0


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
    """Of ratios dynamic ÷ static, as a static step of 1 s makes them easy to write."""
    times = (predicted, ratio), (1.0, 1.0), (5.0, 5.0)
    return evaluation.PredictionRow(name, 1 / predicted, 1 / ratio, *times, 0.9)


def test_only_what_is_called_counts_and_a_wrong_call_is_a_miss():
    rows = [row("a", 4.0, 2.0), row("b", 0.5, 0.9), row("c", 1.1, 0.5), row("d", 2.0, 0.9)]
    found = evaluation.summary(rows)
    assert (found["called"], found["hits"], found["always_compiled"]) == (3, 2, 1)
    assert found["rate"] == pytest.approx(2 / 3)
    assert found["met"] is False
    assert [one["hit"] for one in found["rows"]] == [True, True, None, False]
    assert found["ratio_off_by"] == pytest.approx(2.0, rel=0.12)


def test_over_few_calls_the_compilation_decides():
    found = evaluation.summary([row("a", 4.0, 2.0)])
    assert found["over_calls"]["1"] == {
        "called": 1, "hits": 1, "rate": 1.0, "interval": found["interval"], "always_compiled": 0,
    }  # fmt: skip
    assert found["over_calls"]["100"]["always_compiled"] == 1


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
    from compare.records.job import Budget

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
    assert "the answer `static` is right in 1, `dynamic` in 2." in words
    assert "Right over 1 call with the compilation: " in words
    assert "Right over 10 calls with the compilation: " in words

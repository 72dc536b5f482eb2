"""Advice on a function in a framework: counts, prices fitted to probes, what is said, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks import advice as evaluation
from compare.advice import counting, prediction, programs
from compare.cli.command import graphduel
from compare.engines import find_engine
from compare.errors import InputsError, WorkerError
from compare.records.job import Budget, Job
from compare.records.own import CountedProgram, CountedPrograms, FunctionFault, RanOp, count_calls
from compare.records.record import kind_of
from compare.run.progress import Reporter
from compare.run.worker import failure, perform

pytestmark = pytest.mark.usefixtures("toy")

MODES = ("toy-eager", "toy-jit")
HERE = {"cpu": "this"}
TOY = f"{Path(__file__).parents[1] / 'helpers' / 'toy_framework.py'}"


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "BUDGET", Budget(2, block_seconds=1e-4))


def job(function: str, inputs: str = "", *, timed: bool = False) -> Job:
    asked = counting.subject_of("toy", function if ":" in function else "", inputs, "jit")
    what = {
        "subject": asked.to_dict(),
        "programs": [function],
        "rows": "",
        "timed": ["eager", "compiled"] if timed else [],
    }
    return Job(kind_of(CountedPrograms), modes=MODES, budget=counting.BUDGET, asked=what)


def program(function: str, inputs: str = "", *, timed: bool = False) -> Any:
    answer = perform(job(function, inputs, timed=timed))
    assert isinstance(answer, CountedPrograms)
    return answer.programs[0]


# What is counted


def test_stretches_are_what_lies_between_products():
    view, op, product = RanOp("view"), RanOp("other", 10, 80), RanOp("product", 4, 32, 100)
    counts = count_calls([op, view, op, product, product, op, view])
    assert list(counts.eager.values()) == [1, 3, 2, 2, 240, 200]
    assert list(counts.compiled.values()) == [1, 2, 2, 30, 200, 0]
    assert list(counts.compile.values()) == [1, 7, 4, 0]
    assert (counts.ops, counts.control) == (7, "none")
    read = count_calls([op, RanOp("read"), op])
    assert (read.compiled["graph breaks"], read.compiled["fused kernels"], read.eager["eager ops"]) == (1, 2, 3)
    assert read.control == "between graphs"
    assert "Python reads 1 value in a call" in read.remarks[0]
    assert not any(set(count_calls([]).eager.values()) - {0, 1})


def test_a_worker_counts_the_work_of_each_call_and_the_shapes_among_them():
    counted = program(f"{TOY}:loss", f"{TOY}:calls")
    assert (len(counted.counts), counted.shapes, counted.timed) == (3, 2, None)
    first, longer, again = counted.counts
    assert first == again
    assert longer.compiled["elements of fused kernels"] > first.compiled["elements of fused kernels"]
    assert longer.ops == first.ops > 60  # 30 products and 30 tanh, and what comes back


@pytest.mark.parametrize("name", ["2 layers of 32", "tiny_mlp/small"])
def test_probes_and_workloads_are_timed_in_both_modes(name):
    counted = program(name, timed=True)
    (counts,) = counted.counts
    assert counts.eager["eager products"] >= 4
    assert counts.eager["eager flops"] % 2 == 0 < counts.eager["eager flops"]
    assert min(counted.timed.eager, counted.timed.compiled, counted.timed.compile) > 0


def test_what_is_wrong_with_a_file_is_an_answer():
    fault = perform(job("nowhere.py:loss"))
    assert isinstance(fault, FunctionFault)
    assert "nowhere.py" in fault.error


@pytest.mark.slow
def test_probes_differ_in_what_they_do():
    counts = [program(name).counts[0] for name in programs.FEW if "branches" not in name]  # the toy counts by tracing
    table = np.array([list(each.eager.values()) for each in counts], float)
    assert np.linalg.matrix_rank(table / table.max(axis=0)) == len(counts[0].eager)


# What is said


def said(eager: float, compiled: float, shapes: int = 1, reads: int = 0) -> prediction.Advice:
    ran = [RanOp("other"), RanOp("product"), *[RanOp("read")] * reads]
    each = {"eager calls": eager, "compiled calls": compiled, "compilations": 2.0, "graph breaks": 2e-3}
    machine = prediction.Prices(MODES, HERE, each, 0.2)
    return prediction.predict(machine, CountedProgram("a step", [count_calls(ran)], shapes))


def test_compiling_is_advised_where_it_should_pay():
    advice = said(300e-6, 100e-6)
    assert (advice.winner, advice.break_even) == ("toy-jit", 10_000)
    words = " ".join(str(advice).split())
    assert words.startswith("Take toy-jit: once warm, toy-jit is 3× [")
    assert "faster than toy-eager by prediction" in words
    assert "paid for itself after 10,000 calls" in words
    assert "ran your function once for each call, op by op: it compiled and timed nothing" in words
    assert advice.confidence > 0.98


def test_eager_is_advised_where_it_should_win():
    advice = said(100e-6, 130e-6, shapes=4)
    assert (advice.winner, advice.break_even) == ("toy-eager", None)
    words = " ".join(str(advice).split())
    assert words.startswith("Take toy-eager")
    assert "for the 4 shapes of the calls takes 8 s: this never pays for itself" in words
    assert 0.8 < advice.confidence < 0.95


def test_values_that_python_reads_are_said():
    advice = said(1e-3, 1e-5, reads=2)
    assert advice.winner == "toy-eager"
    assert "Python reads 2 values in a call" in " ".join(str(advice).split())


def test_what_is_close_is_not_called():
    advice = said(100e-6, 110e-6)
    assert (advice.winner, advice.break_even) == ("too close to call", None)
    words = " ".join(str(advice).split())
    assert words.startswith("Too close to call")
    assert "graphduel compare measures it" in words


# The whole way


def answered(job: Job, *_: Any) -> Any:
    return perform(job)


def machine() -> prediction.Prices:
    """Prices of the toy here: each op takes a microsecond, a compiled call nothing else."""
    each = {"eager ops": 1e-6, "eager products": 1e-6, "fused kernels": 1e-6, "compilations": 0.1}
    return prediction.Prices(MODES, prediction.machine(find_engine("toy")), each, 0.2)


@pytest.mark.slow
def test_a_calibration_then_a_prediction_by_the_command(tmp_path, monkeypatch):
    monkeypatch.setattr(counting, "run_job", answered)
    monkeypatch.setattr(programs, "FEW", {name: programs.FEW[name] for name in list(programs.FEW)[:8]})
    path, kept = tmp_path / "out.json", tmp_path / "costs.json"
    words = ["advise", f"{TOY}:loss", "--inputs", f"{TOY}:calls", "--framework", "toy", "--calibration", str(kept)]
    first = CliRunner().invoke(graphduel, [*words, "--json", str(path)])
    assert first.exit_code == 0, first.output
    assert "the 2 shapes of the calls" in " ".join(first.output.split())
    advice = json.loads(path.read_text())
    assert advice["arms"] == list(MODES)
    assert advice["ratio"] == pytest.approx(advice["compiled"] / advice["eager"])
    monkeypatch.setattr(programs, "FEW", {})  # it is read now
    assert CliRunner().invoke(graphduel, words).exit_code == 0


def test_predictions_are_judged_by_what_is_measured(monkeypatch):
    monkeypatch.setattr(counting, "run_job", answered)
    asked = counting.subject_of("toy", "", "", None)
    judged = evaluation.evaluate(asked, machine(), ["tiny_mlp/small", "branch_on_sum/small"], Reporter())
    (only,) = judged["rows"]
    assert only["name"] == "tiny_mlp/small"
    assert list(judged["left_out"]) == ["branch_on_sum/small"]  # the toy's compiler refuses it
    assert only["measured_ratio"] > 0
    assert only["interval"][0] < only["predicted_ratio"] < only["interval"][1]


def test_the_evaluation_of_a_framework_has_the_screen_of_our_own(tmp_path, monkeypatch):
    monkeypatch.setattr(counting, "run_job", answered)
    monkeypatch.setattr(counting, "calibrate", lambda *_: machine())
    words = ["--framework", "toy", "--only", "tiny*", "--calibration", tmp_path / "costs.json"]
    done = CliRunner().invoke(evaluation.main, [*map(str, words), "--json", str(tmp_path / "out.json")])
    assert done.exit_code == 0, done.output
    said = " ".join(done.stdout.split())
    assert "Ratios are toy-jit ÷ toy-eager." in said
    assert "Brier score" in said
    judged = json.loads((tmp_path / "out.json").read_text())
    assert [row["name"] for row in judged["rows"]] == ["tiny_mlp/small"]
    assert {"eager_seconds", "compiled_seconds", "interval"} <= set(judged["rows"][0])


def test_probes_that_fail_are_left_out_and_too_few_are_an_error(monkeypatch):
    monkeypatch.setattr(counting, "run_job", lambda job, *_: failure(job, "it died"))
    with pytest.raises(WorkerError, match=r"0 of 15 programs gave a result, 8 are needed"):
        counting.calibrate(counting.subject_of("toy", "", "", None), Reporter())


def test_what_is_wrong_with_the_users_file_is_an_error(monkeypatch):
    monkeypatch.setattr(counting, "run_job", answered)
    asked = replace(counting.subject_of("toy", "", "", None), function="nowhere.py:loss")
    with counting.workers(asked, 1, Reporter()) as workers, pytest.raises(InputsError, match=r"nowhere.py"):
        workers.look([asked.function], timed=False)


def test_programs_drawn_at_random_are_for_our_engines_alone():
    done = CliRunner().invoke(evaluation.main, ["--framework", "toy", "--held-out"])
    assert done.exit_code == 2
    assert "--held-out" in done.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["it.py:f", "--mode", "jit"], "--mode needs a --framework"),
        (["it.py:f", "--framework", "toy", "--mode", "nosuch"], "no mode 'nosuch'"),
        (["it.py:f", "--framework", "toi"], "did you mean 'toy'?"),
    ],
)
def test_what_cannot_be_asked_is_refused(words, said):
    found = CliRunner().invoke(graphduel, ["advise", *words])
    assert found.exit_code == 2
    assert said in found.output


def test_a_framework_that_compiles_nothing_has_nothing_to_advise_on(monkeypatch):
    from tests.helpers.toy_framework import Toy

    monkeypatch.setattr(Toy, "modes", Toy.modes[:1])
    with pytest.raises(InputsError, match="Toy does not compile"):
        counting.subject_of("toy", "it.py:f", "", None)

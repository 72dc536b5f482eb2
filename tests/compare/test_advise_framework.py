"""Advice on a function in a framework: counts, prices fitted to probes, what is said, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from compare.advice import compiling, counting, fitting, judging, kept, probes, probing
from compare.advice import counted as costs
from compare.cli.command import graphduel
from compare.errors import CompareError, InputsError, WorkerError
from compare.records.framework_work import FrameworkWork, Timed
from compare.records.job import Budget, Job
from compare.records.own import FunctionFault
from compare.records.record import kind_of
from compare.records.work import RanOp, Work, counted
from compare.run.progress import Reporter
from compare.run.worker import failure, perform

pytestmark = pytest.mark.usefixtures("toy")

ARMS = ("toy-eager", "toy-jit")
HERE = {"cpu": "this"}
TOY = f"{Path(__file__).parents[1] / 'helpers' / 'toy_framework.py'}"


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "BUDGET", Budget(2, 1, 0.01, 1e-4))


def job(function: str, arms: tuple[str, ...] = ARMS, inputs: str = "") -> Job:
    asked = judging.question("toy", function, inputs, "jit")
    return Job(kind_of(FrameworkWork), arms=arms, asked=asked.to_dict())


# What is counted


def test_stretches_are_what_lies_between_products():
    view, op, product = RanOp("view"), RanOp("other", 10, 80), RanOp("product", 4, 32, 100)
    assert counted([op, view, op, product, product, op, view]) == Work(
        views=2, products=2, others=3, stretches=2, elements=30, moved=240, flops=200
    )
    assert counted([op, RanOp("read"), op]) == Work(reads=1, others=2, stretches=2, elements=20, moved=160)
    assert counted([]) == Work()


def test_a_worker_counts_the_work_of_each_call_and_the_shapes_among_them():
    found = perform(job(f"{TOY}:loss", ARMS[:1], f"{TOY}:calls"))
    assert isinstance(found, FrameworkWork)
    assert (len(found.works), found.shapes, found.timed) == (3, 2, None)
    first, longer, again = found.works
    assert first == again
    assert longer.elements > first.elements
    assert longer.others == first.others > 60  # 30 products and 30 tanh, and what comes back


@pytest.mark.parametrize("name", ["2 layers of 32", "tiny_mlp"])
def test_probes_and_workloads_are_timed_in_both_arms(name):
    found = perform(job(name))
    assert isinstance(found, FrameworkWork)
    (work,) = found.works
    assert work.products >= 4
    assert work.flops % 2 == 0 < work.flops
    assert min(found.timed.eager, found.timed.compiled, found.timed.first) > 0


def test_what_is_wrong_with_a_file_is_an_answer():
    found = perform(job("nowhere.py:loss"))
    assert isinstance(found, FunctionFault)
    assert "nowhere.py" in found.error


@pytest.mark.slow
def test_probes_differ_in_what_they_do():
    found = {}
    for name in probes.PROBES:
        if "branches" in name:
            continue  # the toy counts by tracing
        asked = job(name, ARMS[:1])
        (found[name],) = perform(asked).works
    table = np.array([list(costs.eager_terms(work)) for work in found.values()], float)
    assert np.linalg.matrix_rank(table / table.max(axis=0)) == len(costs.eager_terms(Work()))


# What is fitted

PRICES = {"eager": (5e-6, 2e-6, 5e-7, 3e-6, 1e-10, 1e-11), "compiled": (4e-5, 2e-6, 1e-6, 5e-10, 1e-11, 3e-5)}


def rows(noise: float = 0.0) -> list[costs.Row]:
    rng = np.random.default_rng(3)
    found = []
    for _ in range(15):
        views, reads, products, others, stretches = (int(n) for n in rng.integers(1, 60, 5))
        elements, flops = (int(10**n) for n in rng.uniform(2, 8, 2))
        work = Work(views, reads, products, others, min(stretches, others), elements, 8 * elements + 64, flops)
        eager = sum(p * t for p, t in zip(PRICES["eager"], costs.eager_terms(work), strict=True))
        compiled = sum(p * t for p, t in zip(PRICES["compiled"], costs.compiled_terms(work), strict=True))
        off = np.exp(noise * rng.standard_normal(2))
        found.append(costs.Row(work, Timed(eager * off[0], compiled * off[1], 1.0 + 0.01 * work.ops)))
    return found


def test_prices_that_made_the_times_are_found_again():
    found = costs.fitted(ARMS, "1.0", HERE, rows())
    np.testing.assert_allclose(found.eager, PRICES["eager"], rtol=1e-6)
    np.testing.assert_allclose(found.compiled, PRICES["compiled"], rtol=1e-6)
    assert found.spread == costs.LEAST_SPREAD
    assert found.priced(Work(others=9, views=1)).first == pytest.approx(1.1)


def test_a_noisy_machine_is_less_sure():
    assert costs.fitted(ARMS, "1.0", HERE, rows(0.5)).spread > 2 * costs.LEAST_SPREAD


@given(st.lists(st.tuples(*[st.floats(0, 1e6)] * 3, st.floats(1e-9, 1e3)), min_size=3, max_size=12))
def test_no_price_is_below_zero_and_none_is_better(table):
    """The conditions of Karush, Kuhn and Tucker: the slope is 0 along each price above 0, and not down along others."""
    found = fitting.prices([((1.0, *terms), seconds) for *terms, seconds in table])
    relative = np.array([(1.0, *terms) for *terms, _ in table]) / np.array([[row[-1]] for row in table])
    scale = np.where(relative.any(axis=0), relative.max(axis=0), 1.0)
    scaled, prices = relative / scale, np.array(found) * scale
    assert np.isfinite(prices).all()
    assert (prices >= 0).all()
    slope = scaled.T @ (1 - scaled @ prices)
    assert (slope <= 1e-6 * len(table)).all()
    assert abs(slope @ prices) <= 1e-6 * len(table) * max(1.0, prices.max())


def test_a_calibration_is_kept_and_is_of_one_machine_and_version(tmp_path):
    path, found = tmp_path / "in" / "costs.json", costs.fitted(ARMS, "1.0", HERE, rows())
    costs.save(found, path)
    assert costs.load(path, "1.0", HERE) == found
    with pytest.raises(CompareError, match=r"framework 1.0 and 1.1"):
        costs.load(path, "1.1", HERE)
    with pytest.raises(CompareError, match="cpu this and that"):
        costs.load(path, "1.0", {"cpu": "that"})
    for text in ("[]", "{", json.dumps({**json.loads(path.read_text()), "schema": 0})):
        path.write_text(text)
        with pytest.raises(CompareError, match="calibration"):
            costs.load(path, "1.0", HERE)


# What is said


def said(eager: float, compiled: float, shapes: int = 1) -> compiling.Prediction:
    found = costs.CountedCosts(
        ARMS, "1.0", HERE, (eager, 0, 0, 0, 0, 0), (compiled, 0, 0, 0, 0, 0), (2.0, 0, 0, 0), 0.2
    )
    return compiling.predict(found, [Work(others=3, products=1)], shapes)


def test_compiling_is_advised_where_it_should_pay():
    found = said(300e-6, 100e-6)
    assert (found.winner, found.break_even) == ("compiled", 10_000)
    assert " ".join(str(found).split()).startswith(
        "Compile it: toy-jit should take 100 µs a call once warm, eager 300 µs; compiled ÷ eager is 0.333× ["
    )
    assert "paid for itself after 10,000 calls" in " ".join(str(found).split())
    assert found.confidence > 0.98


def test_eager_is_advised_where_it_should_win():
    found = said(100e-6, 130e-6, shapes=4)
    assert (found.winner, found.break_even) == ("eager", None)
    assert str(found).startswith("Do not compile it")
    assert "never pays for itself" in " ".join(str(found).split())
    assert "the calls have 4 shapes" in " ".join(str(found).split())
    assert 0.8 < found.confidence < 0.95


def test_values_that_python_reads_are_said():
    model = costs.CountedCosts(ARMS, "1.0", HERE, (1e-3,) + (0,) * 5, (1e-5, 0, 0, 0, 0, 2e-3), (2.0, 0, 0, 0), 0.2)
    found = compiling.predict(model, [Work(others=3, reads=2)], 1)
    assert found.winner == "eager"
    assert "Python reads 2 values in a call" in " ".join(str(found).split())


def test_what_is_close_is_not_called():
    found = said(100e-6, 110e-6)
    assert (found.winner, found.break_even) == ("too close to call", None)
    assert str(found).startswith("Too close to call")
    assert "Measure it: graphduel compare" in str(found)


# The whole way


def answered(job: Job, _timeout: float) -> Any:
    return perform(job)


def test_a_calibration_then_a_prediction_by_the_command(tmp_path, monkeypatch):
    monkeypatch.setattr(probing, "run_job", answered)
    monkeypatch.setattr(probing, "PROBES", {name: probes.PROBES[name] for name in list(probes.PROBES)[:8]})
    path, kept = tmp_path / "out.json", tmp_path / "costs.json"
    words = ["advise", f"{TOY}:loss", "--inputs", f"{TOY}:calls", "--framework", "toy", "--calibration", str(kept)]
    first = CliRunner().invoke(graphduel, [*words, "--json", str(path)])
    assert first.exit_code == 0, first.output
    assert "the calls have 2 shapes" in " ".join(first.output.split())
    found = json.loads(path.read_text())
    assert found["arm"] == "toy-jit"
    assert found["ratio"] == pytest.approx(found["times"]["compiled"] / found["times"]["eager"])
    monkeypatch.setattr(probing, "PROBES", {})  # it is read now
    assert CliRunner().invoke(graphduel, words).exit_code == 0


def test_predictions_are_judged_by_what_is_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(probing, "run_job", answered)
    asked = judging.question("toy", "", "", None)
    model = costs.fitted(ARMS, "1.0", HERE, rows())
    found = judging.judged(asked, model, ["tiny_mlp", "branch_on_sum"], Reporter())
    assert [one.name for one in found] == ["tiny_mlp/small"]  # the toy's compiler refuses the other
    assert found[0].ratio > 0
    assert found[0].interval[0] < found[0].predicted < found[0].interval[1]


def test_the_evaluation_of_a_framework_has_the_screen_of_our_own(tmp_path, monkeypatch):
    monkeypatch.setattr(probing, "run_job", answered)
    model = costs.fitted(ARMS, "1.0", kept.machine(), rows())
    monkeypatch.setattr(judging, "calibrated", lambda *_: model)
    words = ["advise", "--evaluate", "--framework", "toy", "--only", "tiny*", "--calibration", tmp_path / "costs.json"]
    done = CliRunner().invoke(graphduel, [*map(str, words), "--json", str(tmp_path / "out.json")])
    assert done.exit_code == 0, done.output
    said = " ".join(done.stdout.split())
    assert "Ratios are toy-jit ÷ toy-eager." in said
    assert "Brier score" in said
    found = json.loads((tmp_path / "out.json").read_text())
    assert [row["name"] for row in found["rows"]] == ["tiny_mlp/small"]
    assert {"eager_seconds", "compiled_seconds", "interval"} <= set(found["rows"][0])


def test_probes_that_fail_are_left_out_and_too_few_are_an_error(monkeypatch):
    monkeypatch.setattr(probing, "run_job", lambda job, _: failure(job, "it died"))
    asked = judging.question("toy", "", "", None)
    with pytest.raises(WorkerError, match=r"0 of 15 probes gave a result, 8 are needed"):
        probing.calibrated(asked, Reporter())


def test_what_is_wrong_with_the_users_file_is_an_error(monkeypatch):
    monkeypatch.setattr(probing, "run_job", answered)
    model = costs.fitted(ARMS, "1.0", HERE, rows())
    asked = replace(judging.question("toy", "", "", None), function="nowhere.py:loss")
    with pytest.raises(InputsError, match=r"nowhere.py"):
        judging.advised(asked, model, Reporter())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["it.py:f", "--mode", "jit"], "--mode needs a --framework"),
        (["it.py:f", "--framework", "toy", "--only", "x"], "--only"),
        (["--evaluate", "--framework", "toy", "--held-out"], "--held-out"),
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
        judging.question("toy", "it.py:f", "", None)

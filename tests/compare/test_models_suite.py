"""The suite of real models: what is measured of each, that nothing of one loses another, and what the page says."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from click.testing import CliRunner

import graphs as g
from benchmarks import gpu as on_gpu
from compare import engines, workloads
from compare.claims import CLAIMS
from compare.claims import frameworks as costs
from compare.claims.evidence import of_framework
from compare.cli.command import graphduel
from compare.engines.process import ByteCounter
from compare.errors import InputsError, UnknownNameError
from compare.plans import jobs
from compare.plans import settings as presets
from compare.plans.settings import Settings
from compare.records import record, results
from compare.records.cells import Call, Memory, Parity, ParityRow, Time, TimeRow
from compare.records.job import Budget
from compare.records.record import Cell, Run, records_of
from compare.report import models as shown
from compare.run.progress import Reporter
from compare.run.worker import perform
from compare.suite import frameworks as stage
from compare.suite import stages
from compare.workloads import models
from compare.workloads.models import MODELS, Model
from tests.helpers import toy_framework

W = np.ones((3, 2), np.float32)
SIZES = (2, 3, 5, 8, 13, 21)
FILES = Path(models.__file__).parent


def loss(w, x):
    return g.mean(g.tanh(x @ w) ** 2)


def broken(w, x):
    raise ValueError("no such model")


def model(name, function, sizes):
    module = ModuleType(name)
    module.loss, module.inputs = function, [(W, np.ones((size, 3), np.float32)) for size in sizes]
    return module


@pytest.fixture
def toys(monkeypatch):
    """Three models of the toy framework: one of fixed shape, one that raises, one of varying length."""
    monkeypatch.setattr(engines, "_FRAMEWORKS", {"toy": "tests.helpers.toy_framework:Toy"})
    engines.find_engine.cache_clear()
    for module in (stage, models):
        monkeypatch.setattr(module, "FRAMEWORK", "toy")
    files = [model("toy_fixed", loss, (4,)), model("toy_broken", broken, (4,)), model("toy_lengths", loss, SIZES)]
    for module in files:
        varies = "length" if len(module.inputs) > 1 else ""
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setitem(MODELS, module.__name__, Model(module.__name__, varies))
    monkeypatch.setattr(models, "source", lambda name: f"{name}:loss")
    monkeypatch.setattr(stage, "AT_ONCE", {"cpu": 1, "cuda": 1})  # jobs run here in this thread, which alone has limits
    yield
    engines.find_engine.cache_clear()


def go(directory, stops_after=None, resume=False, only="toy_*", **options):
    """A run in this process, and the labels of the jobs that it ran; it may be stopped after some of them."""
    ran = []

    def execute(job, _timeout):
        if stops_after is not None and len(ran) == stops_after:
            raise KeyboardInterrupt
        if job.kind != "environment":
            ran.append(job.label)
        return perform(replace(job, budget=Budget(rounds=3, least=2, seconds=0.05, block_seconds=0.001)))

    settings = Settings("models", only=only, frameworks=["toy"], **options)
    try:
        return stages.run(directory, settings, Reporter(), resume=resume, execute=execute), ran
    except KeyboardInterrupt:
        return None, ran


def test_one_model_that_fails_loses_no_other(toys, tmp_path):
    outcome, ran = go(tmp_path / "run")
    rows = {
        row.name: row
        for row in costs.model_costs(of_framework(outcome.records, toy_framework.Toy()), toy_framework.Toy())
    }
    assert list(rows) == ["toy_fixed", "toy_lengths"]
    assert any("toy_broken" in failure and "no such model" in failure for failure in outcome.failures)
    for name in ("toy_fixed", "toy_lengths"):
        row = rows[name]
        assert row.mode.status == "ok"
        assert row.mode.ratio.bounded
        assert row.pays is not None
        assert row.error <= 1e-4
    assert (rows["toy_lengths"].inputs, rows["toy_lengths"].shapes) == (len(SIZES), len(SIZES))
    assert len([label for label in ran if "toy_fixed" in label]) == 4
    assert not any(record.mode is None for record in records_of(outcome.records, Time))


@pytest.mark.slow
def test_the_page_has_a_row_a_model_and_judges_the_claims_about_costs(toys, tmp_path):
    outcome, _ = go(tmp_path / "run")
    text = (tmp_path / "run" / "report.md").read_text()
    assert [verdict.claim.id for verdict in outcome.verdicts] == ["C4", "C5", "C6", "C8"]
    assert "real models, eager and compiled" in text
    assert all(f"| {name} |" in text.replace("\\", "") for name in ("toy_fixed", "toy_lengths"))
    assert "no such model" in text
    assert "graphduel run --suite models --only" in text
    assert "crossover map" not in text  # nor other figures of our workloads among what was not measured
    assert "share one op library" not in text
    c4 = outcome.verdicts[0].finding
    assert {regime.condition for regime in c4.regimes if "real models" in regime.condition} == {
        "first epoch, real models", "steady state, real models",
    }  # fmt: skip


@pytest.mark.slow
def test_a_run_that_was_stopped_goes_on_with_what_is_left(toys, tmp_path):
    whole, every = go(tmp_path / "whole")
    stopped, before = go(tmp_path / "run", stops_after=3)
    assert stopped is None
    resumed, after = go(tmp_path / "run", resume=True)
    assert sorted(before + after) == sorted(every)
    assert {record.job for record in resumed.records} == {record.job for record in whole.records}


def test_a_mode_that_meets_its_limit_is_recorded_as_that(toys, tmp_path, monkeypatch):
    limited = replace(presets.REAL, frameworks=replace(presets.REAL.frameworks, limit=0.3))
    monkeypatch.setattr(presets, "REAL", limited)
    outcome, ran = go(tmp_path / "run", only="toy_lengths", modes=["endless"])
    (row,) = costs.model_costs(outcome.records, toy_framework.Toy())
    assert row.mode.status == "limit"
    assert "1 of 6 calls: it did not end in 0.3 s" in row.mode.reason
    assert row.eager.steady > 0  # which the next process still times
    assert len(ran) == 2
    assert "limit" in shown.line(row)


def test_a_mode_that_is_wrong_is_not_timed_and_eager_is(toys, tmp_path):
    outcome, ran = go(tmp_path / "run", only="toy_fixed", modes=["wrong"])
    (row,) = costs.model_costs(outcome.records, toy_framework.Toy())
    assert (row.mode.status, row.mode.steady, row.mode.ratio) == ("disagree", None, None)
    assert row.eager.steady > 0
    assert len(ran) == 2


@pytest.mark.slow
def test_what_is_known_of_a_model_is_told_when_it_is_done(toys, tmp_path, monkeypatch):
    notices = []
    monkeypatch.setattr(Reporter, "notice", lambda _, words: notices.append(words))
    go(tmp_path / "run")
    assert [words.partition(",")[0] for words in notices] == ["toy_fixed", "toy_lengths"]
    assert "compiled ÷ eager" in notices[0]


def test_every_model_is_a_file_and_no_workload_has_its_name():
    files = {path.stem for path in FILES.glob("*.py")}
    ours = [name for name, model in MODELS.items() if not model.package]
    assert set(ours) <= files
    assert len(ours) >= 24
    assert not set(MODELS) & set(workloads.WORKLOADS)
    for name in ours:
        text = (FILES / f"{name}.py").read_text()
        assert f"def {MODELS[name].function}(" in text
        assert "Licence:" in text


def test_a_file_that_has_batches_makes_its_calls_by_them():
    """A helper of that name, imported, would be taken for them."""
    for name, of_file in MODELS.items():
        lines = (FILES / f"{name}.py").read_text().splitlines() if not of_file.package else []
        assert not [line for line in lines if line.startswith(("from", "import")) and "batches" in line], name


def test_no_such_model_names_those_that_there_are():
    with pytest.raises(UnknownNameError, match="resnet18"):
        jobs.cells(Settings("models", only="resnet81"))


@pytest.mark.parametrize(("asked", "named"), [("jax", "jax"), ("torch,tensorflow,jax", "tensorflow, jax")])
def test_another_framework_has_no_models(tmp_path, asked, named):
    answer = CliRunner().invoke(
        graphduel, ["run", "--suite", "models", "--frameworks", asked, "--out", str(tmp_path / "run")]
    )
    assert answer.exit_code == 2
    said = " ".join(answer.output.split())
    assert f"--suite models has models of torch alone, and none of {named}; leave --frameworks out" in said
    assert not (tmp_path / "run").exists()


def test_a_device_that_is_not_there_is_told_before_anything_is_measured(toys, tmp_path):
    with pytest.raises(InputsError, match=r"--device cuda: Toy sees no GPU here; .* or leave --device out"):
        go(tmp_path / "run", device="cuda")
    assert [type(record) for record in results.read(tmp_path / "run" / results.RESULTS)] == [Run]


@pytest.fixture
def gpu(toys, monkeypatch):
    """A GPU that computes nothing, and what has waited for it."""
    toy, waited = engines.find_engine("toy"), []
    monkeypatch.setattr(toy.devices, "gpu", lambda: "A GPU")
    monkeypatch.setattr(
        type(toy.devices), "waits", property(lambda self: lambda result: waited.append(self.engine.device))
    )
    monkeypatch.setattr(record, "_gpus", [])
    yield waited
    toy.start(0)


def test_on_a_gpu_each_call_is_waited_for_and_timed_on_the_wall(gpu, tmp_path):
    outcome, _ = go(tmp_path / "run", only="toy_lengths", device="cuda")
    times = records_of(outcome.records, Time)
    assert {record.environment.gpu for record in times} == {"A GPU"}
    assert {record.clock for record in times} == {"wall"}
    calls = sum(len(row.stream) for record in times for row in record.modes.values())
    blocks = sum(row.calls_per_block * len(row.blocks) for record in times for row in record.modes.values())
    assert set(gpu) == {"cuda"}
    assert len(gpu) >= calls + blocks
    assert not records_of(outcome.records, Memory)  # bytes from malloc say nothing about a GPU
    assert "Frameworks computed on A GPU." in (tmp_path / "run" / "report.md").read_text()


class MadeUpEvents(Counter):
    """The events of that GPU: each call of the clock is a millisecond later."""

    def __call__(self):
        self["ns"] += 1_000_000
        return self["ns"]


@pytest.fixture
def lent(gpu, monkeypatch):
    """A GPU with events and an allocator, as `benchmarks.gpu` finds it; the jobs that ran, and how many run at most."""
    toy, ran, stops = engines.find_engine("toy"), [], [None]

    def counted(call):
        call()
        return 4096

    monkeypatch.setattr(toy, "has_events", True)
    monkeypatch.setattr(toy.devices, "clock", MadeUpEvents)
    monkeypatch.setattr(type(toy.devices), "counter", property(lambda self: ByteCounter("allocator", int, counted)))

    def run(job, _limit):
        if len(ran) == stops[0]:
            raise on_gpu.OutOfTime
        if job.kind != "environment":
            ran.append(job)
        return perform(replace(job, budget=Budget(rounds=3, least=2, seconds=0.05, block_seconds=0.001)))

    for name, value in {"FRAMEWORK": "toy", "MODES": ("jit",), "run_job": run, "COLLECT": ["echo", "a GPU"]}.items():
        monkeypatch.setattr(on_gpu, name, value)
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "0")
    monkeypatch.setattr(
        jobs, "cells", lambda _: [Cell(f"toy_{name}", models.SIZE) for name in ("fixed", "broken", "lengths")]
    )
    return ran, stops


@pytest.mark.slow
def test_what_a_lent_gpu_teaches_is_measured_in_time_and_gone_on_with(lent, tmp_path):
    (ran, stops), folder = lent, tmp_path / "gpu"

    def run(*options):
        answer = CliRunner().invoke(on_gpu.main, [str(folder), *options], catch_exceptions=False)
        assert answer.exit_code == 0
        return answer.output

    stops[0] = 5
    assert "2 models left: the same command goes on" in run()
    (folder / stage.FOLDER).mkdir()  # which a framework that keeps compiled code has made
    assert [verdict["claim"] for verdict in json.loads((folder / results.VERDICTS).read_text())] == list(costs.JUDGED)
    stops[0] = None
    assert "all models are measured" in run()
    assert len(ran) == 10  # four of each that can be timed, and two tries of the one that cannot
    records = results.read(folder / results.RESULTS)
    times, memory = records_of(records, Time), records_of(records, Memory)
    assert {(time.clock, time.environment.gpu) for time in times} == {("events", "A GPU")}
    assert {record.counted for record in memory} == {"allocator"}
    assert "Frameworks computed on A GPU." in (folder / "report.md").read_text()
    assert (folder / on_gpu.ENVIRONMENT).read_text() == "a GPU\n"
    assert not list(folder.rglob(".graphduel-*"))


def test_a_second_start_elsewhere_leaves_what_was_begun(lent, tmp_path):
    (ran, stops), folder = lent, tmp_path / "gpu"
    stops[0] = 1
    CliRunner().invoke(on_gpu.main, [str(folder)], catch_exceptions=False)
    assert not (folder / stage.FOLDER).exists()  # the toy keeps no compiled code
    stops[0] = None
    CliRunner().invoke(on_gpu.main, [str(folder)], catch_exceptions=False)
    assert {job.workload for job in ran[1:]} == {"toy_broken", "toy_lengths"}


def test_seconds_that_are_over_end_a_run():
    with suppress(on_gpu.OutOfTime), on_gpu.at_most(0.02):
        time.sleep(20)
        pytest.fail("it went on")


def test_a_model_that_teaches_something_new_comes_first():
    cells = on_gpu.taught([Cell(name, models.SIZE) for name in MODELS])
    first = [MODELS[cell.workload] for cell in cells[:4]]
    assert {model.varies for model in first} == {"", "length", "structure"}
    assert {model.layers for model in first} == {"", "convolution", "attention", "recurrence"}
    assert not any(MODELS[cell.workload].package for cell in cells[:30])
    assert len(set(cells)) == len(cells) == len(MODELS)


def test_modes_are_about_models_alone():
    answer = CliRunner().invoke(graphduel, ["run", "--modes", "compile-dynamic"])
    assert answer.exit_code == 2
    assert "add --suite models" in answer.output


# The claims, on made-up records


def stream(first, later, steady, compiled):
    """Six calls, of which the second and the fourth meet a new structure."""
    calls = [
        {"length": 1, "seconds": first if i == 0 else later if i in (1, 3) else steady, "new": i in (0, 1, 3),
         "compiled": compiled and i in (0, 1, 3)}
        for i in range(6)
    ]  # fmt: skip
    return [Call(**call) for call in calls]


def varying(name, later):
    """A model whose compiled mode takes so many seconds for a new structure, in a cold process and three warm ones."""
    for process in range(4):
        rows = {
            "toy-eager": TimeRow("ok", None, blocks=[0.01] * 3, stream=stream(0.01, 0.01, 0.01, compiled=False)),
            "toy-jit": TimeRow("ok", None, blocks=[0.005] * 3, stream=stream(9.0, later, 0.005, compiled=True)),
        }
        place = {"workload": name, "size": "model", "mode": "toy-jit", "eager": "toy-eager"}
        yield Time(**place, modes=rows, process=process, cache="warm" if process else "cold")
        right = {mode: ParityRow("ok", None, 0.0, 0.0, 1e-4) for mode in rows}
        yield Parity(**place, modes=right, agree=True, same_graph=None, kernel_calls={})


STRUCTURES = [name for name, model in MODELS.items() if model.varies == "structure"][:4]


@pytest.mark.parametrize(("later", "word"), [(4.0, "supported"), (0.005, "refuted")])
def test_a_structure_that_differs_from_call_to_call_is_an_edit(later, word):
    found = CLAIMS["C8"].judge([record for name in STRUCTURES for record in varying(name, later)]).finding
    assert found.verdict == word
    assert found.regimes[0].condition == "real models"
    assert found.regimes[0].value == pytest.approx(later / 0.005)
    assert [regime.verdict for regime in found.regimes] == [word] * 5


def test_lengths_are_not_structures():
    assert CLAIMS["C8"].judge([*varying("bert_tiny", 4.0)]).finding.verdict == "not measured yet"


def test_verdicts_that_contradict_those_of_workloads_are_named():
    there = CLAIMS["C8"].judge([record for name in STRUCTURES for record in varying(name, 0.005)])
    here = CLAIMS["C8"].judge([record for name in STRUCTURES for record in varying(name, 4.0)])
    section = shown.beside([here], [there])
    assert "contradict the workloads in C8" in str(section.blocks[0])
    assert section.blocks[1].rows[-1][:3] == ("C8", "the verdict", "differ")
    assert "in no regime" in str(shown.beside([here], [here]).blocks[0])
    assert shown.beside([here], []) is None


def test_a_cell_of_a_model_has_one_size():
    assert jobs.cells(Settings("models", only="resnet18")) == [Cell("resnet18", models.SIZE)]

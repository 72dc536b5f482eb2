"""A run: the order of its jobs, the gate, and that nothing finished is lost or done twice."""

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from compare import report, workloads
from compare.errors import CompareError, ResultsError, UnknownNameError
from compare.records import lock, results
from compare.run import jobs
from compare.run import settings as presets
from compare.run import stages as runs
from compare.run.progress import Reporter
from compare.run.settings import Cell, Settings
from tests.helpers.records import lines, typed

ROOT = Path(__file__).resolve().parents[2]
OK = {"status": "ok", "output_error": 0.0, "gradient_error": 0.0, "tolerance": 1e-4, "reason": None}
TIMED = {
    "status": "ok", "reason": None, "build": 0.0, "first": 0.1, "calls_per_block": 4, "blocks": [0.1, 0.1],
    "stream": None, "compiles": 0, "compile_seconds": 0.0, "useful": 2, "computed": 2,
}  # fmt: skip
HELD = {
    "status": "ok", "reason": None, "peak": 10, "held": 0, "resident_growth": 0, "nodes": 1,
    "classes": dict.fromkeys(("parameters", "gradients", "structure", "plan", "saved", "workspace", "caches"), 1),
}  # fmt: skip
SETTINGS = Settings(processes=3, only="[ts]*y*")


class Machine:
    """Answers each job as a worker would, without measuring; `say` changes the answer for some."""

    def __init__(self, **say):
        self.jobs, self.say = [], say

    def __call__(self, job, timeout):
        if job.kind == "environment":
            return environment("one")
        self.jobs.append(job)
        said = self.say.get(f"{job.kind}_{job.workload}", self.say.get(job.kind))
        if said is KeyboardInterrupt:
            raise KeyboardInterrupt
        return typed(said(job) if said else raw(job))

    @property
    def labels(self):
        return [job.label for job in self.jobs]


def head(job):
    return {"kind": job.kind, **job.head}


def environment(cpu):
    told = {"cpu": cpu, "python": "3", "numpy": "2", "commit": "a"}
    return typed({"kind": "environment", "environment": told})


def answered(job):
    return typed(raw(job))


def raw(job):
    if job.kind == "gradients":
        return {**head(job), "checks": 1, "passed": 1, "failures": [], "by_op": {}}
    if job.kind in ("program", "fault", "edit"):
        return {**head(job), f"{job.kind}s": []}
    if job.kind == "prototype":
        return {**head(job), "tasks": []}
    if job.kind in ("crossover", "crossover memory"):
        return {**head(job), "cells": []}
    if job.kind == "lengths":
        return {**head(job), "examples": [], "arms": {}}
    if job.kind == "parity":
        arms = {"dynamic": OK, "static-exact": OK}
        return {**head(job), "agree": True, "arms": arms, "same_graph": True, "kernel_calls": {}}
    return {**head(job), "arms": dict.fromkeys(job.arms, TIMED if job.kind == "time" else HELD)}


def parity_with(arm, status):
    row = {**OK, "status": status, "reason": "because"}
    return lambda job: {**raw(job), "agree": status == "unsupported", "arms": {**raw(job)["arms"], arm: row}}


def failing(job):
    return {"kind": "failure", "job": head(job), "error": "the worker died of SIGSEGV"}


@pytest.fixture(autouse=True)
def two_workloads(monkeypatch):
    sources = {"tiny": "tests.helpers.fake_workloads:TINY", "stray": "tests.helpers.fake_workloads:STREAM"}
    monkeypatch.setattr(workloads, "_sources", sources)
    monkeypatch.setattr(report, "write", lambda *_: [])


def go(directory, machine=None, settings=SETTINGS, **kwargs):
    machine = machine or Machine()
    return runs.run(directory, settings, Reporter(), execute=machine, **kwargs), machine


def kinds(directory):
    return [r["kind"] for r in lines(directory / results.RESULTS)]


# What runs, and in which order


def test_parity_comes_first_then_each_process_over_all_cells_then_memory(tmp_path):
    outcome, machine = go(tmp_path / "a" / "b")
    assert machine.labels == [
        "parity tiny/small",
        "parity stray/small",
        "time tiny/small, process 0",
        "time stray/small, process 0",
        "time tiny/small, process 1",
        "time stray/small, process 1",
        "time tiny/small, process 2",
        "time stray/small, process 2",
        *["memory tiny/small"] * 2,
        *["memory stray/small"] * 2,
    ]
    assert outcome.exit_code == 0
    assert kinds(outcome.directory) == ["run", *["parity"] * 2, *["time"] * 6, *["memory"] * 2]


def test_checks_of_claims_run_unless_cells_are_chosen(tmp_path):
    _, machine = go(tmp_path, settings=Settings(processes=1))
    assert machine.labels[:5] == ["program C1", "gradients C2", "fault C3", "prototype C7", "edit C8"]
    assert jobs.check_jobs(SETTINGS) == []


def test_the_tables_are_measured_once_unless_cells_are_chosen(tmp_path):
    settings = Settings(processes=1)
    _, machine = go(tmp_path, settings=settings)
    tables = [job.label for job in jobs.table_jobs(settings)]
    assert "lengths rnn_text/small, lines, process 0" in tables
    assert "crossover coarse, process 2" in tables
    assert [label for label in machine.labels if label in tables] == tables
    assert len({job.name for job in jobs.table_jobs(settings)}) == len(tables)
    assert list(jobs.table_jobs(SETTINGS)) == []


def test_the_memory_of_each_arm_is_measured_in_its_own_process_and_merged(tmp_path):
    _, machine = go(tmp_path)
    assert [job.arms for job in machine.jobs if job.label == "memory tiny/small"] == [("dynamic",), ("static-exact",)]
    record = next(r for r in lines(tmp_path / results.RESULTS) if r["kind"] == "memory")
    assert list(record["arms"]) == ["dynamic", "static-exact"]


def test_the_first_line_tells_settings_and_environment(tmp_path):
    go(tmp_path)
    header = lines(tmp_path / results.RESULTS)[0]
    assert (
        header["settings"] == {"preset": "quick", "seed": 0, "processes": 3, "only": "[ts]*y*"}
        or header["settings"] == SETTINGS.to_dict()
    )
    assert header["environment"]["cpu"] == "one"
    assert header["at"].endswith("+00:00")


def test_verdicts_are_written_and_returned(tmp_path):
    outcome, _ = go(tmp_path)
    assert json.loads((tmp_path / results.VERDICTS).read_text()) == [v.to_dict() for v in outcome.verdicts]
    assert [v.claim.id for v in outcome.verdicts] == [f"C{i}" for i in range(1, 9)]


@pytest.mark.parametrize(
    ("only", "found"),
    [
        ("tiny", ["tiny/small"]),
        ("tiny/*", ["tiny/small"]),
        ("*/small", ["tiny/small", "stray/small"]),
        (None, ["tiny/small", "stray/small"]),
    ],
)
def test_only_matches_workloads_and_cells(only, found):
    assert list(map(str, jobs.cells(Settings(only=only)))) == found


@pytest.mark.parametrize("only", ["tinny", "tiny/large", ""])
def test_a_glob_that_matches_nothing_is_an_error_before_anything_is_made(tmp_path, only):
    with pytest.raises(UnknownNameError, match="matches no cell of a quick run; ") as caught:
        go(tmp_path / "new", settings=Settings(only=only))
    assert caught.value.exit_code == 2
    assert not (tmp_path / "new").exists()


def test_a_full_run_measures_every_size():
    assert list(map(str, jobs.cells(Settings("full", only="tiny")))) == ["tiny/small", "tiny/medium", "tiny/large"]


# The gate


def test_an_arm_that_disagrees_is_not_timed_and_its_row_says_why(tmp_path):
    outcome, machine = go(tmp_path, Machine(parity_tiny=parity_with("static-exact", "disagree")))
    assert all(job.arms == ("dynamic",) for job in machine.jobs if job.workload == "tiny" and job.kind != "parity")
    record = next(r for r in lines(tmp_path / results.RESULTS) if r["kind"] == "time")
    assert record["arms"]["static-exact"] == {"status": "disagree", "reason": "because"}
    assert outcome.exit_code == 4
    assert outcome.disagreements == ("tiny/small, static-exact: because",)


def test_nothing_is_timed_when_the_reference_is_wrong(tmp_path):
    _, machine = go(tmp_path, Machine(parity_tiny=parity_with("dynamic", "disagree")))
    assert [job.kind for job in machine.jobs if job.workload == "tiny"] == ["parity"]


def test_a_refusal_is_a_result_and_no_failure(tmp_path):
    outcome, _ = go(tmp_path, Machine(parity_tiny=parity_with("static-exact", "unsupported")))
    assert outcome.exit_code == 0


def test_an_arm_that_breaks_at_the_gate_is_a_failure(tmp_path):
    outcome, _ = go(tmp_path, Machine(parity_tiny=parity_with("static-exact", "failed")))
    assert outcome.exit_code == 1


# Failures and going on


def test_one_failed_cell_does_not_end_the_run(tmp_path):
    outcome, machine = go(tmp_path, Machine(time_tiny=failing))
    assert len(machine.jobs) == 12
    assert outcome.exit_code == 1
    assert outcome.failures[0] == "time tiny small 0: the worker died of SIGSEGV"
    assert kinds(tmp_path).count("failure") == 3


def test_a_failure_at_the_gate_stops_its_cell_alone(tmp_path):
    _, machine = go(tmp_path, Machine(parity_tiny=failing))
    assert [job.kind for job in machine.jobs if job.workload == "tiny"] == ["parity"]
    assert sum(job.workload == "stray" for job in machine.jobs) == 6


def test_nothing_measured_has_its_own_code(tmp_path):
    outcome, _ = go(tmp_path, Machine(parity=failing))
    assert outcome.exit_code == 5


def test_a_failed_job_is_tried_again_on_resume_and_then_fine(tmp_path):
    go(tmp_path, Machine(time_tiny=failing))
    outcome, machine = go(tmp_path, resume=True)
    assert machine.labels == [f"time tiny/small, process {i}" for i in range(3)]
    assert outcome.exit_code == 0


def test_a_stopped_run_goes_on_where_it_stopped(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, Machine(time_stray=KeyboardInterrupt))
    assert kinds(tmp_path) == ["run", "parity", "parity", "time"]
    _, machine = go(tmp_path, resume=True)
    assert machine.labels[:2] == ["time stray/small, process 0", "time tiny/small, process 1"]
    assert kinds(tmp_path).count("time") == 6


def test_a_cut_off_line_is_measured_again_and_the_file_is_clean(tmp_path):
    go(tmp_path)
    path = tmp_path / results.RESULTS
    path.write_bytes(path.read_bytes()[:-20])
    _, machine = go(tmp_path, resume=True)
    assert machine.labels == ["memory stray/small"] * 2
    assert kinds(tmp_path).count("memory") == 2


@pytest.mark.parametrize(
    ("other", "told"), [({"processes": 4}, "processes 3, not 4"), ({"only": None}, "only tiny, not None")]
)
def test_the_settings_of_a_run_are_its_own(tmp_path, other, told):
    first = Settings(processes=3, only="tiny")
    go(tmp_path, settings=first)
    with pytest.raises(ResultsError, match=f"is a run with {told}; resume it with that"):
        go(tmp_path, settings=replace(first, **other), resume=True)
    assert go(tmp_path, settings=first, resume=True)[1].labels == []


def test_resuming_an_empty_folder_is_a_new_run(tmp_path):
    assert go(tmp_path, resume=True)[0].exit_code == 0


def test_another_machine_is_noticed_on_resume(tmp_path):
    go(tmp_path)
    heard = []
    reporter = Reporter()
    reporter.notice = heard.append
    machine = Machine()
    other = environment("two")
    runs.run(
        tmp_path, SETTINGS, reporter, resume=True,
        execute=lambda job, timeout: other if job.kind == "environment" else machine(job, timeout),
    )  # fmt: skip
    assert heard == ["resumed with another cpu: one, two"]


# More processes


def noisy(job):
    """Ratios that differ between processes by more than the smallest effect of interest."""
    ratio = 1 + 0.1 * (job.process % 2)
    rows = {arm: {**TIMED, "blocks": [0.1 * (ratio if arm == "dynamic" else 1)] * 4} for arm in job.arms}
    return {**raw(job), "arms": rows}


def test_a_cell_with_a_wide_interval_gets_more_processes(tmp_path):
    _, machine = go(tmp_path, Machine(time_tiny=noisy))
    processes = Counter((job.workload, job.process) for job in machine.jobs if job.kind == "time")
    assert {process for workload, process in processes if workload == "tiny"} == set(range(SETTINGS.limits.most))
    assert {process for workload, process in processes if workload == "stray"} == {0, 1, 2}
    assert set(processes.values()) == {1}


def test_a_cell_of_too_few_processes_for_an_interval_gets_more(tmp_path):
    _, machine = go(tmp_path, settings=Settings(processes=1, only="tiny"))
    assert [job.process for job in machine.jobs if job.kind == "time"] == [0, 1, 2]


def test_more_processes_come_before_memory_and_only_while_time_lasts(tmp_path, monkeypatch):
    limits = replace(presets.PRESETS["quick"], more_seconds=-1.0)
    monkeypatch.setattr(presets, "PRESETS", {"quick": limits})
    _, machine = go(tmp_path, Machine(time_tiny=noisy))
    assert sum(job.kind == "time" for job in machine.jobs) == 6


def test_the_seconds_of_a_run_are_shared_by_its_processes():
    chosen = [Cell("tiny", "small")] * 30
    limits = SETTINGS.limits
    (_, first), *_ = jobs.time_jobs(chosen, SETTINGS)
    assert first.budget.seconds == min(limits.budget.seconds, limits.seconds / 90)
    (_, alone), *_ = jobs.time_jobs(chosen[:1], SETTINGS)
    assert alone.budget.seconds == limits.budget.seconds


# Folders that will not do


def test_a_folder_with_something_in_it_is_refused_without_resume(tmp_path):
    go(tmp_path)
    before = (tmp_path / results.RESULTS).read_bytes()
    with pytest.raises(CompareError, match=r"is not empty; go on with it by --resume, or choose another --out"):
        go(tmp_path)
    assert (tmp_path / results.RESULTS).read_bytes() == before


@pytest.mark.parametrize("other", [Settings(seed=1), Settings("full", processes=1)])
def test_another_seed_or_preset_does_not_mix(tmp_path, other):
    go(tmp_path)
    with pytest.raises(ResultsError, match=r"is a run with (seed 0, not 1|preset quick, not full); resume it with"):
        go(tmp_path, settings=other, resume=True)


def test_a_foreign_results_file_is_left_alone(tmp_path):
    path = tmp_path / results.RESULTS
    path.write_text("id,seconds\n1,2\n")
    with pytest.raises(ResultsError, match=r"results.jsonl:1: not a line of graphduel results"):
        go(tmp_path, resume=True)
    assert path.read_text() == "id,seconds\n1,2\n"


def test_a_folder_that_cannot_be_written_is_a_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CompareError, match=r"cannot write to .*file/run: .*; choose another --out") as caught:
        go(tmp_path / "file" / "run")
    assert caught.value.exit_code == 2


def test_a_worker_that_cannot_start_is_a_clear_error(tmp_path):
    with pytest.raises(CompareError, match="no worker process could start: no python; try `graphduel doctor`"):
        runs.run(tmp_path, SETTINGS, Reporter(), execute=lambda job, t: typed(failing(job) | {"error": "no python"}))


# Two in one folder


LOCKED = """
import sys, time
from pathlib import Path
from compare.records import lock
with lock.held(Path(sys.argv[1]), print):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_run_in_a_folder_is_refused_and_told_who_writes_there(tmp_path):
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", LOCKED, tmp_path], stdout=subprocess.PIPE, text=True, env=env
    ) as holder:
        assert holder.stdout.readline() == "held\n"
        for resume in (False, True):
            since = r"since 20\d\d-\d\d-\d\dT[\d:]{8}\+00:00"
            with pytest.raises(
                CompareError, match=f"written by process {holder.pid} on this host {since}; wait"
            ) as told:
                go(tmp_path, resume=resume)
            assert told.value.exit_code == 2
        holder.kill()
    assert (tmp_path / lock.NAME).exists()  # as kill -9 leaves it
    assert go(tmp_path)[0].exit_code == 0
    assert not (tmp_path / lock.NAME).exists()


def test_a_lock_is_held_by_one_at_a_time_whoever_comes_and_goes(tmp_path):
    inside, most = [], []

    def enter(number):
        for _ in range(50):
            with suppress(CompareError), lock.held(tmp_path, print):
                inside.append(number)
                most.append(len(inside))
                time.sleep(0)
                inside.remove(number)

    threads = [threading.Thread(target=enter, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(most) == {1}
    assert list(tmp_path.iterdir()) == []


def test_a_lock_file_that_says_nothing_is_another_process(tmp_path):
    with lock.held(tmp_path, print):
        (tmp_path / lock.NAME).write_text("[]")
        with pytest.raises(CompareError, match="is being written by another process; wait"), lock.held(tmp_path, print):
            pass


def test_a_file_system_without_locks_is_told_of(tmp_path, monkeypatch):
    def none(file):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(lock, "_lock", none)
    heard = []
    with lock.held(tmp_path, heard.append):
        pass
    assert heard == [f"{tmp_path} cannot be locked (No locks available): let no other run write into it"]


# Killed


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that start in no time")
def test_a_run_killed_at_twenty_moments_loses_no_finished_job(tmp_path):
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.killed_run", tmp_path], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    finished = list(map(int, done.stdout.split()))
    assert len(finished) == 21
    assert sum(map(bool, finished)) > 5  # some are killed before their first job is done
    records = lines(tmp_path / results.RESULTS)
    keys = [typed(r).job for r in records if r["kind"] != "run"]
    assert len(keys) == len(set(keys)) == 2 + 2 * 30 + 2


# The real thing


DRIVER = """
import os, signal
signal.signal(signal.SIGINT, signal.SIG_IGN if os.environ.get("IN_BACKGROUND") else signal.default_int_handler)
from dataclasses import replace
from compare import report, workloads
from compare.run import jobs
from compare.run import settings as presets
from compare.run.job import Budget
quick = replace(presets.PRESETS["quick"], budget=Budget(3, 1, 1, 1e-4), more_seconds=-1)
presets.PRESETS = {"quick": quick}
workloads.add("fake_tiny", "tests.helpers.fake_workloads:TINY")
workloads.add("fake_stream", "tests.helpers.fake_workloads:STREAM")
report.write = lambda *_: []
from compare.cli import main
main()
"""


def command(out, *more):
    run = ["run", "--only", "fake*", "--processes", "2", "--out", str(out)]
    return [sys.executable, "-c", DRIVER, *run, *more]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("background", "ignored", "ending", "code"),
    [
        ("", [], signal.SIGINT, 130),
        ("", [], signal.SIGTERM, 143),
        ("yes", [signal.SIGINT], signal.SIGTERM, 143),
    ],
)
def test_a_run_that_is_ended_keeps_finished_jobs_and_resume_does_the_rest(tmp_path, background, ignored, ending, code):
    out = tmp_path / "run"
    env = {**os.environ, "PYTHONPATH": str(ROOT), "IN_BACKGROUND": background}
    with subprocess.Popen(
        command(out), stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env, cwd=tmp_path
    ) as process:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            if (out / results.RESULTS).exists() and "time" in kinds(out):
                break
            time.sleep(0.05)
        for one in ignored:
            process.send_signal(one)
            time.sleep(0.2)
            assert process.poll() is None
        workers = psutil.Process(process.pid).children()
        process.send_signal(ending)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == code, errors
    assert psutil.wait_procs(workers, timeout=10)[1] == []
    assert f"graphduel run --quick --out {out} --resume" in errors
    assert "Traceback" not in errors
    before = lines(out / results.RESULTS)
    done = subprocess.run(command(out, "--resume"), env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    after = lines(out / results.RESULTS)
    assert after[: len(before)] == before
    keys = [typed(r).job for r in after if r["kind"] != "run"]
    assert len(keys) == len(set(keys)) == 2 + 2 * 2 + 2
    assert all(row["status"] == "ok" for r in after if r["kind"] == "time" for row in r["arms"].values())
    assert typed(after)

"""The folder of a run: what will not do, two runs in one, runs that are ended."""

import errno
import gzip
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from compare.errors import CompareError, ResultsError
from compare.plans.settings import Settings
from compare.records import journal, results
from compare.run.progress import Reporter
from compare.suite import stages as runs
from tests.helpers.fake_run import SETTINGS, failing, go, kinds
from tests.helpers.records import lines, typed

pytestmark = pytest.mark.usefixtures("two_workloads")

ROOT = Path(__file__).resolve().parents[2]


# Folders that will not do


def test_a_folder_with_something_in_it_is_refused_without_resume(tmp_path):
    go(tmp_path)
    before = (tmp_path / results.RESULTS).read_bytes()
    with pytest.raises(CompareError, match=r"is not empty; go on with it by --resume, or choose another --out"):
        go(tmp_path)
    assert (tmp_path / results.RESULTS).read_bytes() == before


def test_a_run_is_begun_anew_over_an_earlier_one_and_nothing_else_in_its_folder_is_touched(tmp_path):
    go(tmp_path)
    other = tmp_path / "plots" / "mine.svg"
    other.parent.mkdir(exist_ok=True)
    other.write_text("mine", "utf-8")
    (tmp_path / "thesis.tex").write_text("mine", "utf-8")
    outcome, machine = go(tmp_path, settings=replace(SETTINGS, seed=1), overwrite=True)
    assert outcome.exit_code == 0
    assert len(machine.jobs) == len(go(tmp_path / "new")[1].jobs)
    assert [record["settings"]["seed"] for record in lines(tmp_path / results.RESULTS) if record["kind"] == "run"] == [
        1
    ]
    assert other.read_text("utf-8") == (tmp_path / "thesis.tex").read_text("utf-8") == "mine"


@pytest.mark.parametrize(
    ("name", "said"), [("thesis.tex", "is not empty"), (results.RESULTS, "not a line of graphduel")]
)
def test_nothing_is_begun_over_what_is_no_run(tmp_path, name, said):
    (tmp_path / name).write_text("mine\n", "utf-8")
    with pytest.raises(CompareError, match=said):
        go(tmp_path, overwrite=True)
    assert [(path.name, path.read_text("utf-8")) for path in tmp_path.iterdir()] == [(name, "mine\n")]


def test_no_command_of_make_removes_a_folder_that_its_caller_names():
    removing = [line for line in (ROOT / "Makefile").read_text("utf-8").splitlines() if "rm -" in line]
    assert removing
    assert not [line for line in removing if "$(" in line]


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


def test_a_packed_run_is_read_and_not_resumed(tmp_path):
    go(tmp_path)
    path = tmp_path / results.RESULTS
    packed = tmp_path / results.PACKED
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert results.find_results(tmp_path) == path
    assert results.read(packed) == results.read(path)
    path.unlink()
    assert results.find_results(tmp_path) == packed
    with pytest.raises(CompareError, match="is packed; unpack it with gunzip to go on"):
        go(tmp_path, resume=True)
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(ResultsError, match=r"jsonl.gz: not a whole file of gzip"):
        results.read(packed)


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
from compare.records import journal
with journal.hold_lock(Path(sys.argv[1]), print):
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
    assert (tmp_path / journal.LOCK).exists()  # as kill -9 leaves it
    assert go(tmp_path)[0].exit_code == 0
    assert not (tmp_path / journal.LOCK).exists()


def test_a_lock_is_held_by_one_at_a_time_whoever_comes_and_goes(tmp_path):
    inside, most = [], []

    def enter(number):
        for _ in range(50):
            with suppress(CompareError), journal.hold_lock(tmp_path, print):
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
    with journal.hold_lock(tmp_path, print):
        (tmp_path / journal.LOCK).write_text("[]")
        with (
            pytest.raises(CompareError, match="is being written by another process; wait"),
            journal.hold_lock(tmp_path, print),
        ):
            pass


def test_a_file_system_without_locks_is_told_of(tmp_path, monkeypatch):
    def none(file):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(journal, "_lock", none)
    heard = []
    with journal.hold_lock(tmp_path, heard.append):
        pass
    assert heard == [f"{tmp_path} cannot be locked (No locks available): let no other run write into it"]


# Killed


@pytest.mark.slow
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
from compare.plans import jobs
from compare.plans import settings as presets
from compare.records.job import Budget
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
    assert f"graphduel run --quick --only 'fake*' --out {out} --resume" in errors
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

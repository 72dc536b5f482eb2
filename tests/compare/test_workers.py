"""Workers: one job, one process, one record back, whatever happens; and the registry they find it by."""

import errno
import gc
import json
import os
import shutil
import signal
import site
import socket
import subprocess
import sys
import time
import venv
from pathlib import Path

import psutil
import pytest
from msgspec import to_builtins

from compare import workloads
from compare.errors import UnknownNameError, WorkerError
from compare.records.job import Budget, Job
from compare.records.record import Bare
from compare.run import environment, processes, start, worker
from dynamic import tapes
from tests.helpers.fake_workloads import job
from tests.helpers.records import plain

ROOT = str(Path(__file__).resolve().parents[2])


@pytest.fixture(autouse=True)
def importable_in_workers(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", ROOT)


def ran(job, timeout):
    return plain(processes.run_job(job, timeout))


def test_a_job_survives_json():
    one = job("time", "TINY", process=2, seed=5, modes=("dynamic", "static-exact"), budget=Budget(rounds=3))
    assert Job.from_dict(json.loads(json.dumps(one.to_dict()))) == one
    assert one.label == "time tiny/small, process 2"
    assert Job("gradients", claim="C2").label == "gradients C2"


def test_each_process_draws_its_own_orders_again_and_again():
    draws = [job("time", "TINY", process=p, seed=s).random().random() for p, s in [(0, 0), (0, 0), (1, 0), (0, 1)]]
    assert draws[0] == draws[1]
    assert len(set(draws)) == 3


def test_a_crash_is_a_failure_record_that_names_the_signal():
    record = ran(job("time", "CRASH", process=0, modes=("dynamic",)), 60)
    assert record["kind"] == "failure"
    assert "SIGABRT" in record["error"]


def test_a_stuck_worker_is_ended():
    record = ran(job("time", "STUCK", process=0, modes=("dynamic",)), 3)
    assert record["error"] == "the worker ran longer than 3 s and was ended"


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems may not limit memory")
def test_a_worker_that_takes_too_much_memory_is_a_failure_record():
    record = ran(job("time", "GREEDY", process=0, modes=("dynamic",), memory=1 << 30), 60)
    assert record["error"].startswith("out of memory, of which it may take 1,073,741,824 bytes: ")


def test_every_record_tells_seed_environment_and_start_and_that_of_a_failure_the_place(monkeypatch):
    one = job("time", "TINY", process=2, seed=5, modes=("dynamic",), budget=Budget(2, 1, 1, 1e-5), lane=1)
    failed = job("time", "ERROR", process=2, seed=5, modes=("dynamic",), lane=1)
    done, failure = ran(one, 60), ran(failed, 60)
    for record in (done, failure):
        assert record["seed"] == 5
        assert record["environment"]["hash_seed"] == "7"
        assert record["environment"].keys() >= {"cpu", "governor", "blas", "versions", "commit", "gc", "load"}
        if hasattr(os, "sched_getaffinity"):
            assert record["environment"]["affinity"] == [sorted(os.sched_getaffinity(0))[-2:][0]]
    assert 0 < done["startup"] < 60
    assert failure["kind"] == "failure"
    assert failure["job"] == {"kind": "time", "workload": "error", "size": "small", "process": 2}
    assert failure["error"].startswith("ValueError: the data are gone (fake_workloads.py:")


@pytest.mark.parametrize("given", range(4))
def test_a_system_without_a_further_process_or_thread_is_a_failure_record_and_nothing_is_left(monkeypatch, given):
    begin, ends = processes.threading.Thread.start, []
    left = iter(range(given - 1))

    class Process(subprocess.Popen):
        def __init__(self, *words, **named):
            if given == 0:
                raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
            super().__init__(*words, **named)
            ends.append(self)

    def start_some(thread):
        if next(left, None) is None:
            raise RuntimeError("can't start new thread")
        begin(thread)

    monkeypatch.setattr(subprocess, "Popen", Process)
    monkeypatch.setattr(processes.threading.Thread, "start", start_some)
    error = ran(job("time", "TINY", process=0, modes=("dynamic",)), 60)["error"]
    why = "can't start new thread" if given else "Resource temporarily unavailable"
    assert error.startswith(f"a worker cannot be started: {why}; end other processes, or raise the limit of processes")
    assert [process.returncode for process in ends] == [-signal.SIGKILL] * bool(given)


ORPHAN = """
import os, subprocess, sys
from compare.run import processes
from tests.helpers.fake_workloads import job
from tests.helpers.records import plain
processes.run_job(job("time", "STUCK", process=0, modes=("dynamic",)), 60)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems do not tell a child")
def test_a_worker_ends_with_a_run_that_is_killed():
    with subprocess.Popen([sys.executable, "-c", ORPHAN], cwd=ROOT) as run:
        deadline, workers = time.monotonic() + 30, []
        while time.monotonic() < deadline and not workers:
            workers = [p for p in psutil.Process(run.pid).children() if processes.WORKER in p.cmdline()]
            time.sleep(0.02)
        while time.monotonic() < deadline and workers[0].cpu_times().user < 0.1:
            time.sleep(0.02)  # until it is under way
        run.kill()
    assert psutil.wait_procs(workers, timeout=10)[1] == []


def test_a_worker_is_pinned_to_one_core_and_one_thread():
    answer = plain(processes.ask(Job("environment"), 60))["environment"]
    assert answer["threads"] == dict.fromkeys(environment.THREAD_VARIABLES, "1")
    assert all(pool["num_threads"] == 1 for pool in answer["blas"]["loaded"])
    if hasattr(os, "sched_getaffinity"):
        assert answer["affinity"] == [max(os.sched_getaffinity(0))]


def test_collections_do_not_walk_what_a_worker_has_loaded(monkeypatch):
    monkeypatch.setattr(worker, "handler", lambda job: Bare)
    gc.unfreeze()
    worker.perform(Job("environment"))  # in a process that does more
    assert gc.get_freeze_count() == 0
    worker.perform(Job("environment"), time.time())
    walked, frozen = len(gc.get_objects()), gc.get_freeze_count()
    gc.unfreeze()
    assert frozen > 10 * walked


# What a worker imports


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A current folder with files and folders named as the packages are, each of which ends what imports it."""
    for name in (*start.PACKAGES, "click", "psutil"):
        (tmp_path / f"{name}.py").write_text(f"raise SystemExit('the {name} of the current folder')\n", "utf-8")
    for name in ("static", "dynamic"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"raise SystemExit('{name}/ of the current folder')\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_worker_answers_whatever_the_workload_prints_and_imports_nothing_from_the_current_folder(elsewhere):
    record = ran(job("memory", "TINY", modes=("dynamic",)), 60)
    assert record["kind"] == "memory", record
    assert record["arms"]["dynamic"]["status"] == "ok"


@pytest.mark.slow
def test_not_even_where_the_current_folder_is_on_the_path(elsewhere, monkeypatch):
    for name in ("click", "psutil"):
        (elsewhere / f"{name}.py").unlink()
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(elsewhere), ROOT]))
    record = ran(job("memory", "TINY", modes=("dynamic",)), 60)
    assert record["kind"] == "memory", record


SOURCE = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")


@pytest.mark.slow
def test_a_source_tree_without_the_compiled_tape_is_not_what_a_worker_imports(tmp_path, monkeypatch):
    for name in start.PACKAGES:
        shutil.copytree(Path(ROOT) / name, tmp_path / name, ignore=SOURCE)
    monkeypatch.chdir(tmp_path)
    assert plain(processes.ask(Job("environment"), 60))["environment"]["tape"] == environment.environment().tape


@pytest.mark.slow
def test_an_installed_graphduel_measures_itself_in_a_clone(tmp_path, monkeypatch):
    monkeypatch.delenv("PYTHONPATH")
    clone, home = tmp_path / "clone", tmp_path / "home"
    venv.create(home, symlinks=os.name != "nt")
    python = str(home / ("Scripts" if os.name == "nt" else "bin") / "python")
    (packages,) = [path for path in home.rglob("site-packages") if path.is_dir()]
    (packages / "libraries.pth").write_text("\n".join(site.getsitepackages()), "utf-8")
    for name in start.PACKAGES:
        shutil.copytree(Path(ROOT) / name, packages / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(Path(ROOT) / name, clone / name, ignore=SOURCE)
    command = [python, "-P", "-c", "from compare.cli import main; main()", "doctor"]  # as the installed script does
    done = subprocess.run(command, cwd=clone, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    told = dict(line.strip().split(maxsplit=1) for line in done.stdout.splitlines() if len(line.split()) > 1)
    assert {name: told[name] for name in start.PACKAGES} == {n: str(packages / n) for n in start.PACKAGES}
    if tapes.is_compiled():
        assert told["tape"] == "its loops are compiled"
        assert told["dynamic._native"].startswith(str(packages))


@pytest.mark.slow
def test_the_module_is_the_command_also_beside_files_named_as_our_packages(elsewhere):
    for name in ("compare", "click", "psutil"):
        (elsewhere / f"{name}.py").unlink()
    done = subprocess.run([sys.executable, "-m", "compare", "list"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "tiny_mlp" in done.stdout


@pytest.mark.slow
def test_a_worker_that_imported_other_files_measures_nothing(monkeypatch):
    there = {**environment.package_files(), "dynamic": "/elsewhere/dynamic/__init__.py"}
    monkeypatch.setattr(environment, "package_files", lambda: there)
    with pytest.raises(WorkerError, match=r"another graphduel than the one that started it: dynamic is .* /elsewhere"):
        processes.ask(Job("environment"), 60)


def test_the_digest_of_the_code_depends_on_each_file_and_on_no_place(tmp_path, monkeypatch):
    for name in start.PACKAGES:
        shutil.copytree(Path(ROOT) / name, tmp_path / name, ignore=SOURCE)
    here = environment.code_digest()
    monkeypatch.setattr(environment, "_origin", lambda name: str(tmp_path / name / "__init__.py"))
    assert environment.code_digest.__wrapped__() == here
    (tmp_path / "static" / "jit.py").write_text("# changed\n", "utf-8")
    assert environment.code_digest.__wrapped__() != here


def test_an_unknown_kind_of_job_is_a_failure_record():
    assert worker.perform(Job("dance")).error.startswith("KeyError: 'dance'")


def test_the_environment_holds_no_path_and_no_host():
    found = to_builtins(environment.environment())
    text = json.dumps(found)
    assert {
        "cpu",
        "cores",
        "python",
        "numpy",
        "blas",
        "versions",
        "commit",
        "affinity",
        "threads",
        "gc",
    } <= set(found)
    assert socket.gethostname() not in text
    assert str(Path.home()) not in text
    assert ROOT not in text


def test_an_unknown_workload_suggests_the_nearest():
    with pytest.raises(UnknownNameError, match=r"no workload is named 'tiny_mpl'; did you mean 'tiny_mlp'\?"):
        workloads.get("tiny_mpl")


def test_names_cannot_be_taken_twice():
    with pytest.raises(ValueError, match="exists already"):
        workloads.add("tiny_mlp", "tests.helpers.fake_workloads:TINY")


def test_what_is_no_workload_is_refused():
    with pytest.raises(UnknownNameError, match="is no Workload"):
        workloads.load("tests.helpers.fake_workloads:NO_WORKLOAD")

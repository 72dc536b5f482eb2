"""Where jobs run: any executor, hosts one job at a time, machines that are not alike, and workers that are lost."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from msgspec import convert, to_builtins

from compare import report, workloads
from compare.cli.command import graphduel
from compare.errors import CompareError
from compare.plans import settings as presets
from compare.plans.settings import Settings
from compare.records import results
from compare.records.job import Budget, Job
from compare.records.journal import Journal
from compare.records.record import Environment, fingerprint, host_label, machine_differences
from compare.run import executors, runner
from compare.run.executors import Cluster, Pool, Serial
from compare.run.progress import Reporter
from compare.suite import stages as runs
from tests.helpers.fake_run import Machine, answered
from tests.helpers.records import lines, typed

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = Settings(processes=3, only="[ts]*y*")


@pytest.fixture(autouse=True)
def two_workloads(monkeypatch):
    sources = {"tiny": "tests.helpers.fake_workloads:TINY", "stray": "tests.helpers.fake_workloads:STREAM"}
    monkeypatch.setattr(workloads, "_sources", sources)
    monkeypatch.setattr(report, "write", lambda *_: [])


def answer(job, timeout):
    """As a worker would, in any process."""
    return Machine()(job, timeout)


def go(directory, executor=None, execute=answer, at_once=1, **kwargs):
    options = {"execute": execute, "executor": executor, "at_once": at_once, **kwargs}
    outcome = runs.run(directory, SETTINGS, Reporter(), **options)
    return outcome, lines(directory / results.RESULTS)


def without_run(records):
    return sorted((r for r in records if r["kind"] != "run"), key=lambda r: str(typed(r).job))


# Any executor


@pytest.mark.parametrize("make", [Serial, lambda: ThreadPoolExecutor(2), lambda: ProcessPoolExecutor(2)])
def test_every_executor_leaves_the_records_that_none_leaves(tmp_path, make):
    _, expected = go(tmp_path / "alone")
    with make() as executor:
        outcome, found = go(tmp_path / "pooled", executor, at_once=2)
    assert outcome.exit_code == 0
    assert without_run(found) == without_run(expected)


class Watch:
    """Notes how many jobs are under way, and on which lanes; jobs of a kind wait until so many are."""

    def __init__(self, kind, at_once):
        self.kind, self.at_once = kind, at_once
        self.changed, self.now, self.most, self.order = threading.Condition(), [], 0, []

    def __call__(self, job, timeout):
        with self.changed:
            assert job.lane not in self.now
            self.now.append(job.lane)
            self.order.append(job.kind)
            self.most = max(self.most, len(self.now))
            self.changed.notify_all()
            met = job.kind != self.kind or self.changed.wait_for(lambda: self.most >= self.at_once, timeout=60)
            self.now.remove(job.lane)
        assert met, f"{self.most} jobs at once, not {self.at_once}"
        return answer(job, timeout)


def test_jobs_at_once_have_lanes_of_their_own_and_stages_do_not_mix(tmp_path):
    watch = Watch("time", 3)
    with ThreadPoolExecutor(3) as executor:
        go(tmp_path, executor, watch, at_once=3)
    assert watch.most == 3
    assert watch.order == ["environment", *["parity"] * 2, *["time"] * 6, *["memory"] * 4]


def test_all_modes_of_a_memory_job_are_measured_where_it_is_submitted():
    seen = []
    pool = Pool(Serial(), lambda job, timeout: seen.append(job.modes) or answered(job))
    record = pool.submit(Job("memory", "tiny", "small", modes=("dynamic", "static-exact")), 1.0).result()
    assert seen == [("dynamic",), ("static-exact",)]
    assert list(record.modes) == ["dynamic", "static-exact"]


def test_every_record_names_its_host_but_not_by_its_name(tmp_path):
    _, records = go(tmp_path)
    assert {r["host"] for r in records} == {host_label()}
    assert os.uname().nodename not in str(records)
    assert typed(records)


class Breaking(Executor):
    def __init__(self, error):
        self.error = error

    def submit(self, fn, execute, job, timeout):
        future = Future()
        if job.kind == "time" and job.process == 1:
            future.set_exception(self.error)
        else:
            future.set_result(fn(execute, job, timeout))
        return future


def test_a_job_that_the_executor_loses_is_a_failure_and_runs_again_on_resume(tmp_path):
    outcome, records = go(tmp_path, Breaking(OSError("gone")))
    assert [r["error"].split(" (")[0] for r in records if r["kind"] == "failure"] == ["OSError: gone"] * 2
    assert outcome.exit_code == 1
    assert go(tmp_path, resume=True)[0].exit_code == 0


def test_a_broken_executor_ends_the_run_and_keeps_what_is_done(tmp_path):
    with pytest.raises(CompareError, match="the executor broke: no pool; every finished job is kept, go on with"):
        go(tmp_path, Breaking(BrokenExecutor("no pool")))
    assert [r["kind"] for r in lines(tmp_path / results.RESULTS)].count("time") == 2


# The command


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--executor", "dask"], "--executor dask and --scheduler ADDRESS go together"),
        (["--scheduler", "tcp://127.0.0.1:1"], "--executor dask and --scheduler ADDRESS go together"),
    ],
)
def test_options_that_do_not_go_together(tmp_path, options, said):
    done = CliRunner().invoke(graphduel, ["run", "--out", str(tmp_path / "new"), *options])
    assert done.exit_code == 2
    assert said in " ".join(done.stderr.split())
    assert not (tmp_path / "new").exists()


def test_without_dask_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(CompareError, match=r"needs dask.distributed: pip install 'graphduel\[cluster\]'"):
        Cluster("tcp://127.0.0.1:1")


# Machines


ENVIRONMENT = {
    "cpu": "one", "machine": "x86_64", "python": "CPython 3.11.7", "numpy": "2.4.6", "commit": "a", "malloc": {},
    "blas": {"name": "openblas", "version": "1", "loaded": [{"architecture": "Haswell", "num_threads": 1}]},
    "load": 3.0, "affinity": [1], "memory": 5,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"cpu": "two"}, ["cpu one and two"]),
        ({"numpy": "2.0.0", "commit": "b"}, ["numpy 2.4.6 and 2.0.0", "commit a and b"]),
        ({"blas": {"name": "mkl", "version": "1"}}, ["blas ['openblas', '1', 'Haswell'] and ['mkl', '1']"]),
        ({"malloc": {"MALLOC_ARENA_MAX": "1"}}, ["malloc {} and {'MALLOC_ARENA_MAX': '1'}"]),
        ({"load": 9.0, "affinity": [0], "memory": 6, "more": 1}, []),
    ],
)
def test_machines_are_alike_by_what_decides_how_fast_a_job_is(change, told):
    one, other = (fingerprint(convert(told, Environment)) for told in (ENVIRONMENT, {**ENVIRONMENT, **change}))
    assert machine_differences(one, other) == told


def test_a_label_is_the_same_for_one_host_and_hides_its_name():
    assert host_label("node7") == host_label("node7") != host_label("node8")
    assert "node7" not in host_label("node7")
    assert host_label() == host_label()


class Client:
    """A cluster of workers that tell this of themselves."""

    def __init__(self, *told):
        self.told = {f"tcp://127.0.0.{i}:1": one for i, one in enumerate(told, 1)}

    def nthreads(self):
        return dict.fromkeys(self.told, 1)

    def submit(self, there, call, *, workers, **kwargs):
        future = Future()
        future.status = "finished"
        code, own = call()
        told = {**to_builtins(own), "code": code, **self.told[workers[0]]}
        future.set_result((told.pop("code"), convert(told, Environment)))
        return future

    def close(self):
        pass


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"code": "0123"}, "code [0-9a-f]{16} in this command and 0123 in its workers"),
        ({"tape": None}, "tape (compiled|python) in this command and None in its workers"),
        ({"cpu": "another"}, "cpu .* and another"),
    ],
)
def test_workers_that_are_another_graphduel_are_refused(monkeypatch, told, said):
    monkeypatch.setattr(executors, "_client", lambda scheduler: Client({}, told))
    with pytest.raises(CompareError, match=f"the hosts are not alike, and their numbers cannot be pooled: {said}"):
        Cluster("tcp://127.0.0.9:1")
    monkeypatch.setattr(executors, "_client", lambda scheduler: Client({}, {}))
    assert Cluster("tcp://127.0.0.9:1").at_once == 2


def test_a_run_that_is_stopped_has_lost_no_worker(monkeypatch):
    heard, client, never = [], Client({}), SimpleNamespace(done=lambda: client.gone, status="cancelled", cancel=list)
    client.gone, client.close = False, lambda: setattr(client, "gone", True)
    monkeypatch.setattr(executors, "_client", lambda scheduler: client)
    cluster = Cluster("tcp://127.0.0.9:1", heard.append)
    client.submit = lambda *_, **__: never
    running = cluster.submit(print)
    cluster.shutdown(wait=False)
    with pytest.raises(CompareError, match="the run has ended"):
        running.result(timeout=10)
    assert heard == []


# A real cluster, on loopback


class Loopback:
    """A scheduler, and workers as processes of their own; 127.0.0.1 and 127.0.0.2 stand for two hosts."""

    def __init__(self, folder):
        self.folder, self.processes, self.env = folder, [], {**os.environ, "PYTHONPATH": str(ROOT)}
        contact = folder / "scheduler.json"
        self.start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", contact)
        self.wait_until(contact.exists)
        self.address = json.loads(contact.read_text())["address"]

    def start(self, what, *options, **env):
        command = [sys.executable, "-m", "distributed.cli.dask_" + what, *map(str, options)]
        log = (self.folder / f"{what}{len(self.processes)}.log").open("w")
        made = subprocess.Popen(command, env={**self.env, **env}, cwd=self.folder, stdout=log, stderr=log)
        log.close()
        self.processes.append(made)
        return made

    def worker(self, host="127.0.0.1", **env):
        options = ("--host", host, "--nthreads", "1", "--no-nanny", "--no-dashboard")
        return self.start("worker", self.address, *options, **env)

    def wait_for_workers(self, count):
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(count, timeout=30)

    def wait_until(self, true, seconds=30):
        deadline = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < deadline, "took too long"
            time.sleep(0.02)

    def end(self):
        for process in reversed(self.processes):
            process.kill()
            process.wait()


@pytest.fixture
def loopback(tmp_path):
    pytest.importorskip("distributed")
    made = Loopback(tmp_path)
    yield made
    made.end()


QUICK = replace(presets.PRESETS["quick"], budget=Budget(2, 1, 0.01, 1e-5), more_seconds=-1.0, memory=0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the client's event loop, when a worker dies
def test_a_worker_killed_in_the_middle_of_a_run_loses_nothing(tmp_path, monkeypatch, loopback):
    monkeypatch.setattr(presets, "PRESETS", {"quick": QUICK})
    for host in ("127.0.0.1", "127.0.0.2"):
        loopback.worker(host)
    loopback.wait_for_workers(2)
    heard, out = [], tmp_path / "run"
    reporter, doomed = Reporter(), []
    reporter.notice = heard.append

    def killing(cluster, address, call, *patience, ask=Cluster._on):
        """The first job on this host, after the gate has let the cell through, ends its worker as it runs."""
        if "127.0.0.1" in address and reporter.pace.done and not doomed:
            doomed.append(address)
            call = partial(end_soon, call)
        return ask(cluster, address, call, *patience)

    monkeypatch.setattr(Cluster, "_on", killing)
    with executors.open_executor(lambda: Cluster(loopback.address, heard.append)) as cluster:
        assert cluster.at_once == 2
        outcome = runs.run(out, replace(SETTINGS, only="tiny", processes=2), reporter, executor=cluster, at_once=2)
    assert outcome.exit_code == 0, outcome.failures
    records = lines(out / results.RESULTS)
    keys = [typed(r).job for r in records if r["kind"] != "run"]
    assert len(keys) == len(set(keys)) == 1 + 2 + 1
    assert {r["host"] for r in records} == {host_label("127.0.0.1"), host_label("127.0.0.2")}
    assert [text for text in heard if "was lost; its job is run again elsewhere" in text]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_hosts_have_one_job_at_a_time_and_unlike_ones_are_refused(loopback):
    with pytest.raises(CompareError, match="the scheduler has no workers; start one on each host: dask worker"):
        Cluster(loopback.address)
    loopback.worker()
    loopback.worker()
    loopback.wait_for_workers(2)
    heard = []
    with executors.open_executor(lambda: Cluster(loopback.address, heard.append)) as cluster:
        assert cluster.at_once == 1  # two workers, one host
        spans = [future.result() for future in [cluster.submit(interval) for _ in range(4)]]
        ends = sorted((start, end) for start, end in spans)
        assert all(before[1] <= after[0] for before, after in pairwise(ends))
        loopback.worker("127.0.0.2", MALLOC_ARENA_MAX="1")
        loopback.wait_until(lambda: len(cluster.client.nthreads()) == 3)  # as this client hears of it
        assert cluster.submit(interval).result()
        assert any("has joined and is not used, as it is not alike: malloc" in text for text in heard)
    with pytest.raises(CompareError, match="the hosts are not alike, and their numbers cannot be pooled: malloc"):
        Cluster(loopback.address)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_worker_that_is_lost_while_it_is_asked_is_not_used_and_ends_nothing(loopback, monkeypatch):
    victim, _ = loopback.worker("127.0.0.1"), loopback.worker("127.0.0.2")
    loopback.wait_for_workers(2)
    asked = []

    def killing(cluster, address, *words, ask=Cluster._on):
        if "127.0.0.1" in address and not asked:
            asked.append(address)
            victim.kill()
        return ask(cluster, address, *words)

    monkeypatch.setattr(Cluster, "_on", killing)
    with executors.open_executor(lambda: Cluster(loopback.address)) as cluster:
        assert (len(asked), cluster.at_once) == (1, 1)
        assert cluster.submit(interval).result()


def end_soon(call):
    """A call whose process is killed 0.1 s after it begins."""
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGKILL)).start()
    return call()


def interval():
    start = time.time()
    time.sleep(0.05)
    return start, time.time()


def test_a_runner_here_takes_a_core_for_each_job_and_no_more_than_there_are(tmp_path, monkeypatch):
    for cores, most in ((None, 1), ([0], 1), ([0, 1, 2], 2)):
        monkeypatch.setattr(runner, "affinity", lambda cores=cores: cores)
        watch = Watch("memory", most)
        here = runner.Runner(Journal(tmp_path / "results.jsonl"), Reporter(), Pool(Serial(), watch), 10.0)
        with here.side_by_side(2) as beside:
            beside.jobs((Job("memory", "tiny", "small", process, modes=("dynamic",)), {}) for process in range(8))
        assert watch.most == most
    with ThreadPoolExecutor(1) as asked_for:
        here = replace(here, pool=Pool(asked_for, watch))
        with here.side_by_side(2) as same:
            assert same is here

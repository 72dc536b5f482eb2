"""A comparison that is stopped: what has finished is answered and kept, and gone on with."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from compare.cli import functions as own_command
from compare.cli import options
from compare.cli.command import graphduel
from compare.errors import CompareError, OverrunError, WorkerError
from compare.instruments.timing import FirstEpoch
from compare.own import run, workers
from compare.own.result import ComparisonStopped, Result
from compare.records import results
from compare.records.cells import Glimpse, GlimpseRow, Time
from compare.records.record import Bare, Environment, records_of
from compare.report import function as own_page
from compare.run.progress import Reporter
from compare.steps import CallTimes, FirstCall
from tests.compare.test_framework_own import answered
from tests.helpers import toy_framework
from tests.helpers.asked_here import answered_by
from tests.helpers.plans import plan_of

pytestmark = pytest.mark.usefixtures("toy")

JOBS = [(process, modes) for process in range(4) for modes in (("toy-eager", "toy-jit"), ("toy-eager", "toy-slow"))]
"""The processes of a comparison of two modes with three processes each, in their order."""


class Asked:
    """Stands for the processes; the one of that number is stopped, or the last is none."""

    stop = KeyboardInterrupt()

    def __init__(self, monkeypatch, stopped=None):
        self.jobs, self.stopped = [], stopped
        answered_by(monkeypatch, self)
        monkeypatch.setattr(run, "run_job", lambda *_: Bare(environment=Environment()))

    def __call__(self, job, limit, heard):
        if len(self.jobs) == self.stopped:
            raise self.stop
        self.jobs.append((job.process, job.modes))
        answer = answered(job)
        answer.environment = Environment()
        return answer


@pytest.fixture
def step(tmp_path, monkeypatch):
    """A function's file, with a cache that is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "step.py"
    path.write_text("loss = 1\n", "utf-8")
    return path


def asked(step, **options):
    return [plan_of("toy", f"{step}:loss", "", ("jit", "slow"), **{"processes": 3, **options})]


def compared(step, resume=False, told=None, **options):
    plans = asked(step, **options)
    with workers.open_folder(plans, ([] if told is None else told).append, resume=resume) as folder:
        return run.compare_plans(plans, Reporter, folder)


def stopped(monkeypatch, step, at, **options):
    Asked(monkeypatch, at)
    with pytest.raises(ComparisonStopped) as stop:
        compared(step, **options)
    return stop.value.result


def kept(step):
    """The journal of the comparison, as it lies on the disk."""
    (path,) = (step.parent / "cache").rglob(results.RESULTS)
    return path


def normalised(result):
    """The records without when and by whom."""
    return [results.to_json(record) for record in result.records[1:]]


@pytest.mark.parametrize("at", range(len(JOBS)))
def test_what_the_journal_holds_is_what_finished_and_the_rest_is_done_later(monkeypatch, step, at):
    result = stopped(monkeypatch, step, at)
    assert (result is None) == (at == 0)
    journals = (step.parent / "cache").rglob(results.RESULTS)
    kept = [time for path in journals for time in records_of(results.read(path), Time)]
    assert [(time.process, tuple(time.modes)[-1]) for time in kept] == [
        (process, modes[-1].removeprefix("toy-")) for process, modes in JOBS[:at]
    ]
    if result:
        said = " ".join(str(result).split())
        assert said.startswith(f"Stopped after {at} of {len(JOBS)} processes; missing: ")
        assert ("times of jit in" in said) == (at < len(JOBS) - 1)
    rest = Asked(monkeypatch)
    whole = compared(step, resume=True)
    assert rest.jobs == JOBS[at:]
    assert not list((step.parent / "cache").rglob(results.RESULTS))
    Asked(monkeypatch)
    assert normalised(whole) == normalised(compared(step))


def test_a_result_of_one_process_is_a_ratio_without_an_interval(monkeypatch, step):
    result = stopped(monkeypatch, step, 4)
    assert "Cannot tell" not in str(result)
    assert "in 1 process (an interval needs 3)" in " ".join(str(result).split())
    assert result.exit_code == 3


@pytest.mark.parametrize("cut", [1, 2, 40, 1000])
def test_a_last_line_that_was_not_written_to_its_end_is_done_again(monkeypatch, step, cut):
    stopped(monkeypatch, step, 3)
    os.truncate(kept(step), kept(step).stat().st_size - cut)
    rest = Asked(monkeypatch)
    compared(step, resume=True)
    assert rest.jobs == JOBS[2:]


def test_a_journal_that_is_none_begins_anew(monkeypatch, step):
    stopped(monkeypatch, step, 3)
    kept(step).write_bytes(b"\0" * 100 + b"\n")
    rest, told = Asked(monkeypatch), []
    compared(step, resume=True, told=told)
    assert rest.jobs == JOBS
    assert "not a line of graphduel results" in told[0]


@pytest.mark.parametrize("change", ["file", "seed", "imported"])
def test_a_journal_belongs_to_the_file_and_what_was_asked(monkeypatch, step, change):
    imported = step.with_name("layers.py")
    imported.write_text("", "utf-8")
    stopped(monkeypatch, step, 3)
    if change == "file":
        step.write_text("loss = 2\n", "utf-8")
    if change == "imported":
        look = {"name": "loss", "arms": [], "settings": {}, "source": "", "files": {str(imported): "another digest"}}
        line = {"schema": results.VERSION, "kind": "first look", **look}
        with kept(step).open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(line) + "\n")
    rest, told = Asked(monkeypatch), []
    compared(step, resume=True, told=told, seed=int(change == "seed"))
    assert rest.jobs == JOBS
    assert told[0].endswith("the comparison begins anew")
    assert ("layers.py is not what it was" in told[0]) == (change == "imported")


def test_more_processes_than_before_go_on(monkeypatch, step):
    stopped(monkeypatch, step, 5)
    rest = Asked(monkeypatch)
    compared(step, resume=True, processes=4)
    assert rest.jobs == [*JOBS[5:], *((4, modes) for _, modes in JOBS[:2])]


def test_what_begins_anew_forgets_what_was_kept(monkeypatch, step):
    stopped(monkeypatch, step, 5)
    anew = Asked(monkeypatch)
    compared(step)
    assert anew.jobs == JOBS


def command(step, *more):
    words = ["compare", f"{step}:loss", "--framework", "toy", "--modes", "jit,slow", "--processes", "3"]
    return CliRunner().invoke(graphduel, [*words, *more])


LATE = {
    "the result": (run, "result"),
    "the text": (Result, "__repr__"),
    "the results file": (results, "write_file"),
    "the page": (own_page, "finish"),
    "the baseline": (own_command, "changed_since"),
}
"""What comes after the last process of a comparison."""


@pytest.mark.diagonal("place", "error")
@pytest.mark.parametrize("error", [KeyError("late"), OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
@pytest.mark.parametrize("place", LATE)
def test_what_fails_after_the_last_process_costs_none_of_them(monkeypatch, step, place, error):
    Asked(monkeypatch)
    monkeypatch.chdir(step.parent)

    def fail(*_, **__):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(*LATE[place], fail)
        done = command(step, "--out", "out", "--save-baseline", "one")
    assert done.exit_code == {KeyError: 1, OSError: 2, KeyboardInterrupt: 130}[type(error)]
    assert "what has ended is kept: the same command with --resume goes on" in done.stderr
    rest = Asked(monkeypatch)
    done = command(step, "--resume")
    assert (done.exit_code, rest.jobs) == (0, []), done.stderr
    assert not list((step.parent / "cache").rglob(results.RESULTS))


@pytest.mark.parametrize("at", range(len(JOBS)))
def test_what_fails_in_a_process_costs_no_other(monkeypatch, step, at):
    asking = Asked(monkeypatch, at)
    monkeypatch.setattr(Asked, "stop", KeyError("late"))
    assert isinstance(command(step).exception, KeyError)
    rest = Asked(monkeypatch)
    assert command(step, "--resume").exit_code == 0
    assert asking.jobs + rest.jobs == JOBS


def test_a_cache_that_is_full_costs_no_answer(monkeypatch, step):
    Asked(monkeypatch)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(results, "append", full)
    done = command(step)
    assert done.exit_code == 0
    assert done.stderr.count("not kept, so that --resume asks again: [Errno 28] No space left on device") == len(JOBS)


def test_two_at_once_do_not_meet(monkeypatch, step):
    Asked(monkeypatch)
    with workers.open_folder(asked(step)) as first, workers.open_folder(asked(step)) as second:
        assert first != second
        with pytest.raises(CompareError, match=r"cannot go on: .* is being written by process \d+ on this host"):
            compared(step, resume=True)
    assert not first.exists()
    assert not second.exists()


def test_what_was_left_long_ago_is_removed(monkeypatch, step):
    stopped(monkeypatch, step, 5)
    folder = kept(step).parents[1]
    os.utime(folder, (1, 1))
    with workers.open_folder(asked(step, seed=3)):
        assert not folder.exists()


def test_the_answer_is_printed_written_and_ends_as_a_stopped_command_does(monkeypatch, step):
    Asked(monkeypatch, 5)
    out, answer = step.parent / "out", step.parent / "answer.json"
    words = ["--out", str(out), "--json", str(answer)]
    done = command(step, *words)
    assert done.exit_code == 130
    assert done.stdout.startswith("Stopped after 5 of 8 processes; missing: times of slow in 2 of 3 processes")
    assert "the same command with --resume goes on" in done.stderr
    assert len(records_of(results.read(out / results.RESULTS), Time)) == 5
    assert "Stopped after 5 of 8" in (out / "report.md").read_text("utf-8")
    assert json.loads(answer.read_text("utf-8"))["records"][0]["settings"]["stopped"].startswith("after 5 of 8")
    rest = Asked(monkeypatch)
    done = command(step, *words, "--resume")
    assert done.exit_code == 0
    assert rest.jobs == JOBS[5:]
    assert len(records_of(results.read(out / results.RESULTS), Time)) == 8


FIRST = {
    "nothing": [],
    "eager begun": [FirstCall("toy-eager", 0, 2)],
    "a call of eager": [FirstCall("toy-eager", 1, 2, 0.25)],
    "eager": [FirstCall("toy-eager", 2, 2, 0.25)],
    "jit begun": [FirstCall("toy-jit", 0, 2)],
    "a call of jit": [FirstCall("toy-jit", 1, 2, 9.0)],
    "jit": [FirstCall("toy-jit", 2, 2, 1.0)],
    "the ratio": [CallTimes({"toy-eager": 0.2, "toy-jit": 0.1})],
}
"""What the first process tells, by what has ended then."""
UNKNOWN = "; whether jit gives what eager gives is not known"
ANSWERS = {
    "a call of eager": "Before anything was compared, 1 of 2 first calls of eager took 250 ms.",
    "eager": "Before anything was compared, the 2 first calls of eager took 500 ms.",
    "a call of jit": f"the 2 first calls of eager took 500 ms and 1 of 2 first calls of jit took 9 s{UNKNOWN}.",
    "jit": f"the 2 first calls of eager took 500 ms and the 2 first calls of jit took 10 s{UNKNOWN}.",
    "the ratio": f"; then a call of jit 0.5× that of eager in one process, with no interval{UNKNOWN}.",
}
"""And what the answer says then: what has not come to more says what there was before, or nothing."""
ENDS = {
    "Ctrl-C": KeyboardInterrupt(),
    "SIGTERM": options.TerminationSignal(),
    "out of memory": WorkerError("the worker died of SIGKILL", "made call 1 in eager"),
    "the limit": OverrunError("the worker ran too long", "made call 1 in eager"),
}


def begun(moment):
    """What is told until something has ended, and what is right to answer then."""
    place = list(FIRST).index(moment) + 1
    told = [each for news in list(FIRST.values())[:place] for each in news]
    return told, next((ANSWERS[name] for name in reversed(list(FIRST)[:place]) if name in ANSWERS), None)


class Ending(Asked):
    """The first process tells so much, and ends so."""

    def __init__(self, monkeypatch, told, end):
        super().__init__(monkeypatch)
        self.told, self.end = told, end

    def __call__(self, job, limit, heard):
        self.jobs.append((job.process, job.modes))
        for each in self.told:
            heard(each)
        raise self.end


@pytest.mark.diagonal("moment", "end")
@pytest.mark.parametrize("end", ["Ctrl-C", "SIGTERM"])
@pytest.mark.parametrize("moment", FIRST)
def test_what_the_first_process_told_is_in_the_answer_and_it_is_asked_again(monkeypatch, step, moment, end):
    told, right = begun(moment)
    Ending(monkeypatch, told, ENDS[end])
    done = command(step)
    said = " ".join(done.stdout.split())
    assert done.exit_code == {"Ctrl-C": 130, "SIGTERM": 143}[end], done.output
    assert (right in said) if right else not said
    if right:
        assert said.startswith("Stopped in first calls of jit, after 0 of 2 processes; missing: first calls of jit and")
        assert "the same command with --resume goes on" in done.stderr
        again = Ending(monkeypatch, [], ENDS[end])
        assert right in " ".join(command(step, "--resume").stdout.split())
        assert again.jobs == JOBS[:1]
        rest = Asked(monkeypatch)
        done = command(step, "--resume")
        assert (done.exit_code, rest.jobs) == (0, JOBS)
        assert "before anything was compared" not in done.stdout.lower()


@pytest.mark.diagonal("moment", "end")
@pytest.mark.parametrize("end", ["out of memory", "the limit"])
@pytest.mark.parametrize("moment", FIRST)
def test_a_process_that_is_lost_as_it_compares_has_told_what_it_told(monkeypatch, step, moment, end):
    """One that is lost before eager has run is of a function that is at fault."""
    told, right = begun(moment)
    Ending(monkeypatch, told, ENDS[end])
    done = command(step)
    has_run = list(FIRST).index(moment) >= list(FIRST).index("eager")
    assert done.exit_code == (5 if has_run else 1), done.output
    assert str(ENDS[end]) in done.output
    assert (right in " ".join(done.stdout.split())) if has_run else not done.stdout


def test_a_mode_whose_first_process_was_lost_is_compared_by_the_next_one(monkeypatch, step):
    """Or it would be timed, and nothing had ever looked at what it gives."""
    checks = []

    class Losing(Ending):
        def __call__(self, job, limit, heard):
            checks.append((job.process, job.modes[-1], job.asked["checks"]))
            return super().__call__(job, limit, heard) if job.modes == JOBS[0][1] and not job.process else answered(job)

    Losing(monkeypatch, begun("the ratio")[0], ENDS["out of memory"])
    assert command(step).exit_code == 1
    asked = {(process, mode): each for process, mode, each in checks if process}
    assert asked == {
        (process, mode): (process, mode) == (1, "toy-jit") for process in (1, 2, 3) for mode in ("toy-jit", "toy-slow")
    }


def test_what_was_told_is_written_too(monkeypatch, step):
    told, right = begun("the ratio")
    Ending(monkeypatch, told, KeyboardInterrupt())
    out, answer = step.parent / "out", step.parent / "answer.json"
    assert command(step, "--out", str(out), "--json", str(answer)).exit_code == 130
    (glimpse,) = records_of(results.read(out / results.RESULTS), Glimpse)
    assert glimpse.modes["jit"] == GlimpseRow("ok", None, 2, [9.0, 1.0], 0.1)
    assert right.partition(";")[0] in (out / "report.md").read_text("utf-8")
    verdict = json.loads(answer.read_text("utf-8"))["verdict"]
    assert verdict["glimpsed"]["jit"] == {"first": 10.0, "ended": 2, "calls": 2, "call": 0.1}


def test_an_answer_whose_process_has_not_ended_yet_is_kept(monkeypatch, step):
    class Leaving(Asked):
        def __call__(self, job, limit, heard):
            heard(super().__call__(job, limit, heard))
            raise KeyboardInterrupt

    Leaving(monkeypatch)
    assert command(step).stdout.startswith("Stopped after 1 of 8 processes; missing: ")
    rest = Asked(monkeypatch)
    assert command(step, "--resume").exit_code == 0
    assert rest.jobs == JOBS[1:]


def test_a_first_process_that_begins_again_finds_no_code_of_the_one_that_was_stopped(monkeypatch, step):
    class Writing(Ending):
        def __call__(self, job, limit, heard):
            found.append(Path(job.variables["CACHE"]).exists())
            Path(job.variables["CACHE"]).mkdir(parents=True, exist_ok=True)
            return super().__call__(job, limit, heard)

    found = []
    monkeypatch.setattr(toy_framework.Toy, "environment", lambda _, cache, *_more: {"CACHE": str(cache)})
    Writing(monkeypatch, begun("jit")[0], KeyboardInterrupt())
    command(step)
    Writing(monkeypatch, begun("jit")[0], KeyboardInterrupt())
    command(step, "--resume")
    assert found == [False, False]


@pytest.mark.parametrize("moment", ["eager", "jit", "comparing"])
def test_a_notebook_that_is_interrupted_has_what_was_told(monkeypatch, moment):
    """The cell is ended in the first call of a mode, or as its results are compared."""
    build = toy_framework.Toy.build

    def built(self, mode, loss, argnum):
        step = build(self, mode, loss, argnum)

        def run(*args):
            if mode == f"toy-{moment}":
                raise KeyboardInterrupt
            return step(*args)

        return run

    def judge(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(toy_framework.Toy, "build", built)
    if moment == "comparing":
        monkeypatch.setattr(FirstEpoch, "judge", judge)
    with pytest.raises(ComparisonStopped) as stop:
        run.here(plan_of("toy", "", "", ("jit",), seconds=0.02), toy_framework.loss, toy_framework.calls())
    said = " ".join(str(stop.value).split())
    assert ("the 3 first calls of eager took" in said) == (moment != "eager")
    assert ("the 3 first calls of jit took" in said) == (moment == "comparing")
    assert ("then a call of jit" in said) == (moment == "comparing")


@pytest.mark.slow
@pytest.mark.parametrize("ended", [0, 1, 4])
def test_a_signal_after_so_many_processes(step, ended):
    """With workers of our engine, which are real."""
    step.write_text(
        "import numpy as np\nimport graphs as g\n\n\ndef loss(w, x):\n    return g.sum(g.tanh(x @ w))\n\n\n"
        "inputs = [(np.ones((4, 4), 'f4'), np.ones((2, 4), 'f4'))]\n",
        "utf-8",
    )
    command = [sys.executable, "-m", "compare", "compare", f"{step}:loss", "--processes", "3", "--seconds", "0.05"]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    begun = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    signal.signal(signal.SIGINT, before)
    lines = [begun.stderr.readline() for _ in range(ended)]
    time.sleep(0.0 if lines else 1.0)
    begun.send_signal(signal.SIGINT)
    out, said = begun.communicate(timeout=120)
    assert begun.returncode == 130, said
    path = list((step.parent / "cache").rglob(results.RESULTS))
    labels = {record.label for file in path for record in results.read(file)}
    assert len(labels) in (ended, ended + 1)  # one may have ended as the signal came
    assert bool(out) == bool(labels)
    done = subprocess.run([*command, "--resume"], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in (0, 3), done.stderr
    assert done.stderr.count("] ") + len(labels) == 7  # a look, four of times, two of memory

"""What becomes of a worker that dies, hangs, forks or will not end: small programs stand for it."""

import contextlib
import os
import signal
import time
from itertools import count

import psutil
import pytest

from compare import steps
from compare.errors import OverrunError, ResultsError, WorkerError
from compare.records.job import Job
from compare.records.record import Bare
from compare.records.results import parse_line
from compare.run import processes
from compare.run.processes import Allowance
from tests.helpers.machine import Machine
from tests.helpers.together import together

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the programs use signals and forks")

HEAD = """
import atexit, os, signal, sys, threading, time
def tell(line):
    os.write(1, line.encode() + b"\\n")
def step(what):
    tell('{"step": "%s"}' % what)
ANSWER = '{"schema": 1, "kind": "environment"}'
step("began")
step("imported mine.py")
"""


@pytest.fixture
def ask(tmp_path, monkeypatch):
    """Asks a worker that is another program."""
    numbers = count()

    def ask(program, limit=20.0, heard=lambda _: None):
        file = tmp_path / f"worker_{next(numbers)}.py"
        file.write_text(HEAD + program, "utf-8")
        monkeypatch.setattr(processes, "WORKER", str(file))
        return processes.ask(Job("environment"), limit, heard)

    return ask


@pytest.fixture
def machine(monkeypatch):
    return Machine(monkeypatch)


@together(
    ("program", "error", "told"),
    [
        ("", WorkerError, "ended with exit code 0 and without an answer while it imported mine.py"),
        ("os._exit(0)", WorkerError, "exit code 0 and without an answer while it imported mine.py"),
        ("sys.exit('no\\nway')", WorkerError, "ended with exit code 1 and without an answer .*: way"),
        ("tell(ANSWER[:9])", WorkerError, "exit code 0 and without an answer"),
        ("os.write(1, ANSWER.encode())", WorkerError, "exit code 0 and without an answer"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", WorkerError, "died of SIGSEGV while it imported mine.py"),
        ("os.close(1); time.sleep(60)", WorkerError, "closed the pipe of its answer while it imported mine.py"),
        (
            "tell('{\"bound\": {}}'); time.sleep(60)",
            WorkerError,
            "wrote what is none into the pipe of its answer while it",
        ),
        ("os.execv('/bin/sleep', ['sleep', '60'])", OverrunError, "ran longer than 0.6 s while it imported mine.py,"),
        ("os.write(2, b'\\xff\\xfe'); os._exit(3)", WorkerError, "exit code 3 and .*: \ufffd\ufffd"),
        ("os.write(2, b'\\xff' * 10**6); os._exit(3)", WorkerError, "exit code 3"),
        ("if os.fork(): os._exit(0)\ntime.sleep(60)", WorkerError, "exit code 0 and without an answer"),
        ("while True: pass", OverrunError, "ran longer than 0.6 s while it imported mine.py, and was ended"),
        ("time.sleep(60)", OverrunError, "ran longer than 0.6 s while it imported mine.py, and was ended"),
        (
            "import faulthandler; faulthandler.enable(2); exec(compile('import os; os.abort()', 'mine.py', 'exec'))",
            WorkerError,
            "died of SIGABRT while it imported mine.py: mine.py:1",
        ),
    ],
)
def test_a_worker_without_an_answer_says_how_it_ended_and_what_it_did(ask, program, error, told):
    limit = 0.6 if error is OverrunError else 20.0
    with pytest.raises(error, match=told) as caught:
        ask(program, limit)
    assert isinstance(caught.value, OverrunError) is (error is OverrunError)
    assert caught.value.step == "imported mine.py"


@together(
    "line", ["", "hello", "{}", '{"step":', '{"step":[]}', '{"bound":"x"}', '{"bound":{}}', '{"step":' + "[" * 99_999]
)
def test_what_others_have_written_into_the_pipe_is_neither_a_step_nor_an_answer(line):
    assert steps.parse_step(line.encode() + b"\n") is None
    with pytest.raises(ResultsError, match="not a line of"):
        parse_line(line.encode() + b"\n")


@together(
    ("program", "left"),
    [
        ("tell(ANSWER)", None),
        ("tell(ANSWER); os._exit(3)", None),
        ("tell(ANSWER); os.kill(os.getpid(), signal.SIGKILL)", None),
        (
            "threading.Thread(target=time.sleep, args=(60,)).start()\ntell(ANSWER); step('waited for the thread T')",
            "the worker had answered, and still waited for the thread T: it was ended",
        ),
        (
            "atexit.register(time.sleep, 60)\ntell(ANSWER); step('ran its exit')",
            "the worker had answered, and still ran its exit: it was ended",
        ),
        ("if not os.fork(): time.sleep(60)\ntell(ANSWER)", None),
    ],
)
def test_a_worker_that_has_answered_is_ended_whatever_it_still_does(ask, program, left):
    began = time.monotonic()
    assert ask(program).ended == left
    assert time.monotonic() - began < 15


def test_what_a_worker_has_started_ends_with_it(ask, tmp_path):
    file = tmp_path / "started"
    program = (
        f"import subprocess; child = subprocess.Popen(['sleep', '60']); open({str(file)!r}, 'w').write(str(child.pid))"
    )
    ask(f"{program}\ntell(ANSWER)")
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(int(file.read_text("utf-8"))).wait(10)


def test_progress_renews_the_limit(ask):
    steps = []
    record = ask("for i in range(6):\n    step(i); time.sleep(0.5)\ntell(ANSWER)", 2.0, steps.append)
    assert record.ended is None
    assert steps == ["began", "imported mine.py", *map(str, range(6)), record]


def test_a_part_of_the_work_has_a_limit_of_its_own_whatever_is_told_meanwhile(ask):
    steps = "for i in range(200):\n    step(i); time.sleep(0.05)\n"
    with pytest.raises(OverrunError, match=r"ran longer than 0\.5 s while it \d+, and was ended"):
        ask(f"tell('{{\"bound\": 0.5}}')\n{steps}tell(ANSWER)")
    short = steps.replace("200", "10")
    assert ask(f"tell('{{\"bound\": 5}}'); tell('{{\"bound\": null}}')\n{short}tell(ANSWER)").ended is None


def test_a_worker_may_take_as_long_to_end_as_it_has_worked(ask):
    slow = "atexit.register(time.sleep, 1.5)\ntime.sleep(2.0)\ntell(ANSWER); step('ran its exit handlers')"
    assert ask(slow).ended is None


def test_seconds_in_which_a_worker_waited_for_a_core_do_not_count(machine):
    allowance = Allowance(0, 10.0)

    def looks(seconds, share):
        """Whether nothing is left after so many seconds, of which a share went by in waiting."""
        for _ in range(seconds):
            machine.passes(1.0, t=(1.0 - share, share))
            over = allowance.look()
        return over

    assert not looks(100, 0.9)
    assert looks(1, 0.9)
    allowance.renew()
    assert not looks(10, 0.0)
    assert looks(1, 0.0)


def test_ctrl_c_in_the_run_ends_the_worker(ask):
    def interrupt(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ask("time.sleep(60)", heard=interrupt)
    assert not [one for one in psutil.Process().children() if processes.WORKER in one.cmdline()]
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_workers_that_wait_start_side_by_side_and_begin_in_their_turn():
    waiting = [processes.Worker(Job("environment"), waits=True) for _ in range(2)]
    try:
        for worker in waiting:
            worker.ready(60.0)
        time.sleep(1.0)
        assert all(worker.process.poll() is None and worker.lines.empty() for worker in waiting)
        records = [worker.ask(60.0) for worker in waiting]
    finally:
        for worker in waiting:
            worker.end()
    assert all(isinstance(record, Bare) for record in records)
    assert len({record.environment.layout for record in records}) == 1  # that of the job, whoever starts first


def test_jobs_whose_workers_wait_get_these_and_those_whose_turn_never_comes_end():
    def alive():
        return {one.pid for one in psutil.Process().children() if processes.WORKER in one.cmdline()}

    waiting = processes.WaitingWorkers()
    first, second, third = (Job("environment", process=number) for number in range(3))
    with contextlib.closing(waiting):
        waiting.start({first.label: first}, 60.0)
        assert not alive()  # a single one gains nothing
        waiting.start({job.label: job for job in (first, second)}, 60.0)
        there = alive()
        assert len(there) == 2
        assert isinstance(waiting.run_job(first, 60.0), Bare)
        assert len(alive()) == 1
        assert alive() < there
        assert isinstance(waiting.run_job(third, 60.0), Bare)
        assert len(alive()) == 1
        waiting.start({job.label: job for job in (first, third)}, 60.0)
        assert len(alive()) == 2
        assert alive().isdisjoint(there)
    assert not alive()


def test_a_worker_that_ends_before_its_turn_is_ready_and_says_how_it_ended(tmp_path, monkeypatch):
    file = tmp_path / "worker.py"
    file.write_text(HEAD + "os._exit(3)", "utf-8")
    monkeypatch.setattr(processes, "WORKER", str(file))
    worker = processes.Worker(Job("environment"), waits=True)
    worker.ready(60.0)
    with pytest.raises(WorkerError, match="exit code 3 and without an answer"):
        worker.ask(20.0)

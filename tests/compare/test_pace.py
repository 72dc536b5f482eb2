"""The estimate of how long a run will still take, and the lines of a log."""

import io
import time
from pathlib import Path

import pytest

from compare.records.job import KINDS, Job
from compare.run import progress
from compare.run.progress import Pace

PROGRAM, PARITY = (KINDS[kind].typical[""] for kind in ("program", "parity"))
RUNS = Path(__file__).parents[1] / "data" / "pace"


def job(sort):
    kind, _, size = sort.rpartition(" ")
    return Job(kind, size=size) if kind else Job(size)


def test_jobs_of_which_nothing_is_known_take_as_long_as_those_that_ran():
    pace = Pace()
    assert pace.left == ""
    pace.total = 10
    pace.skip()
    pace.skip()
    pace.took(2.0)
    pace.took(4.0)
    assert pace.seconds_left == pytest.approx(18)
    assert pace.left == "about 18 s left"


def test_one_long_job_of_its_kind_says_nothing_of_the_others():
    pace = Pace()
    pace.expect([job("program"), *[job("parity small")] * 10])
    pace.took(2 * PROGRAM, job("program"))
    assert pace.seconds_left == pytest.approx(10 * 2 * PARITY)  # this machine takes twice as long


def test_what_ran_here_outweighs_what_was_typical_elsewhere():
    pace = Pace()
    pace.expect([*[job("time small")] * 150, job("parity small")])
    for _ in range(100):
        pace.took(10.0, job("time small"))
    pace.took(PARITY, job("parity small"))
    assert pace.seconds_left == pytest.approx(500, rel=0.05)


def test_a_run_leaves_its_seconds_for_the_next_of_its_name(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def run(name, seconds):
        pace = Pace()
        with pace.learning(name):
            pace.expect([job("time small")] * 3)
            before = pace.left
            pace.took(seconds, job("time small"))
        return before

    assert run("mine.py:loss", 40.0) == ""
    assert run("mine.py:loss", 20.0) == "about 2 min left"
    assert run("mine.py:loss", 30.0) == "about 90 s left"
    assert run("other.py:loss", 1.0) == ""


def test_a_file_of_seconds_that_cannot_be_read_says_nothing(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "graphduel").mkdir()
    for spoiled in ("[", "[]", '{"mine": 3}', '{"mine": [["time"]]}', '{"mine": [["time", "small", "x"]]}'):
        (tmp_path / "graphduel" / progress.LEARNED).write_text(spoiled)
        pace = Pace()
        with pace.learning("mine"):
            pace.expect([job("time small")])
            assert pace.left == ""


def test_jobs_that_were_skipped_unnamed_shorten_the_rest():
    pace = Pace()
    pace.expect([job("time small")] * 4)
    pace.took(2.0, job("time small"))
    pace.skip()
    assert pace.seconds_left == pytest.approx(4.0)
    for _ in range(2):
        pace.skip(job("time small"))
    assert pace.seconds_left == 0


def test_more_than_a_hundred_seconds_are_minutes():
    pace = Pace()
    pace.total = 3
    pace.took(100.0)
    assert pace.left == "about 3 min left"


@pytest.mark.parametrize("run", ["quick", "full"])
def test_after_a_tenth_of_a_real_run_the_estimate_is_within_a_factor_of_one_and_a_half(run):
    """Each line of a file is a job of a run that was measured: its kind and size, and its seconds."""
    lines = [line.rsplit(" ", 1) for line in (RUNS / f"{run}.txt").read_text().splitlines()]
    ran = [(job(sort), float(seconds)) for sort, seconds in lines]
    whole = sum(seconds for _, seconds in ran)
    pace, spent, factors = Pace(), 0.0, []
    pace.expect(asked for asked, _ in ran)
    for asked, seconds in ran:
        pace.took(seconds, asked)
        spent += seconds
        if 0.1 * whole < spent < 0.97 * whole:
            factors.append(pace.seconds_left / (whole - spent))
    assert len(factors) > 0.8 * len(ran)
    assert min(factors) > 1 / 1.5
    assert max(factors) < 1.5


def test_a_log_says_what_a_long_job_is_doing_and_for_how_long():
    stream = io.StringIO()
    for _ in range(2):  # one reporter may serve several runs
        with progress.LineReporter(stream, every=0.02) as log:
            log.pace.expect([Job("time")])
            log.start("first calls of compile")
            log.step("made call 1 in compile")
            deadline = time.monotonic() + 20
            while stream.getvalue().count("so far") < 2 and time.monotonic() < deadline:
                time.sleep(0.01)
            log.finish(job=Job("time"))
            said = stream.getvalue()
            time.sleep(0.1)
            assert stream.getvalue() == said  # nothing runs
        first, *_, last = said.splitlines()
        assert first == "    first calls of compile, making call 1 in compile: 0 s so far"
        assert "] first calls of compile: " in last
        stream.seek(0)
        stream.truncate()


@pytest.mark.parametrize(
    ("seconds", "said"), [(95, "95 s"), (100, "1 min 40 s"), (120, "2 min 0 s"), (130, "2 min 10 s"), (725, "12 min")]
)
def test_a_line_of_a_job_at_work_tells_seconds_below_ten_minutes(seconds, said):
    stream = io.StringIO()
    with progress.LineReporter(stream, every=0.01) as log:
        log.start("first calls of compile")
        log._began = time.monotonic() - seconds
        deadline = time.monotonic() + 20
        while "so far" not in stream.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
    assert said in {line.rpartition(": ")[2].removesuffix(" so far") for line in stream.getvalue().splitlines()}

"""`graphduel shapes`: the user's own lengths under every strategy."""

from statistics import fmean

import click
import pytest
from click.testing import CliRunner

from compare import stats
from compare.cli.command import graphduel
from compare.records.cells import LengthsProbe
from compare.records.record import Failure
from compare.run import processes
from tests.helpers.claim_records import BASE, lengths, strategy
from tests.helpers.records import typed


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("length\n5\n9\n3\n", encoding="utf-8")
    return path


@pytest.fixture
def asked(monkeypatch):
    """The jobs that workers are given; each answers with made-up times."""
    jobs = []

    def answer(job, timeout):
        jobs.append(job)
        if job.kind == "lengths probe":
            return LengthsProbe([(1, answer.compile, 1e-4), (100, answer.compile * 3, 2e-4)])
        if job.process in answer.dead:
            return Failure(job.name, "died")
        modes = {"dynamic": {"seconds": BASE}, "static, exact": {"seconds": BASE / 2, "epoch": 8}}
        return typed(lengths({**modes, **asked.more}, model=job.workload, name=job.lengths)[job.process])

    asked = answer
    answer.more, answer.jobs, answer.compile, answer.dead = {}, jobs, 0.01, ()
    monkeypatch.setattr(processes, "run_job", answer)
    return answer


def run(*words):
    return CliRunner().invoke(graphduel, ["shapes", *map(str, words)])


def words(result):
    return " ".join(result.stdout.split())


def test_each_process_gets_the_lengths_and_the_name_of_the_file_alone_is_told(mine, asked):
    result = run("--lengths", mine, "--processes", 3, "--quick")
    assert result.exit_code == 0, result.output
    probe, *timed = asked.jobs
    assert probe.kind == "lengths probe"
    assert probe.budget.seconds < 90
    assert [job.process for job in timed] == [0, 1, 2]
    assert {(job.workload, job.lengths, job.size) for job in timed} == {("encoder_text", "mine.csv", "small")}
    assert {tuple(sorted(set(job.examples))) for job in timed} == {(3, 5, 9)}
    assert str(mine.parent) not in result.stdout
    assert "static, exact" in result.stdout
    assert "0.5 (0.499 to 0.501) static is faster" in words(result)


def test_all_fits_a_terminal_of_80_columns(mine, asked, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("FORCE_COLOR", "1")  # as a terminal has it
    result = run("--lengths", mine, "--processes", 3, "--quick")
    lines = click.unstyle(result.stdout).splitlines()
    assert any(" static is faster" in line for line in lines)
    assert max(map(len, lines)) == 80


@pytest.mark.parametrize("processes", [0, 2])
def test_too_few_workers_for_an_interval_are_refused(mine, asked, processes):
    result = run("--lengths", mine, "--processes", processes)
    assert result.exit_code == 2
    assert f"x>={stats.LEAST}" in result.output
    assert asked.jobs == []


def test_the_sample_is_told_and_the_whole_is_counted(tmp_path, asked):
    path = tmp_path / "many.csv"
    path.write_text("\n".join(str(1 + i % 100) for i in range(4000)), encoding="utf-8")
    told = words(run("--lengths", path, "--quick"))
    assert "many.csv, column 1: 4,000 lengths, 1 to 100, median 50.5; 100 different" in told
    assert "static, exact 100 4,000 97.5% 0.0% 100.0%" in told  # a cycle of 100 never finds its graph among 64
    assert "static, powers of two 8 " in told
    assert "Timed: 48 of 4,000, 6 different lengths" in told
    assert f"The mean is {fmean(asked.jobs[1].examples):.1f}, of the whole 50.5" in told
    assert "87.5% come again, of the whole 97.5%" in told
    assert "Not timed" not in told


def test_what_would_not_end_in_time_is_not_timed_and_said(tmp_path, asked):
    path = tmp_path / "many.csv"
    path.write_text("\n".join(str(1 + i % 40) for i in range(4000)), encoding="utf-8")
    asked.compile = 3.0
    told = words(run("--lengths", path, "--quick"))
    assert "Not timed: 2,000 above 20 (50.0%), for which the workers' time is too short" in told
    assert {max(job.examples) for job in asked.jobs if job.kind == "lengths"} == {19}


def test_workers_that_do_not_answer_are_told(mine, asked):
    asked.dead = (1, 3)
    told = words(run("--lengths", mine, "--processes", 4))
    assert "2 of 4 workers answered; the others: died" in told


def test_several_axes_are_counted_and_not_timed(tmp_path, asked):
    path = tmp_path / "two.csv"
    path.write_text("source;target\n2;3\n4;5\n2;3\n", encoding="utf-8")
    result = run("--lengths", path, "--column", "source,target")
    assert result.exit_code == 0
    assert asked.jobs == []
    told = words(result)
    assert "two.csv, target: 3 lengths, 3 to 5, median 3; 2 different" in told
    assert "static, exact 2 2 33.3% 0.0% 100.0%" in told
    # 32 elements are asked for, of 4 x 5 at most
    assert "static, the maximum 1 1 66.7% 46.7% 53.3%" in told
    assert "Not timed: the models take inputs of one varying axis" in told


@pytest.mark.slow
def test_a_known_distribution_needs_no_file(asked):
    result = run("--lengths", "trees", "--model", "rnn_text")
    assert result.exit_code == 0
    assert "trees, length: 2,000 lengths" in words(result)
    assert {(job.workload, job.lengths) for job in asked.jobs[1:]} == {("rnn_text", "trees")}


def test_refusals_are_told_and_disagreement_ends_with_4(mine, asked):
    asked.more = {"static, symbolic": {**strategy(BASE), "status": "disagree", "reason": "off by 2"}}
    result = run("--lengths", mine)
    assert result.exit_code == 4
    assert "static, symbolic: disagree, off by 2" in words(result)


def test_a_file_without_lengths_ends_before_any_worker(tmp_path, asked):
    result = run("--lengths", tmp_path / "none.csv")
    assert result.exit_code == 2
    assert "cannot be read" in result.output
    assert asked.jobs == []


def test_nothing_measured_ends_with_5(mine, monkeypatch):
    monkeypatch.setattr(processes, "run_job", lambda job, timeout: Failure(job.name, "died"))
    assert run("--lengths", mine).exit_code == 5

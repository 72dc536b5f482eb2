"""`graphduel shapes`: the user's own lengths under every strategy."""

import pytest
from click.testing import CliRunner

from compare.cli import graphduel
from compare.measure import processes
from tests.claim_records import BASE, lengths, strategy


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
        arms = {"dynamic": {"seconds": BASE}, "static, exact": {"seconds": BASE / 2, "epoch": 8}}
        return lengths({**arms, **asked.more}, model=job.workload, name=job.lengths)[job.process]

    asked = answer
    answer.more, answer.jobs = {}, jobs
    monkeypatch.setattr(processes, "run_job", answer)
    return answer


def run(*words):
    return CliRunner().invoke(graphduel, ["shapes", *map(str, words)])


def test_each_process_gets_the_file_and_its_name_alone_is_told(mine, asked):
    result = run("--lengths", mine, "--processes", 3, "--quick")
    assert result.exit_code == 0, result.output
    assert [job.process for job in asked.jobs] == [0, 1, 2]
    assert {(job.workload, job.lengths, job.source, job.size) for job in asked.jobs} == {
        ("encoder_text", "mine.csv", str(mine), "small")
    }
    assert str(mine.parent) not in result.stdout
    assert "static, exact" in result.stdout
    assert "encoder_text on mine.csv (small): steady state, one by one, static, exact / dynamic" in result.stdout
    assert "0.5 (0." in result.stdout


def test_a_known_distribution_needs_no_file(asked):
    assert run("--lengths", "trees", "--model", "rnn_text").exit_code == 0
    assert {(job.workload, job.lengths, job.source) for job in asked.jobs} == {("rnn_text", "trees", "")}


def test_refusals_are_told_and_disagreement_ends_with_4(mine, asked):
    asked.more = {"static, symbolic": {**strategy(BASE), "status": "disagree", "reason": "off by 2"}}
    result = run("--lengths", mine)
    assert result.exit_code == 4
    assert "static, symbolic: disagree, off by 2" in result.stdout


def test_a_file_without_lengths_ends_before_any_worker(tmp_path, asked):
    result = run("--lengths", tmp_path / "none.csv")
    assert result.exit_code == 2
    assert "cannot be read" in result.output
    assert asked.jobs == []


def test_nothing_measured_ends_with_5(mine, monkeypatch):
    monkeypatch.setattr(
        processes, "run_job", lambda job, timeout: {"kind": "failure", "job": job.head, "error": "died"}
    )
    assert run("--lengths", mine).exit_code == 5

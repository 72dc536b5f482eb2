"""A run about one claim: what it measures, what it leaves out, and how it is asked for."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from compare.claims import CLAIMS, judge
from compare.cli.command import graphduel
from compare.plans import jobs
from compare.plans.settings import Settings
from compare.records.job import KINDS
from compare.records.record import Cell, kind_of
from compare.suite import frameworks

COST = "time", "memory", "crossover", "crossover memory", "lengths", "ladder", "parts", "ledger"


@pytest.mark.parametrize("claim", CLAIMS)
def test_it_measures_what_the_claim_reads_behind_its_gate(claim: str) -> None:
    reads = set(map(kind_of, CLAIMS[claim].reads))
    settings = Settings(claim=claim)
    measured = {kind for kind in (*COST, "parity") if jobs.is_read(settings, kind)}
    assert measured == reads & {*COST, "parity"}
    assert {job.kind for job in jobs.check_jobs(settings)} == {
        one.check.name for one in CLAIMS.values() if one.check and one.check.name in reads
    }
    assert all(jobs.is_read(Settings(), kind) for kind in KINDS)


def test_its_checks_are_made_also_where_only_some_cells_are_asked_for() -> None:
    assert jobs.check_jobs(Settings(only="tiny_mlp")) == []
    (job,) = jobs.check_jobs(Settings(only="tiny_mlp", claim="C8"))
    assert job.claim == "C8"


def test_frameworks_run_no_workload_for_a_claim_that_reads_none() -> None:
    cell = Cell("tiny_mlp", "small")
    assert frameworks.cells(Settings(claim="C3"), [cell]) == []
    assert cell in frameworks.cells(Settings(claim="C6"), [cell])


def test_it_is_judged_alone() -> None:
    assert [verdict.claim.id for verdict in judge([], asked="C4")] == ["C4"]


def test_a_claim_that_is_none_is_refused_with_those_there_are() -> None:
    done = CliRunner().invoke(graphduel, ["run", "--claim", "C99"])
    assert done.exit_code == 2
    assert "no claim is named 'C99'; choose one of C1, C2" in done.stderr

"""C8 in a framework: the same edited trainings, eager and compiled, judged by the rule for our own engines."""

from __future__ import annotations

import pytest

from compare import engines as frameworks
from compare import steps
from compare.claims import CLAIMS, c8_structure
from compare.records.checks import Edits
from compare.records.job import Job
from compare.run.worker import perform
from compare.workloads import structures
from compare.workloads.structures import STEPS
from tests.helpers.claim_records import said
from tests.helpers.jobs import check_of
from tests.helpers.records import plain, typed

CLAIM = CLAIMS["C8"]
CHOSEN = ("layer widened", "layer frozen", "early exit", "longer sequences")


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    monkeypatch.setattr(frameworks, "_FRAMEWORKS", {"toy": "tests.helpers.toy_framework:Toy"})
    monkeypatch.setattr(c8_structure, "REPEATS", 2)
    frameworks.find_engine.cache_clear()
    for module in (structures, frameworks.find_engine("toy").library.load(structures.__name__)):
        monkeypatch.setattr(module, "EDITS", [edit for edit in module.EDITS if edit.name in CHOSEN])
    yield
    frameworks.find_engine.cache_clear()


def measured(mode):
    return c8_structure.measure(check_of(mode))


def test_a_worker_makes_a_record_of_the_same_type_that_the_same_rule_judges():
    assert CLAIM.check
    record = perform(Job("edit", claim="C8", mode="toy-jit", source=CLAIM.check.measure))
    assert (record.mode, record.claim) == ("toy-jit", "C8")
    assert typed(plain(record))
    rows = {row.edit: row for row in record.edits}
    assert set(rows) == set(CHOSEN)
    for row in rows.values():
        assert row.agree
        assert row.difference < 1e-5
        assert not row.refused
        assert row.engines["dynamic"].rebuild == 0
        assert row.ways["retraced"].rebuild == row.engines["dynamic"].edits
    assert rows["layer frozen"].engines["static"] == rows["layer frozen"].ways["foreseen"]
    assert rows["layer frozen"].ways["foreseen"].rebuild == 0
    assert rows["longer sequences"].ways["foreseen"].rebuild == 3  # this framework has no symbolic sizes
    assert rows["layer widened"].engines["static"].compile_seconds == 2 * 0.25
    verdict = CLAIM.judge([record])
    assert len(verdict.finding.regimes) == len(CHOSEN)
    assert said(verdict.to_dict(), "static had to rebuild its graph after 2 of 4 edits")


@pytest.mark.slow
def test_losses_that_are_not_ours_are_left_out(monkeypatch):
    told = []
    monkeypatch.setattr(steps, "now", told.append)
    rows = measured("toy-wrong").edits
    assert told == [f"trained through {row.edit}" for row in rows]  # where a worker that is ended was
    assert not any(row.agree for row in rows)
    assert all(row.difference > 0.1 for row in rows)
    verdict = CLAIM.judge([Edits("C8", [*rows])])
    assert verdict.finding.verdict == "inconclusive"


def test_what_an_mode_refuses_is_named_with_its_reason():
    (row, *_) = measured("toy-refusing").edits
    assert not row.agree
    assert row.engines.keys() == {"dynamic"}
    assert row.refused["retraced"] == "NotImplementedError: cannot be compiled: it prints"
    verdict = CLAIM.judge([Edits("C8", [row])])
    assert "only 0 edits measured, and 4 are needed" in verdict.finding.reasons[0]


@pytest.mark.slow
def test_what_is_not_run_stands_among_the_reasons_of_a_verdict():
    rows = [*measured("toy-jit").edits, *measured("toy-refusing").edits[:1]]
    assert said(CLAIM.judge([Edits("C8", rows)]).to_dict(), "layer widened, retraced: not run, NotImplemented")


def test_a_training_that_does_not_end_is_ended(monkeypatch):
    monkeypatch.setattr(c8_structure, "LIMIT", 0.3)
    toy = frameworks.find_engine("toy")
    edit = next(edit for edit in toy.library.load(structures.__name__).EDITS if not edit.foreseen)
    row = c8_structure.measure_edit(toy, "toy-endless", edit, [1.0] * STEPS)
    assert row.refused["retraced"] == "it did not end in 0.3 s"
    assert row.engines["dynamic"].seconds > 0


def test_eager_that_cannot_train_leaves_a_row_with_the_reason(monkeypatch):
    toy = frameworks.find_engine("toy")
    monkeypatch.setattr(toy, "arrays", lambda tree: 1 / 0)
    (row, *_) = measured("toy-jit").edits
    assert row.refused == {"dynamic": "failed: ZeroDivisionError: division by zero"}
    assert (row.engines, row.ways, row.agree, row.difference) == ({}, {}, False, None)
    assert CLAIM.judge([Edits("C8", [row])]).finding.verdict == "inconclusive"


@pytest.mark.parametrize(("budget", "times"), [(0.0, 1), (60.0, 2)])
def test_eager_is_trained_again_until_its_budget_is_spent_and_what_compiles_once(monkeypatch, budget, times):
    def counted(engine, mode, version):
        modes.append(mode)
        return train(engine, mode, version)

    train, modes, toy = c8_structure.train, [], frameworks.find_engine("toy")
    monkeypatch.setattr(c8_structure, "train", counted)
    monkeypatch.setattr(c8_structure, "BUDGET", budget)
    (edit, *_) = toy.library.load(structures.__name__).EDITS
    c8_structure.measure_edit(toy, "toy-jit", edit, [1.0] * STEPS)
    assert (modes.count("toy-eager"), modes.count("toy-jit")) == (times, len(c8_structure.ways(edit)))

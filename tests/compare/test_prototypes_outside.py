"""C7 in a framework: from an edit to the first result, eager and compiled, and the code that each mode takes."""

from __future__ import annotations

import pytest

from compare import engines as frameworks
from compare.claims import CLAIMS, c7_prototyping
from compare.engines.mode import Mode
from compare.records.job import Job
from compare.run.worker import perform
from compare.workloads import branch_on_sum
from compare.workloads.edits import EDITS, length
from tests.helpers.claim_records import said
from tests.helpers.jobs import check_of
from tests.helpers.records import plain, typed

CLAIM = CLAIMS["C7"]
CHOSEN = [edit for edit in EDITS if edit.workload in ("tiny_mlp", "elementwise_chain", "mlp_digits", "branch_on_sum")]


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    monkeypatch.setattr(frameworks, "_FRAMEWORKS", {"toy": "tests.helpers.toy_framework:Toy"})
    monkeypatch.setattr(c7_prototyping, "EDITS", CHOSEN)
    frameworks.find_engine.cache_clear()
    yield frameworks.find_engine("toy")
    frameworks.find_engine.cache_clear()


def test_a_worker_makes_a_record_of_the_same_type_that_the_same_rule_judges(toy, monkeypatch):
    monkeypatch.setattr(toy, "modes", (toy.modes[0], Mode("jit", traces=True)))
    record = perform(Job("prototype", claim="C7", mode="toy-jit", source=CLAIM.check.measure))
    assert (record.mode, record.claim) == ("toy-jit", "C7")
    assert typed(plain(record))
    rows = {row.task: row for row in record.tasks}
    assert set(rows) == {edit.workload for edit in CHOSEN}
    branching = rows.pop("branch_on_sum")  # which is Python's own, and no trace of the toy's converts it
    assert branching.engines["dynamic"].tokens == length(branch_on_sum.loss)["tokens"]
    assert branching.refused["static"].startswith("ControlFlowError")
    for row in rows.values():
        assert not row.refused
        assert all(len(cost.edit_to_result) == 1 and cost.edit_to_result[0] > 0 for cost in row.engines.values())
    verdict = CLAIM.judge([record])
    assert verdict.finding.verdict == "proxy only"
    assert said(verdict.to_dict(), "over 3 tasks (median: static ")


def test_the_edited_model_is_what_runs(toy):
    edit = CHOSEN[0]
    case = c7_prototyping.case_before_edit(toy, edit)
    given = c7_prototyping.arguments(toy, case)
    with toy.library.edited(edit.module.__name__, edit.source()) as after:
        values = [float(toy.build("toy-eager", loss, 0)(*given)[0]) for loss in (case.loss, after.loss)]
    assert values[0] != pytest.approx(values[1], rel=1e-6)
    assert toy.library.load(edit.module.__name__).loss is case.loss  # the module as it was stays loaded


def test_what_an_mode_refuses_is_named_with_its_reason_and_no_task():
    record = c7_prototyping.measure(check_of("toy-refusing"))
    assert [row.refused for row in record.tasks] == [
        {"static": "NotImplementedError: cannot be compiled: it prints"}
    ] * len(CHOSEN)
    assert all(row.engines.keys() == {"dynamic"} for row in record.tasks)
    found = CLAIM.judge([record]).to_dict()
    assert found["verdict"] == "inconclusive"
    assert found["reasons"][0].startswith("only 0 tasks measured")
    assert said(found, "tiny_mlp, static: not run, NotImplementedError")


def test_a_first_result_that_does_not_come_is_not_waited_for(toy, monkeypatch):
    monkeypatch.setattr(toy, "build", lambda mode, loss, argnum: hang if mode == "toy-jit" else lambda *_: None)
    monkeypatch.setattr(c7_prototyping, "LIMIT", 0.05)
    row = c7_prototyping.measure_edit(toy, "toy-jit", CHOSEN[0])
    assert row.refused == {"static": "it did not end in 0.05 s"}


def hang(*_):
    while True:
        pass

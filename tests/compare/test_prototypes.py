"""Edits of models: each changes the model, in both engines alike, and the model's length is counted."""

import numpy as np
import pytest

from compare import engines
from compare.claims import c7_prototyping
from compare.workloads import branch_on_sum
from compare.workloads.edits import EDITS, SourceEdit, length
from tests.helpers.jobs import check_of
from tests.helpers.records import plain, typed
from tests.helpers.slow import mostly_slow

by_workload = pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.workload)


@pytest.mark.parametrize("edit", mostly_slow(EDITS, 4), ids=lambda edit: edit.workload)
def test_an_edit_changes_one_model_in_both_engines_alike(edit):
    ours = engines.find_engine(engines.OWN)
    case = c7_prototyping.case_before_edit(ours, edit)
    args = (case.params, *case.examples[-1])  # of which the branch takes the side that is edited
    with ours.library.edited(edit.module.__name__, edit.source()) as module:
        edited = c7_prototyping.case_with_module(case, module)
        after = [float(ours.build(mode, ours.loss(mode, edited), 0)(*args)[0]) for mode in ours.mode_names[:2]]
    assert after[0] == pytest.approx(after[1], rel=1e-4)
    assert after[0] != pytest.approx(float(case.loss(*args)), rel=1e-6)


def test_an_edit_that_no_longer_fits_is_refused():
    with pytest.raises(ValueError, match=r"'graphs\.nothing' does not stand in its source"):
        SourceEdit("tiny_mlp", "graphs.nothing", "x").source()


def test_the_model_is_counted_with_the_functions_it_needs():
    # loss and branch: a signature and a return each, and the branch as a statement
    assert length(branch_on_sum.loss)["lines"] == 8
    alone = length(branch_on_sum.branch)
    assert alone == {"lines": 6, "tokens": 30}
    assert length(branch_on_sum.loss)["tokens"] > alone["tokens"]


def test_each_engine_waits_once_for_each_repetition(monkeypatch):
    monkeypatch.setattr(c7_prototyping, "EDITS", EDITS[:2])
    record = plain(c7_prototyping.measure(check_of()))
    assert typed(record)
    assert [task["task"] for task in record["tasks"]] == [edit.workload for edit in EDITS[:2]]
    for task in record["tasks"]:
        for engine in task["engines"].values():
            assert len(engine["edit_to_result"]) == c7_prototyping.REPEATS
            assert np.min(engine["edit_to_result"]) > 0

"""C8: structure edits during training, in both engines, and how their cost is counted."""

import numpy as np
import pytest

from compare import engines
from compare.claims import c8_structure
from compare.claims.c8_structure import TrainingRun
from compare.workloads.structures import BLOCKS, EDITS, HALF, STEPS, digits
from tests.helpers.claim_records import LABELS, regime, said, verdict
from tests.helpers.jobs import check_of
from tests.helpers.records import plain, typed

BY_NAME = {edit.name: edit for edit in EDITS}


@pytest.fixture(scope="module")
def trainings():
    """Each edit trained once in every way."""
    engine, mode = engines.engine_of_mode(None)
    return {
        name: {
            "dynamic": c8_structure.train(engine, engine.mode_names[0], edit.plain),
            **{way: c8_structure.train(engine, mode, version) for way, version in c8_structure.ways(edit).items()},
        }
        for name, edit in BY_NAME.items()
    }


def test_losses_are_equal_in_every_way_and_fall(trainings):
    for name, ways in trainings.items():
        losses = ways["dynamic"].losses
        assert len(losses) == STEPS
        if name == "longer sequences":  # each new length is a harder task: within one the loss falls
            assert losses[-1] < losses[-STEPS // 4]
        else:
            assert np.mean(losses[-4:]) < 0.9 * np.mean(losses[:4])
        for training in ways.values():
            np.testing.assert_allclose(training.losses, losses, rtol=c8_structure.TOLERANCE)


def test_a_new_trace_for_each_new_structure_and_none_where_it_was_foreseen(trainings):
    for ways in trainings.values():
        new = len(set(ways["dynamic"].structures)) - 1
        assert new >= 1
        assert ways["dynamic"].rebuilds == 0
        assert ways["retraced"].rebuilds == new
        assert ways.get("foreseen", ways["dynamic"]).rebuilds == 0


def test_an_edit_changes_what_is_computed(trainings):
    plain = {name: ways["dynamic"].losses for name, ways in trainings.items()}
    assert plain["layer dropped"][:HALF] == plain["layer added"][:HALF]
    assert plain["layer dropped"][HALF:] != plain["layer added"][HALF:]
    assert plain["layer frozen"][: HALF + 1] == plain["layer dropped"][:HALF] + plain["layer frozen"][HALF : HALF + 1]
    assert plain["layer frozen"][HALF + 1 :] != plain["layer widened"][HALF + 1 :]


def test_widening_changes_nothing_at_first(trainings):
    widened, frozen = trainings["layer widened"]["dynamic"].losses, trainings["layer frozen"]["dynamic"].losses
    assert widened[HALF] == pytest.approx(frozen[HALF], rel=1e-5)


def test_structures_are_told_apart_by_shapes_and_by_what_python_decides():
    params, batch = BY_NAME["layer dropped"].plain.init(), digits(0)
    one = c8_structure.structure_of(params, (*batch, True))
    assert one == c8_structure.structure_of(params, (*digits(1), True))
    assert one != c8_structure.structure_of(params, (*batch, False))
    dropped = BY_NAME["layer dropped"].plain.change(HALF, params)
    assert len(dropped["blocks"]) == BLOCKS - 1
    assert one != c8_structure.structure_of(dropped, (*batch, True))


def made_up(seconds, structures):
    return TrainingRun((1.0,) * len(seconds), tuple(seconds), tuple(structures), 1, 0.5)


def test_the_first_step_with_a_structure_is_measured_by_the_later_ones():
    times, structures = [9.0, 1, 1, 6, 2, 2, 2, 8, 1], "aaabbbbca"
    assert c8_structure.new_structures(times, structures) == [3.0, 8.0 / 1.5]


def test_costs_are_medians_over_trainings_and_means_over_structures():
    runs = [made_up([5, 1, first, 1, 4, 1], "aabbcc") for first in (2, 3, 90)]
    found = c8_structure.costs(runs, runs[0].structures)
    assert found.steps == (3 + 4) / 2
    assert found.edits == 2
    assert found.seconds == 15
    assert (found.rebuild, found.compile_seconds) == (1, 0.5)


def test_losses_apart():
    assert c8_structure.apart([1.0, 2.0], [1.0, 2.0]) == 0
    assert c8_structure.apart([1.0, 2.0], [1.0, 1.0]) == 0.5


@pytest.mark.slow
def test_the_record_keeps_the_schema_and_gets_a_computed_verdict(monkeypatch):
    monkeypatch.setattr(c8_structure, "REPEATS", 1)
    record = {"kind": "edit", "claim": "C8", "edits": plain(c8_structure.measure(check_of()).edits)}
    assert typed(record)
    assert all(row["agree"] for row in record["edits"])
    found = verdict("C8", [record])
    assert found["verdict"] in LABELS - {"not measured yet"}
    assert len(found["regimes"]) == len(EDITS) >= 9
    for name in ("stochastic depth", "early exit"):
        row = next(row for row in record["edits"] if row["edit"] == name)
        assert set(row["ways"]) == {"retraced", "foreseen"}
    assert said(found, "static had to rebuild its graph after")


def test_an_edit_after_which_losses_differ_is_left_out_and_named():
    cost = {"seconds": 1.0, "compile_seconds": 0.1, "edits": 1}
    engines = {"dynamic": {**cost, "rebuild": 0, "steps": 1.0}, "static": {**cost, "rebuild": 1, "steps": 50.0}}
    rows = [{"edit": f"edit {i}", "engines": engines, "ways": {}, "agree": i < 4, "difference": 0.0} for i in range(5)]
    found = verdict("C8", [{"kind": "edit", "claim": "C8", "edits": rows}])
    assert found["verdict"] == "supported"
    assert len(found["regimes"]) == 4
    assert said(found, "losses of the engines differ: edit 4")
    assert regime(found, "edit 0")["value"] == 50

"""C1, C3, C8: their rules stand before their data do."""

import pytest

from tests.helpers.claim_records import edits, faults, programs, verdict


def one_engine():
    (record,) = faults(30, "dynamic")
    return [{**record, "faults": record["faults"][::2]}]


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        (programs(unchanged=5, refused=40), "supported"),
        (programs(unchanged=5, rewritten=40), "supported"),
        (programs(unchanged=60), "refuted"),
        (programs(rewritten=60, edit=0.1), "refuted"),
        (programs(unchanged=25, refused=25), "depends"),
        (programs(refused=45, runs=False), "refuted"),
        (programs(refused=39), "inconclusive"),
    ],
)
def test_control_flow_rule(records, expected):
    assert verdict("C1", records)["verdict"] == expected


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([*faults(30, "dynamic"), *faults(5, "static")], "supported"),
        ([*faults(30, "static"), *faults(5, "dynamic")], "refuted"),
        (faults(35, None), "refuted"),
        ([*faults(18, "dynamic"), *faults(17, "static")], "inconclusive"),
        ([*faults(20, "dynamic", "value"), *faults(20, "static", "shape")], "depends"),
        (faults(29, "dynamic"), "inconclusive"),
        (one_engine(), "not measured yet"),  # one engine alone is no comparison
    ],
)
def test_debugging_rule(records, expected):
    assert verdict("C3", records)["verdict"] == expected


def test_a_fault_that_is_found_beats_one_that_is_missed_in_fewer_steps():
    records = faults(40, "dynamic")
    for row in records[0]["faults"]:
        row["detected"] = row["engine"] != "dynamic"
    assert verdict("C3", records)["verdict"] == "refuted"


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        (edits(4), "supported"),
        (edits(4, static=4.9), "refuted"),
        (edits(4, dynamic=2.1, static=500.0), "refuted"),
        (edits(4, rebuilds=(0, 0)), "refuted"),
        (edits(4, rebuilds=(1, 1)), "refuted"),
        ([*edits(2), *edits(2, static=1.0)], "depends"),
        (edits(3), "inconclusive"),
    ],
)
def test_structure_rule(records, expected):
    assert verdict("C8", records)["verdict"] == expected

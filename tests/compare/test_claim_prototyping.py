"""C7: never more than a proxy, and each proxy with its own label."""

import pytest

from tests.helpers.claim_records import caught, program, prototypes, regime, said, verdict

WAIT, CODE = "from edit to first result", "tokens of model code, the tasks"


@pytest.mark.parametrize(
    ("static", "label"),
    [(0.1, "refuted"), (1.0, "refuted"), (1.04, "refuted"), (1.06, "supported"), (9.0, "supported")],
)
def test_the_wait_is_judged_and_the_claim_is_not(static, label):
    found = verdict("C7", prototypes(4, static))
    assert found["verdict"] == "proxy only"
    assert found["effect"]["value"] == pytest.approx(static)
    assert found["interval"] == pytest.approx([static, static])
    assert regime(found, WAIT)["verdict"] == label


def test_waits_that_a_person_feels_are_counted():
    found = verdict("C7", prototypes(3, static=0.3, dynamic=0.02))
    assert said(found, "static ÷ dynamic: 15× over 3 tasks (median: static 300 ms, dynamic 20 ms)")
    assert said(found, "people notice: static 3, dynamic 0 (t0, t1, t2)")


def test_the_code_of_models_and_of_programs_is_compared():
    rows = [
        program("p0", "unchanged", graph_tokens=40),
        program("p1", "rewritten", graph_tokens=90),
        program("p2", "refused", graph_tokens=None),
    ]
    found = verdict("C7", [*prototypes(3, tokens=(130, 100)), {"kind": "program", "claim": "C1", "programs": rows}])
    assert regime(found, CODE)["value"] == pytest.approx(1.3)
    assert regime(found, CODE)["verdict"] == "supported"
    programs = regime(found, "tokens of model code, programs with control flow")
    assert programs["value"] == pytest.approx((40 / 40 * 90 / 40) ** 0.5)
    assert programs["verdict"] == "inconclusive"  # two programs


@pytest.mark.parametrize(
    ("static", "dynamic", "label"),
    [(12, 0, "refuted"), (0, 12, "supported"), (6, 5, "inconclusive"), (0, 0, "inconclusive")],
)
def test_failures_caught_before_running_speak_for_static(static, dynamic, label):
    found = verdict("C7", [*prototypes(3), *caught(static, dynamic)])
    name = f"faults caught before any data run: static {static / 20:.0%}, dynamic {dynamic / 20:.0%}"
    assert regime(found, name)["verdict"] == label
    assert said(found, f"static {static / 20:.0%} [")


def test_without_faults_or_programs_the_wait_alone_is_told():
    found = verdict("C7", prototypes(3))
    assert [r["name"] for r in found["regimes"]] == [WAIT, CODE]


def test_too_few_tasks_are_inconclusive():
    assert verdict("C7", prototypes(2))["verdict"] == "inconclusive"
    assert verdict("C7", [])["verdict"] == "not measured yet"
    assert verdict("C7", [{"kind": "prototype", "claim": "C7", "tasks": []}])["verdict"] == "not measured yet"

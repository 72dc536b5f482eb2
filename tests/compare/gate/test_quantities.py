"""The quantities of `--fail-if` on made-up records: what each reads, and what a rule on it says."""

import pytest
from msgspec import structs

from compare.errors import InputsError
from compare.gate.quantities import QUANTITIES
from compare.gate.rules import judge_change, parse_rule
from compare.records.record import Environment, Failure, Run
from tests.helpers.claim_records import cell, memory
from tests.helpers.records import typed

EAGER, COMPILE = 1e-3, 5e-4
MODES = ("eager", "compile")
TOLD = {
    "status": "ok", "reason": None, "made": [], "limits": [], "share": 0.75,
    "breaks": {"f.py:3: item": 2, "f.py:9: print": 1},
}  # fmt: skip


def records(seconds=COMPILE, compiles=2, peak=150, first=30.0, told=True, processes=5, machine="one"):
    timed = {"eager": {"seconds": EAGER}, "compile": {"seconds": seconds, "first": first, "compiles": compiles}}
    of_cell = cell("mine", timed, "given", processes)
    of_cell += [line for line in memory("mine", 100, peak, size="given", mode="compile") if line["kind"] == "memory"]
    for line in of_cell:
        line["eager"] = "eager"
        line["arms"] = {{"dynamic": "eager"}.get(mode, mode): row for mode, row in line["arms"].items()}
    place = {"kind": "compilations", "workload": "mine", "size": "given", "eager": "eager", "version": "1"}
    report = {**place, "arms": {"eager": {"status": "ok", "reason": None}, "compile": TOLD}}
    run = Run("1", "2026-01-01", {}, environment=Environment(cpu=machine))
    return [run, *typed([*of_cell, *([report] if told else [])])]


def judged(written, now, before=None):
    rule = parse_rule(written, MODES, {}, has_baseline=before is not None)
    return rule.judge(now, before or ())


@pytest.mark.parametrize(
    ("written", "outcome", "measured"),
    [
        ("compile.compiles > 2", "does not hold", "compile.compiles is 2"),
        ("compile.compiles > 1", "holds", "compile.compiles is 2"),
        ("compiles >= 2", "holds", "compile.compiles is 2"),
        ("compile.breaks > 0", "holds", "compile.breaks is 3"),
        ("coverage < 0.9", "holds", "compile.coverage is 0.75"),
        ("coverage < 0.7", "does not hold", "compile.coverage is 0.75"),
        ("compile.memory > 1.1", "holds", "compile.memory ÷ eager is 1.5×"),
        ("compile.memory > 100 B", "holds", "compile.memory is 150 B"),
        ("compile.memory > 1 KiB", "does not hold", "compile.memory is 150 B"),
        ("compile.call > 2 ms", "does not hold", "compile.call is 500 µs ["),
        ("compile.call < 600us", "holds", "compile.call is 500 µs ["),
        ("compile < 0.6", "holds", "compile ÷ eager is 0.5× ["),
        ("compile.first_run > 29 s", "holds", "compile.first_run is 30 s"),
        ("compile.first_run > 31 s", "does not hold", "compile.first_run is 30 s"),
        ("compile.first_run / eager > 1000", "holds", "compile.first_run ÷ eager is 3"),
        ("eager / compile > 1.9", "holds", "eager ÷ compile is 2× ["),
    ],
)
def test_a_quantity_is_read_and_judged(written, outcome, measured):
    found = judged(written, records())
    assert found.outcome == outcome, found
    assert found.measured.startswith(measured)


@pytest.mark.parametrize(
    ("written", "outcome"),
    [
        ("compile / baseline > 1.1", "holds"),
        ("compile / baseline > 1.3", "does not hold"),
        ("eager / baseline > 1.05", "does not hold"),
        ("compile.memory / baseline > 1", "holds"),
        ("compile.compiles / baseline > 1", "does not hold"),
        ("compile.first_run / baseline > 1.5", "holds"),
    ],
)
def test_a_mode_is_compared_with_itself_in_the_baseline(written, outcome):
    before, now = records(), records(seconds=COMPILE * 1.2, peak=160, first=60.0)
    assert judged(written, now, before).outcome == outcome
    ((cell, found),) = judge_change([written], before, now)
    assert (str(cell), found.outcome) == ("mine/given", outcome)


def test_times_of_another_machine_are_not_compared_and_counts_are():
    now, before = records(), records(machine="two")
    found = judged("compile / baseline > 1.1", now, before)
    assert (found.outcome, found.measured) == (
        "not measured", "compile ÷ baseline was not measured in both runs, on one machine"
    )  # fmt: skip
    assert judged("compile.memory / baseline > 1.1", now, before).outcome == "does not hold"


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_what_nothing_measured_is_no_number(quantity):
    lost = [Failure("time", "it hung")]
    assert QUANTITIES[quantity].of(lost, "compile") is None
    assert QUANTITIES[quantity].ratio(lost, "compile", "eager") is None
    assert QUANTITIES[quantity].change(lost, records(), "compile") is None
    assert QUANTITIES[quantity].change(records(), lost, "compile") is None


def test_our_engines_capture_the_whole_step_or_refuse_it():
    ours = records(told=False)
    assert judged("compile.breaks > 0", ours).measured == "compile.breaks is 0"
    assert judged("compile.coverage < 1", ours).outcome == "does not hold"
    for record in ours:
        if row := getattr(record, "modes", {}).get("compile"):
            row.status = "unsupported"
    assert judged("compile.breaks > 0", ours).outcome == "not measured"


@pytest.mark.parametrize("processes", [1, 2])
def test_few_processes_say_that_times_are_unclear(processes):
    few = records(processes=processes)
    assert judged("compile.call > 2 ms", few).outcome == "unclear"
    assert judged("compile / baseline > 1.1", few, records(processes=processes)).outcome == "unclear"
    assert judged("compile.compiles > 1", records(processes=2)).outcome == "holds"


def test_times_that_vary_about_the_number_are_unclear():
    times = records()
    for place, record in enumerate(r for r in times if getattr(r, "process", None) is not None):
        record.modes["compile"] = structs.replace(record.modes["compile"], blocks=[COMPILE * (0.8 + 0.1 * place)] * 12)
    assert judged("compile.call > 500 us", times).outcome == "unclear"


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("compile.compile > 1", "compile is no quantity; did you mean 'compiles'"),
        ("compile.call > 3 KiB", "'KiB' is no unit of call; its units: s, ms, us, µs, ns"),
        ("compile.compiles > 3 s", "'s' is no unit of compiles; its units: none, since it is a plain number"),
        ("compile.call / eager > 3 s", "'s' is no unit of call; its units: none"),
        ("compile / baseline > 1.1", "compares with an earlier run; give --baseline NAME, made by --save-baseline"),
        ("eager.call > 1", "compares eager with itself"),
        ("compile.memory / fast > 1", "fast is not measured; the modes that are: eager, compile"),
    ],
)
def test_a_rule_that_means_nothing_is_refused(written, message):
    with pytest.raises(InputsError, match=message):
        parse_rule(written, MODES, {})

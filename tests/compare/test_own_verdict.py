"""Comparing a function of one's own: refusals, disagreement and the verdict."""

import inspect
import json
from dataclasses import replace
from math import ceil

import numpy as np
import pytest
from msgspec import structs

import compare
import graphs as g
from compare.claims.base import NO_INTERVAL, SMALLEST_EFFECT
from compare.claims.contests import Contest, outcome_text
from compare.claims.verdict import judge, verdict
from compare.errors import EffectsError
from compare.instruments import memory as memory_instrument
from compare.own import measure
from compare.own.result import Result
from compare.records.cells import Parity, Time
from compare.records.job import Budget, Job
from compare.records.record import Failure, Run, records_of
from compare.report import show, verdicts
from compare.stats import Interval
from compare.subjects.case import case_of
from compare.subjects.subject import SIZE
from tests.helpers import own_functions as own
from tests.helpers.claim_records import BASE, KEYS, cell, memory
from tests.helpers.own_functions import MASKS, QUICK, STREAM
from tests.helpers.records import typed

# Refusals and disagreement


@pytest.mark.slow
def test_a_refusal_is_a_result_with_its_reason():
    found = compare.compare(own.asks, own.inputs, **QUICK)
    assert list(found.verdict.refused) == ["static-exact"]
    assert "ControlFlowError" in found.verdict.refused["static-exact"]
    assert "own_functions.py" in found.verdict.refused["static-exact"]
    assert found.verdict.steady.outcome == "alone"
    assert "Only dynamic was measured. Not timed: static-exact (unsupported)." in repr(found)
    assert found.exit_code == 5
    assert compare.compare(own.asks, own.inputs, ["dynamic"], **QUICK).exit_code == 0  # nothing else was asked for
    assert {v.finding.verdict for v in judge(found.records)} == {"not measured yet"}


@pytest.mark.slow
def test_text_in_what_a_function_gives_refuses_the_graph_and_not_the_tape():
    def named(x):
        return g.sum(x * x), {"name": "squares", "parts": [x]}

    shown = compare.compare(named, [(np.ones(3, np.float32),)], **QUICK)
    assert set(shown.verdict.steady.values) == {"dynamic"}
    line = inspect.getsourcelines(named)[1]
    assert shown.verdict.refused["static-exact"] == (
        "unsupported: ResultError: tensors hold bools, ints or floats, not <U7: 'squares' is in the result of named "
        f"(test_own_verdict.py:{line}); return tensors and numbers, and add the rest outside"
    )
    assert shown.exit_code == 5


@pytest.mark.slow
def test_python_control_flow_is_converted_for_the_static_modes_and_that_is_said():
    sides = [(*own.inputs[0][:-1], sign * own.inputs[0][-1]) for sign in (1, -1)]  # a call for each branch
    found = compare.compare(own.branch, sides, ["dynamic", "static", "static-symbolic"], **QUICK)
    assert found.verdict.refused == {}
    assert set(found.verdict.steady.values) == {"dynamic", "static-exact", "static-symbolic"}
    assert found.verdict.compiles["static-exact"] == 1
    shown = " ".join(repr(found).split())
    assert "static with convert=True" in shown
    line = inspect.getsourcelines(own.branch)[1] + 2
    assert f"own_functions.py:{line} (1): Python decides on a value in 1 place" in shown
    assert "convert=True" not in repr(compare.compare(own.loss, own.inputs, **QUICK))


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["static-bucket", "static-pad"])
def test_padding_needs_axes_that_vary(mode):
    found = compare.compare(own.loss, own.inputs, ["dynamic", mode], **QUICK)
    assert "which axes vary" in found.verdict.refused[mode]


def test_what_disagrees_is_marked_and_not_timed():
    found = compare.compare(own.unmasked, [(s, x) for s, x, _ in MASKS], ["dynamic", "static-pad"], **QUICK)
    assert found.verdict.disagree
    assert found.exit_code == 4
    assert "bool mask" in found.verdict.refused["static-pad"]
    timings = records_of(found.records, Time)
    assert timings
    assert all(record.modes["static-pad"].status == "disagree" for record in timings)


def test_what_gives_another_result_each_time_is_not_compared():
    with pytest.raises(EffectsError, match="Moody is not deterministic: two calls on the same arguments") as raised:
        compare.compare(own.Moody(), [(own.X,)], **QUICK, allow_effects=True)
    assert "Seed what it draws" in str(raised.value)


def test_nothing_is_timed_when_the_reference_is_not_right(monkeypatch):
    check = measure.parity.check

    def doubtful(job, case, modes, limit):
        record = check(job, case, modes, limit=limit)
        record.modes["dynamic"].status, record.agree = "disagree", False
        return record

    monkeypatch.setattr(measure.parity, "check", doubtful)
    found = compare.compare(own.loss, own.inputs, **QUICK)
    assert found.verdict.disagree
    assert [record.job.kind for record in found.records] == ["run", "parity"]
    assert found.verdict.sentence.startswith("Nothing was measured. Not timed: dynamic (disagree")
    assert found.exit_code == 4


def test_what_the_function_raises_is_raised():
    with pytest.raises(KeyError, match="nothing"):
        compare.compare(own.wrong, own.inputs, **QUICK)


@pytest.mark.slow
def test_a_measurement_that_fails_is_a_record(monkeypatch):
    monkeypatch.setattr(memory_instrument, "measure_mode", lambda mode, case: 1 / 0)
    found = compare.compare(own.loss, own.inputs, **QUICK)
    assert [failure.error for failure in records_of(found.records, Failure)]
    assert found.verdict.memory.outcome == "not measured"
    assert "failed: ZeroDivisionError" in repr(found)
    assert found.exit_code == 1


# The verdict, from made-up records


def judged(dynamic, static, *, noise=0.002, build=0.1, **others):
    modes = {
        "dynamic": {"seconds": BASE * dynamic, "noise": noise},
        "static-exact": {"seconds": BASE * static, "build": build, "noise": noise},
    }
    modes |= {
        mode.replace("_", "-"): {"seconds": BASE * by, "build": build, "noise": noise} for mode, by in others.items()
    }
    return verdict(typed(cell("mine", modes, "given")))


def test_a_winner_is_beyond_the_smallest_effect():
    found = judged(2, 1)
    assert (found.steady.outcome, found.steady.leaders) == ("wins", ("static-exact",))
    assert found.steady.ratios["dynamic"].estimate == pytest.approx(2, rel=0.01)
    assert found.of_base["static-exact"].estimate == pytest.approx(0.5, rel=0.01)
    assert found.sentence.startswith("Compile it with static-exact if it runs more than ")
    assert "Once warm, static-exact is 2× faster than dynamic." in found.sentence


def test_a_tie_and_what_cannot_be_told():
    assert judged(1 + SMALLEST_EFFECT / 3, 1).steady.outcome == "tie"
    noisy = judged(1 + SMALLEST_EFFECT, 1, noise=0.6)
    assert noisy.steady.outcome == "cannot tell"
    assert noisy.break_even.verdict == "cannot tell"
    assert "cannot be told apart" in noisy.sentence


def test_what_may_be_slower_by_what_counts_is_an_answer_all_the_same():
    found = judged(1, 1 + SMALLEST_EFFECT, noise=0.02)
    assert found.steady.outcome == "cannot tell"
    assert found.sentence.startswith("Stay dynamic: no mode is more than 5% faster. Once warm, dynamic is 1.0")
    assert " faster than static-exact, about the 5% that count." in found.sentence
    assert found.answered
    assert not judged(1 + SMALLEST_EFFECT, 1, noise=0.6).answered


@pytest.mark.parametrize("times", [1.02, 0.97])
def test_too_few_processes_call_nothing_faster_by_less_than_counts(times):
    modes = {"dynamic": {"seconds": BASE}, "static-exact": {"seconds": BASE * times}}
    records = typed(cell("mine", modes, "given", processes=2))
    said = verdict(records).sentence
    assert "differ by less than 5% in 2 processes (an interval needs 3)" in said
    assert "Once warm, static-exact is" not in said


def test_what_one_process_cannot_order_is_compared_before_the_base_is_named():
    unordered = {mode: Interval(ratio) for mode, ratio in (("as-written", 1.2), ("eager", 2.05))}
    found = Contest("cannot tell", ("jit", "as-written"), {}, unordered, "eager", processes=1)
    first, second = "jit is 1.2× faster than as-written", "jit is 2.05× faster than eager"
    assert outcome_text(found, "once") == f"once, {first} in 1 process (an interval needs 3), and {second}"


@pytest.mark.parametrize("processes", [1, 2])
def test_too_few_processes_name_no_winner_and_end_with_3(processes):
    modes = {"dynamic": {"seconds": 5 * BASE}, "static-exact": {"seconds": BASE}}
    records = typed(cell("mine", modes, "given", processes=processes))
    found = verdict(records)
    assert found.steady.outcome == found.first.outcome == "cannot tell"
    count = "1 process" if processes == 1 else "2 processes"
    assert f"Once warm, static-exact is 5× faster than dynamic in {count} (an interval needs 3)." in found.sentence
    assert found.to_dict()["of_base"]["static-exact"][1:] == [None, None]
    json.dumps(found.to_dict(), allow_nan=False)
    wrong = replace(found, wrong={"static-exact": (0.5, Interval(2.0, 1.0, 3.0))})
    assert json.loads(json.dumps(wrong.to_dict()))["wrong"] == {"static-exact": [0.5, [2.0, 1.0, 3.0]]}
    settings = {"gradient": True, "inputs": 1, "processes": processes, "where": "fresh workers"}
    result = Result("mine", tuple(modes), (Run("r", "2030-01-02", settings), *records))
    assert result.exit_code == 3
    assert "0.2× (no interval)" in repr(result)
    judged = judge(records)[0]
    entry = judged.to_dict()
    assert (entry["verdict"], entry["interval"]) == ("inconclusive", None)
    assert entry["effect"]["value"] == pytest.approx(1 / 5, rel=0.05)
    assert verdicts.effect(judged.finding).endswith(" (no interval)")
    assert f"1 of 1 regimes have no verdict: {NO_INTERVAL}" in entry["reasons"]


def test_two_modes_may_lead_together():
    found = judged(3, 1, static_symbolic=1.01)
    assert found.steady.outcome == "tie"
    assert set(found.steady.leaders) == {"static-exact", "static-symbolic"}
    assert "tie within 5%, and static-exact is 3× faster than dynamic." in found.sentence
    assert found.sentence.startswith("Compile it with static-exact")
    assert found.break_even.verdict == "after"


def test_break_even_is_the_build_over_the_gain():
    found = judged(2, 1, build=0.1)
    assert found.first.leaders == ("dynamic",)
    assert found.break_even.runs == pytest.approx(0.1 / BASE, rel=0.02)
    assert found.sentence.startswith(
        f"Compile it with static-exact if it runs more than {ceil(found.break_even.runs):,} "
    )


def test_a_mode_that_starts_and_runs_fastest_has_paid_back_at_once():
    found = judged(1, 2)
    assert found.break_even.verdict == "at once"
    assert found.steady.leaders == found.first.leaders == ("dynamic",)
    assert found.sentence.startswith("Stay dynamic. Once warm, dynamic is 2× faster than static-exact.")


def test_memory_is_counted_so_a_ratio_is_enough():
    records = [*cell("mine", {"dynamic": {"seconds": BASE}, "static-exact": {"seconds": BASE}}, "given")]
    records = typed(records + memory("mine", 1000, 2000, size="given")[1:])
    found = verdict(records)
    assert found.memory.leaders == ("dynamic",)
    assert found.memory.ratios["static-exact"].estimate == pytest.approx(2)
    assert "In memory, static-exact needs 2× more memory than dynamic." in found.sentence
    entries = {found.claim.id: found.to_dict() for found in judge(records)}
    assert all(set(entry) == KEYS for entry in entries.values())
    assert entries["F3"]["verdict"] == "supported"
    assert entries["F3"]["interval"] is None
    assert entries["F1"]["verdict"] == "refuted"


@pytest.mark.parametrize(("first", "expected"), [(90.0, "supported"), (0.1, "refuted"), (1.5, "inconclusive")])
def test_a_first_run_that_was_measured_once_is_settled_by_a_clear_ratio_as_in_the_answer(first, expected):
    modes = {"dynamic": {"seconds": BASE, "first": 1.0}, "static-exact": {"seconds": BASE, "first": first}}
    gate, cold, *others = cell("mine", modes, "given", 4)
    records = typed([gate, {**cold, "cache": "cold"}, *({**each, "cache": "warm"} for each in others)])
    (found,) = (each for each in judge(records) if each.claim.id == "F2")
    assert found.finding.verdict == expected
    assert any("measured once" in reason for reason in found.finding.reasons)


def test_without_dynamic_the_nearest_mode_is_compared_with_the_first():
    modes = {f"static-{policy}": {"seconds": BASE * by, "noise": 0.002} for policy, by in (("pad", 2), ("exact", 1))}
    said = verdict(typed(cell("mine", modes, "given"))).sentence
    assert said.startswith("Once warm, static-exact is 2× faster than static-pad.")


def test_no_records_no_verdict():
    found = verdict([])
    assert found.steady.outcome == found.memory.outcome == "not measured"
    assert found.sentence == "Nothing was measured."
    assert {found.finding.verdict for found in judge([])} == {"not measured yet"}


def test_a_run_with_no_time_left_still_has_its_rounds():
    job = Job("time", "mine", SIZE, 0, modes=("dynamic",), budget=Budget(rounds=4, least=2, seconds=0))
    record = measure.timing.measure_modes(job, case_of(own.square, STREAM, None, None))
    assert len(record["dynamic"].blocks) == 2


def test_compare_is_a_function_of_the_package():
    assert compare.compare.__module__ == "compare.own.run"
    with pytest.raises(AttributeError, match="no attribute 'contrast'"):
        compare.contrast  # noqa: B018


@pytest.mark.slow
def test_a_result_by_a_tape_in_python_says_so():
    found = compare.compare(own.square, [(own.X,)], **QUICK)
    assert "in Python" not in repr(replace_tape(found, "compiled"))
    slow = replace_tape(found, "python")
    assert show.heading(slow) in " ".join(repr(slow).split())
    assert show.heading(slow).endswith("; dynamic in Python, not compiled")
    for told in (repr(slow), slow._repr_html_()):
        assert show.SLOW in " ".join(told.split())


def test_what_the_gate_allowed_beyond_its_tolerance_is_said():
    records = typed(cell("mine", {"dynamic": {"seconds": 5 * BASE}, "static-exact": {"seconds": BASE}}, "given"))
    settings = {"gradient": True, "inputs": 1, "processes": 3, "where": "fresh workers"}
    records = [Run("r", "2030-01-02", settings), *records]
    assert show.notes_of(Result("mine", ("dynamic", "static-exact"), tuple(records))) == []
    for record in records_of(records, Parity):
        record.modes["static-exact"].reason = "ill-conditioned: rounding alone moves its result by up to 0.0023"
    told = show.notes_of(Result("mine", ("dynamic", "static-exact"), tuple(records)))
    assert told == ["static-exact: ill-conditioned: rounding alone moves its result by up to 0.0023"]


def replace_tape(found, tape):
    start, *rest = found.records
    there = structs.replace(start.environment, tape=tape)
    return replace(found, records=(structs.replace(start, environment=there), *rest))

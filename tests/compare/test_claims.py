"""What holds for all claims: no records no verdict, and what must not change one."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.claims import CLAIMS, base, conditions, get
from compare.claims.base import Citation, Finding, Regime, beyond, combine, strongest
from compare.errors import UnknownNameError
from compare.stats import Interval
from tests.helpers.claim_records import (
    BASE,
    cell,
    edits,
    faults,
    grid,
    judge,
    lengths,
    memories,
    programs,
    prototypes,
    race,
    said,
    sweep,
    text,
)
from tests.helpers.records import typed
from tests.helpers.slow import examples

START = {"kind": "run", "run": "r", "at": "2030-01-02", "settings": {}}


def everything():
    return [
        *race(1.5, 1.2, 0.7),
        *text(),
        *memories(1.5, 0.7, 1.3),
        sweep(),
        *programs(refused=45),
        *faults(30, "dynamic"),
        *prototypes(3),
        *edits(4),
        *lengths({"dynamic": {"seconds": BASE}, "static, exact": {"seconds": BASE / 2, "epoch": 9}}),
        *grid({("matmul", 1, 16): 3.0, ("matmul", 8, 16): 1.0}),
    ]


def scaled(value, factor):
    """The records with every duration, and nothing else, multiplied."""
    durations = {"build", "first", "blocks", "seconds", "compile_seconds", "dynamic_seconds", "static_seconds"}
    durations |= {"edit_to_result", "latency"}
    if isinstance(value, dict):
        return {k: times(v, factor) if k in durations else scaled(v, factor) for k, v in value.items()}
    return [scaled(item, factor) for item in value] if isinstance(value, list) else value


def times(value, factor):
    if value is None:
        return None
    return [factor * item for item in value] if isinstance(value, list) else factor * value


@examples(0.3)
@given(st.randoms(use_true_random=False))
def test_the_order_of_records_makes_no_difference(random):
    records = everything()
    expected = judge(records)
    random.shuffle(records)
    assert judge(records) == expected


@pytest.mark.slow
@examples(0.3)
@given(st.floats(1e-3, 1e3))
def test_a_faster_machine_has_the_same_verdicts(factor):
    before, after = judge(everything()), judge(scaled(everything(), factor))
    assert [v["verdict"] for v in after] == [v["verdict"] for v in before]
    for old, new in zip(before, after, strict=True):
        assert new["effect"] is None or new["effect"]["value"] == pytest.approx(old["effect"]["value"])
        assert [r["verdict"] for r in new["regimes"]] == [r["verdict"] for r in old["regimes"]]


def test_no_records_no_verdict():
    for found in judge([START, {"kind": "failure", "job": {"kind": "time"}, "error": "x"}]):
        assert found["verdict"] == "not measured yet"
        assert found["effect"] is None
        assert found["interval"] is None
        assert found["regimes"] == []
        assert said(found, "no record of")


def test_claims_stand_in_order_and_say_all_that_a_reader_needs():
    assert list(CLAIMS) == [f"C{i}" for i in range(1, 9)]
    assert [found["claim"] for found in judge([])] == list(CLAIMS)
    for claim in CLAIMS.values():
        assert all([claim.title, claim.statement, claim.opposite, claim.measured, claim.rule, claim.not_tested])
        assert claim.statement != claim.opposite


def test_figures_of_the_literature_have_a_source():
    lines = [str(line) for claim in CLAIMS.values() for line in claim.literature]
    sources = ("arXiv", "10.", "tutorial", "documentation", "contrib", "ASPLOS", "source)", "MXNet", "AFIPS")
    assert all(any(source in line for source in sources) for line in lines)


def test_a_claim_is_found_by_its_id_and_a_wrong_one_names_the_nearest():
    assert get(" c4 ").id == "C4"
    with pytest.raises(UnknownNameError, match="did you mean 'C1'"):
        get("C11")
    with pytest.raises(UnknownNameError, match="choose one of C1, C2"):
        get("speed")


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["supported", "supported"], "supported"),
        (["refuted"], "refuted"),
        (["supported", "refuted"], "depends"),
        (["supported", "refuted", "inconclusive"], "depends"),
        (["supported", "depends"], "depends"),
        (["supported", "inconclusive"], "inconclusive"),
        ([], "inconclusive"),
    ],
)
def test_labels_combine(labels, expected):
    assert combine(labels) == expected


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        (Interval(1.2, 1.06, 1.3), "supported"),
        (Interval(1.2, 1.05, 1.3), "inconclusive"),
        (Interval(1.0, 0.9, 1.04), "refuted"),
        (Interval(1.0, 0.9, 1.05), "inconclusive"),
        (None, "inconclusive"),
    ],
)
def test_a_ratio_lies_on_a_side_of_one_only_beyond_the_smallest_effect(interval, expected):
    assert beyond(interval) == expected
    assert beyond(interval and interval.inverse, "below") == expected


def test_regimes_are_plain_values():
    assert Regime("a", "supported").interval is None


def test_the_strongest_of_both_sides_is_the_extreme_that_counts():
    regimes = [Regime("a", "supported", 2.0), Regime("b", "supported", 5.0), Regime("c", "inconclusive", 99.0)]
    regimes += [Regime("d", "refuted", 0.9), Regime("e", "refuted", 0.3), Regime("f", "refuted")]
    found = strongest(Finding("depends", (), regimes=tuple(regimes)))
    assert [side.name for side in found] == ["b", "e"]
    below = [Regime("a", "supported", 0.5), Regime("b", "supported", 0.2), Regime("d", "refuted", 1.1)]
    below += [Regime("e", "refuted", 3.0)]
    assert [one.name for one in strongest(Finding("depends", (), regimes=tuple(below), side="below"))] == ["b", "e"]
    alone = strongest(Finding("refuted", (), regimes=(Regime("f", "refuted"), Regime("c", "inconclusive", 9.0))))
    assert alone == (None, Regime("f", "refuted"))


def test_every_claim_cites_what_is_known():
    for claim in CLAIMS.values():
        assert claim.literature
        assert claim.not_tested


# The tape


def by(tape, records):
    """The records as a worker with this tape leaves them."""
    return [{**record, "environment": {"tape": tape}} for record in records]


def test_a_tape_in_python_settles_none_of_its_claims_unless_asked_for_and_shows_what_was_measured():
    plain, slow = judge(by("compiled", everything())), judge(by("python", everything()))
    assert plain == judge(everything())  # results of before tell of no tape
    asked = judge(by("python", everything()), python_tape=True)
    for before, found, anyway in zip(plain, slow, asked, strict=True):
        assert anyway["verdict"] == before["verdict"]
        if found["claim"] in ("C5", "C6", "C7"):
            assert before["verdict"] != found["verdict"] == "inconclusive"
            assert (found["effect"], found["interval"]) == (before["effect"], before["interval"])
            assert [row["value"] for row in found["regimes"]] == [row["value"] for row in before["regimes"]]
            assert {row["verdict"] for row in found["regimes"]} <= {"inconclusive"}
            assert found["reasons"][0].startswith("the compiled tape is missing: the tape ran in Python, which takes")
            assert "--python-tape" in found["reasons"][0]
        else:
            assert found == anyway
        if found["claim"] in ("C4", "C5", "C6", "C7", "C8"):
            assert anyway["reasons"][-1].startswith(
                "the tape ran in Python: the times of the dynamic engine are those of that tape"
            )
        else:
            assert found == before


def test_one_record_of_a_tape_in_python_is_enough_and_the_start_of_a_run_is_not():
    start = {**START, "environment": {"tape": "python"}}
    records = [start, *by("compiled", everything())]
    assert judge(records) == judge(everything())
    mixed = [*by("python", everything()[:1]), *by("compiled", everything()[1:])]
    (c6,) = [found for found in judge(mixed) if found["claim"] == "C6"]
    assert c6["verdict"] == "inconclusive"
    assert f"the tape ran in Python in 1 of {len(mixed)} records" in c6["reasons"][0]


def test_which_tape_ran_is_told_in_one_sentence():
    assert base.sentence(typed([])) == "These results do not say which tape ran."
    assert base.sentence(typed(by("compiled", everything()))) == "The tape ran compiled."
    assert (
        base.sentence(typed(by("python", [START])))
        == "The tape ran in Python: ratios to the compiled tape would differ."
    )
    mixed = [*by("compiled", [sweep()]), *by("python", [sweep()] * 2)]
    assert base.sentence(typed(mixed)).startswith("The tape ran compiled in 1 records and in Python in 2 records")


def test_the_conditions_of_a_run_are_said_in_words():
    control = cell("big_matmul", {"dynamic": {"seconds": BASE}, "static-exact": {"seconds": BASE}}, processes=4)
    there = {
        "tape": "compiled", "load": 2.5, "logical_cores": 4, "affinity": [3], "power": "battery",
        "governor": "powersave", "blas": {"loaded": [{"num_threads": 1}]},
    }  # fmt: skip
    tape_said, load, threads, clock, tie = conditions.sentences(
        typed([{**record, "environment": there} for record in control])
    )
    assert tape_said == "The tape ran compiled."
    assert load == (
        "The load was 2.50 to 2.50 on 4 logical cores (median 2.50). "
        "A run alone makes a load of 1, so other programs took part of the machine."
    )
    assert threads == ("Each worker had 1 core and 1 BLAS thread; power from battery, clock governed by powersave.")
    assert clock == "All seconds are those of the wall."  # as older records have it
    assert tie.startswith("Control big_matmul (small): static ÷ dynamic is 1.0")
    assert "; the times of its blocks differ by " in tie


@pytest.mark.parametrize("theirs", [("autograd-eager",), ("jax-eager", "jax-jit"), ("torch-eager", "torch-compile")])
def test_the_control_is_that_of_our_engines_where_a_framework_ran_it_too(theirs):
    ours = cell("big_matmul", {"dynamic": {"seconds": BASE}, "static-exact": {"seconds": BASE}})
    also = cell("big_matmul", {mode: {"seconds": BASE * (1 + i)} for i, mode in enumerate(theirs)}, processes=4)
    also = [record | {"eager": theirs[0]} for record in also]
    *_, tie = conditions.sentences(typed([*ours, *also]))
    assert tie == conditions.sentences(typed(ours))[-1]
    assert tie.startswith("Control big_matmul (small): static ÷ dynamic is 1.0")


@pytest.mark.parametrize(
    ("clocks", "said"),
    [
        (["cpu"], "Steady seconds are those of the processor that a worker had, first calls those of the wall."),
        (["events"], "Steady seconds are those of the GPU, by its events, first calls those of the wall."),
        (
            ["events", "cpu"],
            (
                "Steady seconds are those of the processor that a worker had and of the GPU, by its events, first "
                "calls those of the wall."
            ),
        ),
        (["wall", "wall"], "All seconds are those of the wall."),
    ],
)
def test_the_seconds_of_a_run_are_those_of_every_clock_that_it_was_timed_by(clocks, said):
    timed = cell("tiny_mlp", {"dynamic": {"seconds": BASE}}, processes=len(clocks))
    times = [record for record in timed if record["kind"] == "time"]
    marked = [{**record, "clock": clock} for record, clock in zip(times, clocks, strict=True)]
    assert said in conditions.sentences(typed(marked))


def test_what_the_system_does_not_tell_is_not_said():
    silent = conditions.sentences(typed([{**START, "environment": {}}]))
    assert silent == (
        "These results do not say which tape ran.",
        (
            "Each worker had an unknown number of cores and an unknown number of BLAS threads; the system does not "
            "report its power state."
        ),
        "The control big_matmul was not measured, so the noise of the machine is not known.",
    )
    own = {**START, "settings": {"function": "f"}}
    assert len(conditions.sentences(typed([{**own, "environment": {}}]))) == 2
    models = {**START, "settings": {"preset": "models"}}  # a framework's: no tape of ours ran, and no control
    assert conditions.sentences(typed([{**models, "environment": {}}])) == silent[1:2]


MANY = Citation("2x", "arXiv 1", "a machine", ratio=2.0, beside="steps of 1 MiB")


@pytest.mark.parametrize(
    ("value", "interval", "verb"),
    [
        (2.1, (1.8, 2.4), "agrees in sign and in size: 2.1× [1.8, 2.4]"),
        (1.3, (1.2, 1.4), "agrees in sign, not in size (2×): 1.3× [1.2, 1.4]"),
        (1.0, (0.97, 1.03), "does not agree: 1×"),
        (0.5, (0.4, 0.6), "does not agree: 0.5×"),
        (1.2, (0.9, 1.6), "cannot decide: 1.2×"),
        (2.0, None, "agrees in sign and in size: 2× in"),
        (0.9, None, "does not agree: 0.9× in"),
    ],
)
def test_a_figure_of_the_literature_is_set_beside_what_comes_nearest(value, interval, verb):
    regimes = [Regime("steps under 64 KiB", "supported", 9.0), Regime("steps of 1 MiB and more", "depends", value)]
    if interval:
        regimes[1] = Regime(regimes[1].name, "depends", value, Interval(value, *interval))
    said = MANY.told(regimes)
    assert said.startswith("2x (arXiv 1); measured on a machine. This run ")
    assert f"This run {verb}" in said
    assert said.endswith("in steps of 1 MiB and more")


def test_a_figure_below_one_agrees_with_what_is_below_and_one_that_is_not_comparable_says_why():
    half = Citation("half", "arXiv 2", "training", ratio=0.5, beside="bytes")
    assert "agrees in sign and in size: 0.6× [0.4, 0.8]" in half.told(
        [Regime("bytes", "refuted", 0.6, Interval(0.6, 0.4, 0.8))]
    )
    assert half.told([]).endswith("This run did not measure the nearest condition: bytes")
    apart = Citation("x", "arXiv 3", "people", apart="nobody was asked")
    assert apart.told([]) == "x (arXiv 3); measured on people. This run measured something else: nobody was asked"
    claim = replace(CLAIMS["C1"], literature=("as it is", apart))
    assert claim.judge([]).literature == ("as it is", apart.told([]))


def test_each_figure_names_its_condition_and_what_it_is_set_beside():
    cited = [one for claim in CLAIMS.values() for one in claim.literature if isinstance(one, Citation)]
    assert len(cited) >= 15
    assert all(bool(one.beside) != bool(one.apart) and one.condition for one in cited)
    assert all(one.ratio != 1 for one in cited if one.beside)
    by_claim = {found["claim"]: found["literature"] for found in judge(everything())}
    assert any(line.endswith("steps of 1 MiB and more: bytes held") for line in by_claim["C5"])
    assert all("This run" in line for name in ("C4", "C5", "C6", "C7", "C8") for line in by_claim[name])

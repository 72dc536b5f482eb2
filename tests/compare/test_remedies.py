"""What changes of a user's code have gained: the ranking and the sentences, on made-up records."""

import pytest
from msgspec.structs import replace

from compare.claims import remedies
from compare.records.cells import Compilations
from compare.records.record import Environment, Run
from tests.helpers.claim_records import cell
from tests.helpers.records import typed

EAGER, COMPILE = 1e-3, 5e-4
CHANGES = {"Block": "compile the 12 Blocks by themselves", "mark-x0": "mark axis 0 of x as dynamic"}


def records(refused=(), breaks=None, **tried):
    """Eager, compile, and modes that were tried; each is its seconds a call, first pass, and compilations."""
    modes = {"eager": (EAGER, 0.01, 0), "compile": (COMPILE, 61.0, 7), **tried}
    timed = {
        name: {"seconds": call, "first": first, "compiles": compiles} for name, (call, first, compiles) in modes.items()
    }
    lines = cell("mine", timed, "given", 5)
    for mode in refused:
        lines[0]["arms"][mode].update(status="disagree", reason="a gradient is off")
    for line in lines:
        line["eager"] = "eager"
    told = {
        mode: {"status": "ok", "reason": None, "breaks": {"f.py:3: item": (breaks or {}).get(mode, 0)}}
        for mode in modes
    }
    place = {"kind": "compilations", "workload": "mine", "size": "given", "eager": "eager", "version": "1"}
    settings = {"trials": [f"{mode}: {CHANGES[mode]}" for mode in tried]}
    return [Run("1", "2026-01-01", settings, environment=Environment()), *typed([*lines, {**place, "arms": told}])]


def test_nothing_is_said_where_nothing_was_tried():
    assert remedies.sentences(records()) == []


def test_what_the_compiler_asks_for_is_worth_a_try_unless_it_was_tried():
    start, *told = records(breaks={"compile": 1}, Block=(COMPILE, 61.0, 7))
    for record in told:
        if isinstance(record, Compilations):
            record.modes["compile"].breaks = {"Unsupported Tensor.item() call (f.py:3: y.item())": 1}
    looked = {"framework": "torch", "places": ["model 1", "Block 12"]}
    (said,) = remedies.suggestions([replace(start, settings=looked), *told])
    assert said == (
        "Worth a try: set torch._dynamo.config.capture_scalar_outputs = True. --remedies measures what a change gains."
    )
    assert remedies.suggestions([replace(start, settings={**looked, **start.settings}), *told]) == []
    assert remedies.suggestions([replace(start, settings={"framework": None}), *told]) == []


def test_fewer_compilations_are_a_gain_where_a_call_is_as_fast():
    (said,) = remedies.sentences(records(**{"mark-x0": (COMPILE, 14.0, 2)}))
    assert said == (
        "Mark axis 0 of x as dynamic. Beside compile: 2 compilations instead of 7, the first pass 14 s instead of "
        "61 s, a call as fast. It gains most of 1 change tried."
    )


def test_the_change_that_costs_least_over_a_pass_and_a_thousand_calls_comes_first():
    tried = remedies.tried_changes(records(Block=(COMPILE * 1.02, 3.0, 1), **{"mark-x0": (COMPILE * 0.99, 14.0, 2)}))
    assert [each.mode for each in tried] == ["Block", "mark-x0"]
    assert tried[0].gain == pytest.approx((61.0 + 1000 * COMPILE) / (3.0 + 1000 * COMPILE * 1.02), rel=0.01)


def test_a_place_with_most_of_the_gain_for_less_of_the_first_pass_is_told():
    start, *told = records(Block=(COMPILE * 1.02, 20.0, 1))
    settings = {**start.settings, "places": ["model 1", "Block 12"]}
    *_, said = remedies.sentences([replace(start, settings=settings), *told])
    assert said == ("Compile the 12 Blocks by themselves: 98% of what compile gains, for 33% of its first pass.")


def test_of_changes_that_gain_alike_the_one_that_leaves_fewer_graphs_comes_first():
    alike = records(Block=(COMPILE, 3.0, 2), **{"mark-x0": (COMPILE, 3.2, 1)})
    assert [each.mode for each in remedies.tried_changes(alike)] == ["mark-x0", "Block"]
    apart = records(Block=(COMPILE, 3.0, 2), **{"mark-x0": (COMPILE, 6.0, 1)})
    assert [each.mode for each in remedies.tried_changes(apart)] == ["Block", "mark-x0"]


def test_a_change_that_makes_calls_slower_does_not_help_however_short_its_first_pass():
    slow = records(Block=(COMPILE * 1.2, 0.1, 1))
    assert not remedies.tried_changes(slow)[0].helps
    assert remedies.sentences(slow) == ["Of 1 change tried, none gains beside compile."]


def test_a_change_that_costs_what_the_others_cost_is_no_gain():
    assert not remedies.tried_changes(records(Block=(COMPILE, 61.0, 7)))[0].helps


def test_a_change_that_the_gate_refuses_is_never_claimed():
    found = remedies.tried_changes(records(refused=["Block"], Block=(COMPILE * 0.1, 0.1, 1)))
    assert (found[0].refused, found[0].helps) == ("disagree: a gradient is off", False)
    assert "none gains" in remedies.sentences(records(refused=["Block"], Block=(COMPILE * 0.1, 0.1, 1)))[0]


def test_fewer_graph_breaks_are_told():
    (said,) = remedies.sentences(records(breaks={"compile": 3}, Block=(COMPILE * 0.5, 0.5, 1)))
    assert "0 graph breaks instead of 3" in said
    assert "a call 0.5× [" in said


def test_a_change_that_spares_memory_is_told_where_none_gains():
    counted = {"eager": 1000, "compile": 1000, "Block": 400}
    rows = {mode: {"status": "ok", "reason": None, "peak": peak, "held": 0} for mode, peak in counted.items()}
    line = {"kind": "memory", "workload": "mine", "size": "given", "eager": "eager", "counted": "malloc", "arms": rows}
    (said,) = remedies.sentences([*records(Block=(COMPILE * 1.3, 61.0, 7)), *typed([line])])
    assert said.startswith("Compile the 12 Blocks by themselves. Beside compile: a call 1.3× [")
    assert said.endswith("0.4× the memory.")


def test_the_answer_on_the_modes_of_the_user_leaves_out_what_was_tried():
    left = remedies.without_trials(records(Block=(COMPILE, 3.0, 1)))
    assert {mode for record in left for mode in getattr(record, "modes", ())} == {"eager", "compile"}

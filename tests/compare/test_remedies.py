"""What changes of a user's code have gained: the ranking and the sentences, on made-up records."""

from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from compare.claims import remedies
from compare.records.cells import Compilations
from compare.records.record import Environment, Run
from tests.helpers.claim_records import cell
from tests.helpers.records import typed

EAGER, COMPILE = 1e-3, 5e-4
BLOCKS, MARKS = "compile the 12 Blocks by themselves", "mark axis 0 of x dynamic"
CHANGES = {"Block": BLOCKS, "marked": MARKS}
BREAK, BRANCH = "f.py:3: item", "Data-dependent branching (f.py:25: if out.mean() > 0:)"


USUAL = (COMPILE, 61.0, 7)


def records(
    refused=(), breaks=None, memory=None, processor=None, cached=None, said=BREAK, facts=(), usual=USUAL, **tried
):
    """Eager, compile, and modes that were tried; each is its seconds a call, first pass, and compilations.

    `breaks` are their graph breaks, which `said` tells of, `memory` their bytes, `processor` the seconds of the
    processor in a first pass, and `cached` the seconds of one that finds code. `facts` are further settings.
    """
    modes = {"eager": (EAGER, 0.01, 0), "compile": usual, **tried}
    timed = {
        name: {"seconds": call, "first": first, "compiles": compiles, "noise": 0}
        for name, (call, first, compiles) in modes.items()
    }
    lines = cell("mine", timed, "given", 5)
    for mode in refused:
        lines[0]["arms"][mode].update(status="disagree", reason="a gradient is off")
    for number, line in enumerate(lines):
        line["eager"] = "eager"
        if cached and line["kind"] == "time":
            line["cache"] = "cold" if number == 1 else "warm"
            for mode, row in line["arms"].items() if number > 1 else ():
                row["first"] = cached.get(mode, 0.01)
        for mode, row in line["arms"].items() if processor and line["kind"] == "time" else ():
            row["processor"] = processor[mode]
    place = {"workload": "mine", "size": "given", "eager": "eager"}
    rows = {mode: {"status": "ok", "reason": None} for mode in modes}
    told = {mode: {**row, "breaks": {said: (breaks or {}).get(mode, 0)}} for mode, row in rows.items()}
    lines.append({**place, "kind": "compilations", "version": "1", "arms": told})
    if memory:
        held = {mode: {**rows[mode], "peak": peak, "held": 0} for mode, peak in memory.items()}
        lines.append({**place, "kind": "memory", "counted": "malloc", "arms": held})
    settings = {"trials": [f"{mode}: {CHANGES[mode]}" for mode in tried], **dict(facts)}
    return [Run("1", "2026-01-01", settings, environment=Environment()), *typed(lines)]


class Situation(NamedTuple):
    """What was measured, as keywords of `records`: the changes in order, those that are claimed, and what is said."""

    measured: dict[str, Any]
    ranked: list[str]
    claimed: set[str]
    said: str


PLACES, TORCH = {"places": ["model 1", "Block 12"]}, {"framework": "torch"}
SITUATIONS = {
    "nothing was tried": Situation({}, [], set(), ""),
    "fewer compilations, and a call as fast": Situation(
        {"marked": (COMPILE, 14.0, 2)}, ["marked"], {"marked"},
        "Mark axis 0 of x dynamic. Beside compile: 2 compilations instead of 7, the first pass 14 s instead of 61 s, "
        "a call as fast. No other change was tried.",
    ),
    "of two that gain alike the one with fewer graphs comes first": Situation(
        {"Block": (COMPILE, 3.0, 2), "marked": (COMPILE, 3.2, 1)}, ["marked", "Block"], {"marked", "Block"},
        "Mark axis 0 of x dynamic. Beside compile: 1 compilation instead of 7, the first pass 3.2 s instead of 61 s, "
        "a call as fast. It gains most of 2 changes tried.",
    ),
    "unless calls of the other take far less": Situation(
        {"marked": (COMPILE, 3.0, 1), "Block": (COMPILE * 0.4, 3.2, 2)}, ["Block", "marked"], {"marked", "Block"},
        "Compile the 12 Blocks by themselves. Beside compile: 2 compilations instead of 7, the first pass 3.2 s "
        "instead of 61 s, a call 0.4× [0.4, 0.4] the time. It gains most of 2 changes tried.",
    ),
    "of two that do not, the one that costs least over a pass and a thousand calls": Situation(
        {"marked": (COMPILE, 6.0, 1), "Block": (COMPILE, 3.0, 2)}, ["Block", "marked"], {"marked", "Block"},
        "Compile the 12 Blocks by themselves. Beside compile: 2 compilations instead of 7, the first pass 3 s instead "
        "of 61 s, a call as fast. It gains most of 2 changes tried.",
    ),
    "as many graphs and breaks in less time": Situation(
        {"Block": (COMPILE, 20.0, 7)}, ["Block"], {"Block"},
        "Compile the 12 Blocks by themselves. Beside compile: the first pass 20 s instead of 61 s, a call as fast. No "
        "other change was tried.",
    ),
    "a first pass counts by the seconds of the processor, which other work leaves alone": Situation(
        {"marked": (COMPILE, 70.0, 1), "processor": {"eager": 0.01, "compile": 30.0, "marked": 15.0}},
        ["marked"], {"marked"},
        "Mark axis 0 of x dynamic. Beside compile: 1 compilation instead of 7, the first pass 15 s of the processor "
        "instead of 30 s, a call as fast. No other change was tried.",
    ),
    "a call that is slower is a price, which is told with the calls for which it pays": Situation(
        {"Block": (COMPILE * 1.2, 0.1, 1), "marked": (COMPILE * 1.01, 59.0, 6)}, ["Block", "marked"], set(),
        "Compile the 12 Blocks by themselves. Beside compile: 1 compilation instead of 7, the first pass 100 ms "
        "instead of 61 s, a call 1.2× [1.2, 1.2] the time. It pays up to 609,000 calls. None of 2 changes tried gains "
        "without a price.",
    ),
    "twice the time is too dear, however short the first pass": Situation(
        {"Block": (COMPILE * 2.1, 0.1, 1), "marked": (COMPILE * 1.01, 59.0, 6)}, ["Block", "marked"], set(),
        "Of 2 changes tried, none gains beside compile.",
    ),
    "so is a price that is not paid back in a thousand calls": Situation(
        {"Block": (COMPILE * 1.2, 60.9, 1), "marked": (COMPILE * 1.01, 59.0, 6)}, ["marked", "Block"], set(),
        "Of 2 changes tried, none gains beside compile.",
    ),
    "a call that is faster is a gain where the first pass is as long": Situation(
        {"marked": (COMPILE * 0.88, 61.5, 7)}, ["marked"], {"marked"},
        "Mark axis 0 of x dynamic. Beside compile: a call 0.88× [0.88, 0.88] the time. No other change was tried.",
    ),
    "and none where it is longer by more than that": Situation(
        {"marked": (COMPILE * 0.88, 70.0, 7)}, ["marked"], set(),
        "The change that was tried gains nothing beside compile.",
    ),
    "what costs as much is no gain": Situation(
        {"Block": (COMPILE, 61.0, 7)}, ["Block"], set(), "The change that was tried gains nothing beside compile."
    ),
    "what the gate refuses comes last and is not claimed": Situation(
        {"Block": (COMPILE * 0.1, 0.1, 1), "marked": (COMPILE, 14.0, 2), "refused": ["Block"]},
        ["marked", "Block"], {"marked"},
        "Mark axis 0 of x dynamic. Beside compile: 2 compilations instead of 7, the first pass 14 s instead of 61 s, "
        "a call as fast. It gains most of 2 changes tried.",
    ),
    "nor is it where nothing else was tried, though it spares memory": Situation(
        {"Block": (COMPILE * 0.1, 0.1, 1), "refused": ["Block"], "memory": {"eager": 9, "compile": 9, "Block": 1}},
        ["Block"], set(), "The change that was tried gains nothing beside compile.",
    ),
    "without a time of the mode beside which they are tried nothing is weighed": Situation(
        {"Block": (COMPILE, 3.0, 1), "refused": ["eager", "compile"]}, [], set(),
        "Of 1 change tried, none could be weighed: the mode without them was not timed.",
    ),
    "what spares memory is told where nothing gains": Situation(
        {"Block": (COMPILE * 1.3, 61.0, 7), "memory": {"eager": 1000, "compile": 1000, "Block": 400}},
        ["Block"], set(),
        "Compile the 12 Blocks by themselves. Beside compile: a call 1.3× [1.3, 1.3] the time, 0.4× the memory.",
    ),
    "and beside what gains": Situation(
        {"Block": (COMPILE * 1.3, 61.0, 7), "marked": (COMPILE, 14.0, 2),
        "memory": {"eager": 1000, "compile": 1000, "Block": 400, "marked": 1000}},
        ["marked", "Block"], {"marked"},
        "Mark axis 0 of x dynamic. Beside compile: 2 compilations instead of 7, the first pass 14 s instead of 61 s, "
        "a call as fast. It gains most of 2 changes tried. "
        "Compile the 12 Blocks by themselves. Beside compile: a call 1.3× [1.3, 1.3] the time, 0.4× the memory.",
    ),
    "but not where a call takes twice the time": Situation(
        {"Block": (COMPILE * 2.1, 61.0, 7), "memory": {"eager": 1000, "compile": 1000, "Block": 400}},
        ["Block"], set(), "The change that was tried gains nothing beside compile.",
    ),
    "a place with most of the gain for less of the first pass": Situation(
        {"Block": (COMPILE * 1.02, 20.0, 1), "facts": PLACES}, ["Block"], {"Block"},
        "Compile the 12 Blocks by themselves. Beside compile: 1 compilation instead of 7, the first pass 20 s instead "
        "of 61 s, a call as fast. No other change was tried. "
        "That is 98% of what compile gains, for 33% of its first pass.",
    ),
    "a place is none beside a change that gains more in less time": Situation(
        {"Block": (COMPILE * 1.02, 20.0, 1), "marked": (COMPILE * 0.9, 3.0, 1), "facts": PLACES}, ["marked", "Block"],
        {"marked", "Block"},
        "Mark axis 0 of x dynamic. Beside compile: 1 compilation instead of 7, the first pass 3 s instead of 61 s, a "
        "call 0.9× [0.9, 0.9] the time. It gains most of 2 changes tried.",
    ),
    "a change that gains and leaves a call slower than in eager says so": Situation(
        {"usual": (EAGER * 2, 61.0, 7), "marked": (EAGER * 1.5, 14.0, 1)}, ["marked"], {"marked"},
        "Mark axis 0 of x dynamic. Beside compile: 1 compilation instead of 7, the first pass 14 s instead of 61 s, a "
        "call 0.75× [0.75, 0.75] the time. Even so a call takes 1.5× [1.5, 1.5] the time of eager. No other change "
        "was tried.",
    ),
    "so does one with which compiling pays": Situation(
        {"usual": (EAGER * 1.1, 61.0, 7), "marked": (EAGER * 0.5, 14.0, 1)}, ["marked"], {"marked"},
        "Mark axis 0 of x dynamic. Beside compile: 1 compilation instead of 7, the first pass 14 s instead of 61 s, a "
        "call 0.455× [0.455, 0.455] the time. With it a call takes 0.5× [0.5, 0.5] the time of eager. No other change "
        "was tried.",
    ),
    "fewer breaks": Situation(
        {"Block": (COMPILE * 0.5, 0.5, 1), "breaks": {"compile": 3}}, ["Block"], {"Block"},
        "Compile the 12 Blocks by themselves. Beside compile: 1 compilation instead of 7, 0 graph breaks instead of "
        "3, the first pass 500 ms instead of 61 s, a call 0.5× [0.5, 0.5] the time. No other change was tried.",
    ),
    "a branch on a value is shown, and code that is kept saves a first pass": Situation(
        {"marked": (COMPILE, 60.0, 7), "breaks": {"compile": 1}, "said": BRANCH, "facts": TORCH,
        "cached": {"compile": 9.0, "marked": 9.0}},
        ["marked"], set(),
        "The change that was tried gains nothing beside compile. "
        "Keep compiled code: torch.compiler.save_cache_artifacts() at the end, load_cache_artifacts() at the start: "
        "the first pass takes 9 s instead of 61 s. "
        "Not tried: f.py:25 branches on a value (if out.mean() > 0): write torch.where(test, a, b) for both values, "
        "or torch.cond for both calls.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("situation", SITUATIONS.values(), ids=SITUATIONS)
def test_changes_are_ranked_claimed_and_said_by_what_was_measured(situation):
    measured, found = situation.measured, records(**situation.measured)
    tried = remedies.tried_changes(found)
    assert [each.mode for each in tried] == situation.ranked
    assert {each.mode for each in tried if each.helps} == situation.claimed
    assert {each.mode for each in tried if each.refused} == {*measured.get("refused", ())} & {*situation.ranked}
    assert " ".join(remedies.sentences(found)) == situation.said


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


def test_the_change_that_costs_least_over_a_pass_and_a_thousand_calls_comes_first():
    tried = remedies.tried_changes(records(Block=(COMPILE * 1.02, 3.0, 1), marked=(COMPILE * 0.99, 14.0, 2)))
    assert [each.mode for each in tried] == ["Block", "marked"]
    assert tried[0].gain == pytest.approx((61.0 + 1000 * COMPILE) / (3.0 + 1000 * COMPILE * 1.02), rel=0.01)


def test_the_answer_on_the_modes_of_the_user_leaves_out_what_was_tried():
    left = remedies.without_trials(records(Block=(COMPILE, 3.0, 1)))
    assert {mode for record in left for mode in getattr(record, "modes", ())} == {"eager", "compile"}


def test_the_page_says_of_each_change_whether_it_gains():
    found = records(Block=(COMPILE * 1.2, 0.1, 1), marked=(COMPILE, 14.0, 2))
    assert [row[-1] for row in remedies.rows(remedies.tried_changes(found))[1:]] == ["gains", "gains at a price"]

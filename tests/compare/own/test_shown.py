"""The answer on a terminal: 80 columns whatever the modes are called, and no word of the harness' own."""

from __future__ import annotations

import re

import pytest

from compare.claims import conditions
from compare.claims.verdict import MeasuredFunction
from compare.records.cells import (
    Call,
    Ladder,
    LineCost,
    Memory,
    MemoryRow,
    Parity,
    ParityRow,
    Rung,
    SourceLines,
    SourceLinesRow,
    Time,
    TimeRow,
)
from compare.records.record import Environment, Run
from compare.report import function as page
from compare.report import printers, show
from compare.report.blocks import Page

HARNESS = re.compile(r"\b(arms?|cells?|regimes?|controls?(?! flow)|tapes?)\b", re.IGNORECASE)
"""The words that the claims need, and an answer does not."""
SECONDS = {
    "torch-eager": 1.59e-4,
    "torch-compile": 3.06e-4,
    "torch-reduce-overhead": 3.16e-4,
    "dynamic": 3.04e-4,
    "static-exact": 5.35e-5,
    "static-native": 9.93e-6,
}
FIRST = {"torch-eager": 2e-3, "dynamic": 1e-3}
LONG = "q, k, v = (part.view(b, t, heads, width // heads).transpose(1, 2) for part in projected)"
PLACE = {"workload": "train", "size": "given"}


def row(mode, process, seconds):
    spread = 1 + process / 100
    first = FIRST.get(mode, 4.12345) * spread
    stream = [Call(8, first, True, True), Call(8, first / 2, True)]
    return TimeRow("ok", None, first=first, stream=stream, blocks=[seconds * spread] * 5, compiles=12)


def measured(modes=tuple(SECONDS), tape="compiled", warm=SECONDS, **settings):
    """The records of a training step, as `--engines torch,graphduel` leaves them."""
    base = modes[0]
    said = {"preset": "own", "function": "train", "inputs": 3, "gradient": True, "trains": True, "processes": 3}
    said |= {"where": "fresh workers", "framework": "torch", "version": "2.13.0+cpu", "device": "cpu", **settings}
    refused = ParityRow("unsupported", "a whole training step is traced as it is written", None, None, 1e-4)
    agreeing = dict.fromkeys(modes, ParityRow("ok", None, 0.0, 0.0, 1e-4))
    rungs = {
        name: Rung("ok", None, None, blocks=[1e-4 / (n + 1)] * 5)
        for n, name in enumerate(("tape", "replay", "contract"))
    }
    lines = {"step.py:11": LineCost(1e-4), "step.py:112": LineCost(9e-5), "step.py:13": LineCost(0.0)}
    code = {"step.py:11": "loss = model(x)", "step.py:112": LONG, "step.py:13": "loss.backward()"}
    return MeasuredFunction("train", (*modes, "static-converted"), (
        Run(run="r", at="2030-01-02T00:00:00+00:00", settings=said, environment=Environment(tape=tape, load=9.0)),
        Parity(**PLACE, eager=base, agree=True, modes={**agreeing, "static-converted": refused}, same_graph=None,
               kernel_calls={}),
        *(Time(**PLACE, eager=base, process=process, cache="warm" if process else "cold", clock="cpu",
               modes={mode: row(mode, process, warm[mode]) for mode in modes}) for process in range(4)),
        Memory(**PLACE, eager=base, modes={mode: MemoryRow("ok", None, peak=123456, held=123456) for mode in modes}),
        SourceLines(**PLACE, eager=base, modes={base: SourceLinesRow("ok", None, step=2e-4, lines=lines)}, code=code),
        Ladder(**PLACE, process=1, rungs=rungs, same_graph=True, unequal={}, traced=None, off_core=0.0),
    ))  # fmt: skip


BOTH = measured(engines=["torch", "graphduel"])
ALONE = measured(("torch-eager", "torch-compile"))
OURS = measured(("dynamic", "static-exact"), framework=None, version="0.1.0", trains=False)


@pytest.mark.parametrize("result", [BOTH, ALONE, OURS], ids=["both", "torch", "ours"])
def test_every_line_fits_80_columns_and_what_is_cut_says_so(result):
    shown = show.plain(result).splitlines()
    assert max(map(len, shown)) <= show.WIDTH
    assert next(line for line in shown if line.startswith("step.py:112")).endswith("…")


def test_a_table_without_room_leaves_out_what_it_can_spare():
    shown = show.plain(BOTH).splitlines()
    header = next(line for line in shown if line.startswith("mode"))
    assert header.split("  ")[0].strip() == "mode"
    assert not {"cached"} & set(header.split())
    assert not any(line.startswith("static-converted ") for line in shown)
    assert "static-converted (unsupported)" in " ".join(shown)  # where it is named
    assert {"cached", "compiles"} < set(
        next(line for line in show.plain(ALONE).splitlines() if "a call" in line).split()
    )
    assert show.table(BOTH)[0][4:6] == ("cached", "compiles")  # for the page, which has the room


@pytest.mark.parametrize("tape", ["compiled", "python"])
@pytest.mark.parametrize("settings", [{"engines": ["torch", "graphduel"]}, {}, {"framework": None, "trains": False}])
def test_the_answer_has_no_word_of_the_harness(tape, settings):
    modes = ("dynamic", "static-exact") if "trains" in settings else tuple(SECONDS)
    result = measured(modes, tape=tape, **settings)
    assert HARNESS.findall(show.plain(result)) == []
    section = page.answer(result.records)
    assert HARNESS.findall(printers.to_markdown(Page("", "", (section,)))) == []


def test_where_the_seconds_of_backward_are_is_said_where_a_line_calls_it():
    assert show.BACKWARD in show.plain(BOTH)
    assert show.BACKWARD in show.html(BOTH)
    lines = SourceLines(
        **PLACE, modes={"dynamic": SourceLinesRow("ok", None, step=1.0, lines={"a.py:1": LineCost(1.0)})}
    )
    assert not show.about_lines(MeasuredFunction("f", ("dynamic",), (OURS.records[0], lines)))


def test_what_the_tape_ran_by_is_no_condition_of_a_framework_alone():
    said = [" ".join(conditions.sentences(result.records)) for result in (ALONE, BOTH, OURS)]
    assert [("tape" in words) for words in said] == [False, True, True]


def test_beside_a_framework_compiling_pays_for_itself_against_its_eager_mode():
    """Also where our dynamic engine, which compiles nothing either, has the shortest first pass."""
    verdict = BOTH.verdict
    assert verdict.first.leaders[0] == "dynamic"
    start = 1.5 * (4.12345 - 2e-3)  # of both calls, that of eager taken off
    assert verdict.break_even.runs == pytest.approx(start / (1.59e-4 - 9.93e-6), rel=0.03)
    assert verdict.sentence.startswith("Compile it with static-native if it runs more than 40,662 times")


def test_an_engine_that_compiles_nothing_is_not_compiled_with():
    faster = measured(("torch-eager", "torch-compile", "dynamic"), warm={**SECONDS, "dynamic": 1e-5})
    assert faster.verdict.sentence.startswith("Use dynamic, which compiles nothing. Once warm, dynamic is 15.9× faster")
    level = measured(("torch-eager", "torch-compile", "dynamic"), warm={**SECONDS, "dynamic": 1.58e-4})
    assert level.verdict.sentence.startswith("Stay torch-eager")


def test_words_stand_left_and_numbers_right_in_a_notebook():
    shown = show.html(BOTH)
    assert re.search(r"text-align:left[^>]*>loss\.backward", shown)
    assert re.search(r"text-align:right[^>]*>\d+ µs", shown)

"""The corpus of C1: every program against values found another way, its paths, its rewriting, and the measurement."""

import json
import sys
from types import CodeType

import numpy as np
import pytest

import dynamic
import graphs
import static
from compare import engines
from compare.claims.c1_control_flow import ALONE, EASY_EDIT, MIN_PROGRAMS
from compare.instruments import programs as instrument
from compare.instruments.programs import ProgramTrial, calls
from compare.records.job import Budget
from compare.workloads import programs as corpus
from compare.workloads.programs import FAMILIES, Program, floats, programs
from tests.helpers.claim_records import program as row
from tests.helpers.claim_records import regime, said, verdict
from tests.helpers.corpus_values import VALUES as CORPUS_VALUES
from tests.helpers.jobs import check_of
from tests.helpers.published_values import VALUES as PUBLISHED_VALUES
from tests.helpers.records import plain, typed
from tests.helpers.together import together

PROGRAMS = programs()
GRAPHS = [program for program in PROGRAMS if program.graph is not None]
VALUES = CORPUS_VALUES | PUBLISHED_VALUES
APPROXIMATE = {"adaptive_integral": 1e-4, "step_doubling": 1e-3}
"""What a program computes to a tolerance of its own."""
SILENT = {"running_mean", "stochastic_depth", "warm_up"}
"""Programs that a trace specialises to its first input, without an error; a conversion refuses them."""
CONVERTED = 80
"""At least so many of the programs are right when their control flow is converted."""


@pytest.fixture(scope="module", autouse=True)
def little_timing():
    """One block of one call: the tests look at how a program ends, and how fast it is shows in a run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(instrument, "BUDGET", Budget(rounds=1, least=1, seconds=0.0, block_seconds=1e-6))
        yield


@pytest.fixture(scope="module")
def record(little_timing):
    return plain(instrument.measure(check_of()))


def each(chosen=PROGRAMS, quick=None):
    return together("program", chosen, ids=lambda program: program.name, quick=quick)


def expected(program):
    values = VALUES[program.name]
    if program.name == "stochastic_depth":
        return values(program.inputs)
    return values if isinstance(values, list) else [values(*args) for args in program.inputs]


def check_values(program, found):
    tolerance = APPROXIMATE.get(program.name, 1e-9)
    for value, wanted in zip(found, expected(program), strict=True):
        assert np.shape(value) == np.shape(wanted)
        np.testing.assert_allclose(np.asarray(value), wanted, rtol=tolerance, atol=tolerance)


def test_the_corpus_is_large_and_has_several_of_every_family():
    names = [program.name for program in PROGRAMS]
    assert len(set(names)) == len(names) >= MIN_PROGRAMS
    families = [program.family for program in PROGRAMS]
    assert set(families) == set(FAMILIES)
    assert min(map(families.count, FAMILIES)) >= 4


@each()
def test_python_gives_the_values_found_another_way(program):
    check_values(program, calls(program, program.plain, program.inputs))


@each(quick=30)
def test_the_dynamic_engine_gives_the_values_and_the_gradients_of_differences(program):
    instrument.check_reference(program, instrument.reference(program, program.inputs))


@each(GRAPHS, quick=30)
def test_the_graph_gives_the_values_too_compiled_and_on_arrays(program):
    inputs = program.graph_inputs or program.inputs
    compiled = static.jit(program.graph, limit=None)
    check_values(program, calls(program, compiled, inputs))
    check_values(program, calls(program, program.graph, inputs))


@pytest.mark.slow
@each([program for program in GRAPHS if program.graph is not program.plain])
def test_a_rewriting_that_takes_the_same_arguments_is_compiled_once_for_all_values(program):
    """So that no path is chosen while it is traced."""
    if program.graph_inputs is None and all(isinstance(leaf, np.ndarray) for leaf in _leaves(program)):
        compiled = static.jit(program.graph, limit=None)
        calls(program, compiled, program.inputs)
        kinds = {tuple(np.shape(leaf) for leaf in graphs.tree.leaves(args)) for args in program.inputs}
        assert compiled.stats.compiles == len(kinds)


def _leaves(program):
    return graphs.tree.leaves(list(program.inputs))


@pytest.mark.slow
@each()
def test_the_inputs_take_different_paths_and_reach_every_line(program):
    """What Python decides in C (a maximum, a heap, a slice) shows in the ops that are recorded."""
    paths = [path(program, index) for index in range(len(program.inputs))]
    if program.reset is None:
        recorded = [str(dynamic.record(program.plain, *args)) for args in program.inputs]
        assert len(set(zip(paths, recorded, strict=True))) > 1
    reached = {line for steps in paths for _, line, _ in steps}
    assert lines(program.plain.__code__) <= reached


@each([program for program in PROGRAMS if program.reset])
def test_what_a_program_keeps_is_put_back_and_makes_a_difference(program):
    first, again = (calls(program, program.plain, program.inputs) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    alone = [calls(program, program.plain, [args])[0] for args in program.inputs]
    assert not np.array_equal(first, alone)


def path(program, index):
    """The instructions of the program's file that run for one input, as (function, line, place)."""
    calls(program, program.plain, program.inputs[:index])
    file, steps = program.plain.__code__.co_filename, []

    def tracer(frame, event, arg):
        if frame.f_code.co_filename != file:
            return None
        frame.f_trace_opcodes = True
        steps.append((frame.f_code.co_name, frame.f_lineno, frame.f_lasti))
        return tracer

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        program.plain(*program.inputs[index])
    finally:
        sys.settrace(before)
    return tuple(steps)


def lines(code):
    """The lines of a function and of those inside it."""
    inner = (lines(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    return {line for _, _, line in code.co_lines() if line}.union(*inner)


# The measurement, on programs made to end in each way --------------------------------------------------------------


def measured(program):
    """The row of a program in our engines."""
    return ProgramTrial(*engines.engine_of_mode(None), program, program, program, sampled=True).row()


def doubled(x):
    return x * 2


def signed(x):
    if graphs.sum(x) > 0:
        return x * 2
    return x * 3


def signed_graph(x):
    return graphs.where(graphs.sum(x) > 0, x * 2, x * 3)


def signed_wrongly(x):
    return x * 2


def gradient_lost(x):
    return x * float(graphs.sum(x))


def crash(x):
    raise ZeroDivisionError("there is no such value")


def swallowed(x):
    try:
        return x * (2 if float(graphs.sum(x)) > 0 else 3)
    except RuntimeError:
        return x * 2


CALLS = []


def alternating(x):
    """As `swallowed` on INPUTS, by how often it was called and not by values."""
    CALLS.append(x)
    return x * (2 if len(CALLS) % 2 else 3)


INPUTS = ((floats(1, 2),), (floats(-1, -2),), (floats(3, 4),))


def test_a_program_that_traces_rightly_is_unchanged():
    found = measured(Program(doubled, doubled, INPUTS))
    assert (found.dynamic, found.static, found.trace, found.edit) == (True, "unchanged", "right", 0)
    assert found.compiles == 1
    assert found.reason is found.trace_reason is None


def test_a_program_that_is_refused_counts_by_its_rewriting():
    found = measured(Program(signed, signed_graph, INPUTS))
    assert (found.dynamic, found.static, found.trace) == (True, "rewritten", "refused")
    assert 0 < found.edit < 1
    assert "Python `if`" in found.trace_reason
    assert found.reason is None


def test_a_program_without_a_graph_is_refused_for_its_reason():
    found = measured(Program(signed, None, INPUTS, "because"))
    assert (found.static, found.reason, found.edit, found.static_seconds) == (
        "refused",
        "because",
        None,
        None,
    )


def test_a_rewriting_that_is_wrong_does_not_count():
    found = measured(Program(signed, signed_wrongly, INPUTS))
    assert found.static == "refused"
    assert found.reason.startswith("input 1: off by")


def test_a_trace_right_on_the_first_path_alone_is_wrong():
    found = measured(Program(alternating, signed_graph, INPUTS, reset=CALLS.clear))
    assert (found.dynamic, found.static, found.trace) == (True, "rewritten", "wrong")
    assert found.trace_reason.startswith("input 1: off by")


def test_a_program_is_converted_as_it_is_on_its_inputs_and_on_others_near_them():
    found = measured(Program(signed, None, INPUTS, "because"))
    assert (found.static, found.convert, found.inputs, found.convert_compiles) == ("refused", "right", 20, 1)
    assert found.taken_tokens == found.tokens
    assert found.convert_seconds > 0
    assert found.static_seconds is found.compiles is None


def test_inputs_near_those_of_a_program_differ_from_them_and_keep_what_is_no_number():
    program = Program(doubled, doubled, [(floats(1, 2), np.array([1, 2]), "word"), *INPUTS])
    near = next(program.nearby())
    np.testing.assert_allclose(near[0], floats(1, 2), rtol=0.04)
    assert not np.array_equal(near[0], floats(1, 2))
    np.testing.assert_array_equal(near[1], [1, 2])
    assert near[2] == "word"
    (scaled,) = next(Program(doubled, doubled, [(floats([1, 2], [2, 8]),)] * 3).nearby())
    np.testing.assert_allclose(scaled, scaled[0, 0] * floats([1, 2], [2, 8]))


def test_a_program_that_catches_its_refusal_is_refused():
    found = measured(Program(swallowed, signed_graph, INPUTS))
    assert (found.dynamic, found.static, found.trace) == (True, "rewritten", "refused")
    assert "float() needs the value" in found.trace_reason


def test_a_gradient_that_the_tape_does_not_see_counts_against_dynamic():
    found = measured(Program(gradient_lost, None, INPUTS, "because"))
    assert not found.dynamic
    assert "central differences" in found.reason


def test_a_program_that_crashes_is_a_result():
    found = measured(Program(crash, None, INPUTS, "because"))
    assert (found.dynamic, found.static, found.trace) == (False, "refused", "failed")
    assert found.reason.startswith("ZeroDivisionError: there is no such value")


def test_a_program_needs_three_inputs_and_a_graph_or_a_reason():
    with pytest.raises(ValueError, match="doubled has 2 inputs"):
        Program(doubled, doubled, INPUTS[:2])
    for graph, cannot in ((None, ""), (doubled, "because")):
        with pytest.raises(ValueError, match="give a graph, or say"):
            Program(doubled, graph, INPUTS, cannot)


def test_a_family_is_measured_traced_converted_and_by_hand(monkeypatch):
    monkeypatch.setattr(corpus, "FAMILIES", {"branches": "branches"})
    rows = {found.program: found for found in instrument.measure(check_of()).programs}
    assert {found.convert for found in rows.values()} == {"right"}
    assert [name for name, found in rows.items() if found.trace == "right"] == ["by_rank"]
    assert all(found.dynamic and found.inputs == 20 and found.convert_reason is None for found in rows.values())
    assert (rows["branch_on_sum"].convert_compiles, rows["by_rank"].convert_compiles) == (1, 3)


# The record, and the verdict on it ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_record_keeps_the_schema_and_has_every_program(record):
    assert typed(record)
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert [found["program"] for found in record["programs"]] == [program.name for program in PROGRAMS]


@pytest.mark.slow
def test_every_program_ends_as_the_corpus_says(record):
    for program, found in zip(PROGRAMS, record["programs"], strict=True):
        same = "unchanged" if program.graph is program.plain else "rewritten"
        assert found["dynamic"], f"{program.name}: {found['reason']}"
        assert found["static"] == ("refused" if program.graph is None else same), f"{program.name}: {found['reason']}"
    assert {found["program"] for found in record["programs"] if found["trace"] == "wrong"} == SILENT
    assert not [found for found in record["programs"] if found["trace"] == "failed"]


@pytest.mark.slow
def test_no_program_is_wrong_when_converted_and_state_and_chance_are_refused(record):
    rows = {found["program"]: found for found in record["programs"]}
    ends = [found["convert"] for found in rows.values()]
    assert set(ends) == {"right", "refused"}
    assert ends.count("right") >= CONVERTED
    assert {rows[name]["convert"] for name in SILENT} == {"refused"}
    for found in rows.values():
        assert found["inputs"] >= 20, found["program"]
        assert (found["convert_reason"] is None) == (found["convert"] == "right")
        timed = [found[name] for name in ("convert_seconds", "convert_compiles", "convert_compile_seconds")]
        assert all(timed) if found["convert"] == "right" else timed == [None] * 3


@pytest.mark.slow
def test_the_verdict_is_computed_from_the_record(record):
    found, rows = verdict("C1", [record]), record["programs"]
    alone = [r for r in rows if r["static"] != "unchanged" and (r["edit"] is None or r["edit"] > EASY_EDIT)]
    hard = [r for r in alone if r["convert"] != "right"]
    assert found["effect"]["value"] == pytest.approx(len(hard) / len(rows))
    assert regime(found, ALONE)["value"] == pytest.approx(len(alone) / len(rows))
    assert len(alone) > len(hard)
    low, high = found["interval"]
    assert found["verdict"] == ("supported" if low > 0.5 else "refuted" if high < 0.1 else "depends")
    assert {regime["name"] for regime in found["regimes"]} == {*FAMILIES, ALONE}
    assert said(found, f"{len(alone) / len(rows):.0%} are hard for static if it only traces them")
    assert said(found, "dynamic runs 100% of the programs unchanged")
    assert said(found, f"of {len(rows)} programs run unchanged, on 20 inputs or more each")
    assert said(found, "wrong for another input: " + ", ".join(sorted(SILENT)))


def test_what_was_not_tested_is_told():
    told = " ".join(verdict("C1", [])["not_tested"])
    for words in (
        "conversion by other tools",
        "AutoGraph",
        "the shares depend on it",
        "only the function is counted",
        "padded to a largest size",
    ):
        assert words in told


def lines_of(*rows):
    return [{"kind": "program", "claim": "C1", "programs": list(rows)}]


def test_the_worst_of_several_measurements_of_a_program_counts_and_counts_once():
    rows = [row(f"p{i}", "unchanged") for i in range(60)]
    worse = row("p0", "refused", runs=False)
    once, twice = lines_of(worse, *rows[1:]), lines_of(*rows) + lines_of(worse)
    assert verdict("C1", once) == verdict("C1", twice) == verdict("C1", twice[::-1])
    assert verdict("C1", lines_of(*rows)) == verdict("C1", lines_of(*rows) * 2)


def test_a_verdict_names_what_failed_and_tells_the_times():
    rows = [
        row("lost", "refused", runs=False),
        row("hidden", "rewritten", trace="wrong", edit=0.3),
        row("plain", "unchanged", family="state", dynamic_seconds=8e-4),
    ]
    found = verdict("C1", lines_of(*rows))
    assert said(
        found,
        "compiled, what runs: 1 program unchanged, 1 after a rewriting (median: 30% of the tokens change), 1 never",
    )
    assert said(found, "compiled: if a change of 50% of the tokens still counted as easy, 33% would be hard")
    for words in ("dynamic fails in: lost", "another input: hidden", "no fixed graph gives the same result: lost"):
        assert said(found, words)
    assert said(found, "static ÷ dynamic in time, once compiled, where both run: 0.25")
    assert regime(found, "state")["value"] == 0


def test_a_program_that_is_right_when_converted_is_not_hard_and_the_old_figure_stays_beside():
    rows = [
        row("right", "rewritten", convert="right", inputs=20, convert_seconds=3e-4, convert_compile_seconds=0.02),
        row("none", "refused", convert="right", inputs=24),
        row("lost", "rewritten", convert="refused", inputs=20),
        row("silent", "rewritten", convert="wrong", inputs=20),
        row("short", "rewritten", edit=0.05, convert="failed", inputs=20),
    ]
    found = verdict("C1", lines_of(*rows))
    assert found["effect"]["value"] == pytest.approx(2 / 5)
    assert regime(found, ALONE)["value"] == pytest.approx(4 / 5)
    assert said(
        found,
        "40% are hard for static if it converts their control flow; 80% are hard for static if it only traces them",
    )
    assert said(found, "converted: 2 of 5 programs run unchanged, on 20 inputs or more each")
    for words in (
        "but wrong: silent",
        "an error that is no refusal: short",
        "time of a call, converted ÷ rewritten by hand: median 3.00, at most 3.00",
    ):
        assert said(found, words)
    assert said(found, "time to compile, converted ÷ rewritten by hand: median 2.00")


def test_a_record_from_before_there_was_a_conversion_is_judged_as_it_was():
    found = verdict("C1", lines_of(row("old", "rewritten"), row("plain", "unchanged")))
    assert found["effect"]["value"] == regime(found, ALONE)["value"] == 0.5
    assert found["reasons"][0] == "of 2 programs 50% are hard for static"
    assert not said(found, "converted")


@pytest.mark.parametrize(("edit", "hard"), [(0.0, 0), (EASY_EDIT, 0), (EASY_EDIT + 1e-9, 1)])
def test_a_rewriting_is_easy_up_to_the_threshold(edit, hard):
    assert verdict("C1", lines_of(row("p", "rewritten", edit=edit)))["effect"]["value"] == hard

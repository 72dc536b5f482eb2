"""C3: the corpus of seeded faults, the scripted debugger that looks for them, and how it is scored."""

from collections import Counter

import numpy as np
import pytest

from compare import engines
from compare.claims import c3_debugging
from compare.engines.debugging import Attempt, Event, ToolReport, same, same_results
from compare.engines.graphduel.debugging import named_line
from compare.workloads.faults import Fault, SourceLine, corpus, draw, healthy, mean_square
from graphs.spec import TensorSpec
from tests.helpers.claim_records import LABELS, regime, said, verdict
from tests.helpers.jobs import check_of
from tests.helpers.records import plain, typed
from tests.helpers.slow import mostly_slow

OURS = engines.find_engine(engines.OWN)
ENGINES = {
    role: OURS.debugger(mode, lambda file: "corpus" in file)
    for role, mode in zip(("dynamic", "static"), OURS.mode_names, strict=False)
}
FAULTS = {fault.name: fault for fault in corpus()}


@pytest.fixture(scope="module")
def record():
    return plain(c3_debugging.measure(check_of()))


def row(record, fault, engine):
    return next(r for r in record["faults"] if (r["fault"], r["engine"]) == (fault, engine))


# The corpus


def test_there_are_enough_faults_of_every_family():
    assert len(FAULTS) >= 60
    assert min(Counter(fault.family for fault in corpus()).values()) >= 4


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("log of zero", "return mean_square(g.log(chances) - y)"),
        ("batch flattened", "hidden = g.reshape(hidden, (-1,))"),
        ("counted in Python", "penalty = mean_square(hidden) / (1 + np.float32(state.step - 1))  # fault"),
        ("uphill", "return {name: p[name] + gradients[name] * RATE for name in p}"),
        ("swapped", "return ((Y, X),)"),
    ],
)
def test_the_line_at_fault_is_the_one_that_is_made_wrong(name, line):
    source, at = FAULTS[name].edit
    assert source.splitlines()[at - 1].strip() == line
    with FAULTS[name].seeded(OURS.library.edited) as seeded:
        assert seeded.place == SourceLine(f"{FAULTS[name].file}.py", at)


def test_a_line_that_is_not_there_or_stands_there_twice_is_refused():
    right = healthy(mean_square, {}, ((draw(0, 2),),))
    for old, count in (("no such line", 0), ("graphs.", 2)):
        with pytest.raises(ValueError, match=f"stands there {count} times"):
            _ = Fault("wrong", right, old, "").edit


@pytest.mark.parametrize("name", mostly_slow(FAULTS, 5))
def test_healthy_programs_agree_across_engines_and_no_tool_complains_of_them(name):
    training = FAULTS[name].healthy
    runs = [tools.attempt(training) for tools in ENGINES.values()]
    assert same_results(*runs)
    for tools in ENGINES.values():
        healthy = tools.attempt(training)
        reports = healthy.report, tools.attempt(training, checked=True).report
        assert (*reports, tools.reach(training, healthy), tools.train(training, healthy)) == (None,) * 4


# What the debugger finds, checked by hand


@pytest.mark.parametrize(
    ("fault", "engine", "when", "named", "tool"),
    [
        ("missing transpose", "dynamic", "forward", True, "run"),
        ("missing transpose", "static", "trace", True, "run"),
        ("batch flattened", "dynamic", "forward", False, "run"),
        ("softmax over the batch", "static", "never", False, ""),
        ("log of zero", "dynamic", "forward", True, "check"),
        ("log of zero", "static", "forward", True, "check"),
        ("gradient of a length at zero", "dynamic", "backward", True, "check"),
        ("gradient of a length at zero", "static", "backward", True, "check"),
        ("stopped", "dynamic", "forward", True, "reach"),
        ("stopped", "static", "trace", True, "reach"),
        ("rounded", "static", "backward", False, "reach"),
        ("uphill", "dynamic", "step", False, "train"),
        ("one past the end", "static", "forward", False, "run"),
        ("changed in place", "dynamic", "backward", True, "run"),
        ("changed in place", "static", "cannot happen", True, ""),
        ("if on a value", "static", "trace", True, "run"),
        ("if on a value", "dynamic", "cannot happen", True, ""),
        ("counted in Python", "dynamic", "cannot happen", True, ""),
        ("counted in Python", "static", "never", False, ""),
        ("doubles", "static", "call", False, "run"),
        ("doubles", "dynamic", "forward", False, "run"),
    ],
)
def test_known_faults(record, fault, engine, when, named, tool):
    found = row(record, fault, engine)
    assert (found["when"], found["names_line"], found["tool"]) == (when, named, tool)
    assert found["detected"] == (when != "never")


def test_ops_that_ran_before_are_counted(record):
    assert row(record, "missing transpose", "dynamic")["ops_before"] == 3
    assert row(record, "missing transpose", "static")["ops_before"] == 0
    assert row(record, "log of zero", "static")["ops_before"] == 2
    assert row(record, "state explodes", "dynamic")["ops_before"] == 56


def test_steps_are_tools_then_probes_then_lines(record):
    assert row(record, "missing transpose", "static")["steps"] == 1
    assert row(record, "log of zero", "dynamic")["steps"] == 2
    found = row(record, "batch flattened", "dynamic")
    assert found["distance"] == 2
    assert found["steps"] == 1 + 1 + 3  # one tool, the healthy run, and a bisection of seven values
    for engine in ENGINES:
        assert row(record, "wrong sign", engine)["steps"] > 4 + 1


def test_the_engines_need_as_many_steps_for_a_wrong_value(record):
    steps = {engine: [r["steps"] for r in record["faults"] if r["engine"] == engine and r["family"] == "wrong value"]
             for engine in ENGINES}  # fmt: skip
    assert steps["dynamic"] == steps["static"]


def test_messages_say_what_is_wrong(record):
    assert "it stops at greater (numerics.py:" in row(record, "step function", "static")["message"]
    assert "nothing of it reaches the loss" in row(record, "bias never used", "dynamic")["message"]
    assert "arg1: compiled for f32[6,3], got float64" in row(record, "doubles", "static")["message"]


def test_the_record_keeps_the_schema_and_gets_a_computed_verdict(record):
    assert typed(record)
    found = verdict("C3", [record])
    assert found["verdict"] in LABELS - {"not measured yet"}
    assert said(found, f"of {len(FAULTS)} faults")
    assert said(found, "static: ")
    assert regime(found, "shape")["verdict"] == "refuted"  # found before any op runs, by the same message
    assert found == verdict("C3", [record, record])


# The scoring, on made-up runs


def events(*values, file="model.py"):
    return tuple(Event("add", f"{file}:{10 + i}", np.array(float(v))) for i, v in enumerate(values))


@pytest.mark.parametrize("wrong", range(13))
def test_bisection_ends_at_the_first_difference(wrong):
    healthy = events(*range(13))
    faulty = events(*range(wrong), *range(100, 113 - wrong))
    found = c3_debugging.bisect_runs(healthy, Attempt(faulty, ()), None)
    assert found.place == SourceLine("model.py", 10 + wrong)
    assert 3 <= found.probes <= 4


def test_bisection_goes_on_to_the_error_where_all_values_before_it_agree():
    report = ToolReport("forward", "ShapeError: matmul: no (model.py:12); transpose?", 2, SourceLine("model.py", 12))
    found = c3_debugging.bisect_runs(events(1, 2, 3), Attempt(events(1, 2), None, report), report)
    assert found.place == SourceLine("model.py", 12)
    assert c3_debugging.bisect_runs(events(1, 2), Attempt(events(1, 2), ()), None).place is None


def test_a_value_that_comes_back_does_not_mislead_the_bisection():
    assert c3_debugging.bisect_runs(events(1, 2, 3, 4), Attempt(events(1, 9, 3, 4), ()), None).place == SourceLine(
        "model.py", 11
    )


def test_lines_between():
    assert c3_debugging.off(SourceLine("a.py", 3), SourceLine("a.py", 5)) == 2
    assert c3_debugging.off(SourceLine("b.py", 5), SourceLine("a.py", 5)) is None
    assert c3_debugging.off(None, SourceLine("a.py", 5)) is None


@pytest.mark.parametrize(
    ("message", "place"),
    [
        ("ShapeError: add: no, f32[3] (model.py:12); try", SourceLine("model.py", 12)),
        ("changed in place (a.py:7); in the gradient of exp (b.py:8)", SourceLine("a.py", 7)),
        ("no line at all (really)", None),
    ],
)
def test_the_line_that_a_message_names(message, place):
    assert named_line(message) == place


def test_values_are_the_same_by_spec_and_to_rounding():
    one = np.float32([1, np.nan])
    assert same(one, one * np.float32(1 + 1e-6))
    assert not same(one, one.astype(np.float64))
    assert not same(one, one[:1])
    assert not same(one, np.float32([1, 2]))
    assert same(one, TensorSpec((2,), "float32"))
    assert not same(one, TensorSpec((3,), "float32"))


def test_an_attempt_that_ended_in_an_error_is_like_no_other():
    failed = Attempt((), None, ToolReport("forward", "ValueError", 0))
    assert not same_results(failed, failed)

"""C1, C2 and C3 about a framework, by one made of our own engines: the same records, so that the same rules judge."""

from functools import cache

import pytest

from compare import engines as frameworks
from compare import steps
from compare.claims import CLAIMS
from compare.claims import c2_gradients as gradients
from compare.claims import c3_debugging as debugging
from compare.errors import without_folders
from compare.instruments import programs as control_flow
from compare.workloads import programs as corpus
from compare.workloads.faults import SourceLine
from tests.helpers.jobs import check_of
from tests.helpers.records import plain, typed
from tests.helpers.toy_framework import Toy

SOME_OPS = ["sum", "tanh", "where"]


pytestmark = pytest.mark.usefixtures("toy")


@pytest.fixture
def two_families(monkeypatch):
    monkeypatch.setattr(corpus, "FAMILIES", {"branches": "branches", "state": "states"})


def programs(mode):
    return {row.program: row for row in control_flow.measure(check_of(mode)).programs}


def faults(record):
    return {(row.fault, row.engine): row for row in record.faults}


# C1


@pytest.mark.usefixtures("two_families")
def test_programs_run_eagerly_and_compiled_unchanged_rewritten_or_not_at_all():
    found = programs("toy-jit")
    assert all(row.dynamic for row in found.values())
    textbook = found["branch_on_sum"]
    assert (textbook.static, textbook.trace, textbook.idiom) == ("rewritten", "refused", "toy.cond")
    assert textbook.trace_reason.startswith("ControlFlowError: ")
    assert 0 < textbook.edit < 1
    assert (found["clip_norm"].static, found["clip_norm"].idiom) == ("rewritten", None)
    assert (found["by_rank"].static, found["by_rank"].trace, found["by_rank"].edit) == ("unchanged", "right", 0)
    lost = found["trajectory"]
    assert (lost.static, lost.edit) == ("refused", None)
    assert lost.reason == corpus.states.VALUE_SHAPED
    assert textbook.breaks is textbook.pieces is textbook.kernels is None


@pytest.mark.usefixtures("two_families")
def test_a_worker_names_the_program_that_it_runs(monkeypatch):
    told = []
    monkeypatch.setattr(steps, "now", told.append)
    assert [f"ran {name}" for name in programs("toy-jit")] == told
    assert told


@pytest.mark.usefixtures("two_families")
def test_a_wrong_result_and_a_refusal_are_told_apart_and_are_data_for_the_rule():
    wrong, refused = programs("toy-wrong"), programs("toy-refusing")
    assert {row.trace for row in wrong.values()} == {"wrong"}
    assert wrong["by_rank"].trace_reason.startswith("input 0: off by ")
    assert {row.trace for row in refused.values()} == {"refused"}
    assert {row.static for row in (*wrong.values(), *refused.values())} == {"refused"}
    finding = CLAIMS["C1"].find([control_flow.measure(check_of("toy-wrong"))])
    assert any(reason.startswith("compiled without an error, but wrong") for reason in finding.reasons)


def test_a_compiler_that_does_not_come_back_is_stopped(monkeypatch):
    monkeypatch.setattr(corpus, "FAMILIES", {"exceptions": "branches"})
    monkeypatch.setattr(control_flow, "LIMIT", 0.02)
    monkeypatch.setattr(control_flow.ProgramVersion, "fares", in_time(control_flow.ProgramVersion.fares))
    found = programs("toy-slow")
    assert {row.trace_reason for row in found.values()} == {"time limit: it did not end in 0.02 s"}
    assert {row.trace for row in found.values()} == {"failed"}


def in_time(fares):
    """`fares`, with the whole limit for what is eager, so that a busy machine changes nothing."""

    def run(version, expected, more=()):
        control_flow.LIMIT = 0.02 if version.watched.__name__ == "run" else 60.0
        return fares(version, expected, more)

    return run


def test_where_a_reason_quotes_the_user_it_is_what_comes_last():
    error = ValueError('in user code:\n\n    File "a.py", line 1, in f  *\n        if x:\n\n    TypeError: no bool\n')
    assert control_flow.error_line(error) == "TypeError: no bool"
    assert control_flow.error_line(ValueError("one\ntwo")) == "ValueError: one two"


# C2


def test_gradients_are_checked_in_every_choice_of_inputs_and_once_compiled(monkeypatch):
    monkeypatch.setattr(gradients, "differentiable", lambda: SOME_OPS)
    record = gradients.measure(check_of("toy-jit"))
    assert list(record.by_op) == SOME_OPS
    assert record.failures == []
    assert record.checks == record.passed == sum(counts["checks"] for counts in record.by_op.values())
    assert record.checks > 40
    assert plain(typed(plain(record))) == plain(record)
    eager = gradients.measure(check_of("toy-eager"))
    assert record.checks == eager.checks + len(SOME_OPS)


def test_a_wrong_gradient_is_a_failure_that_says_of_which_mode(monkeypatch):
    monkeypatch.setattr(gradients, "differentiable", lambda: SOME_OPS)
    record = gradients.measure(check_of("toy-wrong"))
    assert record.checks - record.passed == len(record.failures) == len(SOME_OPS)
    assert all(": toy-wrong against graphduel: " in failure for failure in record.failures)
    assert CLAIMS["C2"].find([record]).verdict == "refuted"


def test_what_a_framework_does_not_do_is_no_check(monkeypatch):
    def functions(self):
        return {**every(self), "tanh": lambda x: x.no_such_method()}

    every = Toy.functions
    monkeypatch.setattr(Toy, "functions", functions)
    monkeypatch.setattr(gradients, "differentiable", lambda: SOME_OPS)
    counts = gradients.measure(check_of("toy-eager")).by_op["tanh"]
    assert counts["checks"] == counts["passed"] == 0
    assert counts["refused"] > 0


# C3


@cache
def debugged():
    return debugging.measure(check_of("toy-jit"))


@pytest.mark.slow
def test_faults_are_found_by_the_same_tools_in_both_modes():
    record = debugged()
    found = faults(record)
    assert record.left_out == {}
    assert len(found) == 2 * len(debugging.corpus())
    for engine, when, ops in (("dynamic", "forward", 1), ("static", "trace", 0)):
        row = found["reshaped to another size", engine]
        assert (row.when, row.tool, row.ops_before, row.names_line, row.steps) == (when, "run", ops, True, 1)
        assert found["stopped", engine].tool == "reach"
        assert found["uphill", engine].tool == "train"
        assert not found["wrong sign", engine].detected
    asked = [found["if on a value", engine] for engine in ("dynamic", "static")]
    assert [(row.when, row.steps) for row in asked] == [("cannot happen", 0), ("trace", 1)]
    late = found["skip connection forgotten", "dynamic"]
    assert (late.names_line, late.distance, late.steps) == (False, 1, 2)
    assert CLAIMS["C3"].find([record]).verdict != "not measured yet"


@pytest.mark.slow
def test_a_check_for_nan_names_the_line_that_made_it():
    found = faults(debugged())["log of zero", "dynamic"]
    assert (found.tool, found.names_line, found.steps) == ("check", True, 2)


@pytest.mark.slow
def test_a_fault_whose_healthy_training_does_not_run_is_left_out_with_the_reason():
    record = debugging.measure(check_of("toy-refusing"))
    assert record.faults == []
    assert record.left_out.keys() == {fault.name for fault in debugging.corpus()}
    assert record.left_out["uphill"].startswith("toy-refusing: NotImplementedError: cannot be compiled: it prints")


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("the function run at /tmp/a b/x/leaves.py:60 for jit", "the function run at leaves.py:60 for jit"),
        ('from user code: File "/home/me/indices.py", line 3', 'from user code: File "indices.py", line 3'),
        (r'File "C:\me\y.py", line 2', 'File "y.py", line 2'),
        ("a / b and x.py:3, 1/2", "a / b and x.py:3, 1/2"),
    ],
)
def test_a_record_names_files_without_their_folders(said, kept):
    assert without_folders(said) == kept


def test_the_line_that_an_error_names_is_the_last_of_the_users():
    folder = "/home/me/corpus"
    tools = frameworks.find_engine("toy").debugger("toy-jit", lambda file: file.startswith(folder))
    words = f'File "{folder}/shapes.py", line 3, in f\nFile "{folder}/shapes.py", line 7, in g\nFile "x.py", line 9'
    report = tools.report(ValueError(words), "")
    assert (report.place, report.when) == (SourceLine("shapes.py", 7), "trace")
    assert 'File "shapes.py", line 3' in report.message  # a record names no folder of the machine
    assert str(folder) not in report.message
    assert tools.report(ValueError("no"), words).place == SourceLine("shapes.py", 7)
    assert tools.report(ValueError("no"), "").place is None

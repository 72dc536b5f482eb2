"""C2: every branch of the rule, and the sweep that measures it."""

from contextlib import redirect_stderr
from io import StringIO
from operator import attrgetter

import pytest

import dynamic
import graphs
from compare.claims import c2_gradients as gradients
from dynamic import tapes
from graphs.testing import samples
from tests.helpers.claim_records import models, parity, said, sweep, verdict
from tests.helpers.jobs import check_of
from tests.helpers.records import plain
from tests.helpers.slow import mostly_slow
from tests.helpers.together import check_each


@pytest.mark.parametrize(
    ("records", "expected", "words"),
    [
        ([sweep(), *models()], "supported", "404 of 404"),
        ([sweep(passed=399), *models()], "refuted", "fails: op0: wrong"),
        ([sweep(ops=39), *models()], "inconclusive", "39 ops"),
        ([sweep(checks=150, passed=150), *models()], "inconclusive", "pass rate may be 0.976"),
        ([sweep(), *models(2)], "inconclusive", "2 workloads"),
        (models(), "inconclusive", "0 ops"),
        ([sweep(), *models(static_exact="disagree")], "supported", "404 of 404"),
        ([sweep(checks=0, passed=0)], "not measured yet", "no record"),
    ],
)
def test_gradients_rule(records, expected, words):
    found = verdict("C2", records)
    assert found["verdict"] == expected
    assert said(found, words)


def test_a_workload_whose_gradient_is_wrong_refutes_and_is_named():
    wrong = parity("task9", ("dynamic",), dynamic="disagree")
    outputs_only = verdict("C2", [sweep(), *models(), wrong])
    assert outputs_only["verdict"] == "supported"
    wrong["arms"]["dynamic"]["gradient_error"] = 0.3
    found = verdict("C2", [sweep(), *models(), wrong])
    assert found["verdict"] == "refuted"
    assert said(found, "fails: task9 (small)")


def test_many_failures_are_cut_short_and_counted():
    found = verdict("C2", [sweep(passed=370), *models()])
    assert sum(reason.startswith("fails: ") for reason in found["reasons"]) == 10
    assert said(found, "and 20 more failures")


def test_a_repeated_sweep_adds_no_evidence():
    once, twice = [sweep(), *models()], [sweep(), sweep(), *models()]
    assert verdict("C2", once) == verdict("C2", twice)
    assert verdict("C2", [sweep(), sweep(passed=399), *models()])["verdict"] == "refuted"


def checks(op):
    """Every check of an op in our engines."""
    sweep = gradients.Sweep()
    return [check for call in sweep.calls(op) for check in sweep.checks(call)]


@pytest.mark.parametrize("op_name", mostly_slow(gradients.differentiable(), 3))
def test_every_op_passes_the_sweep(op_name):
    with redirect_stderr(StringIO()):  # some ops print what they are given
        check_each(checks(op_name), lambda check: check.run(), name=attrgetter("name"))


def test_there_are_enough_checks(monkeypatch):
    passed = lambda _, check: gradients.GradientOutcome(check.name, "passed")  # noqa: E731
    monkeypatch.setattr(gradients.Sweep, "outcome", passed)  # as the test above has it
    record = plain(gradients.measure(check_of()))
    assert record["failures"] == []
    assert verdict("C2", [record, *models()])["verdict"] == "supported"
    counts = record["by_op"].values()
    assert record["checks"] == sum(count["checks"] for count in counts)
    assert min(count["checks"] for count in counts) > 0
    assert set(record["by_op"]) == set(gradients.differentiable())


def test_every_choice_of_inputs_is_checked_in_both_engines():
    names = [check.name for check in checks("matmul") if check.name.startswith("matmul-batch-by-matrix ")]
    choices = [f"matmul-batch-by-matrix in {which}" for which in ("input 0", "input 1", "input 0, input 1")]
    assert sorted({name.split(":")[0] for name in names}) == sorted(choices)
    assert len(names) == 3 * len(choices)


def test_what_has_no_floating_result_is_not_checked():
    assert not any("to-int" in check.name for check in checks("astype"))


@pytest.fixture
def rule_of_tanh(monkeypatch):
    """The rule of tanh, to be replaced: what the compiled tape makes of it is of this test alone."""
    if tapes.is_compiled():
        from dynamic import fast
        from dynamic.fast import pullbacks

        pullbacks.pullback.cache_clear()
        monkeypatch.setattr(graphs.tanh, "recorder", fast.recorder(graphs.tanh))
        monkeypatch.setitem(graphs.tanh.shortcuts, dynamic.Tensor, fast.record(graphs.tanh))
    yield graphs.tanh.rule(0)
    if tapes.is_compiled():
        pullbacks.pullback.cache_clear()


def test_a_wrong_rule_fails_by_name_and_the_others_still_count(monkeypatch, rule_of_tanh):
    monkeypatch.setattr(gradients, "differentiable", lambda: ["sin", "tanh"])
    monkeypatch.setattr(rule_of_tanh, "apply", graphs.multiply)
    record = plain(gradients.measure(check_of()))
    assert any(line.startswith("tanh-matrix in input 0: dynamic against finite") for line in record["failures"])
    assert not any("\n" in line for line in record["failures"])
    assert record["by_op"]["sin"]["passed"] == record["by_op"]["sin"]["checks"]
    assert record["by_op"]["tanh"]["passed"] < record["by_op"]["tanh"]["checks"]
    assert record["passed"] == record["checks"] - len(record["failures"])
    assert verdict("C2", [record])["verdict"] == "refuted"


def test_a_crash_is_a_failed_check_and_not_the_end(monkeypatch, rule_of_tanh):
    def crash(g, out):
        raise ZeroDivisionError

    monkeypatch.setattr(gradients, "differentiable", lambda: ["tanh"])
    monkeypatch.setattr(rule_of_tanh, "apply", crash)
    record = plain(gradients.measure(check_of()))
    assert record["passed"] == 0
    assert all("ZeroDivisionError" in line for line in record["failures"])


def test_engines_that_differ_are_told_apart(monkeypatch):
    sample = samples("multiply")[0]
    sweep = gradients.Sweep()
    call = gradients.SampledCall(sweep.engine, sweep.functions, sample, (0, 1))
    call.against_ours(sweep.mode)
    value_and_grad = dynamic.value_and_grad

    def doubled(loss, argnum):
        def run(point):
            value, gradients = value_and_grad(loss, argnum)(point)
            return value, [2 * gradient for gradient in gradients]

        return run

    monkeypatch.setattr(dynamic, "value_and_grad", doubled)
    with pytest.raises(AssertionError, match="the gradient of input 0"):
        call.against_ours(sweep.mode)

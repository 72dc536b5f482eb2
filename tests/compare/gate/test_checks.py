"""The checks of steps: what they return, what they refuse, and what they say."""

import os
import re
import sys

import numpy as np
import pytest

import graphs as g
import static
from compare.errors import FunctionError, InputsError
from compare.gate import checks
from compare.gate.checks import (
    Counts,
    compiles_at_most,
    compiles_once,
    counts_of,
    no_breaks,
    not_slower,
    parity,
)  # fmt: skip
from compare.stats import Interval
from graphs.errors import ControlFlowError
from tests.helpers.together import together

W = np.full((3, 2), 0.5, np.float32)


def batch(rows):
    return W, np.linspace(0, 1, 3 * rows, dtype=np.float32).reshape(rows, 3)


def loss(w, x):
    return g.mean(g.tanh(x @ w) ** 2)


def longer(w, x):
    return g.mean(g.exp(g.sin(g.tanh(x @ w))) ** 2)


def branching(w, x):
    return g.sum(x @ w) if g.sum(x) > 0 else g.sum(w)


# compiles once


def test_inputs_of_one_shape_compile_once():
    stats = compiles_once(loss, [batch(4), batch(4), batch(4)])
    assert (stats.compiles, stats.reasons) == (1, ["first call"])


def test_a_second_shape_fails_with_the_reason():
    with pytest.raises(AssertionError, match=r"loss: compiled 2 times for 2 inputs, expected once") as caught:
        compiles_once(loss, [batch(4), batch(5)])
    assert re.search(r"1: first call\n  2: .*x.*", str(caught.value))


def test_symbolic_shapes_compile_once_for_all_sizes():
    assert compiles_once(loss, [batch(4), batch(5)], shapes="symbolic", dims=(None, ("B", None))).compiles == 1


def test_a_jitted_step_counts_what_it_compiled_before():
    step = static.jit(loss)
    step(*batch(2))
    with pytest.raises(AssertionError, match="compiled 2 times for 1 input"):
        compiles_once(step, [batch(3)])


@pytest.mark.parametrize(
    ("step", "inputs", "options", "message"),
    [
        (static.compile(loss, *batch(2)), [batch(2)], {}, "never compiles again; give the function"),
        (static.jit(loss), [batch(2)], {"shapes": "symbolic"}, "give shapes to static.jit"),
        (3, [batch(2)], {}, "not a int"),
        (loss, [], {}, r"inputs is empty; inputs is a list of calls.*write inputs = \[\(w, x\)\]"),
        (loss, (W, W), {}, r"inputs\[0\] is of type ndarray; .*write inputs = \[\(w, x\)\]"),
        (loss, [()], {}, r"inputs\[0\] is empty"),
    ],
)
def test_compiles_once_refuses(step, inputs, options, message):
    with pytest.raises(InputsError, match=message):
        compiles_once(step, inputs, **options)


def test_a_step_may_compile_a_number_of_times():
    assert compiles_at_most(loss, [batch(4), batch(5), batch(4)], 2).compiles == 2
    with pytest.raises(
        AssertionError, match=r"loss: compiled 2 times for 2 inputs, expected at most 1 time; the reason"
    ):
        compiles_at_most(loss, [batch(4), batch(5)], 1)
    assert compiles_at_most(loss, [batch(4), batch(5)], 1, shapes="symbolic", dims=(None, ("B", None))).compiles == 1
    for wrong in (-1, True, 1.5, None):
        with pytest.raises(InputsError, match="n is the number of compiles that are allowed"):
            compiles_at_most(loss, [batch(4)], wrong)


def test_our_engine_captures_a_step_whole_or_refuses_it():
    assert no_breaks(loss, [batch(4), batch(5)]).compiles == 2
    with pytest.raises(ControlFlowError, match=r"test_checks\.py"):
        no_breaks(branching, [batch(4)])
    assert no_breaks(branching, [batch(4)], convert=True).compiles == 1


# parity


def test_parity_compares_value_and_gradient_of_a_loss():
    record = parity(loss, [batch(2), batch(3)])
    assert {mode: row.status for mode, row in record.modes.items()} == {"dynamic": "ok", "static-exact": "ok"}
    assert 0 <= record.modes["static-exact"].gradient_error <= 1e-4
    assert record.agree


def test_parity_takes_the_function_of_a_jitted_step():
    assert parity(static.jit(loss), [batch(2)]).agree


def test_parity_runs_every_input():
    sizes = []

    def seen(w, x):
        sizes.append(x.shape[0])
        return g.sum(x @ w)

    assert parity(seen, [batch(rows) for rows in range(1, 13)]).agree
    assert set(range(1, 13)) <= set(sizes)


def test_parity_fails_where_the_engines_differ():
    def wrong(w, x):
        scale = 2.0 if isinstance(x, static.Symbol) else 1.0
        return g.sum(x @ w) * scale

    with pytest.raises(AssertionError, match=r"wrong: the engines do not agree:\n  static-exact: disagree: the output"):
        parity(wrong, [batch(2)])


def test_parity_fails_where_only_the_gradient_differs():
    def wrong(w, x):
        value = g.sum(x @ w)
        return value + g.sum(w - g.stop_gradient(w)) if isinstance(x, static.Symbol) else value

    with pytest.raises(AssertionError, match=r"static-exact: disagree: the gradient .*in call 1 is off by"):
        parity(wrong, [batch(2)])
    assert parity(wrong, [batch(2)], gradient=False).agree


def test_parity_fails_where_static_refuses():
    with pytest.raises(AssertionError, match="static-exact: unsupported: ControlFlowError"):
        parity(branching, [batch(2)])
    parity(static.jit(branching, convert=True), [batch(2)])


@pytest.mark.parametrize(
    ("step", "given", "message"),
    [
        (static.compile(loss, *batch(2)), {}, "no dynamic side; give the function"),
        (loss, {"modes": ("nosuch",)}, "graphduel has no mode 'nosuch'"),
    ],
)
def test_parity_refuses(step, given, message):
    with pytest.raises(InputsError, match=message):
        parity(step, [batch(2)], **given)


@together(
    ("check", "end"),
    [
        (check, end)
        for check in (compiles_once, parity, lambda step, inputs: not_slower(step, step, inputs))
        for end in (lambda: sys.exit(0), lambda: os._exit(0), lambda: os.execl("/bin/true", "true"))
    ],
)
def test_a_step_that_would_end_the_tests_fails(check, end):
    def leaves(w, x):
        end()

    with pytest.raises(
        FunctionError, match=r"leaves: test_checks\.py:\d+: .* ends the process, so that there is no ans"
    ):
        check(leaves, [batch(2)])


# not slower


def test_counts_are_those_of_the_executables():
    exact = static.compile(loss, *batch(4))
    kernels = sum(exact.graph.op_counts().values())
    assert counts_of(exact, ()) == Counts(kernels, 1, exact.plan.peak)
    found = counts_of(loss, [batch(4), batch(4), batch(5)])
    other = static.compile(loss, *batch(5))
    assert found == Counts(kernels, 2, exact.plan.peak + other.plan.peak)


def test_kernels_in_the_body_of_a_loop_count():
    def loop(x):
        return g.fori_loop(0, 3, lambda i, c: g.sin(g.cos(c)), x)

    step = static.compile(loop, np.ones(3))
    assert counts_of(step, ()).kernels >= sum(step.graph.op_counts().values()) + 2


def test_a_step_is_not_slower_than_itself():
    assert not_slower(loss, loss, [batch(4)]) is None


def test_more_kernels_fail_with_both_counts():
    ours, theirs = (counts_of(f, [batch(4)]).kernels for f in (longer, loss))
    assert ours == theirs + 2
    with pytest.raises(AssertionError, match=f"longer against loss: more than 1.05 times:\n  kernels: {ours} against"):
        not_slower(longer, loss, [batch(4)])
    not_slower(longer, loss, [batch(4)], by=ours / theirs)
    not_slower(loss, longer, [batch(4)])


def test_more_compiles_and_planned_bytes_fail():
    symbolic = static.jit(loss, shapes="symbolic", dims=(None, ("B", None)))
    with pytest.raises(AssertionError, match=r"compiles: 2 against 1, allowed 1\.05\n  planned bytes: "):
        not_slower(loss, symbolic, [batch(63), batch(64)])


def test_executables_need_no_inputs():
    ours, theirs = static.compile(loss, *batch(4)), static.compile(longer, *batch(4))
    assert not_slower(ours, theirs) is None


@pytest.mark.parametrize(
    ("inputs", "given", "message"),
    [
        (None, {}, "nothing is planned before the first call"),
        (None, {"time": True}, "time=True runs both steps; give inputs"),
        ([batch(2)], {"by": 0}, "a ratio above 0"),
        ([batch(2)], {"by": float("nan")}, "a ratio above 0"),
    ],
)
def test_not_slower_refuses(inputs, given, message):
    with pytest.raises(InputsError, match=message):
        not_slower(loss, loss, inputs, **given)


def test_time_is_measured_on_request_with_an_interval():
    found = not_slower(loss, loss, [batch(4)], by=1000, time=True, seconds=0.1)
    assert 0 < found.low <= found.estimate <= found.high < 1000


@pytest.mark.parametrize(
    ("intervals", "runs", "fails"),
    [
        ([Interval(1.5, 1.0, 2.0)], 1, False),
        ([Interval(1.5, 1.2, 2.0), Interval(1.2, 1.0, 1.4)], 2, False),
        ([Interval(1.5, 1.2, 2.0), Interval(1.4, 1.2, 1.6)], 2, True),
        ([Interval(0.5, 0.4, 0.6)], 1, False),
    ],
)
def test_time_fails_only_where_two_intervals_lie_above(intervals, runs, fails, monkeypatch):
    left = list(intervals)
    monkeypatch.setattr(checks, "time_ratio", lambda *_: left.pop(0))
    if fails:
        with pytest.raises(AssertionError, match=r"loss takes 1.4× \[1.2, 1.6\] the time of loss, allowed 1.05×; two"):
            not_slower(loss, loss, [batch(2)], time=True)
    else:
        assert not_slower(loss, loss, [batch(2)], time=True) == intervals[-1]
    assert len(intervals) - len(left) == runs

"""What rounding alone does to a step: measured by nudges, and the only excuse that the gate has for an array."""

import numpy as np
import pytest

import graphs as g
from compare import engines
from compare.engines.nudge import ULPS, nudging
from compare.instruments import parity, rounding
from compare.instruments.rounding import Errors
from compare.own import run
from compare.own.question import asked_of
from compare.records.cells import Compilations, Parity
from compare.records.record import of
from compare.workloads import Case
from tests.helpers import toy_framework
from tests.helpers.fake_workloads import job

ROWS = 512


def loss(params, x, y):
    """A layer whose gradient jumps where a row of `x` is on its edge, and one that is smooth."""
    return g.mean(g.relu(x @ params["edge"])) + g.mean(g.square(y @ params["plain"]))


def inputs(on_edge):
    """Parameters and a call; the last row is orthogonal to `edge`, but for rounding, where it is to lie `on_edge`."""
    rng = np.random.default_rng(0)
    edge, x, y = (rng.normal(size=shape) for shape in (8, (ROWS, 8), (ROWS, 8)))
    x[-1] -= edge * (x[-1] @ edge / (edge @ edge) - (0 if on_edge else 1))
    params = {"edge": edge.astype("f4"), "plain": rng.normal(size=8).astype("f4")}
    return params, x.astype("f4"), y.astype("f4")


def across(gradients, x):
    """What an arm gives that has the last row on the other side."""
    off = {name: np.array(gradient) for name, gradient in gradients.items()}
    side = 1 if np.abs(off["edge"] - _without(x)).max() < 1e-6 else -1
    off["edge"] = off["edge"] + side * x[-1] / ROWS
    return off


def _without(x):
    edge = inputs(True)[0]["edge"]
    return (x[:-1] * (x[:-1] @ edge > 0)[:, None]).sum(0) / ROWS


def scaled(name):
    """What an arm gives whose gradient of a parameter is wrong by one part in a hundred."""

    def change(gradients, _x):
        return {**gradients, name: gradients[name] * np.float32(1.01)}

    return change


def of_framework(monkeypatch, change, on_edge):
    """The gate of a mode of a framework, as a user's function meets it."""
    build = toy_framework.Toy.build

    def built(self, arm, function, argnum):
        step = build(self, arm, function, argnum)
        if self.mode(arm).name != "jit":
            return step

        def off(params, x, y):
            value, gradients = step(params, x, y)
            return value, change(gradients, x)

        return off

    monkeypatch.setattr(toy_framework.Toy, "build", built)
    asked = asked_of("toy", "f.py:loss", "", ("eager", "jit"), seconds=0.02)
    result = run.here(asked, loss, [inputs(on_edge)])
    (record,), (told,) = of(result.records, Parity), of(result.records, Compilations)
    assert record.arms["eager"].status == "ok"
    assert (told.conditioning > 1e-3) == (on_edge and change is across)
    return record.arms["jit"], " ".join(repr(result).split())


def of_ours(monkeypatch, change, on_edge):
    """The gate of our own engines."""
    params, *call = inputs(on_edge)
    case = Case(loss, params, (tuple(call),), lengths=(ROWS,))
    honest = engines.step

    def build(name, case):
        step = honest(name, case)
        if name == "static-exact":
            function = step.function

            def off(params, x, y):
                value, gradients = function(params, x, y)
                return value, change(gradients, x)

            step.function = off
        return step

    monkeypatch.setattr(engines, "step", build)
    row = parity.check(job("parity", "edge"), case, ("dynamic", "static-exact")).arms["static-exact"]
    return row, str(row.reason)


GATES = pytest.mark.parametrize("gate", [of_framework, of_ours])
pytestmark = pytest.mark.usefixtures("toy")


@GATES
def test_a_gradient_that_jumps_by_rounding_alone_is_admitted_with_a_warning(monkeypatch, gate):
    row, said = gate(monkeypatch, across, on_edge=True)
    assert row.status == "ok"
    assert 1e-3 < row.gradient_error <= row.tolerance < 1
    assert row.reason.startswith("ill-conditioned: rounding alone moves its result by up to")
    assert "(1 of 3 arrays by more than 0.0001)" in row.reason
    assert "ill-conditioned" in said


@GATES
def test_the_same_error_on_a_step_that_rounding_does_not_move_is_a_fault(monkeypatch, gate):
    row, _ = gate(monkeypatch, across, on_edge=False)
    assert row.status == "disagree"
    assert "a gradient is off by" in row.reason


@GATES
@pytest.mark.parametrize("name", ["edge", "plain"])
def test_a_wrong_gradient_of_one_part_in_a_hundred_is_a_fault(monkeypatch, gate, name):
    row, _ = gate(monkeypatch, scaled(name), on_edge=False)
    assert row.status == "disagree"
    assert row.reason == "a gradient is off by 0.01, allowed 0.0001"


def test_what_rounding_does_not_move_is_judged_on_an_ill_conditioned_step_too(monkeypatch):
    def both(gradients, x):
        return scaled("plain")(across(gradients, x), x)

    row, _ = of_ours(monkeypatch, both, on_edge=True)
    assert row.status == "disagree"
    assert row.reason == "a gradient is off by 0.01, allowed 0.0001"


def test_what_rounding_moves_by_more_than_its_size_excuses_nothing():
    calls = {0: Errors([0.0], [0.5])}
    assert (
        rounding.judged(calls, 1e-4, lambda _: Errors([0.0], [np.inf])).fault
        == "a gradient is off by 0.5, allowed 0.0001"
    )
    assert rounding.judged(calls, 1e-4, lambda _: Errors([0.0], [0.06])).fault is None


def test_another_structure_is_never_excused():
    actual, expected = ((np.ones(2),), ()), (np.ones(2), ())
    calls = {0: rounding.errors_of(actual, expected)}
    assert rounding.judged(calls, 1e-4, lambda _: Errors([0.05], [])).fault == "the output is off by inf, allowed 0.5"


def test_rounding_is_not_measured_where_nothing_is_off():
    def never(_call):
        raise AssertionError("it was measured")

    assert rounding.judged({0: Errors([1e-5], [1e-6])}, 1e-4, never) == (1e-5, 1e-6, 1e-4, None, None)


def test_a_nudge_moves_floats_that_are_no_whole_numbers():
    x = np.array([0.1, -0.25, 1.0, 0.0, -3.0, np.inf], np.float32)
    moved = nudging(1)(x)
    assert moved.dtype == x.dtype
    np.testing.assert_array_equal(moved[2:], x[2:])
    np.testing.assert_allclose(np.abs(moved[:2] / x[:2] - 1), ULPS * 2.0**-23, rtol=0.2)
    np.testing.assert_array_equal(nudging(1)(x), moved)
    np.testing.assert_array_equal(nudging(1)(np.arange(3)), np.arange(3))

"""Native code in the experiment: a mode, a rung, a mode of one's own functions, and what the doctor says."""

from __future__ import annotations

import numpy as np
import pytest

import compare
import graphs as g
from benchmarks import modes as table
from benchmarks.programs import ROWS
from compare import engines
from compare.cli import checks
from compare.errors import UnsupportedError
from compare.instruments.ladder import NATIVE, RUNGS
from static.call import backend
from tests.helpers import fake_workloads
from tests.helpers import own_functions as own

pytest.importorskip("llvmlite", reason="native code needs llvmlite")


def refused(name):
    raise g.GraphError("there is no native code here; use backend='numpy'")


def near(actual, expected):
    for a, b in zip(g.tree.leaves(actual), g.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5)


def test_the_mode_of_an_input_that_never_varies_and_of_a_stream():
    case = fake_workloads.make_tiny()
    step = engines.step("static-native", case)
    assert [exe.backend for exe in step.executables()] == ["native"]
    near(step(*case.examples[0]), engines.step("static-exact", case)(*case.examples[0]))
    stream = fake_workloads.make_stream()
    step, other = engines.step("static-native", stream), engines.step("static-exact", stream)
    for example in stream.examples:
        near(step(*example), other(*example))
    assert {exe.backend for exe in step.executables()} == {"native"}
    assert step.compiles == other.compiles


def test_where_there_is_no_native_code_the_mode_is_unsupported(monkeypatch):
    monkeypatch.setattr(backend, "choose_backend", refused)
    with pytest.raises(UnsupportedError, match="no native code here"):
        engines.step("static-native", fake_workloads.make_tiny())


def test_the_rung_stands_on_all_passes():
    assert RUNGS[NATIVE].base == "contract"
    assert "other kernels" in RUNGS[NATIVE].adds
    (executable,) = RUNGS[NATIVE].build(fake_workloads.make_tiny()).executables()
    assert executable.backend == "native"


def test_the_mode_of_the_table():
    row = ROWS["tiny MLP"]()
    near(table.MODES["static-native"](row).step(), table.MODES["static"](row).step())


@pytest.mark.slow
def test_a_function_of_ones_own():
    calls = [(np.full(50, 0.5, "f4"),)]
    comparison = compare.compare(lambda x: g.sum(g.tanh(x) * x), calls, ["dynamic", "static-native"], **own.QUICK)
    assert set(comparison.verdict.steady.values) == {"dynamic", "static-native"}
    assert comparison.verdict.refused == {}


def test_the_doctor_says_for_which_processor_or_why_not(monkeypatch):
    monkeypatch.setattr(checks, "_worker", lambda: (checks.FINE, {}))
    assert dict(checks.examine()[1])["native code"].startswith("for ")
    monkeypatch.setattr(backend, "choose_backend", refused)
    parts, environment = checks.examine()
    assert dict(environment)["native code"] == "none here: there is no native code here; use backend='numpy'"
    assert all(state == checks.FINE for name, state in parts if name != "worker process")

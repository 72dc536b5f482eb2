"""The mode in which onnxruntime runs what a trace of the static engine was exported as."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import compare
import graphs as g
from compare import engines, workloads
from compare.engines.graphduel.steps import SessionFunction
from compare.errors import UnsupportedError
from tests.helpers import own_functions as own

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
MODE = "static-onnxruntime"


@pytest.mark.parametrize("name", ["tiny_mlp", "branch_on_sum", "rnn_text"])
def test_a_workload_is_the_same_there(name):
    case = workloads.load(f"compare.workloads.{name}:WORKLOAD").case("small")
    there, here = engines.step(MODE, case), engines.step("static-exact", case)
    example = case.examples[0]
    for result, expected in zip(g.tree.leaves(there(*example)), g.tree.leaves(here(*example)), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


def test_a_call_of_a_new_kind_has_a_session_of_its_own():
    function = SessionFunction(lambda x, n: {"sum": g.sum(x) * n, "same": (x, None)})
    x, y = np.ones(3, np.float32), np.ones((2, 2), np.float32)
    result = function(x, 2)
    assert result["sum"] == 6
    assert result["same"][1] is None
    np.testing.assert_array_equal(result["same"][0], x)
    assert function(x * 2, 2)["sum"] == 12
    assert function.stats.reasons == ["first call"]
    assert (function(x, 3)["sum"], function(y, 2)["sum"]) == (9, 8)
    assert function.stats.reasons == ["first call", *["a call of a new kind"] * 2]
    assert function.stats.compiles == 3


def test_what_onnx_has_not_is_refused_by_name(monkeypatch):
    with pytest.raises(UnsupportedError, match=r"gammaln .*ONNX has no such op"):
        SessionFunction(g.gammaln)(np.ones(3, np.float32))
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(UnsupportedError, match=r"onnxruntime.*pip install 'graphduel\[onnxruntime\]'"):
        SessionFunction(lambda x: x)(np.ones(3, np.float32))


def test_it_is_compared_with_our_engines_and_has_no_memory():
    calls = [(np.ones((2, 3), np.float32),), (np.ones((4, 3), np.float32),)]
    comparison = compare.compare(lambda x: g.sum(g.tanh(x) * x), calls, ["static", "onnxruntime"], **own.QUICK)
    assert set(comparison.verdict.steady.values) == {"dynamic", "static-exact", MODE}
    assert set(comparison.verdict.memory.values) == {"dynamic", "static-exact"}
    assert comparison.verdict.compiles[MODE] == 2

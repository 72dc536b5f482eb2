"""C1, C2 and C3 about frameworks: what each compiler takes, refuses and gets wrong, and what its tools say of a fault.

Of every check a part is run, and only what the frameworks have promised for years is asserted of them.
"""

import pytest

from compare import engines as frameworks
from compare.claims import c2_gradients as gradients
from compare.claims import c3_debugging as debugging
from compare.instruments import programs as control_flow
from compare.workloads import faults
from compare.workloads import programs as corpus
from tests.helpers.jobs import check_of

pytestmark = pytest.mark.peers
MODES = ("torch-compile", "tf-function", "jax-jit")
each_mode = pytest.mark.parametrize("mode", MODES)


@pytest.fixture(autouse=True)
def installed(request):
    if missing := frameworks.of_mode(request.getfixturevalue("mode")).missing:
        pytest.skip(missing)


def programs(mode, monkeypatch, *families):
    monkeypatch.setattr(corpus, "FAMILIES", {family: corpus.FAMILIES[family] for family in families})
    monkeypatch.setattr(control_flow, "sample_mask", lambda: [False] * len(corpus.programs()))
    return {row.program: row for row in control_flow.measure(check_of(mode)).programs}


def faults_found(mode, monkeypatch, *families):
    monkeypatch.setattr(faults, "FAMILIES", {family: faults.FAMILIES[family] for family in families})
    faults.corpus.cache_clear()
    record = debugging.measure(check_of(mode))
    faults.corpus.cache_clear()
    return record, {(row.fault, row.engine): row for row in record.faults}


@each_mode
def test_eager_runs_branches_that_a_trace_does_not_and_their_rewriting_runs(mode, monkeypatch):
    found = programs(mode, monkeypatch, "branches")
    assert all(row.dynamic for row in found.values())
    assert found["leaky_elements"].static == "rewritten"
    assert found["by_rank"].static == "unchanged"
    textbook = found["branch_on_sum"]
    if mode == "tf-function":  # which AutoGraph rewrites
        assert textbook.static == "unchanged"
    else:
        idiom = {"torch-compile": "torch.cond", "jax-jit": "jax.lax.cond"}[mode]
        assert (textbook.static, textbook.trace, textbook.idiom) == ("rewritten", "refused", idiom)
    assert {row.trace for row in found.values()} <= {"right", "refused"}


@each_mode
def test_state_outside_the_arguments_is_baked_in_or_guarded(mode, monkeypatch):
    found = programs(mode, monkeypatch, "state")
    expected = "right" if mode == "torch-compile" else "wrong"  # Dynamo guards what a function reads
    assert {found[name].trace for name in ("warm_up", "running_mean")} == {expected}
    assert all(row.dynamic for row in found.values())
    assert found["trajectory"].static == "refused"


@pytest.mark.parametrize("mode", ["torch-compile"])
def test_graph_breaks_are_counted_and_the_program_is_right_with_them(mode, monkeypatch):
    found = programs(mode, monkeypatch, "branches")
    assert {row.pieces for row in found.values() if row.trace != "right"} == {"right"}
    assert found["branch_on_sum"].breaks == 1
    assert found["by_rank"].breaks is None
    assert {row.kernels for row in found.values()} == {False}
    again = programs(mode, monkeypatch, "branches")  # what the process has compiled before changes nothing
    assert {name: row.breaks for name, row in again.items()} == {name: row.breaks for name, row in found.items()}


@each_mode
def test_gradients_agree_with_the_tape_and_with_differences(mode, monkeypatch):
    monkeypatch.setattr(gradients, "differentiable", lambda: ["max", "pow", "softmax", "stack", "tanh", "where"])
    record = gradients.measure(check_of(mode))
    assert record.failures == []
    assert all(counts["passed"] == counts["checks"] > 0 for counts in record.by_op.values())


@each_mode
def test_shapes_that_do_not_fit_are_named_by_both_and_before_data_when_compiled(mode, monkeypatch):
    record, found = faults_found(mode, monkeypatch, "shape")
    assert record.left_out == {}
    for engine, when in (("dynamic", "forward"), ("static", "trace")):
        row = found["missing transpose", engine]
        assert (row.when, row.tool, row.names_line, row.steps) == (when, "run", True, 1)
        assert row.ops_before == (when != "trace")
        late = found["batch flattened", engine]
        assert (late.when, late.names_line, late.distance, late.steps) == (when, False, 2, 2)


@each_mode
def test_cut_gradients_and_wrong_updates_are_found_by_the_same_tools(mode, monkeypatch):
    _, found = faults_found(mode, monkeypatch, "gradient", "training")
    for engine in ("dynamic", "static"):
        assert found["stopped", engine].tool == "reach"
        assert found["uphill", engine].tool == "train"
        assert not found["bias left out", engine].detected


@each_mode
def test_checks_for_nan_are_the_frameworks_own(mode, monkeypatch):
    _, found = faults_found(mode, monkeypatch, "numeric")
    row = found["gradient of a length at zero", "dynamic"]
    assert row.tool == "check"
    assert row.names_line == (mode != "tf-function")  # whose check names no line of a gradient
    looked = found["log of zero", "dynamic"]
    if mode == "torch-compile":  # there is a check of gradients alone
        assert (looked.tool, looked.names_line) == ("train", False)
    else:
        assert (looked.tool, looked.names_line) == ("check", True)

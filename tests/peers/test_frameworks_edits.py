"""C7 and C8 in frameworks: their trainings give our losses, their edits a result; and why they compiled."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest

from compare import engines as frameworks
from compare.claims import c7_prototyping as prototyping
from compare.claims import c8_structure as structure
from compare.errors import InputsError
from compare.workloads import structures
from compare.workloads.edits import EDITS

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore::DeprecationWarning")]  # of what a compiler loads
MODES = ("torch-compile", "tf-function", "jax-jit")
each_framework = pytest.mark.parametrize("name", frameworks.frameworks())
each_mode = pytest.mark.parametrize("mode", MODES)


def started(name):
    framework = frameworks.find_engine(name)
    if framework.missing:
        pytest.skip(framework.missing)
    framework.start(0)
    return framework


def of_mode(mode):
    return started(frameworks.of_mode(mode).name)


@pytest.mark.slow
@each_framework
def test_every_edited_training_has_our_losses_in_eager(name):
    framework = started(name)
    theirs = framework.library.load(structures.__name__).EDITS
    for ours, edit in zip(structures.EDITS, theirs, strict=True):
        expected = structure.reference(ours)
        run = structure.train(framework, framework.mode_names[0], edit.plain)
        assert structure.apart(expected, run.losses) < structure.TOLERANCE, edit.name
        assert run.rebuilds == 0


@pytest.mark.slow
@each_mode
def test_a_compiled_training_has_our_losses_and_is_rebuilt_for_a_new_structure(mode, monkeypatch):
    framework = of_mode(mode)
    monkeypatch.setattr(structure, "LIMIT", 300.0)
    monkeypatch.setattr(structure, "BUDGET", 0.0)
    chosen = {"layer widened": 1} if mode == "torch-compile" else {"layer widened": 1, "stochastic depth": 6}
    theirs = {edit.name: edit for edit in framework.library.load(structures.__name__).EDITS}
    for ours in structures.EDITS:
        if ours.name in chosen:
            expected = structure.reference(ours)
            row = structure.measure_edit(framework, mode, theirs[ours.name], expected)
            assert row.agree, row
            assert not row.refused
            assert row.ways["retraced"].rebuild == chosen[ours.name]
            assert row.ways["retraced"].steps > row.engines["dynamic"].steps
            assert row.ways["retraced"].compile_seconds > 0


@pytest.mark.slow
@each_mode
def test_an_edit_of_a_model_gives_a_result_in_both_modes(mode, monkeypatch):
    framework = of_mode(mode)
    monkeypatch.setattr(prototyping, "LIMIT", 300.0)
    row = prototyping.measure_edit(framework, mode, EDITS[0])
    assert not row.refused
    assert row.engines.keys() == {"dynamic", "static"}


@pytest.mark.parametrize("mode", ["tf-function", "jax-jit"])
def test_a_retrace_says_which_argument_has_changed_and_how_long_it_took(mode):
    framework = of_mode(mode)

    def loss(params, x, power):
        return framework.functions()["sum"]((params["w"] * x) ** power)

    step = framework.build(mode, loss, 0)
    wide, half = np.ones((5, 3), np.float32), np.ones((2, 3), np.float16)
    calls = [(np.ones((2, 3), np.float32), 2), (wide, 2), (wide, 2), (wide, 3), (half, 3)]
    for x, power in calls:
        params = {"w": np.ones(3, x.dtype)}
        framework.wait(step(*framework.arrays((params, x, power))))
    made = framework.observed(step).compilations
    reasons = {
        "tf-function": [
            "the first call",
            "argument 1: float32[2, 3] before, float32[5, 3] now",
            "argument 2: 2 before, 3 now",
            "argument 0['w']: float32[3] before, float16[3] now, argument 1: float32[5, 3] before, float16[2, 3] now",
        ],
        "jax-jit": [  # which traces a number
            "the first call",
            "argument 1: float32[2, 3] before, float32[5, 3] now",
            "argument 0['w']: float32[3] before, float16[3] now, argument 1: float32[2, 3] before, float16[2, 3] now",
        ],
    }
    assert [one.reason for one in made] == reasons[mode]
    assert all(one.seconds > 0 for one in made)


@each_framework
def test_without_a_gpu_a_framework_says_so_and_stays_on_the_cpu(name):
    framework = started(name)
    with suppress(InputsError):  # of one that has none
        if framework.devices.gpu():
            pytest.skip("there is a GPU")
    with pytest.raises(InputsError, match=r"--device cuda: .*; .*leave --device out"):
        framework.start(0, device="cuda")
    framework.start(0)
    array = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(framework.numpy(framework.arrays([array]))[0], array)

"""The gate by its table: what a mode has wrong is found, or the answer says that it is not seen; right modes pass."""

from __future__ import annotations

import json

import numpy as np
import optree
import pytest

import graphs as g
from compare.own import run
from tests.helpers import gates, kinks
from tests.helpers.mutants import altered
from tests.helpers.plans import plan_of
from tests.helpers.slow import mostly_slow
from tests.helpers.together import together
from tests.helpers.toy_framework import Toy

ROWS = gates.rows(gates.HERE)
CASES = [(row, wrong) for row in ROWS for wrong in gates.mutants(gates.HERE[row.framework], row)]


@together(("row", "wrong"), CASES, quick=20)
def test_what_a_mode_has_wrong_is_found_or_the_answer_says_that_it_is_not_seen(row, wrong):
    status, said = gates.gated(gates.HERE[row.framework], row, wrong)
    assert status == "disagree" or any(words in said for words in gates.SAYS), said


@together("row", [row for row in ROWS if row.framework == "graphduel"], quick=4)
def test_a_mode_that_is_right_is_admitted(row):
    status, said = gates.gated(gates.HERE[row.framework], row)
    assert status == "ok", said


@pytest.mark.parametrize("gate", [kinks.by_framework, kinks.by_ours])
@together(("kink", "seed"), [(kink, seed) for seed in range(6) for kink in kinks.KINKS], quick=2)
def test_a_mode_on_the_other_side_of_a_jump_is_right_and_one_that_is_off_beside_it_is_not(gate, kink, seed):
    depth = 1 + seed % 3
    network = kinks.network(kink, seed, depth, width=(4, 16, 48)[(seed + depth) % 3])
    status, said = gate(network)
    assert status == "ok", said
    status, said = gate(network, kinks.scaled(seed))
    assert status == "disagree", said


@pytest.mark.parametrize("gate", [kinks.by_framework, kinks.by_ours])
@together("name", kinks.STARTS, quick={0, 4, 6})
def test_a_step_that_starts_with_numbers_that_no_nudge_moves_is_judged_by_its_rounding(gate, name):
    network = kinks.start(name, g)
    status, said = gate(network)
    assert status == "ok", said
    for part in ("output", "w"):
        is_noise = part in kinks.STARTS[name].noise
        status, said = gate(network, kinks.scaled_part(part, 1.01))
        assert (status, "ill-conditioned" in said) == (("ok", True) if is_noise else ("disagree", False)), said
        assert gate(network, kinks.scaled_part(part, 100))[0] == "disagree"


# What the answer says of it -------------------------------------------------------------------------------------------

X = np.linspace(0.1, 2, 8, dtype=np.float32)


def of_gradients(change):
    """The change of what `edge` gives."""
    return lambda value, gradients: (value, {**gradients, "edge": change(gradients["edge"])})


SAID = {
    "a size": (lambda value, rest: (value * 1.01, rest), "the output in call 1 is off by 0.01, allowed 0.0001"),
    "a gradient": (of_gradients(lambda x: x * 1.01), "the gradient of `edge` in call 1 is off by 0.01, allowed 0.0001"),
    "NaN": (
        of_gradients(lambda x: x * np.nan),
        "the gradient of `edge` in call 1 is NaN in 8 of 8 elements where it must be finite",
    ),
    "infinity": (
        of_gradients(lambda x: x + np.float32(np.inf)),
        "the gradient of `edge` in call 1 is infinite where it must be finite",
    ),
    "a shape": (of_gradients(lambda x: x[1:]), "the gradient of `edge` in call 1 is of shape (7,) instead of (8,)"),
    "a structure": (lambda value, rest: ((value, value), rest), "the output in call 1 has another structure"),
    "a name": (
        lambda value, rest: (value, {"edge": rest["edge"], "other": rest["plain"]}),
        "the gradient in call 1 has another structure",
    ),
}
"""What a mode has wrong, and what is said of it."""


def answers(monkeypatch, folder, change, x=X):
    """The terminal's text, the page, and the JSON that a comparison of one mode beside eager gives."""

    def loss(params, x):
        return g.mean(g.square(x * params["edge"] + params["plain"]))

    build = Toy.build

    def built(self, mode, function, argnum):
        step = build(self, mode, function, argnum)
        return altered(step, change) if self.traits(mode).name == "jit" else step

    monkeypatch.setattr(Toy, "build", built)
    params = {"edge": np.ones(8, np.float32), "plain": np.full(8, 0.5, np.float32)}
    asked = plan_of("toy", "f.py:loss", "", ("eager", "jit"), seconds=0.02)
    result = run.here(asked, loss, [(params, x)])
    result.save(folder)
    page = " ".join((folder / "report.md").read_text("utf-8").replace("\\", "").split())
    return result, " ".join(repr(result).split()), page, json.loads(json.dumps(result.to_dict()["verdict"]))


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize("wrong", mostly_slow(SAID, 2))
def test_a_disagreement_says_what_in_the_terminal_on_the_page_and_in_json(monkeypatch, tmp_path, wrong):
    change, said = SAID[wrong]
    result, terminal, page, verdict = answers(monkeypatch, tmp_path / "out", change)
    assert result.exit_code == 4
    assert terminal.startswith(f"Jit disagrees: {said}.")
    assert f"Jit disagrees: {said}." in page
    assert verdict["refused"] == {"jit": f"disagree: {said}"}
    assert verdict["disagree"]
    assert not [words for words in (terminal, page) if " agree " in words]


@pytest.mark.usefixtures("toy")
def test_what_is_undefined_in_both_agrees_and_the_answer_says_it(monkeypatch, tmp_path):
    x = np.where(X > 1.5, np.float32(np.nan), X)
    result, terminal, page, verdict = answers(monkeypatch, tmp_path / "out", lambda *parts: parts, x)
    assert result.exit_code in (0, 3)
    assert verdict["refused"] == {}
    for words in (terminal, page):
        assert "the output in call 1 is NaN or infinite in 1 of 1 elements in the plain mode too, and 2 more" in words
        assert "Outputs" not in words  # there is none to compare
    assert optree.tree_leaves(verdict["wrong"]) == []

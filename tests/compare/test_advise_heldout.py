"""Programs drawn at random that nothing was calibrated on, and how predictions of them are scored."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks import advice as evaluation
from compare import engines
from compare.advice import programs
from compare.instruments.rounding import tree_error
from compare.workloads.base import Case

MODES = ("dynamic", "static-exact")


def row(name, predicted, ratio, confidence=0.9, ops=10):
    """Of ratios dynamic ÷ static, as a static step of 1 s makes them easy to write."""
    times = (predicted, ratio), (1.0, 1.0), (5.0, 5.0)
    return evaluation.PredictionRow(name, 1 / predicted, 1 / ratio, *times, confidence, ops)


def test_there_are_forty_and_more_in_every_regime_and_none_is_a_program_of_the_calibration():
    made = evaluation.HELD_OUT
    regimes = [name.partition("/")[2] for name in made]
    assert len(made) >= 40
    assert {regimes.count(regime) for regime in set(regimes)} == {8}
    assert len(set(regimes)) == len(evaluation.BYTES) * len(evaluation.DEPTHS)
    assert {probe().loss for probe in programs.ALL.values()}.isdisjoint(evaluation.BLOCKS)
    assert not set(made) & set(programs.ALL)


@pytest.mark.diagonal("depth", "seed")
@pytest.mark.parametrize("depth", evaluation.DEPTHS)
@pytest.mark.parametrize("seed", ["0/0", "0/7", "5/3"])
def test_a_program_is_the_same_for_a_seed_and_both_engines_agree_on_it(depth, seed):
    made = (evaluation.make_program("rows of 4 KiB", depth, seed) for _ in range(2))
    case, again = (Case(loss, params, (inputs,), (1,)) for loss, params, inputs in made)
    (one,), (other,) = case.examples[0], again.examples[0]
    np.testing.assert_array_equal(one, other)
    results = [
        engines.step(mode, made)(*made.examples[0]) for mode in ("dynamic", "static-exact") for made in (case, again)
    ]
    assert all(np.isfinite(loss) and tree_error(grads, results[0][1]) < 1e-4 for loss, grads in results)


def test_other_seeds_give_other_programs():
    shapes = {evaluation.make_program("rows of 256 KiB", "2 to 4 blocks", str(n))[2][0].shape for n in range(12)}
    counts = {len(evaluation.make_program("rows of 4 KiB", "8 to 14 blocks", str(n))[1]) for n in range(12)}
    assert shapes == set(evaluation.BYTES["rows of 256 KiB"])
    assert len(counts) > 2


ROWS = [
    row("a/small", 4.0, 2.0, 0.9, ops=30),
    row("b/small", 0.5, 0.5, 0.8, ops=5),
    row("c/large", 1.1, 0.5, 0.6, ops=40),
    row("d/large", 2.0, 1.1, 0.7, ops=50),  # nobody wins
]


def test_hits_are_counted_where_there_is_a_winner_by_regime_and_beside_trivial_predictors():
    found = evaluation.scores(ROWS, MODES)
    assert (found["of"], found["hits"]) == (3, 2)
    assert {name: (hits["of"], hits["hits"]) for name, hits in found["regimes"].items()} == {
        "small": (2, 2), "large": (1, 0),
    }  # fmt: skip
    assert found["predictors"] == {"always static-exact": 1, "always dynamic": 2, "static-exact above 5 ops": 2}


def test_the_brier_score_is_the_mean_square_of_what_probabilities_are_off():
    expected = ((0.9 - 1) ** 2 + (0.2 - 0) ** 2 + (0.6 - 0) ** 2 + (0.7 - 1) ** 2) / 4
    assert evaluation.scores(ROWS, MODES)["brier"] == pytest.approx(expected)
    half = [row("a/x", 1.0001, ratio, 0.5) for ratio in (0.5, 2.0, 3.0)]
    assert evaluation.scores(half, MODES)["brier"] == pytest.approx(evaluation.scores(half, MODES)["brier_of_one_half"])


def test_stated_probabilities_are_beside_what_came_true():
    assert evaluation.scores(ROWS, MODES)["stated"] == [
        {"rows": 2, "stated": pytest.approx(0.65), "happened": pytest.approx(0.5)},
        {"rows": 2, "stated": pytest.approx(0.85), "happened": pytest.approx(1.0)},
    ]


def test_nothing_judged_has_no_score():
    found = evaluation.scores([], MODES)
    assert (found["of"], found["rate"], found["brier"], found["stated"]) == (0, None, None, [])
    json.dumps(found, allow_nan=False)


def test_the_command_says_scores_and_takes_the_programs(monkeypatch, saved):
    asked = []

    def evaluate(_question, _prices, chosen, *_):
        asked.extend(chosen)
        return {**evaluation.summary(ROWS, MODES), "left_out": {}}

    monkeypatch.setattr(evaluation, "evaluate", evaluate)
    done = CliRunner().invoke(evaluation.main, ["--held-out", "--calibration", str(saved)])
    assert done.exit_code == 0, done.output
    assert asked == list(evaluation.HELD_OUT)
    words = " ".join(done.stdout.split())
    assert "3 have times that differ by more than 1.15. Right: 2." in words
    assert "Trivial predictors: always static-exact 1, always dynamic 2" in words
    assert "Brier score: 0.125; a constant prediction of one half has 0.25" in words

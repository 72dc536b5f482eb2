"""The steps by hand agree with the command where they are alike, and only there: on made-up processes, no clock."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks import by_hand, places
from compare.records.cells import Time, TimeRow
from compare.records.results import to_json
from compare.stats import geometric_mean_interval, ratio_interval

TRUTH, BETWEEN, WITHIN = 1.4, 0.035, 0.01
"""A ratio, and how much its logarithm differs between processes and between blocks, as was seen of `cross_entropy`."""


def told(rng, processes, blocks=15):
    """The answer of a command whose processes have drawn speeds; its first process times no steady state."""
    eager = np.exp(WITHIN * rng.normal(size=(processes, blocks)))
    ratios = TRUTH * np.exp(BETWEEN * rng.normal(size=(processes, 1)) + WITHIN * rng.normal(size=eager.shape))
    rows = [
        {"eager": TimeRow("ok", None, blocks=a.tolist()), "compile": TimeRow("ok", None, blocks=(a * r).tolist())}
        for a, r in zip(eager, ratios, strict=True)
    ]
    cold = {mode: TimeRow("ok", None, blocks=[9.0]) for mode in ("eager", "compile")}
    times = [Time("a step", "given", modes, process=k) for k, modes in enumerate([cold, *rows])]
    shown = ratio_interval((eager * ratios).tolist(), eager.tolist(), resamples=300)
    of_base = {"compile": [shown.estimate, *(shown.bounds() or (None, None))]}
    lines = [{name: value for name, value in to_json(time).items() if name != "schema"} for time in times]
    return {"records": [{"kind": "another"}, *lines], "verdict": {"of_base": of_base}}


def hand(rng, processes, factor=1.0):
    """Seconds of an eager and of a compiled call in each process, whose ratio is off by a factor."""
    ratios = factor * TRUTH * np.exp(BETWEEN * rng.normal(size=processes))
    return [(1e-4, 1e-4 * ratio) for ratio in ratios]


def test_ways_that_are_alike_agree():
    rng = np.random.default_rng(5)
    agreed = [by_hand.agree(by_hand.difference(hand(rng, 5), told(rng, 5))) for _ in range(300)]
    assert agreed.count("yes") >= 0.94 * len(agreed)


@pytest.mark.parametrize(("factor", "least", "most"), [(1.0, 0.9, 1.0), (0.97, 0.0, 0.25)])
def test_a_part_of_each_call_that_only_one_way_has_shows_in_six_steps_together(factor, least, most):
    rng = np.random.default_rng(6)
    agreed = []
    for _ in range(60):
        six = [[by_hand.difference(hand(rng, 5, factor), told(rng, 5)).estimate] for _ in by_hand.STEPS]
        agreed.append(by_hand.agree(geometric_mean_interval(six, resamples=300)))
    assert least <= agreed.count("yes") / len(agreed) <= most


def test_two_processes_of_a_way_cannot_tell():
    rng = np.random.default_rng(7)
    assert by_hand.agree(by_hand.difference(hand(rng, 2), told(rng, 2))) == "cannot tell"


def test_processes_by_hand_run_on_both_sides_of_the_command(monkeypatch):
    rng, order = np.random.default_rng(8), []

    def alone(name, processes):
        order.append((name, processes))
        return hand(rng, processes)

    def command(file, name, options):
        order.append((f"compare {name}", int(options[-1])))
        return told(rng, int(options[-1]))

    monkeypatch.setattr(by_hand, "by_hand", alone)
    monkeypatch.setattr(by_hand, "compared", command)
    shown = CliRunner().invoke(by_hand.main, ["penalty", "gated", "attention", "--processes", "5"])
    assert shown.exit_code == 0, shown.output
    assert order[:3] == [("penalty", 2), ("compare penalty", 5), ("penalty", 3)]
    assert [line.split()[0] for line in shown.output.splitlines()] == ["step", "penalty", "gated", "attention", "all"]


def test_places_by_hand_have_processes_on_both_sides_of_the_command_and_one_that_differs_is_told(monkeypatch):
    order = []
    costs = {"eager": (1e-2, 4e-3), "compile": (9.0, 3e-3), "Mixer": (5.0, 3.3e-3), "model": (8.0, 3e-3)}
    verdict = {"first": {"values": {}}, "steady": {"values": {"linear": 1.0}}, "refused": {"model": "failed: an error"}}
    for mode, (first, warm) in costs.items():
        if mode != "model":
            verdict["first"]["values"][mode], verdict["steady"]["values"][mode] = 1.02 * first, warm
    verdict["steady"]["values"]["Mixer"] *= 1.2
    monkeypatch.setattr(places, "by_hand", lambda _, mode: order.append(mode) or costs[mode])
    monkeypatch.setattr(places, "compared", lambda *_: order.append("the command") or {"verdict": verdict})
    monkeypatch.setattr(places, "modes", lambda _: [*costs])
    shown = CliRunner().invoke(places.main, ["mlp_mixer"])
    assert shown.exit_code == 0, shown.output
    assert order == [*costs, "the command", *costs]
    ended = {line.split()[1]: line.split()[-1] for line in shown.output.splitlines()[1:]}
    assert ended == {"eager": "yes", "compile": "yes", "Mixer": "no", "model": "error", "linear": "hand"}

"""The steps by hand agree with the command where they are alike, and only there: on made-up processes, no clock."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks import by_hand, places
from compare.records.cells import Parity, ParityRow, Time, TimeRow
from compare.records.results import to_json
from compare.stats import Interval, geometric_mean_interval, ratio_interval

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
    times = [
        Time("a step", "given", modes, process=k, eager="eager", cache="warm" if k else "cold")
        for k, modes in enumerate([cold, *rows])
    ]
    right = dict.fromkeys(("eager", "compile"), ParityRow("ok", None, 0.0, 0.0, 1e-6))
    times.append(Parity("a step", "given", eager="eager", agree=True, modes=right, same_graph=None, kernel_calls={}))
    shown = ratio_interval((eager * ratios).tolist(), eager.tolist(), resamples=300)
    of_base = {"compile": [shown.estimate, *(shown.bounds() or (None, None))]}
    lines = [{name: value for name, value in to_json(time).items() if name != "schema"} for time in times]
    return {"records": [{"kind": "another"}, *lines], "verdict": {"of_base": of_base}}


def answer(*asked):
    return by_hand.answer_in(told(*asked))


def hand(rng, processes, factor=1.0):
    """Seconds of an eager and of a compiled call in each process, whose ratio is off by a factor."""
    ratios = factor * TRUTH * np.exp(BETWEEN * rng.normal(size=processes))
    return [(1e-4, 1e-4 * ratio) for ratio in ratios]


def test_ways_that_are_alike_agree():
    rng = np.random.default_rng(5)
    agreed = [by_hand.agree(by_hand.difference(hand(rng, 5), answer(rng, 5))) for _ in range(300)]
    assert agreed.count("yes") >= 0.94 * len(agreed)


@pytest.mark.parametrize(("factor", "least", "most"), [(1.0, 0.9, 1.0), (0.97, 0.0, 0.25)])
def test_a_part_of_each_call_that_only_one_way_has_shows_in_six_steps_together(factor, least, most):
    rng = np.random.default_rng(6)
    agreed = []
    for _ in range(60):
        six = [[by_hand.difference(hand(rng, 5, factor), answer(rng, 5)).estimate] for _ in range(6)]
        agreed.append(by_hand.agree(geometric_mean_interval(six, resamples=300)))
    assert least <= agreed.count("yes") / len(agreed) <= most


def test_two_processes_of_a_way_cannot_tell_and_none_of_a_busy_machine():
    rng = np.random.default_rng(7)
    assert by_hand.agree(by_hand.difference(hand(rng, 5), by_hand.Answer(Interval(1.0), []))) == "cannot tell"
    assert by_hand.agree(by_hand.difference(hand(rng, 2), answer(rng, 2))) == "cannot tell"


def test_processes_by_hand_run_on_both_sides_of_the_command(monkeypatch):
    rng, order = np.random.default_rng(8), []

    def alone(name, processes, _threads):
        order.append((name, processes))
        return hand(rng, processes)

    def command(file, name, options, _threads):
        order.append((f"compare {name}", int(options[-1])))
        return told(rng, int(options[-1]))

    monkeypatch.setattr(by_hand, "by_hand", alone)
    monkeypatch.setattr(by_hand, "compared", command)
    shown = CliRunner().invoke(by_hand.main, ["penalty", "gated", "attention", "--processes", "5"])
    assert shown.exit_code == 0, shown.output
    assert order[:3] == [("penalty", 2), ("compare penalty", 5), ("penalty", 3)]
    assert [line.split()[0] for line in shown.stdout.splitlines()] == ["step", "penalty", "gated", "attention", "all"]


@pytest.mark.parametrize(
    ("told", "word"),
    [
        (Interval(1.2, 1.1, 1.3), "yes"),
        (Interval(0.8, 0.7, 0.9), "no"),
        (Interval(1.2, 0.9, 1.6), "cannot tell"),
        (Interval(1.2), "cannot tell"),
    ],
)
def test_an_answer_is_right_on_the_side_of_the_median_by_hand(told, word):
    assert by_hand.is_right([0.9, 1.2, 1.3], told) == word


@pytest.mark.parametrize("threads", [1, 2])
def test_the_answer_of_the_command_has_a_ratio_for_each_process_that_counts(threads):
    def row(blocks, **more):
        return TimeRow("ok", None, blocks=blocks, steady=True, **more)

    eager, compiled, disturbed = row([1.0, 1.0]), row([2.0, 2.0]), row([9.0, 9.0], neighbours=0.5)
    turns = [{"eager": eager, "compile": compiled}]
    if threads == 2:  # each mode has a process of its own
        turns.append({"eager": eager, "compile": disturbed})
    place = {"workload": "f", "size": "own", "eager": "eager"}
    records = [
        Time(**place, process=process, modes=rows, cache="warm", threads=threads)
        for process, turn in enumerate(turns, 1)
        for rows in ([turn] if threads == 1 else [{mode: row} for mode, row in turn.items()])
    ]
    checked = ParityRow("ok", None, 0.0, 0.0, 1e-6)
    modes = dict.fromkeys(("eager", "compile"), checked)
    records.append(Parity(**place, agree=True, modes=modes, same_graph=None, kernel_calls={}))
    told = {"records": [to_json(record) for record in records], "verdict": {"of_base": {"compile": [2.0, 1.9, 2.1]}}}
    answer = by_hand.answer_in(told)
    assert answer.ratio == Interval(2.0, 1.9, 2.1)
    assert answer.processes == [[2.0] * (3 - threads)]


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

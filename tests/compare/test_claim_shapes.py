"""C4: every branch of the rule, and what a verdict says of each static mode."""

import pytest

from tests.helpers.claim_records import BASE, LENGTHS, cell, memory, race, regime, said, text, verdict


@pytest.mark.parametrize(
    ("steady", "epoch", "expected"),
    [
        (1.2, 5.0, "supported"),
        (0.8, 5.0, "depends"),  # pays for shapes at first, wins after
        (1.0, 5.0, "depends"),
        (0.8, 0.9, "depends"),  # takes them without padding, as said, and it buys nothing
    ],
)
def test_shapes_rule(steady, epoch, expected):
    assert verdict("C4", text(steady=steady, epoch=epoch))["verdict"] == expected


def test_shapes_name_the_cost_of_the_best_static_mode_and_of_each():
    found = verdict("C4", text())
    assert found["effect"] == {
        "name": "rnn_text (small): first epoch, static-exact ÷ dynamic",
        "value": pytest.approx(5.0),
        "unit": "ratio",
    }
    assert regime(found, "rnn_text (small): steady state, static-pad")["value"] == pytest.approx(1.8, rel=0.01)
    assert said(found, "dynamic 0 and 1.00, static-exact 6 and 1.00, static-pad 1 and 2.40")
    names = [r["name"] for r in found["regimes"]]
    assert len(names) == len(set(names)) == 6
    assert said(found, "latency in the first epoch, static-exact ÷ dynamic: p50 5×, p95 5×, p99 5×")


def test_shapes_refuted_when_dynamic_pads_or_compiles():
    assert verdict("C4", text(dynamic={"padding": 1.5}))["verdict"] == "refuted"
    assert verdict("C4", text(dynamic={"compiles": 3}))["verdict"] == "refuted"


def test_shapes_a_static_mode_that_takes_every_length_at_once_spoils_half_of_the_claim():
    free = {"seconds": 2 * BASE, "lengths": LENGTHS, "first": [9 * BASE] * 6, "compiles": 1, "padding": 1.0}
    found = verdict("C4", text(static_symbolic=free))
    assert found["verdict"] == "depends"
    assert regime(found, "rnn_text (small): static pads or compiles again")["verdict"] == "refuted"


def test_shapes_an_mode_that_was_ended_at_its_limit_is_not_shown_to_take_every_length():
    stopped = {"seconds": 2 * BASE, "lengths": LENGTHS, "compiles": 1, "padding": 1.0, "whole": False}
    found = verdict("C4", text(static_symbolic=stopped))
    assert regime(found, "rnn_text (small): static pads or compiles again")["verdict"] == "inconclusive"


def test_shapes_inconclusive_when_noise_hides_the_cost():
    noisy = text(steady=1.05, static_exact={"noise": 0.3}, dynamic={"noise": 0.3})
    assert verdict("C4", noisy)["verdict"] == "inconclusive"


def test_shapes_need_lengths_that_vary_and_a_static_mode():
    few = verdict("C4", text(dynamic={"lengths": [4, 4, 4, 5]}))
    assert few["verdict"] == "inconclusive"
    assert said(few, "fewer than 5 lengths")
    alone = cell("rnn_text", {"dynamic": {"seconds": BASE, "lengths": LENGTHS}})
    assert verdict("C4", alone)["verdict"] == "inconclusive"


def test_shapes_ask_for_the_workload_of_varying_length():
    assert verdict("C4", race(1.5, 1.2, 1.0))["verdict"] == "not measured yet"


def test_the_headline_is_that_of_the_largest_steps_and_none_of_a_few_kilobytes():
    def peaks(small, large):
        return [
            *memory("rnn_text", small, small, size="small")[1:],
            *memory("rnn_text", large, large, size="large")[1:],
        ]

    both = [*text(epoch=5.0), *text(epoch=3.0, size="large")]
    assert verdict("C4", both)["effect"]["value"] == pytest.approx(3, rel=0.05)
    found = verdict("C4", [*both, *peaks(10_000, 4_000_000)])
    assert found["effect"]["name"].startswith("rnn_text (large): first epoch")
    found = verdict("C4", [*both, *peaks(4_000_000, 10_000)])
    assert found["effect"]["name"].startswith("rnn_text (small): first epoch")
    found = verdict("C4", [*both, *peaks(1000, 2000)])
    assert (found["effect"], found["interval"]) == (None, None)

"""C5: every branch of the rule, its boundary, and the mode that static is judged by."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.claim_records import SIZES, memories, memory, parity, regime, said, verdict


@pytest.mark.parametrize(
    ("ratios", "share", "expected"),
    [
        ((1.5, 1.4, 1.6, 1.5), 0.2, "supported"),
        ((1.5, 1.4, 1.6, 1.5), 0.01, "depends"),  # more, but not for its structure
        ((1.5, 0.6, 1.6, 1.5), 0.2, "depends"),
        ((0.5, 0.6, 0.9, 1.0), 0.2, "refuted"),
        ((1.05, 1.0, 1.0, 1.0), 0.2, "refuted"),  # 5% exactly is not beyond 5%
        ((3.0, 1.0, 1.0, 1.0), 0.2, "inconclusive"),  # more on one, a tie on the rest
        ((1.5, 1.4), 0.2, "inconclusive"),
    ],
)
def test_memory_rule(ratios, share, expected):
    assert verdict("C5", memories(*ratios, share=share))["verdict"] == expected


def test_memory_effect_is_the_geometric_mean_over_workloads():
    found = verdict("C5", memories(2.0, 0.5, 4.0))
    assert found["effect"]["value"] == pytest.approx(4 ** (1 / 3))
    assert said(found, "static holds more in 2 of 3 cases, less in 1")
    assert said(found, "the structure is 20.0% of what static holds")


def test_memory_takes_the_static_mode_that_holds_least_and_counts_caches():
    records = memories(1.0, 1.0, 1.0, share=0)
    record = memory("rnn_text", 1000, 900, mode="static-pad")[1]
    record["arms"]["static-exact"] = {"status": "ok", "reason": None, "peak": 500, "classes": {"caches": 700}}
    records += [parity("rnn_text", record["arms"]), record]
    assert regime(verdict("C5", records), "rnn_text (small), static-pad")["value"] == pytest.approx(0.9)


def test_memory_of_modes_measured_in_processes_of_their_own_is_put_together():
    split = []
    for record in memories(1.5, 1.4, 1.6, 1.5):
        if record["kind"] == "parity":
            split.append(record)
        else:
            split += [{**record, "arms": {mode: held}} for mode, held in record["arms"].items()]
    assert verdict("C5", split) == verdict("C5", memories(1.5, 1.4, 1.6, 1.5))


def test_an_arena_is_no_structure_and_caches_are_told_apart():
    records = memories(1.5, 1.4, 1.6, 1.5, share=0)
    for record in records:
        if record["kind"] == "memory":
            held = record["arms"]["static-exact"]
            held.update(peak=held["peak"] - 1000, classes={"plan": 750, "caches": 250})
    found = verdict("C5", records)
    assert regime(found, "steps under 64 KiB: bytes held")["verdict"] == "supported"
    assert found["verdict"] == "depends"
    assert said(found, "the structure is 0.0% of what static holds")
    assert said(found, "at most 17.9% of what static holds (task1 (small), static-exact)")


def test_a_claim_is_settled_only_where_every_regime_of_size_was_measured():
    for ratios, once in (((1.5, 1.4, 1.6), "supported"), ((0.5, 0.6, 0.9), "refuted")):
        assert verdict("C5", memories(*ratios))["verdict"] == once
        found = verdict("C5", memories(*ratios, sizes=("small", "medium")))
        assert found["verdict"] == "inconclusive"
        assert said(found, f"what was measured says {once}, but nothing speaks for steps of 1 MiB and more")
    few = [*memories(1.5, 1.4, 1.6, sizes=("small", "medium")), *memories(1.5, 1.4, sizes=("large",))]
    assert verdict("C5", few)["verdict"] == "inconclusive"  # two workloads do not speak for a regime


def test_steps_of_a_few_kilobytes_give_no_headline():
    found = verdict("C5", memories(2.0, 3.0, 4.0, sizes=("small", "medium")))
    assert (found["effect"], found["interval"]) == (None, None)
    records = [*memories(9.0, 9.0, 9.0, sizes=("small", "medium")), *memories(1.1, 1.1, 1.1, sizes=("large",))]
    assert verdict("C5", records)["effect"]["value"] == pytest.approx(1.1)


@given(st.lists(st.sampled_from([0.5, 1.0, 1.5]), min_size=6, max_size=12), st.randoms(use_true_random=False))
def test_a_thin_run_that_depends_says_so_of_every_thicker_one(ratios, random):
    thick = [memories(*ratios, sizes=(size,)) for size in SIZES]
    kept = sorted(random.sample(range(len(ratios)), 4))
    names = {f"task{index}" for index in kept}
    thin = [record for records in thick for record in records if record["workload"] in names]
    if verdict("C5", thin)["verdict"] == "depends":
        assert verdict("C5", [record for records in thick for record in records])["verdict"] == "depends"

"""C4's table: the best strategy of each engine, one by one and in batches, and what never counts."""

import pytest

from tests.helpers.claim_records import BASE, BATCHED, lengths, regime, said, strategy, text, verdict

DYNAMIC_BATCHES = "dynamic, padded batches"
NAME = "rnn_text on lines (small)"


def table(static=0.5, epoch=6.0, batches=0.5, batch_epoch=6.0, **fields):
    """Static takes so many times dynamic's time, once warm and in the first epoch; batches are 4 times as fast."""
    return lengths(
        {
            "dynamic": {"seconds": BASE},
            "static, exact": {"seconds": BASE * static, "epoch": epoch / static},
            "static, the maximum": {"seconds": BASE * static * 2, "epoch": epoch, "computed": 190},
            DYNAMIC_BATCHES: {"seconds": BASE / 4, "batching": "padded", "examples": 3, "calls": 2},
            BATCHED: {"seconds": BASE / 4 * batches, "epoch": batch_epoch / batches, "batching": "padded"}
            | {"examples": 3, "calls": 2},
            **fields,
        }
    )


def values(found):
    return {r["name"]: r["value"] for r in found["regimes"] if r["name"].startswith(NAME)}


@pytest.mark.parametrize(
    ("ratios", "expected"),
    [
        ((2.0, 6.0, 2.0, 6.0), "supported"),
        ((0.5, 6.0, 0.5, 6.0), "depends"),  # compiling costs at first and pays after
        ((0.5, 0.8, 0.5, 0.8), "refuted"),
        ((2.0, 6.0, 0.5, 0.8), "depends"),  # batches decide otherwise
    ],
)
def test_the_table_alone_decides_by_its_four_costs(ratios, expected):
    found = verdict("C4", table(*ratios))
    assert found["verdict"] == expected
    assert list(values(found).values()) == pytest.approx([ratios[1], ratios[0], ratios[3], ratios[2]], rel=0.01)


def test_each_engine_is_judged_by_its_best_strategy_in_the_same_way_of_batching():
    found = values(verdict("C4", table()))
    assert set(found) == {
        f"{NAME}: first epoch, one by one, static, exact ÷ dynamic",
        f"{NAME}: steady state, one by one, static, exact ÷ dynamic",
        f"{NAME}: first epoch, in batches, {BATCHED} ÷ {DYNAMIC_BATCHES}",
        f"{NAME}: steady state, in batches, {BATCHED} ÷ {DYNAMIC_BATCHES}",
    }


def test_the_table_joins_the_workloads_in_one_verdict():
    assert verdict("C4", text(steady=1.2, epoch=5.0))["verdict"] == "supported"
    assert verdict("C4", [*text(steady=1.2, epoch=5.0), *table(2.0, 6.0, 2.0, 6.0)])["verdict"] == "supported"
    assert verdict("C4", [*text(steady=1.2, epoch=5.0), *table(0.5)])["verdict"] == "depends"


def test_intervals_widen_with_the_number_of_tables():
    def width(records):
        low, high = regime(verdict("C4", records), f"{NAME}: steady state, one by one, static, exact ÷ dynamic")[
            "interval"
        ]
        return high / low

    more = lengths({"dynamic": {"seconds": BASE}, "static, exact": {"seconds": BASE}}, name="trees")
    assert width([*table(), *more]) > width(table())


def test_a_strategy_that_one_process_found_wrong_counts_in_none():
    records = table(**{"static, scan": {"seconds": BASE / 100}})
    assert any("static, scan" in name for name in values(verdict("C4", records)))
    records[2]["arms"]["static, scan"] = {**strategy(BASE), "status": "disagree", "reason": "off by 2"}
    found = verdict("C4", records)
    assert not any("static, scan" in name for name in values(found))
    assert said(found, f"{NAME}, static, scan: disagree, off by 2")


def test_a_refusal_is_told_with_its_reason_and_what_is_missing_is_not_compared():
    refused = {
        "status": "unsupported",
        "reason": "no loop",
        "compilation": "once",
        "padding": "",
        "batching": "one by one",
    }
    found = verdict("C4", lengths({"dynamic": {"seconds": BASE}, "static, symbolic": refused}))
    assert said(found, "static, symbolic: unsupported, no loop")
    assert values(found) == {}
    assert found["verdict"] == "inconclusive"


def test_what_is_fastest_pads_most_and_holds_most_is_told():
    found = verdict("C4", table(**{"static, exact": {"seconds": BASE, "held": 5_000_000, "compiles": 17}}))
    assert said(found, f"{NAME}: {BATCHED} is fastest once warm")
    assert said(found, "static, the maximum pads most (1.90 elements")
    assert said(found, "static, exact holds most plans (5,000,000 bytes after 17 compiles)")


def test_a_strategy_never_steady_is_named():
    found = verdict("C4", table(**{"static, exact": {"seconds": BASE, "steady": False}}))
    assert said(found, f"{NAME}, static, exact: no steady state was reached in 6 of 6 processes")

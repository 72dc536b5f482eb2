"""C6: every branch of the rule, the control, the break-even, and modes that do not count."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compare.claims.base import NO_INTERVAL
from tests.helpers.claim_records import BASE, cell, duel, memory, parity, race, regime, said, verdict
from tests.helpers.slow import examples


@pytest.mark.parametrize(
    ("steadies", "build", "expected"),
    [
        ((1.5, 1.2, 1.0), 0.0, "supported"),  # slower on some, faster on none, and one-off runs say the same
        ((1.5, 1.2, 1.0), 0.1, "depends"),  # slower in steady state, faster once
        ((1.5, 1.2, 0.5), 0.0, "depends"),  # slower on some tasks, faster on others
        ((1.0, 0.9, 0.5), 0.0, "refuted"),
        ((1.04, 0.9, 1.0), 0.1, "refuted"),  # 4% is under the smallest effect
        ((1.06, 1.0, 1.0), 0.0, "supported"),  # 6% is above it
        ((1.5, 1.2), 0.0, "inconclusive"),  # two workloads are too few
    ],
)
def test_speed_rule(steadies, build, expected):
    assert verdict("C6", race(*steadies, build=build))["verdict"] == expected


def test_speed_that_noise_hides_is_inconclusive():
    found = verdict("C6", race(1.05, 1.05, 1.05, noise=0.3))
    assert found["verdict"] == "inconclusive"
    assert regime(found, "steady state")["verdict"] == "inconclusive"


def test_speed_effect_is_the_geometric_mean_over_workloads_without_the_control():
    found = verdict("C6", race(9.0, 1.0, 2.0, 9.0, 1.0, 1.0, 9.0, 1.0, 0.5, control=1.0))
    assert found["reasons"][0] == "steady state: dynamic is slower than static in 4 of 9 cases, faster in 1"
    assert found["effect"]["name"].endswith("steps of 1 MiB and more")  # of which every third task is one
    assert found["effect"]["value"] == pytest.approx(1.0, rel=0.01)
    assert found["interval"][0] < 0.8 < 1.25 < found["interval"][1]
    assert found["effect"]["unit"] == "ratio"
    assert regime(found, "steady state, steps under 64 KiB")["value"] == pytest.approx(1 / 9, rel=0.01)


def test_speed_on_several_threads_is_a_regime():
    of_one, of_two = race(1.5, 1.2, 1.3), [{**record, "threads": 2} for record in race(1.5, 1.2, 1.3)]
    assert said(verdict("C6", of_two), "steady state, 2 threads: dynamic is slower than static in 3 of 3 cases")
    assert regime(verdict("C6", of_two), "steady state, 2 threads")["verdict"] == "supported"
    assert not said(verdict("C6", of_one), "threads")


def test_speed_is_settled_only_where_every_regime_of_size_was_timed():
    only_small = [record for record in race(1.5, 1.2, 1.3, build=0.0) if record["kind"] != "memory"]
    for index in range(3):
        only_small += memory(f"task{index}", 1000, 1000)[1:]
    found = verdict("C6", only_small)
    assert (found["verdict"], found["effect"]) == ("inconclusive", None)
    assert said(found, "what was measured says supported, but nothing speaks for steps of 64 KiB to 1 MiB")
    assert verdict("C6", race(1.5, 1.2, 1.3, build=0.0))["verdict"] == "supported"


def test_speed_takes_the_fastest_static_mode():
    modes = {
        "dynamic": {"seconds": 1.2 * BASE},
        "static-exact": {"seconds": BASE},
        "static-pad": {"seconds": 3 * BASE},
    }
    found = verdict("C6", [*race(1.2, 1.2), *cell("task9", modes)])
    assert regime(found, "task9 (small): steady state, static-exact")["value"] == pytest.approx(1 / 1.2, rel=0.01)


@pytest.mark.parametrize(
    ("control", "expected", "words"),
    [
        (1.0, "supported", "in the control both engines take equal time"),
        (1.09, "supported", "in the control both engines take equal time"),
        (1.3, "inconclusive", "does not tie"),
        (0.8, "inconclusive", "does not tie"),
        (None, "supported", "was not measured"),
    ],
)
def test_speed_control(control, expected, words):
    found = verdict("C6", race(1.5, 1.2, 1.0, build=0.0, control=control))
    assert found["verdict"] == expected
    assert said(found, words)


def test_a_noisy_control_is_flagged_and_the_largest_size_is_the_one_that_counts():
    noisy = duel("big_matmul", 1.05, noise=0.4)
    found = verdict("C6", [*race(1.5, 1.2, 1.0, build=0.0, control=None), *noisy])
    assert said(found, "too noisy")
    assert found["verdict"] == "supported"
    small = duel("big_matmul", 1.6, size="small")
    large = duel("big_matmul", 1.0, size="large")
    assert said(
        verdict("C6", [*race(1.5, 1.2, 1.0, control=None), *large, *small]),
        "equal time, within 10%: big_matmul (large)",
    )


def test_break_even_counts_the_runs_that_pay_for_the_build():
    # static starts 0.10005 s later and saves 1e-4 s a run, the first included
    found = verdict("C6", race(2.0, 0.5, 1.0, build=0.10005, noise=1e-9))
    assert said(found, "task0 (small): compiling static-exact has paid for itself after 1,001 runs")
    assert said(found, "task1 (small): no break-even, because static-exact was not shown to be faster")


@pytest.mark.parametrize("processes", [1, 2])
def test_too_few_processes_have_no_interval_and_no_verdict(processes):
    control = duel("big_matmul", 1.0, processes=processes)
    found = verdict("C6", [*control, *race(9.0, 9.0, 9.0, control=None, processes=processes)])
    assert found["verdict"] == "inconclusive"
    assert {one["verdict"] for one in found["regimes"]} == {"inconclusive"}
    cell = regime(found, "task0 (small): steady state, static-exact")
    assert cell["value"] == pytest.approx(1 / 9, rel=0.1)
    assert cell["interval"] is None
    assert said(found, f" regimes have no verdict: {NO_INTERVAL}")
    assert said(found, "warning: the control big_matmul has no interval, so no tie was shown")


def test_an_mode_that_failed_the_gate_is_left_out_and_named():
    wrong = duel("task9", 9.0)
    wrong[0] = parity("task9", ("dynamic", "static-exact"), static_exact="disagree")
    found = verdict("C6", [*race(1.0, 1.0, 1.0, build=0.0), *wrong])
    assert found["verdict"] == "refuted"
    assert said(found, "task9 (small), static-exact: left out")
    assert said(found, "task9 (small): no break-even, because only one engine")


def test_an_unsupported_mode_is_named_with_its_reason():
    records = duel("task9", 1.0)
    for record in records[1:]:
        record["arms"]["static-exact"] = {"status": "unsupported", "reason": "a branch on a value"}
    found = verdict("C6", [*race(1.5, 1.2, 1.0, build=0.0), *records])
    assert said(found, "task9 (small), static-exact: unsupported, a branch on a value")
    assert found["verdict"] == "supported"


def test_times_without_a_parity_record_count_for_nothing():
    ungated = [record for record in race(1.5, 1.2, 1.0) if record["kind"] != "parity"]
    assert verdict("C6", ungated)["verdict"] == "inconclusive"


def test_more_cells_widen_every_interval():
    def width(records):
        low, high = regime(verdict("C6", records), "task0 (small): steady state, static-exact")["interval"]
        return high / low

    few, many = race(1.5, 1.2, 1.0), race(1.5, 1.2, 1.0, *[1.3] * 9)
    assert width(many) > width(few)


def test_an_mode_that_was_never_steady_is_named():
    records = race(1.5, 1.2, 1.0)
    next(r for r in records if r["kind"] == "time" and r["workload"] == "task1")["arms"]["dynamic"]["steady"] = False
    assert said(verdict("C6", records), "task1 (small), dynamic: no steady state was reached in 1 of 3 processes")
    assert not said(verdict("C6", race(1.5, 1.2, 1.0)), "no steady state")


@pytest.mark.slow
@examples(0.5, slow=1)
@given(
    st.lists(st.sampled_from([0.5, 0.999, 1.02, 1.5, 3.0]), min_size=3, max_size=7), st.sampled_from([0.05, 0.3, 0.7])
)
def test_noise_never_settles_a_claim_and_never_turns_it(steadies, noise):
    for build in (0.0, 0.1):
        clean, noisy = (verdict("C6", race(*steadies, build=build, noise=n))["verdict"] for n in (1e-9, noise))
        assert noisy in (clean, "inconclusive")


def test_a_cell_that_may_be_faster_leaves_it_open():
    wide = duel("task9", 1.001, build=0.0, noise=0.9)  # of equal seconds the noise would be the same, and cancel
    assert verdict("C6", [*race(1.5, 1.5, 1.5, build=0.0), *duel("task9", 1.0, build=0.0)])["verdict"] == "supported"
    assert verdict("C6", [*race(1.5, 1.5, 1.5, build=0.0), *wide])["verdict"] == "inconclusive"

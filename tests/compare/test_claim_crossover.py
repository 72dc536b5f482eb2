"""The crossover map as C5 and C6 tell it: counts, extremes, the line, the break-even."""

import pytest

from compare.claims import regimes
from compare.claims.c5_memory import bytes_held
from tests.helpers.claim_records import BASE, grid, grid_memory, memories, race, said, verdict
from tests.helpers.records import typed

PLACES = {("matmul", 1, 16): 3.0, ("matmul", 1, 4096): 1.0, ("matmul", 8, 16): 5.0, ("matmul", 8, 4096): 0.5}


def test_points_are_ratios_with_intervals_by_place():
    points = {tuple(p.place): p for p in regimes.map_times(typed(grid(PLACES)))}
    assert {place: 1 / point.ratio for place, point in points.items()} == pytest.approx(PLACES, rel=1e-3)
    assert all(p.interval.low < p.ratio < p.interval.high for p in points.values())


def test_static_pays_back_once_its_later_start_is_earned():
    build = 100.5 * BASE
    points = {tuple(p.place): p for p in regimes.map_times(typed(grid(PLACES, build=build, noise=1e-9)))}
    # late by the build, and each run gains ratio - 1
    assert points["matmul", 1, 16].pays_after == 51  # 100.5 / 2, and after 50 runs static is still behind
    assert points["matmul", 8, 16].pays_after == 26  # 100.5 / 4
    assert points["matmul", 8, 4096].pays_after is None


def test_the_verdict_on_speed_tells_the_map_and_is_not_changed_by_it():
    records = race(1.5, 1.2, 1.0)
    found = verdict("C6", [*records, *grid(PLACES)])
    assert said(
        found,
        "matmul: dynamic is slower than static in 2 of 4 cells, faster in 1; static ÷ dynamic goes from 0.2×",
    )
    assert said(found, "static was shown to be faster at depth 1 up to 16 floats, at depth 8 up to 16 floats")
    assert found["verdict"] == verdict("C6", records)["verdict"]
    assert found["regimes"] == verdict("C6", records)["regimes"]


def test_where_static_leads_everywhere_or_nowhere_there_is_no_line():
    places = {("elementwise", 1, 16): 3.0, ("elementwise", 1, 64): 2.0, ("elementwise", 8, 16): 1.0}
    found = verdict("C6", [*race(1.5, 1.2, 1.0), *grid(places)])
    assert said(found, "static was shown to be faster at depth 1 at every size, at depth 8 nowhere")


def test_the_verdict_on_memory_tells_bytes():
    records = memories(1.5, 0.7, 1.3)
    found = verdict("C5", [*records, *grid_memory({("matmul", 1, 16): 2.5, ("matmul", 1, 4096): 0.75})])
    assert said(
        found,
        "static holds more in 1 of 2 cells, less in 1; "
        "static ÷ dynamic goes from 0.75× (depth 1, 4,096 floats) to 2.5×",
    )
    assert found["verdict"] == verdict("C5", records)["verdict"]


def test_cells_where_the_engines_disagree_are_no_points():
    assert regimes.map_times(typed(grid(PLACES, status="disagree"))) == []
    mixed = [*grid(PLACES), *grid({("matmul", 1, 16): 3.0}, status="disagree")]
    assert len(regimes.map_times(typed(mixed))) == len(PLACES) - 1
    assert regimes.map_sizes([], bytes_held) == []

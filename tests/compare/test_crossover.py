"""The crossover map: chains compute what they say, both engines alike, in every cell."""

from random import Random

import numpy as np
import pytest

from compare.instruments import crossover as measure
from compare.instruments.crossover import GRIDS, MODES, Grid
from compare.plans.settings import PRESETS
from compare.records.job import Budget, Job
from tests.helpers.records import plain, typed

FAST = Budget(rounds=2, least=2, seconds=0.0, block_seconds=1e-4)


def test_a_chain_of_products_is_a_power():
    case = measure.elementwise(5, 3)
    ((gain,),) = case.examples
    assert case.loss(case.params, gain) == pytest.approx(np.mean(case.params["x"] * gain**3), rel=1e-5)


def test_a_chain_of_rotations_keeps_lengths():
    case = measure.matmul(64, 7)
    ((rotation,),) = case.examples
    assert case.params["x"].shape == (4, measure.WIDTH)
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(measure.WIDTH), atol=1e-6)
    assert case.loss(case.params, rotation) == pytest.approx(np.mean(case.params["x"] ** 2), rel=1e-5)


@pytest.mark.parametrize("depth", [1, 300])
@pytest.mark.parametrize("ops", measure.CHAINS)
def test_numbers_stay_in_range_however_deep(ops, depth):
    loss, gradients = measure.exact(measure.CHAINS[ops](32, depth))
    assert 1e-3 < abs(loss) < 10
    assert 1e-6 < np.max(np.abs(gradients["x"])) < 10


def test_every_cell_of_the_grid_is_measured_and_right(monkeypatch):
    monkeypatch.setitem(measure.GRIDS, "coarse", Grid((16, 64), (1, 3)))
    record = plain(measure.measure(Job("crossover", size="coarse", process=0, budget=FAST)))
    assert typed(record)
    places = [(c["ops"], c["depth"], c["elements"]) for c in record["cells"]]
    assert places == [(ops, depth, size) for ops in ("elementwise", "matmul") for depth in (1, 3) for size in (16, 64)]
    for cell in record["cells"]:
        assert cell["status"] == "ok"
        assert list(cell["arms"]) == list(MODES)
        assert len({len(mode["blocks"]) for mode in cell["arms"].values()}) == 1
        assert cell["arms"]["dynamic"]["build"] == 0 < cell["arms"]["static-exact"]["build"]


def test_memory_is_counted_in_every_cell(monkeypatch):
    monkeypatch.setitem(measure.GRIDS, "coarse", Grid((4096,), (2,)))
    record = plain(measure.measure_memory(Job("crossover memory", size="coarse")))
    assert typed(record)
    for cell in record["cells"]:
        for mode in cell["arms"].values():
            assert mode["peak"] + mode.get("held", 0) >= 4096 * 4  # the gradient at least


def test_engines_that_disagree_leave_no_times(monkeypatch):
    monkeypatch.setattr(measure, "exact", lambda case: (np.float64(9), {"x": np.zeros(16)}))
    row = plain(measure.time_cell("elementwise", 1, 16, FAST, Random(0)))
    assert (row["status"], row["arms"]) == ("disagree", {})
    assert "off by" in row["reason"]


def test_presets_name_grids_that_grow():
    coarse, fine = (GRIDS[PRESETS[name].tables.grid] for name in ("quick", "full"))
    assert len(coarse.sizes) * len(coarse.depths) < len(fine.sizes) * len(fine.depths)

"""The training steps of the table, each mode alone: for a profiler, and to keep the times of one mode over time.

Times of different modes were not taken side by side here: for ratios there is `python -m benchmarks.table`.
"""

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.modes import MODES, PEERS
from benchmarks.programs import ROWS
from compare.errors import UnsupportedError
from compare.run.environment import pin


@pytest.fixture(autouse=True, scope="module")
def one_core() -> None:
    pin()


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode not in PEERS])
@pytest.mark.parametrize("row", ROWS)
def test_step(benchmark: BenchmarkFixture, row: str, mode: str) -> None:
    benchmark.group = row
    try:
        made = MODES[mode](ROWS[row]())
    except UnsupportedError as missing:
        pytest.skip(str(missing))
    with made.context:
        benchmark(made.step)

"""The training steps of the table, each arm alone: for a profiler, and to keep the times of one arm over time.

Times of different arms were not taken side by side here: for ratios there is `python -m benchmarks.table`.
"""

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.arms import ARMS, PEERS
from benchmarks.programs import ROWS
from compare.errors import UnsupportedError
from compare.run.environment import pin


@pytest.fixture(autouse=True, scope="module")
def one_core() -> None:
    pin()


@pytest.mark.parametrize("arm", [arm for arm in ARMS if arm not in PEERS])
@pytest.mark.parametrize("row", ROWS)
def test_step(benchmark: BenchmarkFixture, row: str, arm: str) -> None:
    benchmark.group = row
    try:
        made = ARMS[arm](ROWS[row]())
    except UnsupportedError as missing:
        pytest.skip(str(missing))
    with made.context:
        benchmark(made.step)

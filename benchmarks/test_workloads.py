"""A training step of every workload in every mode: the whole stream of examples, once each, steady state."""

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from compare import engines, workloads
from compare.engines.graphduel.steps import GraphStep
from compare.run.environment import pin

CELLS = [(name, mode) for name in workloads.names() for mode in workloads.get(name).modes]


@pytest.fixture(autouse=True, scope="module")
def one_core() -> None:
    """Threads of BLAS on another core would favour whoever spends more of its time in large kernels."""
    pin()


def epoch(step: GraphStep) -> None:
    """One step for each example."""
    for example in step.examples:
        step(*example)


@pytest.mark.parametrize(("name", "mode"), CELLS)
def test_epoch(benchmark: BenchmarkFixture, name: str, mode: str) -> None:
    benchmark.group = name
    step = engines.step(mode, workloads.get(name).case("small"))
    epoch(step)  # compiles what is compiled when first met
    benchmark(epoch, step)
    benchmark.extra_info.update(compiles=step.compiles, compile_seconds=step.compile_seconds)
    step.close()

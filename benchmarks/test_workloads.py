"""A training step of every workload in every arm: the whole stream of examples, once each, steady state."""

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from compare import engines, workloads
from compare.engines.graphduel.steps import GraphStep
from compare.run.environment import pin

CELLS = [(name, arm) for name in workloads.names() for arm in workloads.get(name).arms]


@pytest.fixture(autouse=True, scope="module")
def one_core() -> None:
    """Threads of BLAS on another core would favour whoever spends more of its time in large kernels."""
    pin()


def epoch(step: GraphStep) -> None:
    """One step for each example."""
    for example in step.examples:
        step(*example)


@pytest.mark.parametrize(("name", "arm"), CELLS)
def test_epoch(benchmark: BenchmarkFixture, name: str, arm: str) -> None:
    benchmark.group = name
    step = engines.step(arm, workloads.get(name).case("small"))
    epoch(step)  # compiles what is compiled when first met
    benchmark(epoch, step)
    benchmark.extra_info.update(compiles=step.compiles, compile_seconds=step.compile_seconds)
    step.close()

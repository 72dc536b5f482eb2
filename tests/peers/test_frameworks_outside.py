"""Every workload on every mode of every framework: it agrees with float64, or says why it does not run."""

from __future__ import annotations

import pytest

from compare import workloads
from compare.engines import frameworks, of_mode
from compare.engines.process import limit_seconds
from compare.instruments.bench import Bench
from compare.instruments.parity import expectations
from compare.instruments.timing import first_epoch
from tests.helpers.slow import mostly_slow

COMPILED_BY_TORCH = ("tiny_mlp", "branch_on_sum")
"""Torch compiles for seconds to minutes a shape; `graphduel run --full --frameworks torch` tries them all."""
MODES = {
    "torch": ("torch-eager", "torch-compile"),
    "tensorflow": ("tf-eager", "tf-function", "tf-function-relaxed", "tf-function-xla"),
    "jax": ("jax-eager", "jax-jit"),
    "autograd": ("autograd",),
}


@pytest.mark.parametrize("workload", mostly_slow(workloads.names(), 4))
@pytest.mark.parametrize("mode", [mode for name in frameworks() for mode in MODES[name]])
def test_a_workload_agrees_or_says_why_it_does_not_run(mode, workload):
    if mode == "torch-compile" and workload not in COMPILED_BY_TORCH:
        pytest.skip("compiles for too long")
    framework = of_mode(mode)
    pytest.importorskip(framework.module)
    framework.start(0)
    source = workloads.source(workload)
    case = framework.library.workload(source).case("small")
    references = {each.example: each.reference for each in expectations(workloads.load(source).case("small"))}
    epoch = first_epoch(Bench(framework, case, expected=references), mode, lambda _: limit_seconds(60))
    assert epoch.status in ("ok", "unsupported"), epoch.reason

"""Our own engines as an adapter: the frameworks' path runs them, and finds what the ordinary path finds."""

import numpy as np
import pytest

from compare import engines, workloads
from compare.instruments.bench import Bench
from compare.instruments.parity import expectations
from compare.instruments.timing import answer, no_limit
from compare.records.job import Budget, Job
from compare.records.results import unfold
from tests.helpers.slow import mostly_slow

MODES = ("dynamic", "static-exact", "static-converted")
BUDGET = Budget(rounds=4, least=2, seconds=0.2, block_seconds=0.002)


@pytest.fixture
def ours():
    engine = engines.find_engine(engines.OWN)
    engine.start(0)
    return engine


def test_every_mode_is_of_our_engine(ours):
    assert ours.mode_names[0] == "dynamic"
    assert {engines.of_mode(mode).name for mode in ours.mode_names} == {engines.OWN}
    assert engines.OWN not in engines.frameworks()


@pytest.mark.parametrize("name", mostly_slow(["tiny_mlp", "rnn_text"], 1))
def test_the_path_of_frameworks_runs_our_engines(ours, name):
    case = ours.library.workload(workloads.source(name)).case("small")
    references = {each.example: each.reference for each in expectations(case)}
    job = Job("time", name, "small", 1, modes=MODES, budget=BUDGET)
    parity, time = unfold(answer(job, Bench(ours, case, expected=references), no_limit))
    rows = time.modes
    assert {row.status for row in rows.values()} == {"ok"}
    assert all(row.blocks for row in rows.values())
    shapes = len(set(case.lengths)) if case.varies else 1
    assert [row.compiles for row in rows.values()] == [0, shapes, shapes]
    assert 0 <= max(row.output_error for row in parity.modes.values()) < 1e-4


def test_build_gives_what_a_step_gives(ours):
    case = workloads.get("elementwise_chain").case("small")
    for mode in MODES:
        value, gradients = ours.build(mode, ours.loss(mode, case), case.argnum)(case.params, *case.examples[0])
        expected, gradients_of_step = ours.step(mode, case)(*case.examples[0])
        assert np.array_equal(value, expected)
        for key, gradient in gradients_of_step.items():
            assert np.array_equal(gradients[key], gradient)

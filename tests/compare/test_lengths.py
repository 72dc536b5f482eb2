"""Strategies for inputs of varying length: all give what one example at a time gives, and count what they say."""

import numpy as np
import pytest

from compare.claims.c4_shapes import tables
from compare.instruments import lengths
from compare.instruments.lengths import STRATEGIES, Strategy, collate
from compare.plans import settings as presets
from compare.records.job import Budget, Job
from compare.records.record import LENGTH_DISTRIBUTIONS, LENGTH_MODELS
from compare.report.figures.lengths import percentile, rows, table
from compare.workloads import lengths as models
from compare.workloads.lengths import DISTRIBUTIONS, draw_lengths
from tests.helpers.records import plain, typed
from tests.helpers.slow import mostly_slow

LENGTHS = (3, 5, 3, 9, 4, 2, 7)
FAST = Budget(rounds=2, least=2, seconds=0.0, block_seconds=1e-4)


@pytest.fixture(scope="module", params=models.MODELS)
def stream(request):
    return models.stream(request.param, LENGTHS, width=8, batch=3)


@pytest.fixture(scope="module")
def expected(stream):
    return lengths.reference(stream)


# Every strategy -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", mostly_slow(STRATEGIES, 3))
def test_a_strategy_gives_the_mean_of_single_examples_or_refuses(stream, expected, name):
    mode, row = lengths.first_run(STRATEGIES[name], stream, expected)
    refusing = {"rnn_text": "static, symbolic", "encoder_text": "static, symbolic scan"}
    if name == refusing[stream.model.name]:
        assert (mode, row.status) == (None, "unsupported")
        return
    assert row.status == "ok"
    assert row.error < 1e-5
    assert sum(call.examples for call in row.stream) == len(LENGTHS)
    assert sum(call.compiled for call in row.stream) == mode.compiles == COMPILES[name]
    assert sum(mode.laid.sizes) == COMPUTED[name]
    assert (sum(mode.plans.values()) > 0) == (STRATEGIES[name].engine == "static")
    laid = STRATEGIES[name].layout(LENGTHS, 3)
    assert (laid.compiles, sum(laid.sizes), laid.groups) == (COMPILES[name], COMPUTED[name], mode.laid.groups)
    assert laid.hits == 1 - sum(call.compiled for call in row.stream) / len(row.stream)
    assert len(mode.plans) == laid.compiles
    assert set(mode.plans) == set(laid.shapes)


COMPILES = {name: int(s.engine == "static") for name, s in STRATEGIES.items()} | {
    "static, exact": 6,
    "static, powers of two": 4,  # 2, 4, 8, 16
    "static, optimal buckets": 4,
}
COMPUTED = dict.fromkeys(STRATEGIES, sum(LENGTHS)) | {
    "static, powers of two": 2 + 3 * 4 + 2 * 8 + 16,
    "static, optimal buckets": 3 * 3 + 2 * 5 + 7 + 9,
    "static, the maximum": 7 * 9,
    "dynamic, padded batches": 3 * 5 + 3 * 9 + 7,
    "static, padded batches": 3 * 5 + 3 * 9 + 7,
}


def test_the_factors_tell_strategies_apart():
    factors = {(s.engine, s.compilation, s.padding, s.batching) for s in STRATEGIES.values()}
    assert len(factors) == len(STRATEGIES) - 1  # symbolic sizes with and without a loop in the graph
    assert {s.engine for s in STRATEGIES.values()} == {"dynamic", "static"}


def test_a_strategy_that_differs_keeps_no_times(stream, expected):
    wrong = [(loss + 1, gradients) for loss, gradients in expected]
    mode, row = lengths.first_run(STRATEGIES["dynamic"], stream, wrong)
    assert mode is None
    assert row.status == "disagree"
    assert row.stream == []


def test_a_strategy_that_breaks_is_a_failure_with_its_reason(stream, expected):
    def broken(_):
        raise ZeroDivisionError("no buckets")

    mode, row = lengths.first_run(Strategy("x", "once", "none", "padded", broken), stream, expected)
    assert mode is None
    assert row.status == "failed"
    assert "no buckets" in row.reason


def test_a_batch_is_padded_with_zeros_and_masked():
    first, second, mask = collate([(np.array([1, 2, 3]), np.array([4, 5, 6])), (np.array([7]), np.array([8]))])
    assert first.tolist() == [[1, 2, 3], [7, 0, 0]]
    assert second.tolist() == [[4, 5, 6], [8, 0, 0]]
    assert mask.tolist() == [[True] * 3, [True, False, False]]


def test_a_worker_times_the_lengths_it_is_given(monkeypatch):
    monkeypatch.setitem(lengths.SIZES, "small", lengths.Size(examples=5, longest=6, width=8, batch=2))
    job = Job(
        "lengths", "encoder_text", "small", 0, lengths="mine", examples=(1, 4, 1), modes=("dynamic",), budget=FAST
    )
    record = lengths.measure(Job.from_dict(job.to_dict()))
    assert record.examples == [1, 4, 1]
    assert record.modes["dynamic"].useful == 6


@pytest.mark.parametrize("model", mostly_slow(models.MODELS, 1))
def test_one_process_measures_all_that_is_right(model, monkeypatch):
    monkeypatch.setitem(lengths.SIZES, "small", lengths.Size(examples=5, longest=6, width=8, batch=2))
    record = lengths.measure(Job("lengths", model, "small", 0, lengths="uniform", budget=FAST))
    assert typed(plain(record)) == record
    assert list(record.modes) == list(STRATEGIES)
    usable = [mode for mode in record.modes.values() if mode.status == "ok"]
    assert len(usable) == len(STRATEGIES) - 1
    assert len({len(mode.blocks) for mode in usable}) == 1  # paired
    (found,) = tables([record])
    shown = list(rows(found))
    assert len(shown) == len(usable)
    assert {tuple(row) for row in shown} == {table([found]).headers}
    assert len(table([found]).headers) == len(table([found]).align)


def test_a_percentile_counts_examples_and_not_calls():
    assert percentile([5.0, 1.0], [1, 99], 0.5) == 1.0
    assert percentile([5.0, 1.0], [1, 99], 0.99) == 1.0
    assert percentile([5.0, 1.0], [2, 98], 0.99) == 5.0
    assert percentile([1.0, 2.0, 3.0, 4.0], [1] * 4, 0.5) == 2.0


# Distributions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_lengths_are_as_many_and_as_long_as_asked_and_depend_on_the_seed(name):
    lengths = draw_lengths(name, 40, 1, 30)
    assert len(lengths) == 40
    assert all(models.SHORTEST <= n <= 30 for n in lengths)
    assert len(set(lengths)) > 5
    assert lengths == draw_lengths(name, 40, 1, 30)
    assert lengths != draw_lengths(name, 40, 2, 30)


def test_names_for_jobs_are_those_there_are():
    assert tuple(DISTRIBUTIONS) == LENGTH_DISTRIBUTIONS
    assert tuple(models.MODELS) == LENGTH_MODELS
    for preset in presets.PRESETS.values():
        assert preset.tables.size in lengths.SIZES
        assert {model for model, _ in preset.tables.lengths} <= set(models.MODELS)
        assert {name for _, name in preset.tables.lengths} <= set(DISTRIBUTIONS)

"""The ladder: which rungs there are, what they must have in common, and what a waterfall makes of their times."""

import math
from contextlib import contextmanager
from dataclasses import replace
from random import Random

import numpy as np
import pytest

import dynamic
import graphs as g
import static
from compare.engines import cases
from compare.engines.graphduel.steps import CompiledStep
from compare.instruments import ladder
from compare.instruments.ladder import (
    NATIVE,
    REPLAY,
    RUNGS,
    TAPE,
    THREADS,
    RungDefinition,
    differences,
    measure_on_cores,
    measure_rungs,
)
from compare.instruments.rounds import paired_rounds
from compare.plans import jobs
from compare.plans.settings import Cell, Settings
from compare.records.job import Budget
from compare.report import show
from compare.report.figures import parts
from compare.report.figures.parts import waterfalls
from compare.report.summary import summarise
from static.call import backend
from static.native import pool
from static.passes import pipeline
from tests.helpers import fake_workloads
from tests.helpers.records import plain, typed

BUDGET = Budget(rounds=2, least=2, seconds=0.01, block_seconds=1e-5)


def job(**fields):
    return fake_workloads.job("ladder", "TINY", process=0, budget=BUDGET, **fields)


def has_native_code():
    try:
        backend.choose_backend("native")
    except g.GraphError:
        return False
    return True


def climb(rungs, case=None):
    return plain(measure_rungs(job(), case or fake_workloads.make_tiny(), rungs))


@pytest.fixture(scope="module")
def record():
    return climb(RUNGS)


# Climbing


def test_every_rung_is_timed_and_keeps_the_schema(record):
    assert list(record["rungs"]) == list(RUNGS)
    rows = {name: row for name, row in record["rungs"].items() if name != NATIVE or has_native_code()}
    assert {row["status"] for row in rows.values()} == {"ok"}
    assert len({len(row["blocks"]) for row in rows.values()}) == 1
    assert typed(record)


def test_tape_pool_and_replay_call_the_same_kernels_of_the_same_graph(record):
    kernels = {name: record["rungs"][name]["kernels"] for name in (TAPE, "pool", REPLAY)}
    assert kernels[TAPE] == kernels["pool"] == kernels[REPLAY] == record["traced"]
    assert kernels[TAPE]["matmul"] == 2  # forward, and the gradient of the weights
    assert (record["same_graph"], record["unequal"]) == (True, {})


def test_only_rungs_with_an_arena_have_a_plan(record):
    planned = [name for name, row in record["rungs"].items() if "arena" in row]
    assert [name for name in planned if name != NATIVE] == ["plan", "restructure", "fuse", "contract"]
    assert all(record["rungs"][name]["live"] <= record["rungs"][name]["arena"] for name in planned)


def test_the_rungs_add_up_to_all_passes():
    step = RUNGS["contract"].build(fake_workloads.make_tiny())
    (executable,) = step.executables()
    assert [s.name for s in executable.steps] == [one.__name__ for one in pipeline.DEFAULT]


def with_loss(loss):
    def build(case):
        return CompiledStep(replace(case, static_loss=loss), passes=pipeline.REPLAY, arena=False)

    return {TAPE: RUNGS[TAPE], REPLAY: RungDefinition(TAPE, "another loss", build)}


def test_kernels_that_differ_are_told():
    def by_product(params, x):
        y = g.tanh(x @ params["w"])
        return g.sum(y * y)

    found = climb(with_loss(by_product))
    assert found["rungs"][REPLAY]["status"] == "ok"
    assert found["unequal"][REPLAY] == differences(found["rungs"][TAPE]["kernels"], found["rungs"][REPLAY]["kernels"])
    assert found["unequal"][REPLAY]["square"] == -1
    assert differences({"add": 2, "exp": 1}, {"add": 1, "exp": 1, "log": 1}) == {"add": -1, "log": 1}


def test_a_rung_that_gives_something_else_is_not_timed():
    row = climb(with_loss(lambda params, x: g.sum(g.tanh(x @ params["w"]))))["rungs"][REPLAY]
    assert row["status"] == "disagree"
    assert "off from the tape's result" in row["reason"]
    assert "blocks" not in row


def test_what_static_refuses_is_a_row_with_the_reason():
    found = climb({TAPE: RUNGS[TAPE], REPLAY: RUNGS[REPLAY]}, fake_workloads.make_branch())
    assert found["rungs"][REPLAY]["status"] == "unsupported"
    assert found["same_graph"] is None
    assert found["unequal"] == {}


def test_graphs_with_another_kernel_are_not_isomorphic():
    def graph_of(engine_graph, engine, op):
        def loss(w, x):
            return g.sum(op(x @ w))

        return engine_graph(engine.value_and_grad(loss), fake_workloads.W, fake_workloads.X)

    tape = graph_of(dynamic.record, dynamic, g.tanh)
    assert g.isomorphic(tape, graph_of(static.trace, static, g.tanh))
    assert not g.isomorphic(tape, graph_of(static.trace, static, g.sin))


def test_a_stream_is_taken_at_its_median_length_with_one_function_in_both_engines():
    case = replace(fake_workloads.make_stream(), static_loss=lambda params, x: g.sum(x * params["s"]))
    alone = cases.alone(case)
    assert alone.lengths == (5,)
    assert len(alone.examples[0][0]) == 5
    assert alone.loss is case.static_loss


# On all cores


def on_cores(monkeypatch, cores):
    monkeypatch.setattr(pool, "count", lambda threads: cores if threads == "all" else threads)
    return plain(measure_on_cores(job(), fake_workloads.make_tiny()))


@pytest.mark.skipif(not has_native_code(), reason="there is no native code here")
def test_threads_are_timed_beside_native_code_on_one_core(monkeypatch):
    monkeypatch.setattr(ladder, "is_possible", lambda *_: True)  # this machine may have other work
    found = on_cores(monkeypatch, 2)
    assert found["cores"] == 2
    assert [row["status"] for row in found["rungs"].values()] == ["ok", "ok"]
    assert len({len(row["blocks"]) for row in found["rungs"].values()}) == 1
    assert typed(found)


@pytest.mark.parametrize(("ratio", "possible"), [(0.0958, False), (0.39, False), (0.45, True), (3.0, True)])
def test_two_cores_cannot_be_ten_times_as_fast_as_one(ratio, possible):
    assert ladder.is_possible([ratio * 2.0, ratio * 3.0], [2.0, 3.0], 2) is possible


@pytest.mark.skipif(not has_native_code(), reason="there is no native code here")
def test_a_time_of_threads_that_cannot_be_is_refused_with_the_reason(monkeypatch):
    monkeypatch.setattr(ladder, "is_possible", lambda *_: False)
    found = on_cores(monkeypatch, 2)["rungs"][THREADS]
    assert found["status"] == "unsupported"
    assert found["reason"] == "2 cores seemed to be more than 2 times as fast as one: others used them"
    assert "blocks" not in found


def test_one_core_has_no_threads(monkeypatch):
    found = on_cores(monkeypatch, 1)
    assert found["rungs"][THREADS]["status"] == "unsupported"
    assert not any("blocks" in row for row in found["rungs"].values())


# Blocks that run in a context


def test_a_block_runs_in_its_context_and_warm_calls_are_not_timed():
    now, told = [0], []

    @contextmanager
    def context():
        told.append("in")
        now[0] += 10**9
        yield
        told.append("out")

    def call():
        told.append("call")
        now[0] += 1000 if told[-2] in ("in", "call") and told[-1] == "call" else 0

    budget = Budget(rounds=2, least=2, seconds=1e9, block_seconds=1e-9, width=math.inf)
    rounds = paired_rounds({"a": call}, budget, Random(0), lambda: now[0], within={"a": context}, warm=2)
    assert rounds.blocks["a"] == [1e-6, 1e-6]
    calibration = ["in", "call", "call", "out"]
    assert told == [*calibration, *["in", "call", "call", "call", "out"] * 2]


# Waterfalls


def made(seconds, process=0, **fields):
    rungs = {
        name: {"base": RUNGS[name].base, "status": "ok", "reason": None, "blocks": list(blocks), "peak": 1000}
        for name, blocks in seconds.items()
    }
    head = {"kind": "ladder", "workload": "tiny", "size": "small", "process": process}
    return {**head, "rungs": rungs, "same_graph": True, "unequal": {}, "traced": None, "off_core": 0.0, **fields}


def test_a_waterfall_has_the_ratio_to_the_base_and_to_the_tape():
    noise = np.array([1.0, 3.0, 2.0])  # shared by the rungs of a round, so that it cancels
    record = made({TAPE: 4 * noise, "pool": 3 * noise, REPLAY: 2 * noise, "simplify": noise})
    (found,) = waterfalls(typed([record, *(made({TAPE: 4 * noise, "simplify": noise}, process=i) for i in (1, 2))]))
    steps = {landing.rung: landing.step and landing.step.estimate for landing in found.landings}
    assert steps == pytest.approx({TAPE: None, "pool": 0.75, REPLAY: 0.5, "simplify": 0.5})
    simplify = found.landings[-1]
    assert simplify.total.estimate == pytest.approx(0.25)
    assert simplify.total.bounds() == pytest.approx([0.25, 0.25])
    assert found.fastest == simplify


def shared(seconds, process=0, cores=2):
    fixed = {"base": "", "status": "ok", "reason": None, "peak": 10}
    rows = {name: {**fixed, "blocks": list(blocks)} for name, blocks in seconds.items()}
    head = {"kind": "threads", "workload": "tiny", "size": "small", "process": process}
    return {**head, "cores": cores, "rungs": rows}


def test_threads_are_a_rung_below_native_by_their_ratio_on_the_wall():
    noise = np.array([1.0, 3.0, 2.0])
    climbed = [made({TAPE: 8 * noise, NATIVE: [2.0, 2.0]}, process=i) for i in range(3)]
    on_wall = [shared({NATIVE: 5 * noise, THREADS: 3 * noise}, process=i) for i in range(3)]
    (fall,) = waterfalls(typed([*climbed, *on_wall]))
    native, threads = fall.landings[-2:]
    assert (native.rung, threads.rung, threads.base) == (NATIVE, THREADS, NATIVE)
    assert threads.step.bounds() == pytest.approx([0.6, 0.6])
    assert (threads.seconds, threads.total, threads.peak) == (pytest.approx(1.2), None, 10)
    assert fall.fastest.rung == TAPE
    assert show.rung_table(typed([*climbed, *on_wall]))[-1][:3] == ("threads", "1.2 s", "0.6×")
    assert show.rung_sentence(typed([*climbed, *on_wall])).endswith(
        " With threads=2 machine code takes 0.6× [0.6, 0.6] the time."
    )


def test_a_waterfall_without_threads_says_why():
    alone = shared({NATIVE: []}, cores=1)
    alone["rungs"][THREADS] = {"base": NATIVE, "status": "unsupported", "reason": "one core"}
    (fall,) = waterfalls(typed([made({TAPE: [4.0], NATIVE: [2.0]}), alone]))
    assert [landing.rung for landing in fall.landings] == [TAPE, NATIVE]
    assert fall.missing == {THREADS: "unsupported: one core"}


def test_a_rung_that_is_missing_is_named_with_the_reason():
    record = made({TAPE: [1.0, 1.0]})
    record["rungs"][REPLAY] = {"base": TAPE, "status": "unsupported", "reason": "a branch"}
    (found,) = waterfalls(typed([record]))
    assert found.missing == {REPLAY: "unsupported: a branch"}
    assert found.fastest.rung == TAPE


def test_the_figure_tells_ratios_and_unequal_kernels():
    record = made({TAPE: [4.0, 4.0], REPLAY: [2.0, 2.0]}, unequal={REPLAY: {"add": -1}})
    few, drawing = (parts.draw_ladder(summarise(typed([{**record, "process": i} for i in range(n)]))) for n in (2, 3))
    assert drawing.figure is not None
    row = next(row for row in drawing.table.rows if row[2] == REPLAY)
    assert row[5:7] == ("0.5×", "[0.5, 0.5]")
    assert next(row for row in few.table.rows if row[2] == REPLAY)[5:7] == ("0.5×", "(no interval)")
    assert row[-2:] == ("no: add -1", "yes")
    assert parts.draw_ladder(summarise(typed([]))).figure is None


# Where ladders are climbed


def test_a_quick_run_climbs_some_ladders_and_a_full_one_all():
    def kinds(preset, cell):
        return [job.kind for job in jobs.closer_jobs([cell], Settings(preset))]

    assert kinds("quick", Cell("tiny_mlp", "small")) == [*["ladder", "threads", "parts"] * 3, "ledger"]
    assert kinds("quick", Cell("rnn_text", "small")) == []
    assert kinds("full", Cell("rnn_text", "medium")) == [*["ladder", "threads", "parts"] * 3, *["parts"] * 5, "ledger"]
    assert kinds("full", Cell("rnn_text", "large")) == []
    assert kinds("full", Cell("big_matmul", "medium")) == []

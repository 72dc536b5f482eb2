"""The benchmarks measure what they say: every mode gives what both engines give, and ratios are right."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from click import UsageError
from click.testing import CliRunner

import dynamic
import static
from benchmarks import convolutions, handwritten, plain, programs, summary, table, torch_programs, trained
from benchmarks.modes import MODES, Mode
from benchmarks.programs import PIECES
from benchmarks.rows import Row
from benchmarks.workers import Settings, switches, told_threads, working
from compare.errors import WorkerError
from compare.instruments.parity import TOLERANCES
from compare.instruments.rounding import tree_error
from compare.run import environment
from static.native import target
from tests.helpers.slow import mostly_slow


def dense(loss, batch, sizes, labels=None):
    rng = np.random.default_rng(1)
    params = {}
    for i, (m, n) in enumerate(pairwise(sizes), 1):
        params |= {f"w{i}": rng.standard_normal((m, n)) / m**0.5, f"b{i}": rng.standard_normal(n)}
    y = rng.integers(0, labels, batch) if labels else rng.standard_normal((batch, sizes[-1]))
    return row(loss, params, rng.standard_normal((batch, sizes[0])), y)


def chain(size):
    x, a, b = np.random.default_rng(2).standard_normal((3, size))
    return row(programs.chain, {"x": x, "a": a, "b": b})


def rnn(length, batch):
    rng = np.random.default_rng(3)
    shapes = {"w": (3, 5), "u": (5, 5), "b": (5,), "h": (batch, 5)}
    params = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
    return row(programs.rnn, params, rng.standard_normal((length, batch, 3)))


def transformer(batch, length, width=8):
    rng = np.random.default_rng(4)
    square, vector = (width, width), (width,)
    shapes = dict.fromkeys(("wq", "wk", "wv", "wo"), square)
    shapes |= {"w1": (width, 3 * width), "b1": (3 * width,), "w2": (3 * width, width), "b2": vector}
    shapes |= dict.fromkeys(("scale1", "shift1", "scale2", "shift2"), vector)
    params = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
    return row(programs.transformer, params, *rng.standard_normal((2, batch, length, width)))


def row(loss, params, *inputs):
    params = {name: np.asarray(value, np.float32) for name, value in params.items()}
    return Row(loss, params, tuple(x.astype(np.float32) if x.dtype == np.float64 else x for x in inputs))


SMALL = {
    "tiny MLP": dense(programs.tiny_mlp, 3, (4, 5, 6, 1)),
    "tiny MLP, one example": dense(programs.tiny_mlp, 1, (4, 5, 6, 1)),
    "MLP": dense(programs.mlp, 5, (7, 6, 5, 4), labels=4),
    "MLP, one example": dense(programs.mlp, 1, (7, 6, 5, 4), labels=4),
    "chain, one element": chain(1),
    "chain, two blocks that differ": chain(12_345),
    "RNN": rnn(4, 2),
    "RNN, one step": rnn(1, 3),
    "transformer": transformer(2, 6),
    "transformer, one token": transformer(3, 1),
}
AS_MEASURED = [name for name in PIECES if name not in ("chain 4e6", "transformer T=128")]  # the same code, quickly
PAIRS = [pytest.param(lambda r=r: r, id=name) for name, r in SMALL.items()]
PAIRS += [pytest.param(PIECES[name], id=f"{name}, as measured") for name in AS_MEASURED]


def of_engine(engine, r, params, inputs):
    return engine.value_and_grad(r.loss)(params, *inputs)


@pytest.mark.parametrize("make", mostly_slow(PAIRS, 6))
def test_numpy_steps_equal_both_engines(make):
    r = make()
    by_hand, plainly = handwritten.build(r), plain.STEPS[r.loss.__name__]
    second = {name: value * np.float32(0.9) for name, value in r.params.items()}
    for params in (r.params, second, r.params):  # buffers hold nothing over from the call before
        expected = of_engine(dynamic, r, params, r.inputs)
        for loss, grads in (
            by_hand(params, *r.inputs),
            plainly(params, *r.inputs),
            of_engine(static, r, params, r.inputs),
        ):
            assert {name: g.shape for name, g in grads.items()} == {name: p.shape for name, p in params.items()}
            assert all(g.dtype == np.float32 for g in grads.values())
            assert tree_error((np.asarray(loss), dict(grads)), expected) < TOLERANCES["float32"]


@pytest.mark.parametrize("make", PAIRS)
def test_numpy_steps_leave_what_they_are_given_alone(make):
    r = make()
    params, inputs = {k: v.copy() for k, v in r.params.items()}, [x.copy() for x in r.inputs]
    for value in (*params.values(), *inputs):
        value.flags.writeable = False
    for step in (handwritten.build(r), plain.STEPS[r.loss.__name__]):
        step(params, *inputs)


@pytest.mark.parametrize("name", trained.ROWS)
def test_programs_that_people_train_are_the_same_in_both_engines(name):
    r = trained.ROWS[name]()
    expected = table.reference(name)  # in float64
    for engine in (dynamic, static):
        assert tree_error(of_engine(engine, r, r.params, r.inputs), expected) < TOLERANCES["float32"]


@pytest.mark.slow
@pytest.mark.parametrize("name", mostly_slow(torch_programs.PROGRAMS, 2))
def test_programs_of_pytorch_train_by_their_import_line(name):
    dynamic.manual_seed(0)
    step = torch_programs.PROGRAMS[name](dynamic)
    losses = [float(step()) for _ in range(5)]
    assert np.isfinite(losses).all()
    assert name == "dcgan" or losses[-1] < losses[0]  # of two that play against each other neither need fall


def test_layers_are_timed_beside_a_product_of_as_many_operations():
    layer = convolutions.Layer(examples=2, channels=3, size=6, features=4, window=3, stride=2, padding=1)
    (product, forward, to_input, to_weight), operations = convolutions.runs(layer)
    assert product().shape == (2, 3 * 3, 4)
    assert [run().shape for run in (forward, to_input, to_weight)] == [(2, 4, 3, 3), (2, 3, 6, 6), (4, 3, 3, 3)]
    assert operations == pytest.approx(2e-6 * product().size * 3 * 3 * 3)


@pytest.mark.peers
@pytest.mark.parametrize(("peer", "module"), [("torch", "torch"), ("torch-fused", "torch"), ("jax", "jax")])
@pytest.mark.parametrize("name", trained.ROWS)
def test_peers_train_the_same_programs(peer, module, name):
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed")
    mode = MODES[peer](trained.ROWS[name]())
    loss, grads = mode.arrays(mode.step())
    assert tree_error((np.asarray(loss), dict(grads)), table.reference(name)) < TOLERANCES["float32"]


@pytest.mark.peers
@pytest.mark.parametrize(
    ("peer", "module"), [("torch", "torch"), ("torch-fused", "torch"), ("jax", "jax"), ("tf.function", "tensorflow")]
)
@pytest.mark.parametrize("name", [name for name in SMALL if "one" not in name])
def test_peers_equal_the_dynamic_engine(peer, module, name):
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed")
    r = SMALL[name]
    mode = MODES[peer](r)
    loss, grads = mode.arrays(mode.step())
    assert tree_error((np.asarray(loss), dict(grads)), of_engine(dynamic, r, r.params, r.inputs)) < 1e-4


def test_the_table_is_measured_printed_and_written(tmp_path):
    file = tmp_path / "table.json"
    options = ["--rows", "tiny*", "--modes", "hand*,static", "--rounds", "2", "--block", "0.001", "--json", str(file)]
    done = CliRunner().invoke(table.main, options)
    assert done.exit_code == 0, done.output
    assert "static / hand-written" in done.output
    written = json.loads(file.read_text("utf-8"))
    blocks = written["seconds_per_step"]["tiny MLP"]
    assert list(blocks) == ["hand-written", "static"]
    assert all(len(seconds) == 2 and min(seconds) > 0 for seconds in blocks.values())
    assert written["settings"] == {
        "rounds": 2,
        "block_seconds": 0.001,
        "clock": "wall",
        "processor": "this",
        "threads": 1,
    }


def test_every_mode_keeps_to_avx2_where_the_table_asks_for_it():
    seen = switches("avx2")
    assert seen["GRAPHDUEL_NATIVE_TARGET"] in target.TARGETS
    code = "from numpy._core import _multiarray_umath as m; print([n for n, on in m.__cpu_features__.items() if on])"
    with told_threads(1, seen):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not any(word in done.stdout for word in ("AVX512_SKX", "AVX512_SPR", "X86_V4"))
    assert "GRAPHDUEL_NATIVE_TARGET" not in os.environ


@pytest.mark.parametrize("processor", ["this", "avx2"])
def test_no_mode_is_held_to_a_processor_by_what_the_environment_says(processor, monkeypatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Prescott")
    monkeypatch.setenv("OPENBLAS_L2_SIZE", "1")
    with told_threads(1, switches(processor)):
        assert os.environ.get("OPENBLAS_CORETYPE") == {"this": None, "avx2": "Haswell"}[processor]
        assert "OPENBLAS_L2_SIZE" not in os.environ
    assert os.environ["OPENBLAS_CORETYPE"] == "Prescott"


def test_every_mode_may_use_the_threads_that_the_table_asks_for():
    pytest.importorskip("llvmlite", reason="machine code needs the extra native")
    if len(environment.affinity() or ()) < 2:
        pytest.skip("this process has one core")
    code = (
        "import json, os; from compare.run import environment; environment.pin(threads=2)\n"
        "from benchmarks.modes import MODES, threads; from benchmarks.programs import PIECES; import threadpoolctl\n"
        "mode = MODES['static-native'](PIECES['chain 1e5']()); mode.step(); import threading\n"
        "pools = [p['num_threads'] for p in threadpoolctl.threadpool_info()]\n"
        "print(json.dumps([threads(), pools, threading.active_count()]))"
    )
    for count, expected in ((2, 2), (1, 1)):
        with told_threads(count):
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        seen, pools, active = json.loads(done.stdout)
        assert (seen, active) == (expected, expected)
        assert set(pools) == {2}


def test_an_mode_that_disagrees_is_not_timed(monkeypatch):
    loss, grads = table.reference("tiny MLP")
    off = {**grads, "b1": grads["b1"] + 0.01}
    monkeypatch.setattr(table, "reference", lambda name: (loss, off))
    done = CliRunner().invoke(table.main, ["--rows", "tiny*", "--modes", "hand-written", "--rounds", "2"])
    assert done.exit_code == 4
    assert "tiny MLP: hand-written is off by" in done.output


def test_a_worker_says_why_it_cannot_run():
    with working("tiny MLP", ["nobody"], Settings()) as (worker,), pytest.raises(WorkerError, match="nobody"):
        worker.result()


def test_globs_choose_in_order_and_refuse_what_matches_nothing():
    assert table.chosen("static*,hand-*", ["hand-written", "static-plan", "static"]) == [
        "hand-written",
        "static-plan",
        "static",
    ]
    done = CliRunner().invoke(table.main, ["--rows", "nothing"])
    assert done.exit_code == 2
    assert "'nothing' matches none of tiny MLP" in done.output


def test_a_ratio_is_the_median_of_paired_ratios():
    ratio = summary.paired([2.0, 4.0, 90.0], [1.0, 2.0, 3.0])  # a slow moment that met one mode alone
    assert ratio.estimate == 2
    assert ratio.low == 2 <= ratio.high <= 30


def test_the_fastest_peer_is_chosen_for_each_row():
    measured = {
        "a": {"static": [3.0, 3.0], "torch": [1.0, 1.0], "jax": [6.0, 6.0]},
        "b": {"static": [3.0, 3.0], "torch": [9.0, 9.0], "jax": [6.0, 6.0]},
        "c": {"static": [3.0, 3.0]},
    }
    found = summary.ratios_of(measured, summary.Ratio("static", summary.FASTEST))
    assert {name: ratio.estimate for name, ratio in found.items()} == {"a": 3, "b": 0.5}


@pytest.mark.parametrize(("seen", "word"), [(1.05, "met"), (1.15, "missed")])
def test_bars_are_met_or_missed(seen, word):
    measured = {"tiny MLP": {"hand-written": [1.0, 1.0], "static": [seen, seen]}, "MLP": {"static": [2.0, 2.0]}}
    times, ratios, bars = summary.summarised(measured)
    assert times.rows == [["tiny MLP", "1,000,000", f"{seen * 1e6:,.0f}"], ["MLP", "", "2,000,000"]]
    assert ratios.rows[0] == ["tiny MLP", f"{seen} [{seen}, {seen}]"]
    assert bars.rows == [["static / hand-written, worst piece (tiny MLP)", "1.1", str(seen), word]]


def test_bars_are_others_where_vectors_are_narrow():
    measured = {"MLP": {"static-native": [0.3, 0.3], "dynamic": [0.6, 0.6], "torch": [1.0, 1.0]}}
    told = {p: [row[1:] for row in list(summary.summarised(measured, p))[2].rows] for p in ("this", "avx2")}
    assert told["this"] == [
        ["0.8", "0.3", "met"], ["0.27", "0.3", "missed"], ["0.9", "0.6", "met"], ["0.5", "0.6", "missed"],
    ]  # fmt: skip
    assert told["avx2"] == [
        ["0.8", "0.3", "met"], ["0.32", "0.3", "met"], ["0.95", "0.6", "met"], ["0.65", "0.6", "met"],
    ]  # fmt: skip


def test_a_page_gets_the_tables_between_its_marks():
    record = {
        "time": "2020-02-02T02:02:02+00:00",
        "settings": {"rounds": 2, "block_seconds": 0.03, "clock": "wall"},
        "environment": {
            "cpu": "a processor",
            "logical_cores": 2,
            "load": 1.5,
            "python": "CPython 3.11",
            "numpy": "2.0",
        },
        "seconds_per_step": {"MLP": {"static": [0.002, 0.002]}},
    }
    (start, end), (narrow_start, narrow_end) = table.MARKS.values()
    once = table.with_tables(f"before\n{start}\nold\n{end}\nafter\n", record)
    assert once.startswith("before\n")
    assert once.endswith("after\n")
    assert "| MLP | 2,000 |" in once
    assert "a processor" in once
    assert "old" not in once
    assert table.with_tables(once, record) == once
    narrow = {**record, "settings": {**record["settings"], "processor": "avx2"}}
    both = table.with_tables(f"{once}{narrow_start}\n{narrow_end}\n", narrow)
    assert both.startswith(once)
    assert "with AVX2 alone, with 2 logical cores" in both
    assert table.with_tables(both, record) == both
    with pytest.raises(UsageError, match="needs the lines"):
        table.with_tables("no marks", record)


def test_an_mode_gives_its_result_as_it_is_unless_it_says_how():
    assert Mode(lambda: 1).arrays((1, {})) == (1, {})
